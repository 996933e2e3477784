"""How much wider than Student's t an interval of an effect of policies has to be.

The variance over runs is right, but its tails are longer than t's. Multipliers of the half-width
were measured by the number of runs and of arms, in ordinary worlds and in the worst of all that
were tried; they are in `replay/statistics/effects.csv`, made by
`tests/benchmarks/effect_multipliers.py`.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from replay.statistics.intervals import FloatArray, Interval

SURE = 20
"""Runs from which on the interval of an effect decides by itself: see `deciding_limits`."""


class Widths(NamedTuple):
    """Multipliers of Student's half-width for effects of policies, and what the first covers.

    Attributes:
        usual: With it the interval holds the truth in 95 % of ordinary worlds.
        worst: The same for the worst of all worlds that were tried.
        least: Coverage of the usual one in the worst world.
    """

    usual: float
    worst: float
    least: float


def widths(n: int, K: int) -> Widths:
    """Returns the multipliers for pools of K of n runs, between those that were measured.

    They are in `replay/statistics/effects.csv`, made by `tests/benchmarks/effect_multipliers.py`.
    """
    table = _widths()
    sizes = sorted(table)

    def at(size: int) -> FloatArray:
        """The row of a size at this share of the runs."""
        rows = table[size]
        shares = [k / size for k, *_ in rows]
        return np.array([np.interp(K / n, shares, [row[i] for row in rows]) for i in (1, 2, 3)])

    known = np.array([at(size) for size in sizes])
    return Widths(*(float(np.interp(n, sizes, column)) for column in known.T))


@functools.cache
def _widths() -> dict[int, list[tuple[float, ...]]]:
    """The table by number of runs: K, both multipliers and the coverage."""
    import replay.statistics.intervals

    table: dict[int, list[tuple[float, ...]]] = {}
    place = Path(replay.statistics.intervals.__file__).with_name("effects.csv")
    with place.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            fields = (row[name] for name in ("K", "ordinary", "worst", "coverage"))
            table.setdefault(int(row["n"]), []).append(tuple(map(float, fields)))
    return table


def deciding_limits(found: Interval, K: int) -> tuple[float, float]:
    """The limits of an effect that decide: below 20 runs those that hold in the worst world, too.

    Args:
        found: The effect, with its interval.
        K: Arms of each pool.
    """
    wider = 1.0
    if found.n < SURE:
        usual, worst, _ = widths(found.n, K)
        wider = worst / usual
    below, above = found.value - found.low, found.high - found.value
    return found.value - wider * below, found.value + wider * above
