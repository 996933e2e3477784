"""The one rule by which a claim is decided, and what a design can find.

A comparison has an effect with an interval, and perhaps a margin: the largest difference that
counts as none. There are four verdicts:

- `within margin`: the whole interval lies within the margin, on either side of zero;
- `greater`, `less`: otherwise, the interval lies above or below zero;
- `undetermined`: neither.

Without a margin there is no `within margin`. A margin is given, never computed from the runs that
are judged.
"""

from __future__ import annotations

import bisect
import math
from typing import Literal, get_args

import numpy as np

from replay.statistics.intervals import FloatArray, student

Outcome = Literal["greater", "less", "within margin", "undetermined"]

VERDICTS: tuple[Outcome, ...] = get_args(Outcome)

BETTER = {"greater": "{a} is better than {b}", "less": "{b} is better than {a}"}
"""What a verdict that finds a difference says of its two sides."""

FOUND = BETTER | {"within margin": "{a} and {b} differ by less than the margin"}
"""What a verdict other than `undetermined` says of its two sides."""

FEW, MANY = "too few runs", "too many comparisons at once"
WIDE, CLOSE = "margin", "no clear difference"

OPEN = {
    FEW: "there are too few runs for an interval",
    MANY: "too many comparisons are made at once; alone it would be decided",
    WIDE: "its interval neither excludes 0 nor lies within the margin",
    CLOSE: "its interval includes 0",
}
"""Why a comparison is undetermined, by the reason's name."""

POWER = 0.8
"""Power at which an effect counts as detectable."""

BAND = 0.8
"""Nominal coverage of a range of powers."""

_GRID = 32
"""Quantiles of the effect and of the spread over which a range of powers is taken."""
_MOST = 1e15
"""Units beyond which no number is computed."""
_SURE = 30.0
"""Standard errors from zero at which power is 1."""


def decide(low: float, high: float, margin: float = 0.0) -> Outcome:
    """Decides by an interval of the effect, whose limits are NaN where there is none."""
    if -margin < low and high < margin:
        return "within margin"
    return "greater" if low > 0 else "less" if high < 0 else "undetermined"


def why_open(verdict: Outcome, alone: tuple[float, float], margin: float) -> str:
    """The true reason of `undetermined`, a key of `OPEN`; empty where there is a verdict.

    Args:
        verdict: The verdict, after the correction for all comparisons that were made.
        alone: The interval of this comparison by itself; NaN or infinite where there is none.
        margin: Margin, or 0.
    """
    if verdict != "undetermined":
        return ""
    if not np.isfinite(alone).all():
        return FEW
    if decide(*alone, margin) != "undetermined":
        return MANY
    return WIDE if margin else CLOSE


def in_family(p: float, shared: float, count: int) -> str:
    """A p in words, with the family of comparisons that it belongs to.

    Args:
        p: The p of one comparison by itself.
        shared: The same after Holm's rule over all of them.
        count: Number of the comparisons.

    Example:
        >>> from replay.claims.decision import in_family
        >>> in_family(0.016, 0.24, 15)
        'p = 0.016 alone, 0.24 among 15 comparisons (Holm)'
    """
    if math.isnan(p):
        return "too few runs for a p"
    if count == 1:
        return f"p = {p:.3g}"
    return f"p = {p:.3g} alone, {shared:.3g} among {count} comparisons (Holm)"


def checked_margin(margin: float | None) -> float:
    """A margin as a number; None: there is none, which is 0."""
    value = 0.0 if margin is None else float(margin)
    if not 0 <= value < math.inf:
        raise ValueError(f"expected a margin of 0 or more, or None for none, got {margin!r}")
    return value


def p_above(value: float, limits: tuple[float, float], n: int, level: float) -> float:
    """One-sided p of an effect above 0, read from its limits by Student's t; NaN without width.

    Args:
        value: The effect.
        limits: Its interval, or the limits that decide.
        n: Number of runs.
        level: Nominal level of the limits.
    """
    from scipy.special import stdtr

    error = (limits[1] - limits[0]) / 2 / float(student(level, n - 1))
    return float(stdtr(n - 1, -value / error)) if error > 0 else math.nan


def detectable(error: float, freedom: float, level: float = 0.95) -> float:
    """Effect that a design finds in four of five repetitions; NaN without a standard error.

    Args:
        error: Standard error of the effect.
        freedom: Its degrees of freedom.
        level: Level of the two-sided interval that decides.
    """
    if not error > 0:
        return math.nan
    return float(student(level, freedom) + student(2 * POWER - 1, freedom)) * error


def power(effect: float, error: float, freedom: float, level: float = 0.95) -> float:
    """Probability of `greater` or `less` if the true effect is `effect`; NaN without an error."""
    if not error > 0:
        return math.nan
    return float(_found(abs(effect) / error, freedom, level))


def _found(away: FloatArray | float, freedom: float, level: float) -> FloatArray:
    """Power for effects that are so many standard errors from zero, 0 or more."""
    from scipy.special import nctdtr

    limit, away = float(student(level, freedom)), np.minimum(away, _SURE)
    # Far from zero the opposite tail is too small for SciPy, which then returns NaN.
    opposite = np.nan_to_num(nctdtr(freedom, away, -limit), nan=0.0)
    return np.asarray(np.minimum(1 - nctdtr(freedom, away, limit) + opposite, 1.0))


