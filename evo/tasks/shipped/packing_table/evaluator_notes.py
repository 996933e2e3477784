"""What a model is told of a packing into bins: how many it used, and where room was wasted."""

import math
from typing import Any

CAPACITY = 100
SHOWN = 5


def notes(value: list[int], instance: dict[str, Any]) -> str:
    items = instance["input"]
    filled: dict[int, int] = {}
    for item, chosen in zip(items, value, strict=True):
        filled[chosen] = filled.get(chosen, 0) + item
    rooms = sorted((CAPACITY - size for size in filled.values()), reverse=True)
    least = math.ceil(sum(items) / CAPACITY)
    return (
        f"{len(filled)} bins for {len(items)} items, at least {least} are needed; "
        f"largest free rooms: {', '.join(map(str, rooms[:SHOWN]))}; "
        f"{sum(room < 5 for room in rooms)} bins have less than 5 free"
    )
