"""Rows of a data set from whatever a notebook has them in, and as a folder holds them."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from evo.tasks.rows import as_lines, read_text, rows_of

ROWS = [{"input": 1, "want": "a"}, {"input": 2, "want": "ä"}]


def written(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def test_dicts_frames_generators_and_files_give_the_same_rows(tmp_path):
    lines = "\ufeff" + "\n\n".join(json.dumps(row) for row in ROWS)
    frame = pd.DataFrame(ROWS)
    table = written(tmp_path, "a.csv", frame.to_csv(index=False))
    for given in (ROWS, frame, iter(ROWS), written(tmp_path, "a.jsonl", lines), table):
        assert rows_of(given, "input", "instances") == ROWS


def test_names_of_columns_are_texts_and_the_rows_are_copies():
    given = [{1: "a"}]
    found = rows_of(given, "", "instances")
    assert found == [{"1": "a"}]
    found[0]["new"] = 1
    assert given == [{1: "a"}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rows.jsonl", r"got 'rows\.jsonl'; a file is Path\('rows\.jsonl'\)"),
        ({"input": 1}, r"expected rows, as dicts, a DataFrame or a Path, got \{'input': 1\}$"),
        (5, "expected rows, .* got 5"),
        ([], "expected at least one row"),
        ([{"input": 1}, 7], "row 1: expected a dict, got 7"),
        ([{"input": 1}, {"a": 1, "b": 2}], "row 1 has a, b, and no 'input'; prompt='NAME'"),
        ([{}], "row 0 has nothing, and no 'input'"),
    ],
)
def test_what_holds_no_rows_is_said(given, message):
    with pytest.raises(ValueError, match=f"instances: .*{message}|instances: {message}"):
        rows_of(given, "input", "instances")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "{", "not JSON lines"),
        ("a.jsonl", None, "cannot read"),
        ("a.csv", None, "cannot read"),
        ("a.csv", "", "cannot read"),
        ("a.txt", "x", r"expected a \.jsonl, \.csv or \.parquet file"),
    ],
)
def test_a_file_that_holds_none_is_named(name, text, message, tmp_path):
    path = tmp_path / name if text is None else written(tmp_path, name, text)
    with pytest.raises(ValueError, match=rf"instances: .*{message}|instances: {message}"):
        rows_of(path, "", "instances")


def test_lines_have_an_id_each_and_mark_what_is_held_out():
    lines = as_lines([{"a": 1}, {"id": 7, "a": 2}], [{"a": 3}])
    assert [json.loads(line) for line in lines.splitlines()] == [
        {"id": "0", "a": 1}, {"id": "7", "a": 2}, {"id": "2", "a": 3, "check": True},
    ]  # fmt: skip
    assert lines.endswith("\n")


def test_arrays_dates_and_sets_are_plain_in_a_log():
    day = datetime.date(2026, 1, 2)
    row = {"x": np.arange(2), "n": np.int64(3), "day": day, "tags": {"b", "a"}, "text": "ä"}
    found = as_lines([row], [])
    assert json.loads(found) == {
        "id": "0", "x": [0, 1], "n": 3, "day": "2026-01-02", "tags": ["a", "b"], "text": "ä",
    }  # fmt: skip
    assert "ä" in found  # as it is written


@pytest.mark.parametrize("value", [object(), len, {1: {2j}}])
def test_what_is_no_plain_data_names_its_row(value):
    with pytest.raises(ValueError, match="instances: row 1: a log holds plain data"):
        as_lines([{"a": 1}, {"a": value}], [])


def test_a_text_is_read_without_its_byte_order_mark_or_refused(tmp_path):
    assert read_text(written(tmp_path, "a", "\ufefftext"), "statement") == "text"
    (tmp_path / "b").write_bytes(b"\xff\xfe")
    for name in ("b", "c"):
        with pytest.raises(ValueError, match="statement: cannot read"):
            read_text(tmp_path / name, "statement")
