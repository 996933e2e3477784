"""What the runs that would settle a question cost, as far as it is known."""

import numpy as np
import pytest
from synthetic_runs import as_frame

from replay.claims.found import cost_of

FRAME = as_frame(np.linspace(0, 1, 8).reshape(2, 4), children=5, seeds=[1, 2], model="llm")


def test_runs_cost_what_the_logged_ones_did_up_to_their_depth():
    assert cost_of(FRAME, 3, 2.0) == {"calls": 30.0, "tokens": 4500.0, "seconds": 12.0}
    assert cost_of(FRAME, 1, 2.0) == {"calls": 10.0, "tokens": 1500.0, "seconds": 4.0}
    assert cost_of(FRAME, 3, 0.5)["calls"] == 7.5


@pytest.mark.parametrize("count", [0.0, -1.0, np.inf, np.nan])
def test_no_runs_and_runs_without_end_cost_nothing_that_can_be_said(count):
    assert cost_of(FRAME, 3, count) == {}


def test_what_is_unknown_or_nothing_is_left_out():
    frame = FRAME.assign(tokens=np.nan, seconds=0.0, dollars=0.25)
    assert cost_of(frame, 3, 2.0) == {"calls": 30.0, "dollars": 1.5}
    half = FRAME.assign(dollars=np.where(FRAME["seed"] == 1, 0.25, np.nan))
    assert cost_of(half, 3, 2.0)["dollars"] == 1.5  # the mean of the runs where it is known


def test_a_stand_ins_dollars_are_invented():
    frame = FRAME.assign(dollars=0.25, flops=9.0)
    assert {"dollars", "flops"} <= cost_of(frame, 3, 2.0).keys()
    assert not {"dollars", "flops"} & cost_of(frame.assign(model="offline"), 3, 2.0).keys()
    assert {"dollars", "flops"} <= cost_of(frame.drop(columns="model"), 3, 2.0).keys()
