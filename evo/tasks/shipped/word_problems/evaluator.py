"""Scores the reply to a word problem: 1 if its last number is the answer, else 0."""

import re
from typing import Any

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def score(value: object, instance: dict[str, Any]) -> float:
    if not isinstance(value, str):
        raise ValueError(f"expected a reply, got {type(value).__name__}")
    numbers = NUMBER.findall(value)
    if not numbers:
        return 0.0
    return float(float(numbers[-1].replace(",", "")) == instance["answer"])
