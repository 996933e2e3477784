"""The best program of a log."""

from __future__ import annotations

from dataclasses import dataclass

from evo.logs.records import Evaluation


@dataclass(frozen=True)
class Best:
    """A program (None in a compact log) with its evaluation, place and, where kept, its value."""

    program: str | None
    evaluation: Evaluation
    generation: int
    index: int
    value: object = None

    @property
    def fitness(self) -> float | None:
        """The fitness of its evaluation."""
        return self.evaluation.fitness
