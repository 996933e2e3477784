# EVOLVE-BLOCK-START
"""16 points in the plane: a sunflower spiral."""

import numpy as np


def spiral(offset, turn):
    """Place the points on a sunflower spiral."""
    k = np.arange(16)
    radius = np.sqrt(k + offset)
    return np.column_stack([radius * np.cos(turn * k), radius * np.sin(turn * k)])


def min_max_dist_dim2_16():
    """16 points in the plane: a sunflower spiral."""
    points = spiral(offset=1.0, turn=2.3)
    return points
# EVOLVE-BLOCK-END