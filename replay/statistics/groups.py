"""Two groups of runs: one p and one interval, from the exchange of runs and from Welch's t.

The exchange of runs is exact where both groups follow one law, but not where the larger spread
belongs to the smaller group: of 5 runs with three times the spread of 20 others, it called a
difference that was none in 15 % of samples at a stated 5 %. Welch's t holds there and errs
elsewhere. So p is the larger of both and the interval the wider on each side. What both take for
granted stays: that the groups are exchangeable, or have equal means and shapes that are not too
unlike (`unlike`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from replay.statistics.exchange import Exchanges, Inverted
from replay.statistics.intervals import FloatArray, student
from replay.statistics.welch import welch_freedom

SPREADS, SKEWNESSES = 2.0, 1.0
"""Ratio of standard deviations, and difference of skewnesses, beyond which groups are unlike."""

LEAST_PAIRS = 6
"""Pairs below which flipping signs can reject nothing at 5 %: 2 / 2^5 is above .05."""


class Groups(NamedTuple):
    """A comparison of two groups; an infinite limit means that no effect there is rejected.

    Attributes:
        value: Mean of the left group less that of the right; of several tasks their mean.
        low: Lower limit.
        high: Upper limit.
        p_greater: One-sided probability, under no difference, of one at least as high.
        p_less: One-sided probability of one at most as high.
        p_within: Two-sided probability, under a difference as large as the margin, of one that
            lies as clearly within it; NaN without a margin.
        error: Standard error of the value.
        freedom: Its degrees of freedom.
    """

    value: float
    low: float
    high: float
    p_greater: float
    p_less: float
    p_within: float
    error: float
    freedom: float


def compare_groups(
    left: FloatArray,
    right: FloatArray,
    *,
    pairs: int = 0,
    level: float = 0.95,
    margin: float = 0.0,
    seed: int = 0,
) -> Groups:
    """Compares two groups of at least two runs, of which the first `pairs` of both belong together.

    Where every run has its partner, signs are flipped and nothing else: pairs have no group whose
    spread could differ.
    """
    exchanges = Exchanges(left, right, pairs=pairs, seed=seed)
    paired = 0 < pairs == len(left) == len(right)
    return less_clear(exchanges, freedom_of(left, right, pairs), level, margin, by_t=not paired)


def less_clear(
    test: Inverted, freedom: float, level: float, margin: float, *, by_t: bool
) -> Groups:
    """The comparison by exchanges, or with `by_t` by the less clear of these and of t."""
    found, error, within = test.found(level), test.error, math.nan
    one, other, low, high = found.p_greater, found.p_less, found.low, found.high
    if margin and error > 0:
        within = max(test.p(-margin, 1), test.p(margin, -1))
    if by_t and error > 0:
        one = max(one, _tail(found.value / error, freedom))
        other = max(other, _tail(-found.value / error, freedom))
        half = float(student(level, freedom)) * error
        low, high = min(low, found.value - half), max(high, found.value + half)
        if margin:
            nearest = (margin - abs(found.value)) / error
            within = max(within, _tail(nearest, freedom))
    return Groups(
        found.value, low, high, one, other, float(np.minimum(1.0, 2 * within)), error, freedom
    )


def _tail(t: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(stdtr(freedom, -t))


def freedom_of(left: FloatArray, right: FloatArray, pairs: int = 0) -> float:
    """Degrees of freedom of the difference of means; of partly paired groups by Satterthwaite.

    The difference is the sum of what pairs, other runs of the left group and other runs of the
    right one contribute.
    """
    a, b = len(left), len(right)
    if 0 < pairs == a == b:
        return float(pairs - 1)
    if pairs < 2:
        return float(welch_freedom(left, right))
    scale = max(float(np.ptp(left)), float(np.ptp(right))) or 1.0
    x, y = left / scale, right / scale
    parts = [
        (pairs * float(np.var(x[:pairs] / a - y[:pairs] / b, ddof=1)), pairs - 1),
        ((a - pairs) / a**2 * float(np.var(x, ddof=1)), a - 1),
        ((b - pairs) / b**2 * float(np.var(y, ddof=1)), b - 1),
    ]
    total, squares = sum(v for v, _ in parts), sum(v**2 / freedom for v, freedom in parts)
    return total**2 / squares if squares > 0 else float(min(a, b) - 1)


def unlike(left: FloatArray, right: FloatArray) -> str:
    """In words, how unlike the groups are where that makes a comparison of means err; else empty.

    With equal means and unlike shapes every test errs, Welch's too: at a stated 5 % in 15 to 18 %
    of samples of a skewed and a symmetric law.
    """
    spreads = [float(np.std(side, ddof=1)) for side in (left, right)]
    if min(spreads) == 0:
        return "the runs of one side do not differ" if max(spreads) > 0 else ""
    texts = []
    if (ratio := max(spreads) / min(spreads)) > SPREADS:
        texts.append(f"their standard deviations differ by a factor of {ratio:.2g}")
    skewed = [
        float(np.mean((side - side.mean()) ** 3)) / float(np.std(side)) ** 3
        for side in (left, right)
    ]
    if (apart := abs(skewed[0] - skewed[1])) > SKEWNESSES:
        texts.append(f"their skewnesses differ by {apart:.2g}")
    return " and ".join(texts)
