"""The arrays of the explorer of budgets."""

import contextlib
import itertools

import numpy as np
import pytest
from explored import numbers_of, without
from synthetic_runs import as_frame

from replay.explorers import explore_budget
from replay.explorers.budget_arrays import fitness_limits
from replay.explorers.budget_data import outlook


@pytest.mark.parametrize(("level", "low"), [(0.0, 0.0), (0.7, 0.0), (-5.0, -6.0)])
def test_the_axis_of_a_constant_task_begins_at_no_negative_fitness(level, low):
    frame = as_frame(np.full((4, 5), level), children=2, seeds=range(4))
    ends = fitness_limits(outlook(frame, None))
    assert low <= ends[0] <= level < ends[1]


def test_the_browser_gets_every_cell_and_every_run(sweep):
    frame, children = without(sweep, 4)
    with contextlib.closing(explore_budget(frame, child_table=children)) as explorer:
        explorer.settle()
        head, column = numbers_of(explorer.screen.data)
        known = explorer._spec.view(explorer.settings, False).outlook
        value, kinds = column(head["cells"]["value"]), head["cells"]["kinds"]
        places = itertools.product(head["sizes"], head["columns"])
        for at, (N, T) in enumerate(places):
            cell = known.cell(T, N)
            assert kinds[at] == (0 if cell is None else 1 if cell.logged else 2)
            if cell is not None:
                assert value[at] == cell.value
        assert {1, 2} <= set(kinds)
        for N, stratum in head["strata"].items():
            rows = known.fitness.values[known.strata[int(N)], : stratum["depth"] + 1]
            for run, (begins, values) in zip(rows, stratum["runs"], strict=True):
                lengths = np.diff([*column(begins), stratum["depth"] + 1]).astype(int)
                assert np.array_equal(np.repeat(column(values), lengths), run, equal_nan=True)


def test_the_axis_shows_the_early_part_of_curves():
    best = np.linspace(0.2, 0.9, 33) + np.arange(6)[:, None] / 1e3
    known = outlook(as_frame(best, children=2, seeds=range(6)), None)
    assert fitness_limits(known)[0] <= known.cell(1, 2).value


def test_predicted_shares_are_sent_for_the_tau_that_is_chosen(sweep):
    with contextlib.closing(explore_budget(*without(sweep, 4)[:1])) as explorer:
        explorer.settle()
        assert numbers_of(explorer.screen.data)[0]["predicted"]["sizes"] == {}
    frame, children = without(sweep, 4)
    with contextlib.closing(explore_budget(frame, child_table=children)) as explorer:
        for tau in (0.4, 0.8):
            explorer.controls["tau"].value = tau
            explorer.settle()
            head, column = numbers_of(explorer.screen.data)
            assert head["predicted"]["tau"] == tau
            known = explorer._spec.view(explorer.settings, False).outlook
            share = head["predicted"]["sizes"]["4"]["share"]
            assert np.array_equal(column(share[0]), known.predicted(4, tau)[0])
