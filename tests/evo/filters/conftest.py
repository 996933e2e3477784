"""A task for runs with filters."""

from pathlib import Path

import pytest
from evo_runs import write_task
from filter_samples import JUDGE, PROGRAM


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks") / "toy"
    return write_task(folder, PROGRAM, JUDGE, "entry = ['value']\n")
