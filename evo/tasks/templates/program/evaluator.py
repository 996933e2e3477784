"""Scores what `make` returned. This runs apart from the program, which cannot reach it."""

import math
from itertools import combinations
from typing import Any

COUNT = 6


def score(value: Any) -> float | tuple[float, str]:
    """Return the fitness, the higher the better: here the smallest distance of two points.

    A ValueError says what is not allowed: the child gets status `invalid`, with these words.
    Instead of a number this may return (number, notes), where notes are words for the model
    (`evo run FOLDER --feedback` shows them), or a dictionary with `fitness` and other metrics.
    """
    if not isinstance(value, list) or len(value) != COUNT:
        raise ValueError(f"expected a list of {COUNT} points")
    points = [(float(x), float(y)) for x, y in value]
    if not all(0 <= x <= 1 and 0 <= y <= 1 for x, y in points):
        raise ValueError("a point lies outside the unit square")
    one, other = min(combinations(points, 2), key=lambda pair: math.dist(*pair))
    return math.dist(one, other), f"the closest two are {one} and {other}"
