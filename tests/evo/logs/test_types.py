import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import evo
import replay
from evo.logs.types import NAME_BYTES, as_path, writable
from evo.plugins import MistakenType

SAMPLE = next(iter((Path(__file__).parents[3] / "logs" / "samples").rglob("*.jsonl*")))


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


BY_NAME: dict[str, dict[str, Callable[[Any], object]]] = {
    "path": {
        "read_log": evo.read_log,
        "resume": evo.resume,
        "stop": evo.stop,
        "compact": lambda given: evo.compact(given, "a.jsonl"),
        "JSONLines": evo.listeners.JSONLines,
        "save": lambda given: replay.plots.save(Figure(), given),
        "gate_calls": replay.gate_calls,
        "importers.read": replay.importers.read,
    },
    "log": {
        "run": lambda given: evo.run("mmd", log=given, progress=False),
        "rerun": lambda given: evo.rerun(SAMPLE, log=given),
        "rescore": lambda given: evo.rescore(SAMPLE, log=given),
    },
    "log_dir": {
        "run_many": lambda given: evo.run_many("mmd", seeds=[1], log_dir=given, progress=False),
        "drive": lambda given: evo.drive("gepa", "mmd", calls=1, log_dir=given, progress=False),
        "compare_engines": lambda given: evo.compare_engines(
            evo.Comparison(tasks=("mmd",), engines=("ours",), calls=8, runs=2), log_dir=given
        ),
    },
    "folder": {
        "new_task": evo.new_task,
        "Task.save": lambda given: evo.load_task("mmd").save(given),
        "site": lambda given: replay.site(SAMPLE, given),
        "load_allocation": replay.load_allocation,
        "notebooks": replay.notebooks,
    },
    "target": {"compact": lambda given: evo.compact(SAMPLE, given)},
    "file": {
        "load_protocol": evo.protocols.load_protocol,
        "load_comparison": evo.load_comparison,
    },
}
VERBS = [(name, verb) for name, verbs in BY_NAME.items() for verb in verbs]


@pytest.mark.parametrize(("name", "verb"), VERBS)
def test_every_verb_says_in_the_same_words_that_a_path_is_none(
    name: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (5, b"a.jsonl"):
        with pytest.raises(MistakenType, match=rf"^{name}: expected a path, got {given!r}"):
            BY_NAME[name][verb](given)
    assert not [*tmp_path.iterdir()]  # nothing was made


def test_the_folder_of_a_file_to_write_is_made_or_it_is_said_why_not(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "picture.png"
    assert writable(path) == path
    path.write_bytes(b"")
    assert writable(path) == path
    with pytest.raises(ValueError, match=r"picture\.png/below\.png: cannot write there: "):
        writable(path / "below.png")
    with pytest.raises(ValueError, match="folder: Is a directory"):
        writable(path.parent)
