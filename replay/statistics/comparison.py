"""Two groups of runs: the difference of their means, and the probability of improvement."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from replay.statistics.intervals import (
    EQUAL,
    LEAST,
    WITHIN,
    FloatArray,
    IntArray,
    Interval,
    check_columns,
    clopper_pearson,
    interval,
    measured,
    scaled,
    student,
    too_few,
)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Mean of `b` less that of `a`, and the probability that a run of `b` beats one of `a`."""

    difference: Interval
    probability: Interval
    paired: bool


def compare(a: ArrayLike, b: ArrayLike, *, paired: bool = False, level: float = 0.95) -> Comparison:
    """Compare two groups of runs: difference of means and probability of improvement.

    Args:
        a: One number per run of the baseline, (n,).
        b: One per run of what is compared with it, (m,); higher is better.
        paired: Run i of `a` and of `b` belong together (same seed).
        level: Nominal coverage.

    Returns:
        The difference by Welch's t, or by the interval of the paired differences; the probability
        by its t over runs (DeLong et al. 1988), or by Clopper and Pearson over pairs. Neither has
        an interval below five runs a side.
    """
    left, right = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if left.ndim != 1 or right.ndim != 1 or (paired and len(left) != len(right)):
        raise ValueError(
            f"expected two vectors{' of equal length' if paired else ''}, "
            f"got shapes {left.shape!r} and {right.shape!r}"
        )
    check_columns(np.concatenate([left, right])[:, None], level, "raise", ordered=False)
    wins = (right > left[:, None]) + 0.5 * (right == left[:, None])
    name = "probability of improvement"
    if paired:
        difference = interval(right - left, level=level)
        won, n = float(np.diag(wins).sum()), len(left)
        low, high = (float(limit) for limit in clopper_pearson(np.array(won), n, level))
        probability = Interval(
            value=won / n, low=low, high=high, n=n, coverage=measured("share", n, level),
            level=level, statistic=name,
        )  # fmt: skip
    else:
        difference = _welch(left, right, level, "difference of means")
        found = _welch(-wins.mean(axis=1), wins.mean(axis=0), level, name)
        value, half = float(wins.mean()), (found.high - found.low) / 2
        low, high = max(value - half, 0.0), min(value + half, 1.0)
        probability = replace(found, value=value, low=low, high=high)
        if value in (0.0, 1.0):
            probability = _separated(value, len(left), len(right), level, name)
    return Comparison(difference=difference, probability=probability, paired=paired)


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
    """Difference of the means of two groups of runs."""
    least, value, half = min(len(left), len(right)), float(right.mean() - left.mean()), np.nan
    note = too_few(least, LEAST) if least < LEAST else ""
    if not note:
        half = float(welch_half(left, right, level))
        half, note = (half, "") if half > 0 else (np.nan, EQUAL if value == 0 else WITHIN)
    coverage = np.nan if note else measured("difference", least, level)
    return Interval(
        value=value, low=value - half, high=value + half, n=len(left) + len(right), level=level,
        coverage=coverage, statistic=name, note=note,
    )  # fmt: skip


def welch_half(left: FloatArray, right: FloatArray, level: float) -> FloatArray:
    """Half the width of Welch's interval of the difference of two means over the first axis."""
    errors, power = _squared_errors(left, right)
    freedom = _satterthwaite(errors, (len(left), len(right)))
    return np.asarray(student(level, freedom) * np.ldexp(np.sqrt(sum(errors)), power))


def welch_freedom(left: FloatArray, right: FloatArray) -> FloatArray:
    """Degrees of freedom of Welch's t over the first axis; 1 where neither group varies."""
    return _satterthwaite(_squared_errors(left, right)[0], (len(left), len(right)))


def _squared_errors(left: FloatArray, right: FloatArray) -> tuple[list[FloatArray], IntArray]:
    """Squared standard errors of both means, scaled by one power of two, and that power."""
    away, power = scaled(*(side - side.mean(axis=0) for side in (left, right)))
    return [(each**2).sum(axis=0) / (len(each) - 1) / len(each) for each in away], power


def _satterthwaite(errors: list[FloatArray], sizes: tuple[int, int]) -> FloatArray:
    parts = np.asarray(sum(each**2 / (n - 1) for each, n in zip(errors, sizes, strict=True)))
    total = np.asarray(sum(errors)) ** 2
    return np.asarray(np.divide(total, parts, out=np.ones_like(parts), where=parts > 0))
