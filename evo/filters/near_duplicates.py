"""Refuses a program that is nearly one of the archive."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from evo.filters.ends import BREAKS, shared_lines
from evo.searches.base import Member

LONG = 4000
"""Characters of a program from which on equal lines are matched before characters."""

MOST_LINES = 4000
"""Changed lines of a long program that are matched at most; more have nothing in common."""


@dataclass(frozen=True)
class NearDuplicates:
    """Refuses a program whose text is nearly that of an earlier one.

    Attributes:
        ratio: The least similarity at which a program is refused, above 0 and at most 1: twice the
            length of the longest common subsequence of characters over the number of characters in
            both. Of programs longer than `LONG` characters, whole lines are matched.

    Example:
        >>> earlier = evo.searches.Member((0, 0), 0.5, program="x = 1;" * 50)
        >>> evo.filters.NearDuplicates(ratio=0.9).check("x = 1;" * 49 + "x = 2;", [earlier])
        'generation 0, child 0 is 0.997 the same'
    """

    ratio: float = 0.98

    name = "near_duplicates"
    version = 2

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise ValueError(f"ratio: expected a number above 0, at most 1, got {self.ratio!r}")

    def check(self, program: str, archive: Sequence[Member]) -> str | None:
        """Returns which program of the archive is nearly the same, or None."""
        for member in archive:
            share = _similarity(member.program or "", program, self.ratio)
            if share >= self.ratio:
                generation, index = member.place
                return f"generation {generation}, child {index} is {share:.3f} the same"
        return None


def _similarity(one: str, other: str, least: float) -> float:
    """Returns the similarity of two texts, or 0 where their lengths alone put it below `least`."""
    total = len(one) + len(other)
    if 2 * min(len(one), len(other)) < least * total:
        return 0.0
    if one == other:
        return 1.0
    if max(len(one), len(other)) <= LONG:
        return 2 * _common(one, other) / total
    start, end = shared_lines(one, other)
    rests = [text[start : len(text) - end] for text in (one, other)]
    if max(text.count(each) for text in rests for each in BREAKS) > MOST_LINES:
        return 2 * (start + end) / total
    lines, others = (text.splitlines(keepends=True) for text in rests)
    return 2 * (start + end + _common(lines, others)) / total


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Returns the characters of a longest common subsequence, of characters or of lines.

    What both begin and end with is matched first; the rest in a time that is bounded (Hyyro, "Bit-
    parallel LCS-length computation revisited", 2004: a whole row of the table is one number).
    """
    start, size = 0, min(len(one), len(other))
    while start < size and one[start] == other[start]:
        start += 1
    end = 0
    while end < size - start and one[-1 - end] == other[-1 - end]:
        end += 1
    same = sum(map(len, one[:start])) + sum(map(len, one[len(one) - end :]))
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    if not one or not other or max(len(one), len(other)) > MOST_LINES:
        return same
    places: dict[Hashable, int] = defaultdict(int)
    for place, each in enumerate(one):
        places[each] |= 1 << place
    mask = (1 << len(one)) - 1
    row = mask
    for each in other:
        matched = row & places[each]
        row = ((row + matched) | (row - matched)) & mask
    # A zero of the row is an element of the subsequence; lines count by the length of their like.
    return same + sum(len(each) for place, each in enumerate(one) if not row >> place & 1)


@dataclass(frozen=True)
class SimilarBlocks(NearDuplicates):
    """The filter of earlier logs: the similarity is that of `difflib.SequenceMatcher`."""

    version = 1

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
