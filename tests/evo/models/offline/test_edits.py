"""Small edits: one or two spots change, all else stays, and Python stays Python."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.keyed import KeyedStream
from evo.models.offline.edits import LARGEST_WHOLE, change_number, edit, edit_numbers, find_sites

PROGRAM = """import math


def kept(x):
    return x + 7


def solve():
    total = 0.5
    for k in range(3, 12):
        if k > 4:
            total = total * 1.25 - k
    return "text 99", total  # 5 < 6
"""


def texts(source, but=""):
    return [(site.kind, source[site.start : site.end]) for site in find_sites(source, but)]


def test_numbers_bounds_and_operators_are_found_and_no_text_or_comment():
    found = texts(PROGRAM, but="kept")
    assert found == [
        ("number", "0.5"), ("bound", "3"), ("bound", "12"), ("operator", ">"), ("number", "4"),
        ("operator", "*"), ("number", "1.25"), ("operator", "-"),
    ]  # fmt: skip
    assert texts(PROGRAM)[:2] == [("operator", "+"), ("number", "7")]


@pytest.mark.parametrize("source", ["def", "x = 'ä' + str(1)", "", "x = True", "a < b < c"])
def test_what_is_no_plain_python_has_no_spots(source):
    assert find_sites(source) == ()
    assert edit(source, KeyedStream(1)) == (source, "I found nothing to change.")


@given(st.integers(0, 10**6))
def test_an_edit_changes_one_or_two_spots_and_leaves_the_rest(seed):
    new, words = edit(PROGRAM, KeyedStream(seed), but="kept")
    assert ast.parse(new)
    assert new.startswith(PROGRAM[: PROGRAM.index("def solve")])
    assert '"text 99", total  # 5 < 6' in new
    old_tokens, new_tokens = PROGRAM.split(), new.split()
    assert len(old_tokens) == len(new_tokens)
    changed = sum(a != b for a, b in zip(old_tokens, new_tokens, strict=True))
    assert changed <= 2
    assert words.startswith("I change ")
    assert edit(PROGRAM, KeyedStream(seed), but="kept") == (new, words)


@given(st.integers(0, 10**6), st.integers(0, 10**4))
def test_a_whole_number_stays_one_and_is_not_raised_beyond_the_largest(seed, value):
    new = int(change_number(str(value), KeyedStream(seed)))
    assert 0 <= new <= max(value, LARGEST_WHOLE)


@given(st.integers(0, 10**6), st.floats(0.001, 1000).filter(lambda x: "e" not in repr(x)))
def test_another_number_is_scaled_by_half_to_twice(seed, value):
    new = float(change_number(repr(value), KeyedStream(seed)))
    assert 0.49 * value <= new <= 2.01 * value
    assert new != 0
    assert float(change_number("0.0", KeyedStream(seed))) in (0.01, 0.1, -0.1)


OTHER = (
    'int main() { // 11\n  char *s = "12 a"; /* 13 */\n#define N 14\n  return x1 + 2.5e3 * 7;\n}\n'
)


@given(st.integers(0, 10**6))
def test_in_other_languages_only_plain_numbers_change(seed):
    new, words = edit_numbers(OTHER, KeyedStream(seed))
    assert words == "I change a constant."
    before = OTHER[: OTHER.index("2.5e3")]
    assert new.startswith(before)
    assert new.endswith(";\n}\n")
    assert edit_numbers("return x;", KeyedStream(seed))[0] == "return x;"
