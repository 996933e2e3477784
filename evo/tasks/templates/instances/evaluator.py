"""Scores what `solve` returned for one row. This runs apart from the program."""

from typing import Any


def score(value: Any, instance: dict[str, Any]) -> float:
    """Return a score from 0 to 1 for one row; fitness is the mean over the rows.

    The program is given `instance["input"]` alone. The other keys are for this function.
    A ValueError says what is not allowed, and the row counts as 0.
    """
    items, capacity = instance["input"]["items"], instance["input"]["capacity"]
    if not isinstance(value, list) or len(set(value)) < len(value):
        raise ValueError("expected a list of positions, each at most once")
    if sum(items[k][0] for k in value) > capacity:
        raise ValueError("the items are too heavy")
    return float(sum(items[k][1] for k in value) / instance["best"])
