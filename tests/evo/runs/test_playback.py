"""A log that is played again: with itself as the model, or under other limits."""

from pathlib import Path

import pytest
from evo_runs import QUIET, write_task

import evo
import evo.runs.planning
from evo.logs.journal import LogError


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
