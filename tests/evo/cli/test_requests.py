"""`evo pause`, `evo stop` and `evo go-on`: whom they ask, and what they say goes on how."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest
from commands import call, one_line
from samples import write_sample

from evo.logs.journal import LogError
from evo.logs.stopping import stop, stop_file
from evo.studies.folders import MARKERS


@pytest.mark.parametrize("wish", ["pause", "stop"])
def test_a_log_is_asked_beside_it_and_how_it_goes_on_can_be_pasted(
    wish: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write_sample(tmp_path / name) for name in ("a.jsonl", "b c.jsonl")]
    assert call(wish, *map(str, paths)) == 0
    said = capsys.readouterr().out.splitlines()
    for path, line in zip(paths, said, strict=True):
        assert stop_file(path, wish).exists()
        assert line.startswith(f"{path}: asked to {wish}, with all runs of the command that")
    assert said[0].endswith(f"`evo resume {paths[0]}` goes on")
    assert said[1].endswith(f"`evo resume '{paths[1]}'` goes on")


def test_a_folder_of_logs_is_asked_for_all_that_are_being_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [write_sample(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "in/c.jsonl")]
    with logs[0].open("rb") as one, logs[2].open("rb") as other:
        for file in (one, other):
            fcntl.flock(file, fcntl.LOCK_EX)  # as the session that writes it does
        assert call("pause", str(tmp_path)) == 0
    assert [stop_file(log, "pause").exists() for log in logs] == [True, False, True]
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path}: asked to pause what is written there, a.jsonl, c.jsonl; ")
    assert said.endswith(f"`evo resume {tmp_path}` goes on\n")
    assert call("stop", str(tmp_path)) == 2
    assert "no log in it is being written on this machine" in one_line(capsys)
    with pytest.raises(LogError, match="but a folder; give a log in it"):
        stop(tmp_path)


@pytest.mark.parametrize(
    ("marker", "again"),
    [
        ("allocation.jsonl", "the same `evo allocate` with --log-dir {}"),
        ("selection.json", "the same `evo select` with --log-dir {}"),
        ("events.jsonl", "`evo resume {}`"),
    ],
)
def test_a_study_goes_on_by_the_command_of_its_kind(
    marker: str, again: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert marker in MARKERS
    (tmp_path / marker).touch()
    assert call("stop", str(tmp_path)) == 0
    assert (
        capsys.readouterr().out == f"{tmp_path}: asked to stop; {again.format(tmp_path)} goes on\n"
    )
    assert stop_file(tmp_path / marker, "stop").exists()


def test_what_cannot_be_asked_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, words in (
        (["stop"], "expected what is to stop: PATH, or --control redis://host for all"),
        (["pause"], "expected what is to pause"),
        (["pause", str(tmp_path)], "not the folder of a study"),
        (["stop", str(tmp_path / "none.jsonl")], "none.jsonl: no such log"),
        (["go-on", "a.jsonl"], "without one has ended, and `evo resume a.jsonl` goes on"),
    ):
        assert call(*arguments) == 2
        assert words in one_line(capsys)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("command", "wish"), [("pause", "pause"), ("stop", "stop"), ("go-on", "go on")]
)
def test_through_a_server_each_path_is_asked_for_or_everything_at_once(
    command: str, wish: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = list[tuple[str, str, Path | None]]()

    def ask(control: str, wish: str, path: Path | None) -> list[str]:
        asked.append((control, wish, path))
        return ["here 1", "there 2"][: 2 - len(asked)]

    monkeypatch.setattr("evo.logs.shared_requests.ask", ask)
    assert call(command, "a", "b.jsonl", "--control", "redis://h") == 0
    assert asked == [("redis://h", wish, Path("a")), ("redis://h", wish, Path("b.jsonl"))]
    assert capsys.readouterr().out.splitlines() == [
        f"a: 1 session asked to {wish} (here 1)",
        f"b.jsonl: 0 sessions asked to {wish}",
    ]
    asked.clear()
    assert call(command, "--control", "redis://h") == 0
    assert asked == [("redis://h", wish, None)]
    assert capsys.readouterr().out == f"everything: 1 session asked to {wish} (here 1)\n"
