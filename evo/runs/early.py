"""What a run warns of early, once for all runs of a session, while little is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evo.logs.records import Child, Header
from evo.runs.fruitless import Fruitless
from evo.runs.standstill import Standstill


class EarlyWarnings:
    """Looks at the first programs of a run: whether any is ok, and whether any can be better.

    Args:
        header: Configuration of the run.
        path: Its log.
        warn: Warns in the words of its second argument, once for each kind, its first.
        over: Whether nothing is to be said, as where a log is played again.
    """

    def __init__(
        self, header: Header, path: Path, warn: Callable[[str, str], None], *, over: bool
    ) -> None:
        self._warn, self._model = warn, header.model_name
        self._fruitless, self._standstill = Fruitless(path, header.task.evolves), Standstill(header)
        if over:
            self.end()

    def begin(self, fitness: float | None) -> None:
        """Takes the fitness of the initial program."""
        self._say("standstill", self._standstill.begin(fitness))

    def take(self, child: Child) -> None:
        """Takes a child."""
        self._say("fruitless", self._fruitless.take(child))
        self._say("standstill", self._standstill.take(child))

    def end(self) -> None:
        """Says nothing from now on."""
        self._fruitless.over = self._standstill.over = True

    def _say(self, kind: str, words: str) -> None:
        if words:
            self._warn(f"{kind} {self._model}", words)
