"""The best program of a log."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from evo.logs.records import Evaluation


@dataclass(frozen=True)
class Best:
    """A program (None in a compact log) with its evaluation, place and, where kept, its value."""

    program: str | None
    evaluation: Evaluation
    generation: int
    index: int
    value: object = None

    def confirmed(self, fitness: float | None) -> Best:
        """Returns it with the fitness that a confirmation gave it; None: as it is."""
        if fitness in (None, self.fitness):
            return self
        return replace(self, evaluation=msgspec.structs.replace(self.evaluation, fitness=fitness))

    @property
    def fitness(self) -> float | None:
        """The fitness of its evaluation; with `confirm` the mean of its latest fresh draws."""
        return self.evaluation.fitness
