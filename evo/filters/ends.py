"""How much two texts begin and end with in common, found at the speed of a comparison."""

from __future__ import annotations

from collections.abc import Callable

BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters that end a line, as `str.splitlines` has it."""


def shared_lines(one: str, other: str) -> tuple[int, int]:
    r"""Returns the characters of the whole lines that two different texts begin and end with.

    They are those of the longest common beginning of the lists `one.splitlines(keepends=True)` and
    `other.splitlines(keepends=True)`, and of the longest common end of what is left of both.

    Example:
        >>> shared_lines("a\nb\nc\n", "a\nc\n")
        (2, 2)
    """
    start = _longest(min(len(one), len(other)), lambda i, j: one[i:j] == other[i:j])
    if not (_begins(one, start) and _begins(other, start)):
        start = max(one.rfind(each, 0, start - 1) for each in BREAKS) + 1
    end = _longest(
        min(len(one), len(other)) - start,
        lambda i, j: one[len(one) - j : len(one) - i] == other[len(other) - j : len(other) - i],
    )
    while not (_begins(one, len(one) - end) and _begins(other, len(other) - end)):
        found = (one.find(each, len(one) - end) for each in BREAKS)
        end = len(one) - 1 - min((place for place in found if place >= 0), default=len(one) - 1)
    return start, end


def _longest(most: int, same: Callable[[int, int], bool]) -> int:
    """Returns how far two texts are the same, given whether they are from one place to another."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _begins(text: str, place: int) -> bool:
    """Whether a line begins at a place of a text, or the text ends there."""
    if place in (0, len(text)):
        return True
    return text[place - 1] in BREAKS and text[place - 1 : place + 1] != "\r\n"
