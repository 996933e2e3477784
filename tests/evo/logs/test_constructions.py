"""Constructions beside a log belong to one program, and whatever is in the file ends nothing."""

import pytest

from evo.logs.constructions import keep_value, kept_value


def test_a_construction_is_that_of_its_program_alone(tmp_path):
    log = tmp_path / "a.jsonl"
    file = keep_value(log, "x = 1\n", [[0.25, 1.0], [2, None]])
    assert file == tmp_path / "a.jsonl.value.json"
    assert kept_value(log, "x = 1\n") == [[0.25, 1.0], [2, None]]
    assert kept_value(log, "x = 2\n") is None
    assert kept_value(tmp_path / "b.jsonl", "x = 1\n") is None


def test_a_new_construction_replaces_the_old_one(tmp_path):
    log = tmp_path / "a.jsonl"
    keep_value(log, "old", 1)
    keep_value(log, "new", 2)
    assert kept_value(log, "old") is None
    assert kept_value(log, "new") == 2


def test_a_program_may_hold_any_text(tmp_path):
    keep_value(tmp_path / "a.jsonl", "x = '\ud800'", 3)
    assert kept_value(tmp_path / "a.jsonl", "x = '\ud800'") == 3


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b'{"program":1,"value":2}', b"[" * 9999])
def test_a_damaged_file_holds_no_construction(content, tmp_path):
    (tmp_path / "a.jsonl.value.json").write_bytes(content)
    assert kept_value(tmp_path / "a.jsonl", "x") is None


def test_more_numbers_than_the_cap_are_not_read(tmp_path, monkeypatch):
    keep_value(tmp_path / "a.jsonl", "x", [0] * 5)  # four commas, and one between the two keys
    monkeypatch.setenv("EVO_MAX_VALUE", "5")
    assert kept_value(tmp_path / "a.jsonl", "x") == [0] * 5
    monkeypatch.setenv("EVO_MAX_VALUE", "4")
    assert kept_value(tmp_path / "a.jsonl", "x") is None
