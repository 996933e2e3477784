"""How much wider than Student's t an interval of an effect is: as measured, and between that."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import replay.statistics
from replay.simulation.widths import SURE, deciding_limits, widths
from replay.statistics.intervals import interval

FILE = Path(replay.statistics.__file__).with_name("effects.csv")
TABLE = list(csv.DictReader(FILE.read_text().splitlines()))
LEAST, MOST = (end(int(row["n"]) for row in TABLE) for end in (min, max))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['K']} of {row['n']}")
def test_what_was_measured_is_taken_as_it_was(row):
    found = widths(int(row["n"]), int(row["K"]))
    assert found == pytest.approx([float(row[name]) for name in ("ordinary", "worst", "coverage")])


@given(st.integers(2, 500), st.floats(0.01, 1))
def test_between_and_beyond_what_was_measured_nothing_exceeds_it(n, share):
    found = widths(n, max(1, round(n * share)))
    for value, name in zip(found, ("ordinary", "worst", "coverage"), strict=True):
        column = [float(row[name]) for row in TABLE]
        assert min(column) - 1e-12 <= value <= max(column) + 1e-12
    assert found.worst >= found.usual >= 1


def test_beyond_the_table_the_nearest_size_counts():
    assert widths(MOST * 10, MOST * 10 // 2) == pytest.approx(widths(MOST, MOST // 2))
    assert widths(LEAST - 2, 2) == pytest.approx(widths(LEAST, LEAST * 2 / (LEAST - 2)))
    assert widths(20, 1) == widths(20, 2)


def found(n, low=-1.0, high=3.0):
    made = interval(np.arange(float(n)))
    return replace(made, value=0.5, low=low, high=high)


def test_from_twenty_runs_on_an_interval_decides_by_itself():
    assert deciding_limits(found(SURE), 4) == (-1.0, 3.0)
    low, high = deciding_limits(found(SURE - 1), 4)
    assert low < -1.0
    assert high > 3.0


def test_below_that_each_side_is_stretched_as_much_as_the_worst_world_needs():
    n, K = 12, 3
    usual, worst, _ = widths(n, K)
    low, high = deciding_limits(found(n), K)
    assert (0.5 - low) / 1.5 == pytest.approx(worst / usual)
    assert (high - 0.5) / 2.5 == pytest.approx(worst / usual)
