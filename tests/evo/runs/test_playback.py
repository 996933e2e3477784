"""A log that is played again: with itself as the model, or under other limits."""

from pathlib import Path

import pytest
from evo_runs import QUIET, write_task

import evo
import evo.runs.planning
from evo.logs.journal import LogError
from evo.runs.evaluate import LEAST_SECONDS


def test_rerun_tells_an_unstable_program(tmp_path: Path) -> None:
    clock = "import time\ndef f():\n    return time.time()\n"
    judge = "def score(value):\n    return {'fitness': value % 1}\n"
    folder = write_task(tmp_path / "clock", clock, judge, "entry = ['f']\n")
    with pytest.warns(UserWarning, match="evaluations are noisy"):
        log = evo.run(folder, generations=2, children=2, log=tmp_path / "c.jsonl", **QUIET)
    outcome = evo.rerun(log.path)
    assert not outcome.same
    assert outcome.differences[0].unstable
    assert {each.generation for each in outcome.differences} == {0, 1, 2}


def test_a_log_that_is_rescored_twice_is_rescored_once(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=2, children=2, seed=1, log=tmp_path / "m.jsonl", **QUIET)
    first = evo.rescore(log.path, metric="strict_fitness")
    written = first.path.read_bytes()
    assert evo.rescore(log.path, metric="strict_fitness").path == first.path
    assert first.path.read_bytes() == written
    with pytest.raises(LogError, match="exists already"):
        evo.rescore(log.path)
    evo.resume(log.path, generations=3, progress=False)
    with pytest.raises(LogError, match="exists already and differs"):
        evo.rescore(log.path, metric="strict_fitness")
    assert first.path.read_bytes() == written


def test_only_whole_logs_of_runs_with_an_evaluation_are_played(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=1, children=2, log=tmp_path / "a.jsonl", **QUIET)
    again = evo.rescore(log.path, draws=2)
    with pytest.raises(LogError, match="written by evo rescore; only runs of evo are played"):
        evo.rerun(again.path)
    begun = tmp_path / "begun.jsonl"
    begun.write_bytes(b"".join(log.path.read_bytes().splitlines(keepends=True)[:2]))
    for play in (evo.rerun, evo.rescore):
        with pytest.raises(LogError, match="holds no evaluation yet; `evo resume` continues it"):
            play(begun)
    assert evo.rerun(evo.resume(begun, progress=False).path).same


def test_a_time_limit_that_a_rescoring_fixes_is_that_of_the_initial_program(tmp_path: Path) -> None:
    log = evo.run("mmd", generations=1, children=2, log=tmp_path / "a.jsonl", **QUIET)
    again = evo.rescore(log.path, evaluation_timeout="auto")
    assert again.header.limits.auto
    assert again.initial is not None
    assert again.initial.limit is not None
    assert LEAST_SECONDS <= again.initial.limit <= again.header.limits.seconds
    fitness = [child.evaluation.fitness for child in log.children]
    assert [child.evaluation.fitness for child in again.children] == fitness


def test_texts_that_a_model_is_asked_under_are_rescored_in_one_draw(tmp_path: Path) -> None:
    log = evo.run(
        evo.load_task("wp", instances=3), model="offline-2", generations=1, children=1,
        log=tmp_path / "a.jsonl", **QUIET,
    )  # fmt: skip
    with pytest.raises(ValueError, match="draws: a text's evaluation makes calls and has one draw"):
        evo.rescore(log.path, draws=2)
