"""Scores a tour through all cities: length of the shortest tour over its length."""

import math
from typing import Any


def score(value: Any, instance: dict[str, Any]) -> float:
    """Return optimum / length, in (0, 1], of a closed tour, a list of every index once."""
    cities = instance["input"]
    if not isinstance(value, list) or sorted(value) != list(range(len(cities))):
        raise ValueError(f"expected each of {len(cities)} cities once")
    steps = zip(value, [*value[1:], value[0]], strict=True)
    length = math.fsum(math.dist(cities[here], cities[there]) for here, there in steps)
    return min(1.0, float(instance["optimum"]) / length)
