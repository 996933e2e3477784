"""Refuses a program that changes what stands outside the regions that may evolve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evo.logs.several import unpacked
from evo.searches.base import Member

# A region left open runs to the end of the text, so that it is read once, and does not count.
_REGION = re.compile(
    r"^[^\n]*EVOLVE-BLOCK-START[^\n]*$(?:.*?^[^\n]*(EVOLVE-BLOCK-END)[^\n]*$|.*)",
    re.MULTILINE | re.DOTALL,
)


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
        if len(_outside(initial)) == 1:
            return None
        kept, found = _outside(initial), _outside(program)
        if len(found) != len(kept):
            return f"expected {len(kept) - 1} regions between marks, got {len(found) - 1}"
        for one, other in zip(kept, found, strict=True):
            if one != other:
                pairs = zip([*one, ""], [*other, ""], strict=False)
                line = next((old or new for old, new in pairs if old != new), "")
                return f"a line outside the marks was changed: {line.strip()!r}"
        return None


def _outside(program: str) -> list[list[str]]:
    """Returns the lines before, between and behind the regions, without spaces at their ends."""
    parts, end = [], 0
    for region in _REGION.finditer(program):
        if region[1]:
            parts.append(program[end : region.start()])
            end = region.end()
    parts.append(program[end:])
    return [[line.rstrip() for line in part.strip().splitlines()] for part in parts]
