"""Means and spreads of fitness, which may be as large as a float can be."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from evo.logs.records import Confirmation


def mean(values: Iterable[float]) -> float:
    """Returns the mean of some numbers; it is finite if they are."""
    known = list(values)
    try:
        return statistics.fmean(known)
    except OverflowError:  # their sum is no float, their mean is one
        scale = max(map(abs, known))
        return statistics.fmean(value / scale for value in known) * scale


def deviation(values: Iterable[float]) -> float:
    """Returns the standard deviation of two or more numbers; infinite where no float holds it."""
    known = list(values)
    if not all(map(math.isfinite, known)):
        return math.inf
    try:
        return statistics.stdev(known)
    except OverflowError:
        return math.inf


def confirmed_fitness(found: Confirmation, accepted: bool, before: float | None) -> float | None:
    """Returns the fitness of the best program after a generation.

    It is the mean of its fresh draws; `before` where one of them failed.
    """
    values = found.rival if accepted else found.parent
    known = [value for value in values if value is not None]
    return mean(known) if len(known) == len(values) else before
