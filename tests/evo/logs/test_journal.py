"""The writer of a log looks whether its file is still whole, while other threads write."""

import os
from pathlib import Path
from typing import Any

import pytest
from samples import sample_header

import evo
from evo.logs import journal
from evo.logs.journal import LogError, Writer, check_folder
from evo.logs.records import Tick


def test_a_line_that_another_thread_appends_meanwhile_is_no_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat_of = os.stat
    with Writer.create(tmp_path / "a.jsonl", sample_header()) as writer:

        def and_then_append(path: Any) -> os.stat_result:
            there = stat_of(path)
            monkeypatch.undo()
            writer.append(Tick(generation=1, seconds=1.0))
            return there

        monkeypatch.setattr(journal.os, "stat", and_then_append)
        writer.check_in_place()
    lines = (tmp_path / "a.jsonl").read_bytes().splitlines()
    assert len(lines) == 2  # the header, and what was appended between the two looks


def test_a_file_that_was_cut_is_found_even_if_lines_follow(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Writer.create(path, sample_header()) as writer:
        writer.append(Tick(generation=1, seconds=1.0))
        writer.check_in_place()
        os.truncate(path, path.stat().st_size - 3)
        writer.append(Tick(generation=1, seconds=2.0))
        with pytest.raises(LogError, match="was cut by another program"):
            writer.check_in_place()


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (path := tmp_path / "run.jsonl").touch()
    with pytest.raises(LogError, match=": empty, not a log of evo: expected a header line"):
        evo.read_log(path)


def test_what_an_editor_did_to_a_log_is_said(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Writer.create(path, sample_header(), Tick(generation=1, seconds=1.0)).close()
    written = path.read_bytes()
    evo.read_log(path)
    path.write_bytes(written.replace(b"\n", b"\r\n"))
    with pytest.raises(LogError, match=r"run.jsonl:1: the lines end in CR LF.*restore LF"):
        evo.read_log(path)
    for damaged in (written, written.replace(b"\n", b"\r\n")):
        path.write_bytes(b"\xef\xbb\xbf" + damaged)
        with pytest.raises(LogError, match=r"run.jsonl:1: the log begins with a byte-order mark"):
            evo.read_log(path)


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (tmp_path / "notes.txt", tmp_path / "notes.txt" / "runs"):
        with pytest.raises(
            LogError, match=r"notes.txt: expected a folder, got a file; name another"
        ):
            check_folder(folder)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_in_the_place_of_a_log_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"a folder, no log; give the path .*`replay import auto "):
        evo.read_log(tmp_path)
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(LogError, match=r"a folder, no log; name the logs in it, .*/\*\.jsonl$"):
        evo.read_log(tmp_path)
