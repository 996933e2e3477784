"""Refuses a program that is nearly one of the archive."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from evo.searches.base import Member

LONG = 4000
"""Characters of a program from which on equal lines are matched before characters."""


@dataclass(frozen=True)
class NearDuplicates:
    """Refuses a program whose text is nearly that of an earlier one.

    Attributes:
        ratio: The least similarity at which a program is refused, above 0 and at most 1: twice the
            number of characters in common over the number in both (`difflib.SequenceMatcher`). Of
            programs longer than `LONG` characters, equal lines are matched first.
    """

    ratio: float = 0.98

    name = "near_duplicates"

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise ValueError(f"ratio: expected a number above 0, at most 1, got {self.ratio!r}")

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns which program of the archive is nearly the same, or None."""
        matcher = difflib.SequenceMatcher(None, autojunk=False)
        matcher.set_seq2(program)  # what the matcher prepares once
        for member in archive:
            matcher.set_seq1(member.program or "")
            bounds = (matcher.real_quick_ratio, matcher.quick_ratio)  # cheap, and never too low
            if any(bound() < self.ratio for bound in bounds):
                continue
            long = max(len(program), len(member.program or "")) > LONG
            share = _by_lines(member.program or "", program) if long else matcher.ratio()
            if share >= self.ratio:
                generation, index = member.place
                return f"generation {generation}, child {index} is {share:.3f} the same"
        return None


def _by_lines(one: str, other: str) -> float:
    """Returns the similarity of two long texts: equal lines, and characters of changed ones.

    Matching characters takes time that grows with the square of their number, so a stretch of
    changed lines that is long itself counts as having nothing in common.
    """
    lines, others = one.splitlines(keepends=True), other.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, lines, others, autojunk=False)
    common = 0
    for tag, i, j, k, m in matcher.get_opcodes():
        old, new = "".join(lines[i:j]), "".join(others[k:m])
        if tag == "equal":
            common += len(old)
        elif max(len(old), len(new)) <= LONG:
            blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
            common += sum(block.size for block in blocks)
    return 2 * common / (len(one) + len(other))
