import numpy as np

with open("table.txt", encoding="utf-8") as file:
    ROWS = [[float(number) for number in line.split()] for line in file if line.strip()]
LEFT, WORTH = np.array(sorted(ROWS)).T


def priority(item, room):
    """Return a number for each bin; the item goes into the first bin with the highest."""
    left = room - item
    return np.interp(left, LEFT, WORTH) - 0.01 * left
