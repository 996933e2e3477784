"""What tables say of limits that no run comes near."""

import numpy as np
import pandas as pd
import pytest

from replay.reports.limits import notes_on_limits
from replay.reports.tables import estimate as cell_of
from replay.reports.tables import exact, stack
from replay.statistics.intervals import interval

FINAL = np.array([0.1, 0.2, 0.1, 0.3, 0.9])


def runs(final, task="t", **columns):
    seeds = range(len(final))
    parts = [
        pd.DataFrame({"run": [f"r{k}" for k in seeds], "generation": at, "best_fitness": best})
        for at, best in ((0, 0.05), (1, final))
    ]
    return pd.concat(parts, ignore_index=True).assign(task=task, **columns)


def cells(final, **bounds):
    found = interval(final, "mean", **bounds)
    return stack({"1": [cell_of("final, mean", found, "fitness"), exact("runs", 5, 5, "count")]})


def test_a_limit_far_above_every_run_is_explained_and_the_scale_is_asked_for():
    [said] = notes_on_limits(cells(FINAL), runs(FINAL))
    assert "the best run, which has 0.9" in said
    assert 'scale = "unit"' in said


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shift", [-5.0, 0.0])
def test_the_note_does_not_depend_on_the_unit_of_fitness(factor, shift):
    final = shift + factor * FINAL
    frame = runs(final)
    frame.loc[frame["generation"] == 0, "best_fitness"] = shift + factor * 0.05
    assert len(notes_on_limits(cells(final), frame)) == 1


def test_of_a_shipped_construction_a_limit_above_the_best_published_fitness_is_explained():
    [said] = notes_on_limits(cells(FINAL), runs(FINAL, "circle_packing"))
    assert "above 1, the best published fitness" in said
    beyond = FINAL + np.array([0, 0, 0, 0, 0.11])  # a record: 1 is no end of the scale any more
    [said] = notes_on_limits(cells(beyond), runs(beyond, "circle_packing"))
    assert "published" not in said


def test_limits_that_stay_where_fitness_can_be_need_no_words():
    bounded = cells(FINAL, bounds=(0.0, 1.0))
    assert notes_on_limits(bounded, runs(FINAL, unit_scale=True)) == []
    many = np.random.default_rng(0).random(40)
    assert notes_on_limits(cells(many), runs(many)) == []
    few = FINAL[:3]  # without an interval
    assert notes_on_limits(cells(few), runs(few)) == []
