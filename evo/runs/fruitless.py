"""Warns of a run whose first children all fail, as with a model that does not send programs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from evo.logs.literals import KEPT_OUT

if TYPE_CHECKING:
    from evo.logs.records import Child

FRUITLESS = 8
"""Children without a fitness, from the first on, after which a warning says so."""


def in_a_line(error: str) -> str:
    """Returns the line of an error that says what went wrong; of a traceback, the exception."""
    who, traceback, frames = error.rpartition("Traceback (most recent call last):")
    lines = frames.strip().splitlines()
    if traceback or error.startswith("File "):
        lines = [line for line in lines if line and not line.startswith((" ", "File "))]
    return f"{who}{lines[0] if lines else ''}".strip()


def worded(error: str, evolves: str) -> str:
    """Returns a logged error in the words of what evolves, which a log calls a program always."""
    if evolves == "python":
        return error
    return error.replace("the reply has no program:", "the reply has no text that could evolve:")


class Fruitless:
    """Looks at the children of a run, one after another, until one is ok.

    Attributes:
        over: Whether there is nothing more to say: a child was ok, or the warning was given.
    """

    def __init__(self, path: Path, evolves: str) -> None:
        self._path, self._evolves = path, evolves
        self._statuses = Counter[str]()
        self.over = False

    def take(self, child: Child) -> str:
        """Takes a child, and returns a warning after so many that failed; else an empty text.

        A child that was kept out does not count.
        """
        status = child.evaluation.status
        self.over = self.over or status == "ok"
        if self.over or status is None or status in KEPT_OUT:
            return ""
        self._statuses[status] += 1
        if self._statuses.total() < FRUITLESS:
            return ""
        self.over = True
        return self._words(child)

    def _words(self, last: Child) -> str:
        """Returns what became of the children."""
        match [*self._statuses]:
            case ["no_reply"]:
                what = f"none of the first {FRUITLESS} calls got a reply"
            case ["no_program"]:
                holds = "program" if self._evolves == "python" else "text that could evolve"
                what = f"none of the first {FRUITLESS} replies holds a {holds}"
            case _:
                counts = ", ".join(f"{n} {each}" for each, n in self._statuses.most_common())
                what = f"none of the first {FRUITLESS} programs is ok ({counts})"
        said = " ".join(in_a_line(worded(last.evaluation.error or "", self._evolves)).split())
        why = f"; the last: {said:.200}" if said else ""
        return f"{what}{why}; the run goes on, `evo show {quote(str(self._path))}` shows them"
