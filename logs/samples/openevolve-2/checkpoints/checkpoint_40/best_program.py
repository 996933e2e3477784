# EVOLVE-BLOCK-START
"""16 points in the plane: concentric rings, repulsion inside a disc."""

import numpy as np


def rings(counts, inner, twist):
    """Place the points on rings; a single one goes to the middle."""
    rows = []
    for number, count in enumerate(counts):
        last = len(counts) - 1
        radius = 0.0 if count == 1 else 2.0 if number == last else inner
        angle = 2 * np.pi * np.arange(count) / count + twist * number
        rows.append(radius * np.column_stack([np.cos(angle), np.sin(angle)]))
    return np.concatenate(rows)


def repel(points, steps, rate):
    """Let the points repel each other inside the unit disc."""
    points = points - points.mean(axis=0)
    points = points / max(np.sqrt((points**2).sum(axis=1)).max(), 1e-9)
    for _ in range(steps):
        delta = points[:, None] - points[None]
        squares = (delta * delta).sum(axis=2) + np.eye(len(points)) + 1e-3
        push = (delta / (squares * squares)[:, :, None]).sum(axis=1)
        points = points + rate * push / (1.0 + np.sqrt((push * push).sum(axis=1, keepdims=True)))
        radius = np.sqrt((points * points).sum(axis=1, keepdims=True))
        points = points / np.maximum(radius, 1.0)
    return points


def min_max_dist_dim2_16():
    """16 points in the plane: concentric rings, repulsion inside a disc."""
    points = rings(counts=(1, 6, 9), inner=0.2677, twist=0.1556)
    points = repel(points, steps=12, rate=0.09914)
    return points
# EVOLVE-BLOCK-END