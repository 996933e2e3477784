"""Two groups of runs: the difference of their means, and the probability of improvement."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from replay.statistics.groups import LEAST_PAIRS, compare_groups
from replay.statistics.intervals import (
    EQUAL,
    LEAST,
    WITHIN,
    FloatArray,
    Interval,
    check_columns,
    clopper_pearson,
    interval,
    measured,
    scaled,
    too_few,
)
from replay.statistics.numbers import as_numbers
from replay.statistics.welch import welch_half


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """Mean of `b` less that of `a`, and the probability that a run of `b` beats one of `a`."""

    difference: Interval
    probability: Interval
    paired: bool


def compare(
    a: ArrayLike, b: ArrayLike, *, paired: bool = False, level: float = 0.95
) -> MeanDifference:
    """Compare two groups of runs: difference of means and probability of improvement.

    Args:
        a: One number per run of the baseline, (n,).
        b: One per run of what is compared with it, (m,); higher is better.
        paired: Run i of `a` and of `b` belong together (same seed).
        level: Nominal coverage.

    Returns:
        The difference as `judge` has it, by the exchange of runs and Welch's t, or by the interval
        of the paired differences; the probability by its t over runs (DeLong et al. 1988), or by
        Clopper and Pearson over pairs and where every run of one side beats every run of the other.
        Below five runs a side, or six pairs, only Clopper and Pearson's interval exists.
    """
    left, right = as_numbers("a", a), as_numbers("b", b)
    if left.ndim != 1 or right.ndim != 1 or (paired and len(left) != len(right)):
        raise ValueError(
            f"expected two vectors{' of equal length' if paired else ''}, "
            f"got shapes {left.shape!r} and {right.shape!r}"
        )
    for side in (left, right):
        check_columns(side[:, None], level, "raise", ordered=False)
    wins = (right > left[:, None]) + 0.5 * (right == left[:, None])
    name = "probability of improvement"
    if paired:
        difference = interval(right - left, level=level)
        won, n = float(np.diag(wins).sum()), len(left)
        if n < LEAST_PAIRS:  # the rule of `judge`, too
            none, note = math.nan, too_few(n, LEAST_PAIRS)
            difference = replace(difference, low=none, high=none, coverage=none, note=note)
        low, high = (float(limit) for limit in clopper_pearson(np.array(won), n, level))
        probability = Interval(
            value=won / n, low=low, high=high, n=n, coverage=measured("share", n, level),
            level=level, statistic=name,
        )  # fmt: skip
    else:
        difference = _difference(left, right, level)
        found = _welch(-wins.mean(axis=1), wins.mean(axis=0), level, name)
        value, half = float(wins.mean()), (found.high - found.low) / 2
        low, high = max(value - half, 0.0), min(value + half, 1.0)
        probability = replace(found, value=value, low=low, high=high)
        if value in (0.0, 1.0):
            probability = _separated(value, len(left), len(right), level, name)
    return MeanDifference(difference=difference, probability=probability, paired=paired)


def _difference(left: FloatArray, right: FloatArray, level: float) -> Interval:
    """Difference of the means of two groups of runs, right less left."""
    least, n = min(len(left), len(right)), len(left) + len(right)
    value, low, high = float(right.mean() - left.mean()), np.nan, np.nan
    note = too_few(least, LEAST) if least < LEAST else ""
    if not note:
        (one, other), power = scaled(right, left)
        found = compare_groups(one, other, level=level)
        low, high = float(np.ldexp(found.low, power)), float(np.ldexp(found.high, power))
        if not found.error > 0 or np.isinf([low, high]).any():
            low, high, note = np.nan, np.nan, EQUAL if value == 0 else WITHIN
    return Interval(
        value=value, low=low, high=high, n=n, level=level, statistic="difference of means",
        coverage=np.nan if note else measured("groups", least, level), note=note,
    )  # fmt: skip


def _separated(value: float, n: int, m: int, level: float, name: str) -> Interval:
    """Probability of improvement where every run of one group beats every run of the other.

    No win varies then, so its limits are those of as many disjoint pairs of runs as there are, of
    which all were won or all were lost.
    """
    pairs = min(n, m)
    limits = clopper_pearson(np.array(value * pairs), pairs, level)
    low, high = (float(limit) for limit in limits)
    return Interval(
        value=value, low=low, high=high, n=n + m, coverage=measured("share", pairs, level),
        level=level, statistic=name,
    )  # fmt: skip


def _welch(left: FloatArray, right: FloatArray, level: float, name: str) -> Interval:
    """Difference of the means of the placements of two groups, without limits if all runs tie."""
    least, value, half = min(len(left), len(right)), float(right.mean() - left.mean()), np.nan
    note = too_few(least, LEAST) if least < LEAST else ""
    if not note:
        half = float(welch_half(left, right, level))
        half, note = (half, "") if half > 0 else (np.nan, EQUAL)
    coverage = np.nan if note else measured("difference", least, level)
    return Interval(
        value=value, low=value - half, high=value + half, n=len(left) + len(right), level=level,
        coverage=coverage, statistic=name, note=note,
    )  # fmt: skip
