"""Refuses a program that changes what stands outside the regions that may evolve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from evo.logs.several import unpacked
from evo.searches.base import Member

_MARK = re.compile("EVOLVE-BLOCK-(START|END)")


@dataclass(frozen=True)
class ProtectedRegions:
    """Refuses a program in which anything outside its EVOLVE-BLOCK marks is not as it was.

    The marks are those of OpenEvolve and ShinkaEvolve: a line with EVOLVE-BLOCK-START begins a
    region that may evolve, one with EVOLVE-BLOCK-END ends it. What stands outside is compared with
    the initial program, spaces at line ends and blank lines at its ends left aside. Where the
    initial program has no marks, nothing is protected. Of a program of several files this holds for
    each: a file without marks may change as a whole.

    Example:
        >>> lines = ["a = 1", "# EVOLVE-BLOCK-START", "b = 1", "# EVOLVE-BLOCK-END"]
        >>> initial = evo.searches.Member((0, 0), 0.5, program=chr(10).join(lines))
        >>> changed = chr(10).join(["a = 2", *lines[1:]])
        >>> evo.filters.ProtectedRegions().check(changed, [initial])
        "a line outside the marks was changed: 'a = 1'"
    """

    name = "protected_regions"
    rule = (
        "Change only what stands between the lines EVOLVE-BLOCK-START and EVOLVE-BLOCK-END; keep "
        "these lines and everything outside them exactly as they are."
    )

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns the first line outside the marks that is not as it was, or None."""
        initial = next((member.program for member in archive if member.place == (0, 0)), None)
        if initial is None:
            return None
        files, initial_files = unpacked(program), unpacked(initial)
        if files is None or initial_files is None:
            return self._compare(initial, program)
        for name, text in initial_files.items():
            if (reason := self._compare(text, files.get(name, ""))) is not None:
                return f"{name}: {reason}"
        return None

    def _compare(self, initial: str, program: str) -> str | None:
        """Returns the first line outside the marks of a file that is not as it was, or None."""
        kept = _outside(initial)
        if len(kept) == 1:
            return None
        found = _outside(program)
        if len(found) != len(kept):
            return f"expected {len(kept) - 1} regions between marks, got {len(found) - 1}"
        for one, other in zip(map(str.strip, kept), map(str.strip, found), strict=True):
            if one == other:
                continue
            lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
            pairs = ((old.rstrip(), new.rstrip()) for old, new in lines)
            if (line := next((old or new for old, new in pairs if old != new), None)) is not None:
                return f"a line outside the marks was changed: {line.strip()!r}"
        return None


def _outside(program: str) -> list[str]:
    """Returns the texts before, between and behind the regions, each mark read once.

    A region ends with a mark on a later line; one that is left open does not count.
    """
    parts: list[str] = []
    end = line = seen = 0  # of the last region; of the line of this mark; read so far
    start: int | None = None
    for mark in _MARK.finditer(program):
        line = program.rfind("\n", seen, mark.start()) + 1 or line
        seen = mark.end()
        if start is None:
            if mark[1] == "START" and line >= end:
                start = line
        elif mark[1] == "END" and line > start:
            parts.append(program[end:start])
            end = program.find("\n", seen)
            if end < 0:
                end = len(program)
            start = None
    parts.append(program[end:])
    return parts
