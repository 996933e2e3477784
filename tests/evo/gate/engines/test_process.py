"""The process of an engine: how it is started, asked to end, and described once it has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from forked import PROCESSES
from toy_engine import ended, lives, start_and_die

from evo.gate.engines.process import EngineProcess


def shell(command: str, folder: Path, **environment: str) -> EngineProcess:
    return EngineProcess(["/bin/sh", "-c", command], folder, {"PATH": "/bin", **environment})


def test_an_engine_sees_no_environment_and_dies_with_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "sk-of-the-user")
    process = PROCESSES.Process(target=start_and_die, args=(str(tmp_path),))
    process.start()
    process.join()
    pid, _, names = (tmp_path / "output.txt").read_text().partition(" ")
    assert "SECRET_KEY" not in names
    deadline = time.monotonic() + 60
    while lives(int(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo fine", "the engine ended with exit code 0"),
        ("echo first; echo last; exit 3", "the engine ended with exit code 3: last"),
        ("exit 3", "the engine ended with exit code 3"),
        ("echo late >&2; echo; kill -9 $$", "the engine ended by signal 9: late"),
        ("exit 128", "the engine ended with exit code 128"),
    ],
)
def test_an_end_is_described_with_the_last_words_of_what_failed(
    command: str, words: str, tmp_path: Path
) -> None:
    assert ended(shell(command, tmp_path)) == words


def test_of_a_last_line_without_end_only_the_beginning_is_shown(tmp_path: Path) -> None:
    told = ended(shell("head -c 3000 /dev/zero | tr '\\0' x; exit 1", tmp_path))
    assert told == f"the engine ended with exit code 1: {'x' * 500}"


def test_an_engine_runs_in_its_folder_with_the_given_environment_and_nothing_to_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "output.txt").write_text("earlier\n")
    process = shell("pwd; echo $MINE; cat; echo end", tmp_path, MINE="own")
    assert ended(process).endswith("exit code 0")
    assert process.output.read_text() == f"earlier\n{tmp_path}\nown\nend\n"


@pytest.mark.parametrize("obeys", [True, False])
def test_an_engine_is_asked_to_end_before_it_is_killed(obeys: bool, tmp_path: Path) -> None:
    trap = "echo bye; exit 0" if obeys else ""
    process = shell(f"trap '{trap}' TERM; echo up; while :; do sleep 0.02; done", tmp_path)
    deadline = time.monotonic() + 60
    while not (process.output.exists() and "up" in process.output.read_text()):
        assert process.ended is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    began = time.monotonic()
    process.end(grace=60.0 if obeys else 0.05)
    assert time.monotonic() - began < 30
    assert process.ended == (
        "the engine ended with exit code 0" if obeys else "the engine ended by signal 9: up"
    )
