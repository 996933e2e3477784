# EVOLVE-BLOCK-START
"""16 points in the plane: concentric rings."""

import numpy as np


def rings(counts, inner, twist):
    """Place the points on rings; a single one goes to the middle."""
    rows = []
    for number, count in enumerate(counts):
        last = len(counts) - 1
        radius = 0.0 if count == 1 else 1.0 if number == last else inner
        angle = 2 * np.pi * np.arange(count) / count + twist * number
        rows.append(radius * np.column_stack([np.cos(angle), np.sin(angle)]))
    return np.concatenate(rows)


def min_max_dist_dim2_16():
    """16 points in the plane: concentric rings."""
    points = rings(counts=(1, 5, 10), inner=0.5107, twist=0.1477)
    return points
# EVOLVE-BLOCK-END