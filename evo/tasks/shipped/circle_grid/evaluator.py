"""Scores circles in the unit square: the sum of their radii over the best one known."""

import math
from itertools import combinations
from typing import Any

TOLERANCE = 1e-9


def score(value: Any, instance: dict[str, Any]) -> float:
    """Return sum of radii / best known, at most 1; value: circles (x, y, radius)."""
    n = instance["input"]
    if not isinstance(value, list) or len(value) != n:
        raise ValueError(f"expected {n} circles")
    circles = [tuple(map(float, circle)) for circle in value]
    for x, y, r in circles:
        inside = all(r - TOLERANCE <= at <= 1 - r + TOLERANCE for at in (x, y))
        if not (inside and math.isfinite(r) and r >= 0):
            raise ValueError(f"a circle leaves the unit square: {(x, y, r)!r}")
    for (x, y, r), (u, v, s) in combinations(circles, 2):
        if math.hypot(x - u, y - v) < r + s - TOLERANCE:
            raise ValueError(f"circles overlap: {(x, y, r)!r} and {(u, v, s)!r}")
    return min(1.0, math.fsum(r for _, _, r in circles) / float(instance["best"]))
