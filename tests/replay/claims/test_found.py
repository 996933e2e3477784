"""What the runs that would settle a question cost, as far as it is known."""

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame

from replay.claims.found import cost_of, cost_of_run, mean_cost
from replay.claims.judging import judge

FRAME = as_frame(np.linspace(0, 1, 8).reshape(2, 4), children=5, seeds=[1, 2], model="llm")


def test_runs_cost_what_the_logged_ones_did_up_to_their_depth():
    each = cost_of_run(FRAME, 3)
    assert each == {"calls": 15.0, "tokens": 2250.0, "seconds": 6.0}
    assert cost_of_run(FRAME, 1) == {"calls": 5.0, "tokens": 750.0, "seconds": 2.0}
    assert cost_of(0.5, each)["calls"] == 7.5


def test_a_unit_that_is_not_known_of_all_kinds_of_runs_has_no_mean():
    assert mean_cost([{"calls": 2.0, "dollars": 1.0}, {"calls": 4.0}]) == {"calls": 3.0}


@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("calls", [8, 16, 24])
def test_further_runs_cost_what_runs_of_their_sides_do_whatever_else_is_in_the_frame(calls, others):
    rng = np.random.default_rng(3)
    sizes = {2: 12, 4: 6, 1: 24, 8: 3}
    frame = pd.concat([
        as_frame(np.maximum.accumulate(rng.random((6, T + 1)), axis=1), children=N, seeds=range(6))
        for N, T in [*sizes.items()][: 2 + others]
    ])  # fmt: skip
    found = judge(frame, {"children": 4}, {"children": 2}, calls=calls)
    assert found.runs_needed > 0
    assert found.cost["calls"] == pytest.approx(found.runs_needed * calls)


@pytest.mark.parametrize("count", [0.0, -1.0, np.inf, np.nan])
def test_no_runs_and_runs_without_end_cost_nothing_that_can_be_said(count):
    assert cost_of(count, cost_of_run(FRAME, 3)) == {}


def test_what_is_unknown_or_nothing_is_left_out():
    frame = FRAME.assign(tokens=np.nan, seconds=0.0, dollars=0.25)
    assert cost_of_run(frame, 3) == {"calls": 15.0, "dollars": 0.75}
    half = FRAME.assign(dollars=np.where(FRAME["seed"] == 1, 0.25, np.nan))
    assert cost_of_run(half, 3)["dollars"] == 0.75  # the mean of the runs where it is known


def test_a_stand_ins_dollars_are_invented():
    frame = FRAME.assign(dollars=0.25, flops=9.0)
    assert {"dollars", "flops"} <= cost_of_run(frame, 3).keys()
    assert not {"dollars", "flops"} & cost_of_run(frame.assign(model="offline"), 3).keys()
    assert {"dollars", "flops"} <= cost_of_run(frame.drop(columns="model"), 3).keys()
