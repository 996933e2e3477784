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

from replay.statistics.intervals import student

Outcome = Literal["greater", "less", "within margin", "undetermined"]

VERDICTS: tuple[Outcome, ...] = get_args(Outcome)

POWER = 0.8
"""Power at which an effect counts as detectable."""


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
    from scipy.special import nctdtr

    if not error > 0:
        return math.nan
    limit, away = float(student(level, freedom)), abs(effect) / error
    above = 1 - float(nctdtr(freedom, away, limit))
    return min(1.0, above + float(nctdtr(freedom, away, -limit)))


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
