"""Warns of a search that stands still because all fitness is smaller than `min_improvement`."""

from __future__ import annotations

from evo.logs.records import Child, Header

ENOUGH = 8
"""Children with a fitness from which on a warning says that all of them differ too little.

The warning also needs more than half of them to be better. Where the initial fitness is 0, a
single better child may be a rounding error, and whether it comes early is chance.
"""

SMALL = 1000
"""A fitness below so many times `min_improvement` can hardly improve by more than that."""

ROUNDING = 1e-12
"""Differences up to this share of a fitness are rounding errors and no improvements."""


class Standstill:
    """Looks at the fitness of a run, until one differs from the first by enough.

    Attributes:
        over: Whether there is nothing more to say.
    """

    def __init__(self, header: Header) -> None:
        self._header, self._least = header, header.min_improvement
        self._initial = 0.0
        self._count = self._better = 0
        self.over = self._least == 0

    def begin(self, fitness: float | None) -> str:
        """Takes the initial program's fitness; returns a warning if it is small, else ""."""
        self.over = self.over or fitness is None
        if self.over or fitness is None:
            return ""
        self._initial = fitness
        if not 0 < abs(fitness) < SMALL * self._least:
            return ""
        self.over = True
        return (
            f"{self._header.task.name}: the initial program's fitness is {fitness:.3g}, and a "
            f"child replaces its parent only if it is better by more than {self._least:g}"
            f"{self._remedy}"
        )

    def take(self, child: Child) -> str:
        """Takes a child; returns a warning if many differ too little, else ""."""
        fitness = child.evaluation.fitness
        if self.over or fitness is None:
            return ""
        gain = fitness - self._initial
        self.over = abs(gain) > self._least
        self._count += 1
        self._better += gain > ROUNDING * abs(self._initial)
        if self.over or self._count < ENOUGH or 2 * self._better <= self._count:
            return ""
        self.over = True
        return (
            f"{self._header.task.name}: the fitness of the first {self._count} children differs "
            f"from the initial program's, {self._initial:.3g}, by no more than {self._least:g}; "
            f"{self._better} of them are better, but none by enough to replace it{self._remedy}"
        )

    @property
    def _remedy(self) -> str:
        return (
            "; give a smaller min_improvement (--min-improvement), 0 for any difference, or "
            "multiply the fitness by a large number"
        )
