"""What a model is told of points in a triangle: which three of them span the least areas."""

import math
from itertools import combinations

import numpy as np

SHOWN = 3


def notes(value: list[list[float]]) -> str:
    points = np.asarray(value, dtype=float)
    triples = list(combinations(range(len(points)), 3))
    a, b, c = np.array(triples).T
    u, v = points[b] - points[a], points[c] - points[a]
    areas = np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]) * 2 / math.sqrt(3)
    least = np.argsort(areas, kind="stable")[:SHOWN]
    told = [f"points {', '.join(map(str, triples[k]))}: {areas[k]:.5g}" for k in least]
    return f"smallest triangles (area over that of the whole): {'; '.join(told)}"
