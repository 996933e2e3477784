"""Tables and numbers that commands print."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.cli import tables
from evo.cli.tables import dollars_of, number, read_text, say_who_is_no_llm, table
from evo.runs.progress import Tally

CELLS = st.text("ab 1.", max_size=4).map(str.strip)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4))
def test_every_cell_begins_or_ends_where_its_head_does(rows: list[tuple[str, ...]]) -> None:
    heads = ("first", "b", "third")
    lines = table(rows, heads).split("\n")
    assert len(lines) == 1 + len(rows)
    assert not any(line != line.rstrip() for line in lines)
    start = 0
    for column, head in enumerate(heads):
        texts = [row[column] for row in rows]
        end = start + max(map(len, [head, *texts]))
        assert [line[start:end].strip() for line in lines] == [head, *texts]
        start = end + 2


@pytest.mark.parametrize(
    "cells", [["1", "-20.5"], ["nan", "none"], ["1e-5", "+3 %"[:2]], ["1,000"]]
)
def test_numbers_end_together_and_words_begin_together(cells: list[str]) -> None:
    _, *shown = table([(cell,) for cell in cells], ["a long head"]).split("\n")
    assert shown == [cell.rjust(len("a long head")) for cell in cells]
    _, *shown = table([(cell,) for cell in [*cells, "word"]], ["a long head"]).split("\n")
    assert shown == [*cells, "word"]


def test_a_table_without_rows_is_its_heads() -> None:
    assert table([], ["a", "b"]) == "a  b"


@pytest.mark.parametrize("value", [None, math.nan])
def test_what_is_unknown_is_said_and_no_number(value: float | None) -> None:
    assert number(value) == ""
    assert number(value, ".2f", "unknown") == "unknown"


def test_a_number_has_its_form_and_0_no_sign() -> None:
    assert [number(each, ".2f") for each in (1.234, -1.234, 0.0)] == ["1.23", "-1.23", "0.00"]
    assert number(-1e-9, ".2f") == number(-0.0, ".2f") == "0.00"
    assert number(12) == "12"


def test_calls_of_what_is_no_llm_have_no_dollars_and_it_is_named_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tally = Tally()
    assert dollars_of(tally) == "0.0000"
    stand_ins = [SimpleNamespace(stand_ins=names) for names in ({"b"}, {"a", "b"}, set[str]())]
    for count, words in (
        (1, "no dollars: b is not an LLM\n"),
        (3, "no dollars: a and b are no LLMs\n"),
    ):
        say_who_is_no_llm(stand_ins[:count])  # type: ignore[arg-type]
        assert capsys.readouterr().out == words
    say_who_is_no_llm(stand_ins[2:])  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""


def test_a_text_is_read_without_its_mark_and_what_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert read_text(path) == "one\ntwo"
    monkeypatch.setattr(tables, "_MAX_LENGTH", 6)
    with pytest.raises(ValueError, match=r"a\.txt: cannot read it: expected at most 6 characters"):
        read_text(path)
    path.write_bytes(b"\xff")
    for each in (path, tmp_path, tmp_path / "none"):
        with pytest.raises(ValueError, match=f"^{each}: cannot read it: "):
            read_text(each)
