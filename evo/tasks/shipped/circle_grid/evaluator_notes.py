"""What a model is told of circles in a square: which overlap or stick out, else the radii."""

import math
from itertools import combinations
from typing import Any

SHOWN = 3


def notes(value: list[list[float]], instance: dict[str, Any]) -> str:
    circles = [tuple(map(float, circle)) for circle in value]
    overlaps = sorted(
        ((math.hypot(x - u, y - v) - r - s, i, j) for (i, (x, y, r)), (j, (u, v, s)) in
         combinations(enumerate(circles), 2))
    )  # fmt: skip
    bad = [each for each in overlaps if each[0] < -1e-9]
    if bad:
        told = ", ".join(f"{i} and {j} by {-gap:.4g}" for gap, i, j in bad[:SHOWN])
        return f"{len(bad)} pairs of {len(circles)} circles overlap, most: {told}"
    walls = sorted((min(x, 1 - x, y, 1 - y) - r, i) for i, (x, y, r) in enumerate(circles))
    if walls[0][0] < -1e-9:
        return f"circle {walls[0][1]} leaves the square by {-walls[0][0]:.4g}"
    radii = [r for _, _, r in circles]
    return (
        f"{len(circles)} circles, radii from {min(radii):.4g} to {max(radii):.4g}; their sum is "
        f"{math.fsum(radii):.5g}, the best known {float(instance['best']):.5g}"
    )
