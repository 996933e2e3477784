"""Single values of the budget explorer: a split, a difference from the best, a chosen run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from replay.planning.grid import FloatArray
from replay.plots.style import ranged
from replay.statistics.numbers import amount, floored, number, unit_of


def rounded_down(final: FloatArray) -> float:
    """The median of what runs end with, rounded down: in steps of .005, or to three digits.

    Steps suit fitness that spreads by about 1; of any other it has three digits of the range.

    Example:
        >>> rounded_down(np.array([0.5, 0.913, 0.95])), rounded_down(np.array([2e9, 3.1417e9]))
        (0.91, 2570000000.0)
    """
    median, spread = float(np.median(final)), float(np.ptp(final))
    if not spread > 0:
        return median
    return floored(median, 0.005 if 0.005 < spread <= 10 else unit_of(spread))


@dataclass(frozen=True)
class SplitValue:
    """Mean best fitness of a split, its interval, the runs it rests on, and whether it was run."""

    value: float
    low: float
    high: float
    n: float
    logged: bool

    def words(self, generations: int, children: int) -> str:
        """The text of a tooltip."""
        source = "" if self.logged else ", never run: predicted"
        return (
            f"T = {generations}, N = {children}, C = {number(generations * children)}\n"
            f"best fitness {ranged(self.value, self.low, self.high)}"
            f"\nn = {amount(int(self.n), 'run')}{source}"
        )


@dataclass(frozen=True)
class Behind:
    """By how much a split lies behind the best one of its budget: 0 for that one itself."""

    value: float
    low: float
    high: float
    best: tuple[int, int]  # T and N of the best split
    note: str = ""  # why there is no interval
    tied: bool = False  # whether another split of the budget has the same mean as the best one

    def words(self) -> str:
        """The difference as a sentence."""
        if self.value == 0 and self.tied:
            return "No split of its budget has a higher mean, and others have the same."
        if self.value == 0:
            return "It has the highest mean of all splits of its budget."
        T, N = self.best
        missing = f" (no interval, as {self.note})" if self.note else ""
        return (
            f"It lies {ranged(-self.value, -self.high, -self.low)}{missing} behind T = {T}, "
            f"N = {N}, which has the highest mean of all splits of its budget."
        )


@dataclass(frozen=True, kw_only=True)
class ChosenRun:
    """One run of a task and model, drawn beside the means."""

    run: str  # identifier
    x: FloatArray  # cost so far, generations 1, 2, ..., as deep as the run
    value: FloatArray  # best fitness so far, same shape

    def words(self, generations: int) -> str:
        """How far the run was after so many generations, or at its end."""
        T = min(generations, len(self.value))
        reached = self.value[T - 1]
        found = "nothing ok" if math.isnan(reached) else f"{reached:.4g}"
        return f"{self.run}, {found} after T = {T}"


def behind_in_cell(value: float) -> str:
    """What a cell states: "-.02", "-.004", or "0" for the best split of its budget."""
    if math.isnan(value) or value == 0:
        return "" if value else "0"
    if value <= -0.995:
        return f"{value:.2g}"
    return (f"{value:.1g}" if value > -0.005 else f"{value:.2f}").replace("-0.", "-.")
