"""16 points in the plane: drawn at random."""

import numpy as np


def min_max_dist_dim2_16():
    """Return 16 points, shape (16, 2)."""
    return np.random.default_rng(42).standard_normal((16, 2))
