"""A session opens a log: a new one, or one that goes on, or it is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from samples import sample_header, write_sample

import evo
from evo.cli.entry import main
from evo.logs.journal import LogBusyError, LogError, Writer, encode_line
from evo.logs.log import read_log
from evo.logs.records import Session
from evo.runs.opening import open_log, session_line
from evo.runs.resources import open_resources
from evo.runs.settings import Goal, Settings
from evo.sandbox import Evaluator

HEADER = sample_header()
SESSION = Session(generations=3, started="2026-01-01T00:00:00+00:00", max_concurrent=4)


def test_a_log_is_begun_once_and_then_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for sessions in (1, 2, 3):
        writer, log = open_log(path, HEADER, SESSION)
        writer.close()
        assert (log is None) == (sessions == 1)
        assert len(read_log(path).sessions) == sessions


def test_a_log_that_was_killed_before_its_first_line_was_whole_is_begun_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    for left in (b"", encode_line(HEADER)[:40]):
        path.write_bytes(left)
        writer, log = open_log(path, HEADER, SESSION)
        writer.close()
        assert log is None
        assert read_log(path).header == HEADER
        assert len(read_log(path).sessions) == 1


def test_a_torn_last_line_is_cut_before_anything_is_written(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl", generations=2)
    whole = read_log(path)
    path.write_bytes(path.read_bytes() + b'{"kind":"chi')
    writer, log = open_log(path, HEADER, SESSION)
    writer.close()
    assert log is not None
    after = read_log(path)
    assert not after.reader.torn
    assert len(after.sessions) == len(whole.sessions) + 1
    assert after.children == whole.children


def test_a_log_of_another_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "a.jsonl", generations=1)
    before = path.read_bytes()
    other = msgspec.structs.replace(HEADER, seed=8, draws=2)
    with pytest.raises(
        LogError, match="than this one: seed 7 there, 8 here; draws 1 there, 2 here"
    ):
        open_log(path, other, SESSION)
    moved = msgspec.structs.replace(HEADER, model=msgspec.structs.replace(HEADER.model, name="new"))
    with pytest.raises(LogError, match="this one: model sample there, new here"):
        open_log(path, moved, SESSION)
    assert path.read_bytes() == before
    named = msgspec.structs.replace(SESSION, model=moved.model)  # the user said so
    open_log(path, moved, named)[0].close()
    with pytest.raises(LogError, match="this one: seed 7 there, 8 here"):
        open_log(path, msgspec.structs.replace(moved, seed=8), named)


def test_a_log_that_is_written_elsewhere_is_busy_and_free_again_after_a_refusal(
    tmp_path: Path,
) -> None:
    path = write_sample(tmp_path / "a.jsonl", generations=1)
    with Writer.claim(path), pytest.raises(LogBusyError):
        open_log(path, HEADER, SESSION)
    with pytest.raises(LogError, match="seed 7 there, 8 here"):
        open_log(path, msgspec.structs.replace(HEADER, seed=8), SESSION)
    open_log(path, HEADER, SESSION)[0].close()


def test_a_session_says_how_it_works_and_to_which_goal() -> None:
    settings = Settings(workers=1, max_concurrent=7, requests_per_minute=30, progress=False)
    with open_resources(settings) as resources:
        line = session_line(resources, HEADER.task, Goal(generations=4, target=0.5, patience=2))
        assert (line.generations, line.target, line.patience) == (4, 0.5, 2)
        assert (line.max_concurrent, line.requests_per_minute) == (7, 30)
        without = session_line(resources, HEADER.task, None)
        assert (without.generations, without.target, without.patience) == (None, None, None)


def test_a_run_that_evaluates_nothing_in_the_sandbox_starts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(self: Evaluator) -> tuple[str, ...]:
        raise AssertionError("the sandbox is not needed")

    def length(text: str) -> int:
        return len(text)

    def words(reply: str, row: dict[str, str]) -> bool:
        return "5" in reply

    def double(x: int) -> int:
        return 2 * x

    def itself(value: int, row: dict[str, int]) -> int:
        return value

    how = {"statement": "x", "where": "here"}
    asked = [{"prompt": "What is 2 + 3?"}]
    texts = [
        evo.task("a", initial_program="Hello", evaluate=length, **how),
        evo.task("b", initial_program="Answer.", evaluate=words, instances=asked, **how),
    ]
    run = {"generations": 1, "children": 1, "model": lambda messages: "5", "progress": False}
    program = evo.task(
        "c", initial_program=double, evaluate=itself, instances=[{"input": 1}], **how
    )
    log = evo.run(program, log=tmp_path / "c.jsonl", **run)
    assert log.sessions[0].protections
    monkeypatch.setattr(Evaluator, "protections", property(refuse))
    for task in texts:
        log = evo.run(task, log=tmp_path / f"{task.name}.jsonl", **run)
        assert log.sessions[0].protections == ()
    main(["show", str(tmp_path / "a.jsonl")])
    assert "sandbox" not in capsys.readouterr().out
    main(["show", str(tmp_path / "c.jsonl")])
    assert "sandbox: " in capsys.readouterr().out
