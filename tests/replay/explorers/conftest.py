"""Explorers are tested where the extra [notebook] is installed, and skipped elsewhere."""

from pathlib import Path

import pytest
from samples import write_sample
from synthetic_runs import chain_runs

import replay
from evo.logs.log import read_log


class _Skipped(pytest.Module):
    """A file of tests that is skipped before its imports fail."""

    def collect(self) -> list[pytest.Item]:
        pytest.importorskip("ipywidgets", reason="explorers need the extra [notebook]")
        return list(super().collect())


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    """Every file of this folder."""
    return _Skipped.from_parent(parent, path=module_path)


@pytest.fixture
def log(tmp_path):
    """A run of six generations of four children, some of which failed."""
    return read_log(write_sample(tmp_path / "run.jsonl", generations=6, children=4, seed=3))


@pytest.fixture
def browser(log):
    made = replay.browse(log)
    yield made
    made.close()


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The frame of three logs."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        write_sample(folder / f"r{seed}.jsonl", generations=3, children=4, seed=seed)
    return replay.load(folder, progress=False)


@pytest.fixture(scope="module")
def frame():
    """Runs of four sizes that are known in advance."""
    return chain_runs(budget=32, sizes=(1, 2, 4, 8))[0]


@pytest.fixture
def explorer(frame):
    """An explorer that the kernel computes and the browser draws."""
    from replay.explorers import explore_allocation

    made = explore_allocation(frame)
    yield made
    made.close()


@pytest.fixture(scope="module")
def sweep():
    """Runs of every size that shares a budget, and their children."""
    return chain_runs(budget=32, sizes=(1, 2, 4, 8, 16, 32))
