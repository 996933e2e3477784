"""What programs that ran into their time limit cost a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from evo.logs.log import Log

EVALUATED = ("ok", "invalid", "error", "timeout", "partial")
"""The statuses of programs that were run."""


def timeouts_of(logs: Iterable[Log]) -> str:
    """Returns a sentence on the programs of some runs that took too long; empty if none did.

    A program that came several times was evaluated once, and what a fork inherited was paid for by
    the run that it left: both count once, if at all.
    """
    seconds, programs = list[float | None](), 0
    limits = set[float]()
    for log in logs:
        again = {(g.generation, index) for g in log.generations for index, *_ in g.repeats}
        for child in log.outcomes:
            evaluation = child.evaluation
            if child.inherited or (child.generation, child.index) in again:
                continue
            programs += evaluation.status in EVALUATED
            if evaluation.status == "timeout":
                seconds.append(evaluation.seconds)
                if evaluation.seconds is None:
                    continue  # of another tool, whose limit is not stated either
                staged = [each.limits for each in log.header.task.stages if each.limits]
                limits |= {each.seconds for each in staged or [log.limits]}
    if not seconds:
        return ""
    if not limits:
        limit = "their time limit"
    elif (least := min(limits)) == (most := max(limits)):
        limit = f"the limit of {most:g} s"
    else:
        limit = f"the limits of {least:g} to {most:g} s"
    return stated_timeouts(seconds, programs, limit)


def stated_timeouts(late: Sequence[float | None], programs: int, limit: str) -> str:
    """Returns the sentence on programs that were late.

    Args:
        late: Seconds that each of them took; None or NaN where they are not recorded.
        programs: How many programs were run.
        limit: What they ran into, in words.
    """
    known = [each for each in late if each is not None and not math.isnan(each)]
    if not known:
        spent = "how long they took is not recorded"
    else:
        spent = f"{math.fsum(known):,.4g} s of evaluation"
        if unknown := len(late) - len(known):
            spent = f"at least {spent}, without {unknown:,} whose time is not recorded"
    return f"{len(late):,} of {programs:,} programs ran into {limit}: {spent}"
