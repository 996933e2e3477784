"""Keyed random draws that come out the same on every platform and Python version."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class KeyedStream:
    """A stream of draws keyed by JSON values.

    It uses `random.Random.random` alone, whose sequence Python guarantees, and plain arithmetic:
    no logarithm or power, whose last bit depends on the C library.
    """

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256(json.dumps(key, ensure_ascii=True).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:16], "big"))

    def chance(self, probability: float) -> bool:
        """Returns True with this probability; always uses one draw."""
        return self._random.random() < probability

    def uniform(self, low: float, high: float) -> float:
        """Returns a float in [low, high)."""
        return low + (high - low) * self._random.random()

    def integer(self, low: int, high: int) -> int:
        """Returns an integer from low to high, both included."""
        return low + int((high - low + 1) * self._random.random())

    def pick(self, items: Sequence[T]) -> T:
        """Returns one of the items, all alike likely."""
        return items[int(len(items) * self._random.random())]

    def weighted(self, weights: Mapping[H, float]) -> H:
        """Returns a key with probability in proportion to its weight (>= 0, not all zero)."""
        point = self._random.random() * sum(weights.values())
        for item, weight in weights.items():
            point -= weight
            if point < 0:
                return item
        return [item for item, weight in weights.items() if weight > 0][-1]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Returns `count` different items in random order."""
        left = list(items)
        return [left.pop(int(len(left) * self._random.random())) for _ in range(count)]
