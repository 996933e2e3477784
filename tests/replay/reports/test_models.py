"""The table of models: what each was asked, and what its children gained and cost."""

import math

import pandas as pd
import pytest

from replay.logs.tables import Tables
from replay.reports.models import MODELS, ONE_CALL_EACH, cells_of_models, notes_on_models

CHILD = {
    "asked_model": "one", "inherited": False, "status": "ok", "improved": False, "kept_out": "",
    "fitness": 0.5, "best_fitness": 0.4, "tokens": 10.0, "dollars": 0.25,
}  # fmt: skip


def tables(*children, calls=None):
    """Tables of one run with these children; so many calls, else one for each of its own."""
    rows = pd.DataFrame([CHILD | row for row in children])
    own = int((~rows["inherited"]).sum())
    runs = pd.DataFrame({"n_calls": [own if calls is None else calls]})
    return Tables(runs=runs, generations=pd.DataFrame(), children=rows)


def values(made, *, is_llm=True):
    return {cell.quantity: cell.value for cell in cells_of_models(made, is_llm)}


def test_each_model_has_its_own_counts_and_sums_and_together_they_are_all():
    rows = [{}, {"improved": True}, {"status": "error"}, {"asked_model": "two", "tokens": 5.0}]
    found = values(tables(*rows))
    assert [found[f"one: {name}"] for name in ("calls", "ok", "improved")] == [3, 2, 1]
    assert [found[f"two: {name}"] for name in ("calls", "ok", "improved")] == [1, 1, 0]
    assert [found[f"{name}: tokens"] for name in ("one", "two")] == [30, 5]
    assert found["one: dollars"] + found["two: dollars"] == 4 * CHILD["dollars"]


@pytest.mark.parametrize(
    ("row", "gain"),
    [
        ({}, 0.1),
        ({"fitness": 0.4}, 0.0),
        ({"fitness": 0.1}, 0.0),  # a loss is none
        ({"fitness": math.nan, "status": "error"}, 0.0),
        ({"kept_out": "same_output: as an earlier one"}, 0.0),
    ],
)
def test_a_gain_is_what_exceeds_the_best_before_unless_it_was_kept_out(row, gain):
    assert values(tables(row))["one: gain"] == pytest.approx(gain)
    assert values(tables(row, {}))["one: gain"] == pytest.approx(gain + 0.1)


def test_what_a_fork_inherits_was_asked_by_another_run():
    assert values(tables({}, {"inherited": True})) == values(tables({}))
    assert notes_on_models(tables({}, {"inherited": True})) == (MODELS,)


def test_an_unknown_cost_makes_its_models_sum_unknown_and_no_other():
    rows = [{"tokens": math.nan, "dollars": math.nan}, {}, {"asked_model": "two"}]
    found = values(tables(*rows))
    assert math.isnan(found["one: tokens"])
    assert math.isnan(found["one: dollars"])
    assert (found["two: tokens"], found["two: dollars"]) == (10.0, 0.25)


def test_what_is_no_llm_has_no_dollars():
    assert "one: dollars" in values(tables({}))
    assert "one: dollars" not in values(tables({}), is_llm=False)


@pytest.mark.parametrize("calls", [2, 3])
def test_calls_beside_those_of_children_are_said_to_be_left_out(calls):
    notes = notes_on_models(tables({}, {}, calls=calls))
    assert (ONE_CALL_EACH in notes) == (calls > 2)
    assert notes[0] == MODELS
