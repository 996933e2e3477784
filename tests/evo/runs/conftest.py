"""A task for runs that are noisy."""

from pathlib import Path

import pytest
from evo_runs import write_task
from lottery import PROGRAM


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    """A task whose fitness is a draw."""
    judge = "def score(value):\n    return {'fitness': value}\n"
    program = PROGRAM.format(gain=0, mark=0)
    return write_task(tmp_path / "noisy", program, judge, "entry = ['value']\n")
