import os
from pathlib import Path

import pytest

import evo
from evo.logs.types import NAME_BYTES, as_path


@pytest.mark.parametrize(
    ("given", "words"), [("a\0b.jsonl", "NUL"), ("x/" + "é" * 128, "at most 255 bytes .* got 256")]
)
def test_a_path_that_no_file_can_have_is_refused(given: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"log: .*{words}"):
        as_path("log", given)
    with pytest.raises(ValueError, match=words):
        evo.run("mmd", generations=1, children=1, log=given, model="offline", progress=False)
    assert as_path("log", "x" * NAME_BYTES).name == "x" * NAME_BYTES


@pytest.mark.parametrize("option", ["log", "cache"])
def test_a_working_folder_that_was_removed_is_named(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, kept = tmp_path / "gone", tmp_path / "kept.jsonl"
    gone.mkdir()
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    given = {"generations": 1, "children": 1, "progress": False, "log": kept}
    with pytest.raises(FileNotFoundError, match=f"{option}: the folder .* was removed"):
        evo.run("mmd", **{**given, option: "a"})
    with pytest.raises(FileNotFoundError, match="change to another folder"):
        evo.run("mmd", **{**given, "log": None})
    assert evo.run("mmd", **given).generations  # where the path is absolute it runs
