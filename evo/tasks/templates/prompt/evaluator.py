"""Scores the reply that a model gave to one row under the text that evolves."""

from typing import Any


def score(value: Any, instance: dict[str, Any]) -> float:
    """Return a score from 0 to 1 for one reply; fitness is the mean over the rows.

    The model is asked `instance["prompt"]` alone. The other keys are for this function.
    """
    return float(value.strip().lower().rstrip(".").endswith(instance["want"]))
