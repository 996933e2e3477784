"""What stages spared, by hand."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from replay.reports.stages import cells_of_stages

ROW = {"inherited": False, "stages": 2, "status": "ok", "evaluation_seconds": 10.0,
       "audit_status": None, "audit_fitness": math.nan, "best_fitness": 0.5}  # fmt: skip


def cells(*rows, runs=3):
    tables = SimpleNamespace(runs=[None] * runs, children=pd.DataFrame([ROW | row for row in rows]))
    return {cell.quantity: (cell.value, cell.n, cell.unit) for cell in cells_of_stages(tables)}


def refused(stage, seconds=1.0, **audit):
    return {"status": "partial", "stages": stage, "evaluation_seconds": seconds, **audit}


def test_refused_children_are_counted_by_stage_and_spare_what_whole_ones_take():
    found = cells(
        {}, {"evaluation_seconds": 20.0}, refused(1), refused(1, 2.0), refused(2, 5.0),
        {"status": "error", "evaluation_seconds": 99.0},
        {"inherited": True}, {"stages": 0},
    )  # fmt: skip
    assert found == {
        "evaluated": (6, 3, "count"),
        "refused by stage 1": (2, 3, "count"),
        "refused by stage 2": (1, 3, "count"),
        "seconds saved": (3 * 15.0 - 8.0, 3, "seconds"),
    }


def test_without_a_whole_child_nobody_knows_what_was_saved():
    assert math.isnan(cells(refused(1))["seconds saved"][0])
    assert math.isnan(cells({}, refused(1, math.nan))["seconds saved"][0])


@pytest.mark.parametrize(("fitness", "best"), [(0.6, 1), (0.5, 0), (0.4, 0), (math.nan, 0)])
def test_audits_count_those_that_would_have_been_the_best(fitness, best):
    found = cells({}, refused(1, audit_status="ok", audit_fitness=fitness), refused(1))
    assert (found["audited"][0], found["would have been the best"][0]) == (1, best)
