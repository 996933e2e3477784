"""The program to start from. A model rewrites this file; `make` is what is called."""

# What cannot change stands here: only the lines between the two marks are open to a model.
# Without marks the whole file is.
COUNT = 6


# EVOLVE-BLOCK-START
def make():
    """Return COUNT points (x, y) of the unit square."""
    return [(0.15 + 0.1 * k, 0.5) for k in range(COUNT)]


# EVOLVE-BLOCK-END
