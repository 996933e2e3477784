"""Refuses a program that is nearly one of the archive."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from evo.searches.base import Member


@dataclass(frozen=True)
class NearDuplicates:
    """Refuses a program whose text is nearly that of an earlier one.

    Attributes:
        ratio: The least similarity at which a program is refused, above 0 and at most 1: twice the
            number of characters in common over the number in both (`difflib.SequenceMatcher`).
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
            if all(bound() >= self.ratio for bound in bounds) and matcher.ratio() >= self.ratio:
                generation, index = member.place
                return f"generation {generation}, child {index} is {matcher.ratio():.3f} the same"
        return None
