"""Refuses a program that the archive holds already."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from evo.filters.ends import shared_lines
from evo.searches.base import Member

LONGEST = 20_000
"""Characters above which only equal texts are the same: telling tokens apart takes too long."""


@dataclass(frozen=True)
class SameProgram:
    """Refuses a program that an earlier generation has made.

    Spaces at line ends and blank lines make no difference, except where they do in Python: within a
    string and behind a line that goes on. In a program of more than 20,000 characters they always
    do. Without this filter, such a child is given the earlier evaluation and may be a parent again.

    Example:
        >>> earlier = evo.searches.Member((0, 0), 0.5, program="x = 1")
        >>> evo.filters.SameProgram().check("x = 1", [earlier])
        'generation 0, child 0 is the same'
    """

    name = "same_program"
    version = 3

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
        if one == other:
            return True
        return max(len(one), len(other)) <= LONGEST and _statements(one) == _statements(other)


@dataclass(frozen=True)
class SameTokens(SameProgram):
    """The filter of earlier logs, for which a blank line did not end a line that goes on."""

    version = 2

    def _same(self, one: str, other: str) -> bool:
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


def _statements(program: str) -> list[str]:
    """Returns the tokens of a Python program and where its lines end; of another text its lines."""
    try:
        return [
            "\n" if token.type == tokenize.NEWLINE
            else token.string.rstrip() if token.type == tokenize.COMMENT
            else token.string
            for token in tokenize.generate_tokens(io.StringIO(program).readline)
            if token.type != tokenize.NL
        ]  # fmt: skip
    except (SyntaxError, tokenize.TokenError):
        return _lines(program)


def _tokens(program: str) -> list[str]:
    """Returns the tokens of a Python program; of a text that is none, its lines."""
    try:
        found = tokenize.generate_tokens(io.StringIO(program).readline)
        return [
            token.string for token in found if token.type not in (tokenize.NL, tokenize.NEWLINE)
        ]
    except (SyntaxError, tokenize.TokenError):
        return _lines(program)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