def shrunk(effect: float, error: float) -> float:
    """The effect that a promise of power is made for: what was seen, less what its error adds.

    An effect that stands out is usually too large. Its square is, on average, that of the true
    effect plus the squared error, so it is multiplied by max(0, 1 - (error / effect)^2).
    """
    if effect == 0 or not error > 0:
        return effect
    return effect * max(0.0, 1 - (error / effect) ** 2)


def exaggeration(effect: float, error: float, freedom: float, level: float = 0.95) -> float:
    """How many times the true effect those are on average that get a verdict (type M error).

    Gelman and Carlin 2014. The true effect is taken to be the shrunk one; infinite where that is
    none, NaN without an error.

    Args:
        effect: Effect that was seen.
        error: Its standard error.
        freedom: Degrees of freedom.
        level: Level of the two-sided interval that decides.
    """
    from scipy.special import ndtr

    if not error > 0:
        return math.nan
    true, limit = abs(shrunk(effect, error)) / error, float(student(level, freedom))
    if true == 0:
        return math.inf
    if true > _SURE:
        return 1.0

    def density(x: float) -> float:
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    above, below = float(ndtr(true - limit)), float(ndtr(-true - limit))
    called = true * (above - below) + density(limit - true) + density(limit + true)
    return called / (above + below) / true


def kurtosis_of(*groups: FloatArray) -> float:
    """Excess kurtosis of the deviations of runs from the mean of their group, at least 0."""
    away = np.concatenate([side - side.mean() for side in groups])
    scale = float(np.abs(away).max())
    if scale == 0:
        return 0.0
    away = away / scale
    return max(0.0, float((away**4).mean() / (away**2).mean() ** 2) - 3)


def open_to(freedom: float, kurtosis: float) -> tuple[float, float]:
    """Degrees of freedom of the spread, and a factor of the error, where tails are heavy.

    Heavy tails make a sample's spread say less of the true one, and its mean as well: without
    both, bands of 80 % from ten lognormal runs a side held the truth in 52 to 71 % of samples.
    """
    return freedom / (1 + 2 * kurtosis * freedom / (freedom + 2)), 1 + min(0.15 * kurtosis, 0.6)


def power_band(
    effect: float,
    error: float,
    freedom: float,
    factor: float,
    level: float = 0.95,
    band: float = BAND,
    kurtosis: float = 0.0,
) -> tuple[float, float]:
    """Range of the power with `factor` times the runs, over what these runs leave open.

    The true effect and the true spread are unknown: given the runs, they are as far from what was
    seen as Student's t and chi squared say. The power is computed for all of them, and the middle
    `band` of it is returned, widened to hold the power at the effect that was seen. It is NaN
    without a standard error or a finite factor. `kurtosis` of the runs widens it, see `open_to`.
    """
    from scipy.special import chdtri, ndtri

    if not error > 0 or not math.isfinite(factor):
        return math.nan, math.nan
    shares = (np.arange(_GRID) + 0.5) / _GRID
    own, wider = open_to(freedom, kurtosis)
    spread = np.sqrt(own / chdtri(own, shares))[:, None]
    away = np.abs(effect / (error * spread) + wider * ndtri(shares)) * math.sqrt(factor)
    found = _found(away, freedom * factor, level)
    low, high = np.quantile(found, [(1 - band) / 2, (1 + band) / 2])
    seen = float(_found(abs(effect) / error * math.sqrt(factor), freedom * factor, level))
    return min(float(low), seen), max(float(high), seen)


def still_needed(
    n: int,
    effect: float,
    margin: float,
    error: float,
    freedom: float,
    verdict: Outcome,
    *,
    per: float = 1.0,
    level: float = 0.95,
) -> float:
    """Single runs still needed for a verdict, at a power of `POWER`, if the effect is as seen.

    More runs lower the error by the root of their number and raise its degrees of freedom.

    Args:
        n: Units that the interval rests on: runs, or pairs.
        effect: Effect that was seen.
        margin: Margin, or 0.
        error: Standard error of the effect on n units.
        freedom: Its degrees of freedom.
        verdict: The verdict on these units.
        per: Single runs in a unit, 2 for a pair.
        level: Level of the two-sided interval that decides.

    Returns:
        The number; 0 where there is a verdict, infinite where there is no effect to find, NaN
        without a standard error.
    """
    if verdict != "undetermined":
        return 0.0
    if not error > 0:
        return math.nan
    away = max(abs(effect), margin - abs(effect))
    # No t is below the normal quantile, so that fewer units than these never do.
    ratio = detectable(error, math.inf, level) / away if away else math.inf
    least = n * ratio * ratio
    if not least < _MOST:
        return math.inf

    def found(units: int) -> bool:
        factor = units / n
        return detectable(error / math.sqrt(factor), freedom * factor, level) <= away

    low = high = max(n + 1, math.ceil(least))
    while not found(high):
        low, high = high + 1, 2 * high
    units = bisect.bisect_left(range(low, high), True, key=found) + low
    return float(math.ceil(per * (units - n)))
