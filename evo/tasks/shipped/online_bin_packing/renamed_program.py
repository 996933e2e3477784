import numpy as np


def value(x, y):
    """Return a number for each entry of y; the first entry with the highest is taken."""
    z = y - x
    w = np.where((z > 20.0) & (z < 50.0), 100.0, 0.0)
    return -1.0 * z - w
