"""What two texts begin and end with in common."""

import itertools

from filter_samples import PIECES
from hypothesis import assume, given

from evo.filters.ends import shared_lines


def lines_in_common(one: list[str], other: list[str]) -> tuple[list[str], list[str]]:
    """Returns the longest beginning in common, and the longest end of what is left."""
    start = sum(
        1 for _ in itertools.takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False))
    )
    left = zip(one[start:][::-1], other[start:][::-1], strict=False)
    end = sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], left))
    return one[:start], one[len(one) - end :]


@given(PIECES, PIECES, PIECES, PIECES)
def test_what_texts_share_at_their_ends_is_whole_lines(
    start: str, one: str, other: str, end: str
) -> None:
    texts = one, other = start + one + end, start + other + end
    assume(one != other)
    begins, ends = lines_in_common(*(text.splitlines(keepends=True) for text in texts))
    assert shared_lines(one, other) == (len("".join(begins)), len("".join(ends)))
