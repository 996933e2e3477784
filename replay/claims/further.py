"""Sentences on what more runs would show, and on what to expect of other tasks."""

from __future__ import annotations

import math

from replay.claims.decision import BAND, POWER, decide
from replay.statistics.numbers import with_limits
from replay.statistics.sequential import LONGEST

UNTIL_THEN = "Until then, take whichever is simpler or cheaper."

TIMES = 100
"""Beyond so many times the runs so far no number of further ones is stated: the effect is then so
small beside its error that its sign and its size are chance."""


def nearer_none(effect: float, margin: float) -> bool:
    """Whether further runs would find an effect within the margin sooner than away from zero."""
    return margin - abs(effect) > abs(effect)


def further_runs(
    more: float,
    *,
    had: float = math.nan,
    within: bool = False,
    of: str = "",
    cost: str = "",
    band: tuple[float, float] = (math.nan, math.nan),
    sequential: bool = False,
    among: int = 1,
) -> str:
    """Says how many more runs would decide what is open, as a clause without its full stop.

    Args:
        more: Their number, as of `still_needed`: infinite where there is no difference to find, NaN
            or 0 where it is not known.
        had: Single runs so far; NaN: not known.
        within: Whether they would show that the difference lies within the margin.
        of: Of which runs, such as ` of the two` or `, 5 on each side`.
        cost: What they cost, in words.
        band: Range of the power with them over what the runs so far leave open, see `power_band`.
        sequential: Whether evidence is followed run by run, which has no power at a fixed number.
        among: Comparisons that share the error, at whose level `more` was found.

    Example:
        >>> from replay.claims.further import further_runs
        >>> further_runs(1200.0, cost="9,600 calls")  # doctest: +NORMALIZE_WHITESPACE
        'if the true difference is the one that was seen, 1,200 more runs (9,600 calls) show it with
         a power of 80%'
    """
    if more == math.inf and sequential:
        return (
            f"followed run by run, not even {2 * LONGEST:,} more runs would settle so small a "
            f"difference with a power of {POWER:.0%}"
        )
    if more == math.inf:
        return "no number of runs would find a difference that is 0"
    if not more > 0:  # the spread is not known, or a correction alone held a verdict back
        return "more runs may decide it"
    what = "that it lies within the margin" if within else "it"
    what += f" among {among} comparisons" if among > 1 else ""
    if more > TIMES * had and not sequential:
        return (
            f"if the true difference is as small as the one that was seen, only more than {TIMES} "
            f"times as many runs would show {what}"
        )
    one = f"{more:.0f}" == "1"
    runs = f"{more:,.0f} more {'run' if one else 'runs'}{of}{f' ({cost})' if cost else ''}"
    text = f"if the true difference is the one that was seen, {runs} "
    if sequential:
        return f"{text}{'settles' if one else 'settle'} it with a power of {POWER:.0%}"
    text += f"{'shows' if one else 'show'} {what} with a power of "
    if math.isnan(band[0]):
        return f"{text}{POWER:.0%}"
    about = "about" if band[0] <= POWER + 0.01 else "at least"  # a rule may ask for more runs
    return (
        f"{text}{about} {POWER:.0%}; over the effects and spreads that these runs leave open that "
        f"power is {band[0]:.0%} to {band[1]:.0%} (nominal {BAND:.0%} band)"
    )


def further_tasks(value: float, low: float, high: float, margin: float) -> str:
    """Says what some tasks say of further ones, as a clause without its full stop.

    Args:
        value: Mean effect over tasks.
        low: Lower limit of its interval over tasks; NaN where there is none.
        high: Upper limit.
        margin: Largest difference that counts as none; 0: there is none.

    Example:
        >>> from replay.claims.further import further_tasks
        >>> further_tasks(0.31, -0.12, 0.74, 0.0)  # doctest: +NORMALIZE_WHITESPACE
        'for further tasks, whose effects may differ, the mean effect is +0.31 [-0.12, 0.74] (random
         effects over tasks): undetermined'
    """
    if math.isnan(low):
        return "fewer than three tasks say nothing of further ones"
    found = with_limits(value, low, high, "{:+.3g}".format, "{:.3g}".format)
    return (
        f"for further tasks, whose effects may differ, the mean effect is {found} (random effects "
        f"over tasks): {decide(low, high, margin)}"
    )


def new_runs(power: float) -> str:
    """Says what would change a verdict that was found, and how likely that is; sentences.

    Args:
        power: Probability that as many runs show it again; NaN where it is not known.
    """
    text = "What would change that: new runs without this difference."
    if math.isnan(power):
        return text
    likely = f"probability {power:.2f}" if power < 0.995 else "a probability of more than 0.99"
    return f"{text} As many of them would show it again with {likely}."


def sentence(clause: str) -> str:
    """A clause as a sentence."""
    return f"{clause[:1].upper()}{clause[1:]}."
