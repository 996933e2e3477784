"""Scores a packing of items into bins of 100: the least possible number of bins over that used."""

import math
from typing import Any

CAPACITY = 100


def score(value: Any, instance: dict[str, Any]) -> float:
    """Return ceil(sum of sizes / 100) / bins, in (0, 1]; value: the bin of each item, in order."""
    items: list[int] = instance["input"]
    if not isinstance(value, list) or len(value) != len(items):
        raise ValueError(f"expected a bin for each of {len(items)} items")
    filled: dict[int, int] = {}
    for item, chosen in zip(items, value, strict=True):
        filled[chosen] = filled.get(chosen, 0) + item
    if max(filled.values()) > CAPACITY:
        raise ValueError(f"a bin holds {max(filled.values())}, more than {CAPACITY}")
    return math.ceil(sum(items) / CAPACITY) / len(filled)
