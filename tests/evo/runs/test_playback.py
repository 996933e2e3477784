"""A log that is played again: with itself as the model, or under other limits."""

from pathlib import Path

import pytest
from evo_runs import QUIET, write_task

import evo
import evo.runs.planning


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
