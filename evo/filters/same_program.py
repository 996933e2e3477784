"""Refuses a program that the archive holds already."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from evo.searches.base import Member


@dataclass(frozen=True)
class SameProgram:
    """Refuses a program that an earlier generation has made.

    Spaces at line ends and blank lines make no difference, except within a string of a Python
    program. Without this filter, such a child is given the earlier evaluation and may be a parent
    again.
    """

    name = "same_program"
    version = 2

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns where the archive holds the program, or None."""
        text = _plain(program)
        for member in archive:
            known = member.program
            if known is not None and _plain(known) == text and self._same(known, program):
                generation, index = member.place
                return f"generation {generation}, child {index} is the same"
        return None

    def _same(self, one: str, other: str) -> bool:
        """Whether two programs that differ at most in blank space do the same."""
        return one == other or _tokens(one) == _tokens(other)


@dataclass(frozen=True)
class SameLines(SameProgram):
    """The filter of earlier logs, for which blank space made no difference in a string either."""

    version = 1

    def _same(self, one: str, other: str) -> bool:
        return True


def _plain(program: str) -> str:
    """Returns a program without spaces at line ends and without blank lines."""
    return "\n".join(line.rstrip() for line in program.splitlines() if line.strip())


def _tokens(program: str) -> list[str]:
    """Returns the tokens of a Python program; of a text that is none, its lines."""
    try:
        found = tokenize.generate_tokens(io.StringIO(program).readline)
        return [
            token.string for token in found if token.type not in (tokenize.NL, tokenize.NEWLINE)
        ]
    except (SyntaxError, tokenize.TokenError):
        return [line.rstrip() for line in program.strip().splitlines()]
