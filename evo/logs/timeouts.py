"""What programs that ran into their time limit cost a run."""

from __future__ import annotations

import math
from collections.abc import Iterable

from evo.logs.log import Log

EVALUATED = ("ok", "invalid", "error", "timeout", "partial")
"""The statuses of programs that were run."""


def timeouts_of(logs: Iterable[Log]) -> str:
    """Returns a sentence on the programs of some runs that took too long; empty if none did.

    A program that came several times was evaluated once, and what a fork inherited was paid for by
    the run that it left: both count once, if at all.
    """
    seconds, programs = list[float](), 0
    limits = set[float]()
    for log in logs:
        again = {(g.generation, index) for g in log.generations for index, *_ in g.repeats}
        for child in log.outcomes:
            evaluation = child.evaluation
            if child.inherited or (child.generation, child.index) in again:
                continue
            programs += evaluation.status in EVALUATED
            if evaluation.status == "timeout":
                seconds.append(evaluation.seconds or 0.0)
                staged = [each.limits for each in log.header.task.stages if each.limits]
                limits |= {each.seconds for each in staged or [log.limits]}
    if not seconds:
        return ""
    least, most = min(limits), max(limits)
    limit = (
        f"the limit of {most:g} s" if least == most else f"the limits of {least:g} to {most:g} s"
    )
    return stated_timeouts(len(seconds), programs, math.fsum(seconds), limit)


def stated_timeouts(late: int, programs: int, seconds: float, limit: str) -> str:
    """Returns the sentence: how many of the programs that were run were late, and their cost."""
    return f"{late:,} of {programs:,} programs ran into {limit}: {seconds:,.4g} s of evaluation"
