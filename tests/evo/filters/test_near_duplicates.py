"""Near duplicates: how alike two texts are, and from where on one is refused."""

import random

import pytest
from filter_samples import PIECES, archive
from hypothesis import given

from evo.filters import NearDuplicates
from evo.filters.near_duplicates import LONG, MOST_LINES, SimilarBlocks, _by_lines, _similarity


def test_similarity_is_that_of_the_longest_common_subsequence() -> None:
    letters = "abac\n"
    rng = random.Random(3)
    for _ in range(300):
        one, other = ("".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(2))
        table = {(i, j): 0 for i in range(len(one) + 1) for j in range(len(other) + 1)}
        for i, a in enumerate(one, start=1):
            for j, b in enumerate(other, start=1):
                table[i, j] = max(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1] + (a == b))
        share = 2 * table[len(one), len(other)] / (len(one) + len(other))
        found = NearDuplicates(ratio=0.01).check(one, archive(other)) or " is 0.000 the same"
        assert f" is {share:.3f} the same" in found


def test_near_duplicates_of_a_long_program_are_found_line_by_line() -> None:
    program = "".join(f"def f{k}():\n    return {k} * 0.25\n\n" for k in range(700))
    assert program.count("\n") > 2000
    everywhere = program.replace("* 0.25", "+ 7 - 1")
    ends = program.replace("def f0()", "def g0()").replace("def f699()", "def g699()")
    again = NearDuplicates().check(ends, archive(everywhere, program)) or ""
    assert again.startswith("generation 1, child 1 is 0.999")
    assert NearDuplicates(ratio=1.0).check(ends, archive(program)) is None
    assert NearDuplicates(ratio=0.9).check(everywhere, archive(program)) is None
    assert NearDuplicates(ratio=1.0).check(program, archive(program))


def test_of_a_long_rewrite_the_lines_that_both_begin_and_end_with_count() -> None:
    start, end = "a = 1\n" * 900, "b = 2\n" * 300
    one, other = (
        start + "".join(f"{name} = {k}\n" for k in range(MOST_LINES + 1)) + end for name in "xy"
    )
    share = 2 * len(start + end) / len(one + other)
    found = NearDuplicates(ratio=0.1).check(one, archive(other)) or ""
    assert found.endswith(f" is {share:.3f} the same")


def test_the_filter_of_earlier_logs_finds_long_programs_too() -> None:
    program = "".join(f"def f{k}():\n    return {k} * 0.25\n\n" for k in range(300))
    nearly = program.replace("200 * 0.25", "200 * 0.35")
    assert "the same" in (SimilarBlocks().check(nearly, archive("x = 1\n", program)) or "")
    assert SimilarBlocks().check(nearly[::-1], archive(program)) is None


@pytest.mark.parametrize("changed", [1, LONG])
def test_earlier_similarity_counts_equal_lines_and_characters_of_short_changes(
    changed: int,
) -> None:
    kept = "".join(f"x{k} = {k}\n" for k in range(2 * LONG))
    old, new = "a" * changed + "b\n", "a" * changed + "c\n"
    one, other = kept + old + kept, kept + new + kept
    common = 2 * len(kept) + (changed + 1 if len(old) <= LONG else 0)  # as and the line's end
    assert _by_lines(one, other) == pytest.approx(2 * common / (len(one) + len(other)))


@pytest.mark.parametrize(("ratio", "refused"), [(0.75, True), (0.7500001, False)])
def test_a_similarity_that_equals_the_ratio_is_refused(ratio: float, refused: bool) -> None:
    found = NearDuplicates(ratio=ratio).check("aaab", archive("aaac"))
    assert found == ("generation 1, child 0 is 0.750 the same" if refused else None)
    assert bool(NearDuplicates(ratio=0.5).check("aa", archive("aaaaaa"))) == (2 * 2 / 8 >= 0.5)


@given(PIECES, PIECES)
def test_similarity_is_that_of_either_text_to_the_other(one: str, other: str) -> None:
    assert _similarity(one, other, 0.01) == _similarity(other, one, 0.01)
    if one:
        assert _similarity(one, one, 1.0) == 1.0
        assert 0 <= _similarity(one, other, 0.01) <= 1


@pytest.mark.parametrize("ratio", [0, -0.1, 1.0000001, float("nan")])
def test_a_ratio_is_above_0_and_at_most_1(ratio: float) -> None:
    assert NearDuplicates(ratio=1).ratio == 1
    with pytest.raises(ValueError, match="ratio: expected a number above 0, at most 1"):
        NearDuplicates(ratio=ratio)


def test_the_earlier_filter_counts_characters_that_are_frequent() -> None:
    program = "ab" * 150
    found = SimilarBlocks(ratio=0.9).check(f"c{program}", archive(f"d{program}")) or ""
    assert found.endswith("is 0.997 the same")
