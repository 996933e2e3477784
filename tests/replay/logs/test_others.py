"""What is left out of a folder is named once for each reason."""

import base64
import contextlib
import gzip
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from samples import write_sample

import replay
from evo.logs.decompression import ARCHIVE
from replay.logs.others import FOR_NOW, from_here, in_words, is_archive, united, why_gone


def test_what_has_one_reason_stands_together():
    assert in_words([("a", "torn"), ("b", "empty"), ("c", "torn")]) == "a, c: torn; b: empty"
    assert in_words([("a", "a:3: torn"), ("b", "b:3: torn"), ("c", "c: empty")]) == (
        "a:3, b:3: torn; c: empty"
    )
    many = [(str(k), "torn") for k in range(5)]
    assert in_words(many) == "0, 1, 2 and 2 more: torn"
    assert in_words([(str(k), f"reason {k}") for k in range(5)]).endswith("; and more")


def test_what_several_runs_lack_is_named_once_and_numbers_that_differ_as_such():
    losses = ["seeds; 1 of 12 programs", "seeds; 2 of 12 programs; times", "", "seeds; 3 of 9"]
    assert united(losses) == (
        "seeds; 1 of 12 programs (other numbers in other runs); times; 3 of 9"
    )
    assert united(["seeds; 1 of 12 programs"] * 2) == "seeds; 1 of 12 programs"
    assert united([]) == ""


def test_only_a_log_that_was_made_while_reading_ended_with_its_process():
    assert why_gone("logs/a.jsonl") == ""
    assert "load them again" in why_gone(Path("/tmp") / f"{FOR_NOW}openevolve-x" / "a.jsonl")


def test_an_archive_is_known_by_what_it_holds_packed_or_not_and_whatever_a_message_ends_in(
    tmp_path,
) -> None:
    text = tmp_path / "text.jsonl"
    text.write_text(ARCHIVE)
    with zipfile.ZipFile(tmp_path / "a.jsonl", "w") as made:
        made.write(text, "text.jsonl")
    with tarfile.open(tmp_path / "b.jsonl", "w") as tar:
        tar.add(text, "text.jsonl")
    for name in ("text", "a", "b"):
        whole = (tmp_path / f"{name}.jsonl").read_bytes()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(whole))
    for name in ("a", "b"):
        assert is_archive(tmp_path / f"{name}.jsonl")
        assert is_archive(tmp_path / f"{name}.gz")
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes((tmp_path / "text.gz").read_bytes()[:20])
    named = tmp_path / f"x: {ARCHIVE}"  # a file that is missing, and whose name ends so
    for other in (text, tmp_path / "text.gz", damaged, named, tmp_path):
        assert not is_archive(other)


def test_a_path_names_no_folder_above_what_it_shares_with_the_working_directory(
    tmp_path, monkeypatch
):
    log = tmp_path / "logs" / "a.jsonl"
    for folder, name in (("", "logs/a.jsonl"), ("here", "../logs/a.jsonl"), ("logs", "a.jsonl")):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        assert from_here(log) == name
        assert Path(name).resolve() == log  # what is shown works where it was made
    assert from_here("../a.jsonl") == "../a.jsonl"
    monkeypatch.chdir("/")
    assert from_here(Path("/a.jsonl")) == "/a.jsonl"


@pytest.mark.parametrize("suffix", ["html", "svg", "png"])
def test_a_saved_run_names_no_folder_above_those_of_the_working_directory_and_its_log(
    tmp_path, monkeypatch, suffix
):
    pytest.importorskip("anywidget", reason="explorers need the extra [notebook]")
    write_sample(tmp_path / "logs" / "a.jsonl")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with contextlib.closing(replay.browse(tmp_path / "logs")) as browser:
        assert "'../logs/a.jsonl'" in browser.code
        assert eval(browser.code, {"replay": replay}) is not None
        saved = browser.save(f"a.{suffix}").read_text(encoding="utf-8", errors="replace")
    parts = [saved, *map(as_bytes, re.findall(r"[A-Za-z0-9+/]{80,}={0,2}", saved))]
    assert not any(str(tmp_path) in part for part in parts)


def test_a_site_names_no_folder_above_those_of_the_working_directory_and_its_logs(
    tmp_path, monkeypatch
):
    write_sample(tmp_path / "logs" / "a.jsonl")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    replay.site(tmp_path / "logs", "site")
    pages = [each.read_text() for each in Path("site").rglob("*") if each.is_file()]
    assert any("../logs/a.jsonl" in page for page in pages)
    assert not any(str(tmp_path) in page for page in pages)


def as_bytes(text: str) -> str:
    """What a part of a page in base64 holds."""
    return base64.b64decode(text + "=" * (-len(text) % 4)).decode(errors="replace")
