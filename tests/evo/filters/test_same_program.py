"""The same program again: which blank space makes a difference."""

import pytest
from filter_samples import archive

from evo.filters import SameProgram
from evo.filters.same_program import LONGEST
from evo.searches import Member


def test_blank_lines_in_a_string_make_another_program() -> None:
    program = 'def value():\n    a = """x\n\ny"""\n\n    return a\n'
    assert SameProgram().check(program.replace("x\n\ny", "x\ny"), archive(program)) is None
    assert SameProgram().check(program.replace("x\n", "x  \n"), archive(program)) is None
    assert SameProgram().check(program.replace('"""\n\n', '"""\n'), archive(program))
    assert SameProgram().check("two words (\n\nand more", archive("two words (\nand more")) is None


@pytest.mark.parametrize("line", ["x = 1 \\\n", "x = (1 +\\\n", "assert 1, \\\n"])
def test_a_blank_line_ends_a_line_that_goes_on(line: str) -> None:
    """`x = 1 \\`, a blank line and `y = 2` are two statements, without the blank line none."""
    whole, broken = f"{line}\ny = 2\n", f"{line}y = 2\n"
    assert SameProgram().check(whole, archive(broken)) is None
    assert SameProgram().check(broken, archive(whole)) is None


def test_spaces_behind_a_comment_make_no_other_program() -> None:
    assert SameProgram().check("x = 1  # one  \n\ny = 2", archive("x = 1  # one\ny = 2\n"))


@pytest.mark.parametrize("text", ["x = 1\n", "'a' + ", "'''\n", "\\\n", "((\n", "words, \n"])
def test_long_programs_are_compared_as_they_are(text: str) -> None:
    long = text * (1_000_000 // len(text))
    assert SameProgram().check(f"\n{long}", archive(long)) is None
    assert SameProgram().check(long, archive(long))


@pytest.mark.parametrize("over", [0, 1])
def test_up_to_the_limit_blank_space_is_told_from_blank_space_in_a_string(over: int) -> None:
    program = "x = 1\n" + "#" * (LONGEST - len("x = 1\n\n") + over)
    again = program.replace("\n", "\n\n")
    assert len(again) == LONGEST + over
    assert bool(SameProgram().check(again, archive(program))) == (over == 0)


def test_programs_that_were_refused_or_never_there_are_no_earlier_ones() -> None:
    known = [
        Member((1, 0), None),
        Member((1, 1), 0.5, (), "x = 1"),
        Member((1, 2), 0.5, (), "x = 1"),
    ]
    assert SameProgram().check("x = 1", known) == "generation 1, child 1 is the same"
    assert SameProgram().check("", known) is None
