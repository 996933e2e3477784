"""Files of other tools are read as they are, or refused in words that name them."""

import json
import math

import pytest

from replay.importers.reading import (
    LogFormatError,
    convert,
    parse_file,
    parse_lines,
    read_text,
)


def test_a_torn_last_line_is_left_out_and_noted_and_a_whole_one_is_not(tmp_path):
    path, line = tmp_path / "a.jsonl", json.dumps({"fitness": 0.5})
    for content, count, torn in (
        (f"{line}\n\n{line}\n", 2, 0),
        (f"{line}\n{line}", 2, 0),
        (f"{line}\n{line[:-3]}", 1, 1),
        (line[:4], 0, 1),
        ("", 0, 0),
    ):
        path.write_text(content)
        notes = []
        assert parse_lines(path, dict[str, float], notes) == [{"fitness": 0.5}] * count
        assert notes == ["a torn last line of a.jsonl"] * torn


def test_a_line_that_was_written_whole_is_no_torn_one(tmp_path):
    path = tmp_path / "a.jsonl"
    for content, where in (
        ('{"fitness": 0.5}\n{"fit\n', "a.jsonl:2: not JSON"),
        ('{"fit\n{"fitness": 0.5}', "a.jsonl:1: not JSON"),
        ('{"fitness": "high"}\n', "a.jsonl:1: Expected `float`"),
        ('{"fitness": 0.5}\n{"fitness": "high"}', "a.jsonl:2: Expected `float`"),
    ):
        path.write_text(content)
        with pytest.raises(LogFormatError, match=where):
            parse_lines(path, dict[str, float], [])


def test_a_file_that_does_not_fit_is_named_with_the_place(tmp_path):
    path = tmp_path / "a.json"
    for content, said in (
        (b'{"fitness": ["x"]}', r"a\.json: Expected `float`.*\$\[\.\.\.\]"),
        (b"nothing", r"a\.json: not JSON"),
        (b"\xff\xfe", r"a\.json: cannot be read"),
        (b"[" * 100_000, r"a\.json: "),
    ):
        path.write_bytes(content)
        with pytest.raises(LogFormatError, match=said):
            parse_file(path, dict[str, float])
    with pytest.raises(LogFormatError, match=r"nowhere\.json"):
        read_text(tmp_path / "nowhere.json")
    path.write_text('{"fitness": NaN, "other": Infinity}')
    assert math.isnan(parse_file(path, dict[str, float])["fitness"])
    with pytest.raises(LogFormatError, match=r"a\.json: "):
        convert({"fitness": "x"}, dict[str, float], "a.json")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path, row = tmp_path / "a.json", {"fitness": 0.5}
    path.write_text(json.dumps(row), encoding="utf-8-sig")
    assert read_text(path) == json.dumps(row)
    assert parse_file(path, dict[str, float]) == row
    assert parse_lines(path, dict[str, float], []) == [row]
    path.write_text(json.dumps(row), encoding="utf-16")
    with pytest.raises(LogFormatError, match=r"a\.json: cannot be read: .*; save it as UTF-8"):
        read_text(path)
