import numpy as np


def choose(a, b, options, table):
    """Return the next number, one of the list `options`."""
    first = table[a][options]
    second = table[b][options]
    third = table[options][:, options].mean(axis=1)
    value = 1.0 * first + 1.0 * second + 1.0 * third
    return options[np.argmin(value)]
