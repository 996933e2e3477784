"""Arithmetic on fitness never raises, however large it is."""

import math
import statistics
from pathlib import Path

import pytest
from evo_runs import QUIET, write_task
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.logs.means import deviation, mean

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, min_size=2, max_size=9))
def test_a_mean_of_finite_numbers_is_finite_and_lies_between_them(values: list[float]) -> None:
    found = mean(values)
    slack = 1e-12 * max(map(abs, values))
    assert min(values) - slack <= found <= max(values) + slack
    assert deviation(values) >= 0
    if max(map(abs, values)) < 1e150:
        assert found == statistics.fmean(values)
        assert deviation(values) == statistics.stdev(values)


@pytest.mark.filterwarnings("ignore:huge. the initial program's fitness")
@pytest.mark.parametrize("options", [{"draws": 3}, {"draws": 2, "confirm": 2}])
def test_a_run_goes_on_however_large_its_fitness_is(
    options: dict[str, int], tmp_path: Path
) -> None:
    task = write_task(
        tmp_path / "huge",
        "import random\n\n\ndef value():\n    return random.choice([-1.0, 1.0]) * 1.7e308\n",
        "def score(value):\n    return {'fitness': value, 'also': value}\n",
        "entry = ['value']\n",
    )
    for seed in range(3):
        log = evo.run(task, generations=2, children=3, seed=seed, log=tmp_path / f"{seed}.jsonl",
                      **options, **QUIET)  # fmt: skip
        assert len(log.generations) == 2
        again = evo.read_log(log.path)
        assert all(math.isfinite(each.evaluation.fitness or 0.0) for each in again.children)
