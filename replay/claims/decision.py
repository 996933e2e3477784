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

import math
from typing import Literal, get_args

import numpy as np

from replay.statistics.intervals import FloatArray, student

Outcome = Literal["greater", "less", "within margin", "undetermined"]

VERDICTS: tuple[Outcome, ...] = get_args(Outcome)

POWER = 0.8
"""Power at which an effect counts as detectable."""

BAND = 0.8
"""Nominal coverage of a range of powers."""

_GRID = 32
"""Quantiles of the effect and of the spread over which a range of powers is taken."""
_SURE = 30.0
"""Standard errors from zero at which power is 1."""


def decide(low: float, high: float, margin: float = 0.0) -> Outcome:
    """Decides by an interval of the effect, whose limits are NaN where there is none."""
    if -margin < low and high < margin:
        return "within margin"
    return "greater" if low > 0 else "less" if high < 0 else "undetermined"


def checked_margin(margin: float | None) -> float:
    """A margin as a number; None: there is none, which is 0."""
    value = 0.0 if margin is None else float(margin)
    if not 0 <= value < math.inf:
        raise ValueError(f"expected a margin of 0 or more, or None for none, got {margin!r}")
    return value


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


def power_band(
    effect: float,
    error: float,
    freedom: float,
    factor: float,
    level: float = 0.95,
    band: float = BAND,
) -> tuple[float, float]:
    """Range of the power with `factor` times the runs, over what these runs leave open.

    The true effect and the true spread are unknown: given the runs, they are as far from what was
    seen as Student's t and chi squared say. The power is computed for all of them, and the middle
    `band` of it is returned. It is NaN without a standard error or a finite factor.
    """
    from scipy.special import chdtri, ndtri

    if not error > 0 or not math.isfinite(factor):
        return math.nan, math.nan
    shares = (np.arange(_GRID) + 0.5) / _GRID
    spread = np.sqrt(freedom / chdtri(freedom, shares))[:, None]
    away = np.abs(effect / (error * spread) + ndtri(shares)) * math.sqrt(factor)
    found = _found(away, freedom * factor, level)
    low, high = np.quantile(found, [(1 - band) / 2, (1 + band) / 2])
    return float(low), float(high)


def still_needed(
    n: int, effect: float, margin: float, found: float, verdict: Outcome, per: float = 1.0
) -> float:
    """Single runs still needed for a verdict if the effect stays as it was seen.

    Args:
        n: Units that the interval rests on: runs, or pairs.
        effect: Effect that was seen.
        margin: Margin, or 0.
        found: Effect that n units detect, see `detectable`.
        verdict: The verdict on these units.
        per: Single runs in a unit, 2 for a pair.

    Returns:
        The number; 0 where there is a verdict, infinite where there is no effect to find, NaN where
        `found` is.
    """
    if verdict != "undetermined":
        return 0.0
    if math.isnan(found):
        return math.nan
    away = max(abs(effect), margin - abs(effect))
    if away == 0:
        return math.inf
    return float(math.ceil(per * max(1, math.ceil(n * (found / away) ** 2) - n)))
