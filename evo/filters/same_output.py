"""Keeps a child out of the archive that behaves as an earlier program does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evo.logs.records import Evaluation
from evo.searches.base import TIE, Member


@dataclass(frozen=True)
class SameOutput:
    """Keeps a child out of the archive whose evaluation equals that of an earlier program.

    On a task with instances, two programs behave alike if they have the same score on each of them;
    on other tasks, if they have the same fitness and the same public metrics. Numbers within 1e-9
    of each other, relative to their size where that is above 1, are the same.

    The child was paid for: its status, its fitness and its cost stay. No search sees it.

    Example:
        >>> earlier = evo.searches.Member((0, 0), 0.5, program="x = 1")
        >>> same = evo.Evaluation(status="ok", fitness=0.5)
        >>> evo.filters.SameOutput().after(same, [earlier])
        'generation 0, child 0 behaves the same'
    """

    name = "same_output"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Lets every program be evaluated."""
        return None

    def after(self, evaluation: Evaluation, archive: Sequence[Member]) -> str | None:
        """Returns which program of the archive behaves as the child does, or None."""
        if evaluation.fitness is None:
            return None
        scores = {each.id: each.score for each in evaluation.instances}
        own = scores or {"fitness": evaluation.fitness, **evaluation.metrics}
        for member in archive:
            if member.fitness is None:
                continue
            known = member.scores if scores else {"fitness": member.fitness, **member.metrics}
            if _equal(own, known):
                generation, index = member.place
                return f"generation {generation}, child {index} behaves the same"
        return None


def _equal(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> bool:
    """Whether two evaluations have the same numbers under the same names."""
    return one.keys() == other.keys() and all(
        _near(value, other[name]) for name, value in one.items()
    )


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TIE, abs_tol=TIE)
