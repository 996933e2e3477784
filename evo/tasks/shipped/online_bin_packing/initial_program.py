import numpy as np


def priority(item, room):
    """Return a number for each bin; the item goes into the first bin with the highest."""
    left = room - item
    penalty = np.where((left > 20.0) & (left < 50.0), 100.0, 0.0)
    return -1.0 * left - penalty
