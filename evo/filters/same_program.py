"""Refuses a program that the archive holds already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evo.searches.base import Member


@dataclass(frozen=True)
class SameProgram:
    """Refuses a program that an earlier generation has made, apart from spaces at line ends.

    Without it, such a child is given the earlier evaluation and may be a parent again.
    """

    name = "same_program"

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns where the archive holds the program, or None."""
        text = _plain(program)
        for member in archive:
            if member.program is not None and _plain(member.program) == text:
                generation, index = member.place
                return f"generation {generation}, child {index} is the same"
        return None


def _plain(program: str) -> str:
    """Returns a program without spaces at line ends and without blank lines."""
    return "\n".join(line.rstrip() for line in program.splitlines() if line.strip())
