"""Refuses a program that the archive holds already."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from evo.filters.ends import shared_lines
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
        for member in archive:
            known = member.program
            if known is not None and _alike(known, program) and self._same(known, program):
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


def _alike(one: str, other: str) -> bool:
    """Whether two programs are equal but for spaces at line ends and blank lines."""
    if one == other:
        return True
    start, end = shared_lines(one, other)
    return _plain(one[start : len(one) - end]) == _plain(other[start : len(other) - end])


def _plain(text: str) -> list[str]:
    """Returns the lines of a text without spaces at their ends and without blank ones."""
    return list(filter(None, map(str.rstrip, text.splitlines())))


def _tokens(program: str) -> list[str]:
    """Returns the tokens of a Python program; of a text that is none, its lines."""
    try:
        found = tokenize.generate_tokens(io.StringIO(program).readline)
        return [
            token.string for token in found if token.type not in (tokenize.NL, tokenize.NEWLINE)
        ]
    except (SyntaxError, tokenize.TokenError):
        return [line.rstrip() for line in program.strip().splitlines()]
