"""What is left out of a folder is named once for each reason."""

from pathlib import Path

from replay.logs.others import FOR_NOW, from_here, in_words, why_gone


def test_what_has_one_reason_stands_together():
    assert in_words([("a", "torn"), ("b", "empty"), ("c", "torn")]) == "a, c: torn; b: empty"
    many = [(str(k), "torn") for k in range(5)]
    assert in_words(many) == "0, 1, 2 and 2 more: torn"
    assert in_words([(str(k), f"reason {k}") for k in range(5)]).endswith("; and more")


def test_only_a_log_that_was_made_while_reading_ended_with_its_process():
    assert why_gone("logs/a.jsonl") == ""
    assert "load them again" in why_gone(Path("/tmp") / f"{FOR_NOW}openevolve-x" / "a.jsonl")


def test_a_path_below_the_working_directory_names_no_folder_above_it(tmp_path, monkeypatch):
    log = tmp_path / "logs" / "a.jsonl"
    assert from_here(log) == str(log)
    monkeypatch.chdir(tmp_path)
    assert from_here(log) == "logs/a.jsonl"
    assert from_here("../a.jsonl") == "../a.jsonl"
    assert from_here(tmp_path.parent / "a.jsonl") == str(tmp_path.parent / "a.jsonl")
