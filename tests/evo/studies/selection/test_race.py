"""The loop of a selection: what samples are served, and what outcomes are worth."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.studies.selection import Terms
from evo.studies.selection.race import LoggedSamples, rewards_of


def test_a_failure_counts_as_the_lower_bound_unless_told_otherwise() -> None:
    outcomes, terms = np.array([np.nan, 0.5, 3.0]), Terms(size=3, low=-1.0, high=2.0)
    assert rewards_of(outcomes, terms).tolist() == [-1.0, 0.5, 2.0]
    assert rewards_of(outcomes, terms, 0.25).tolist() == [0.25, 0.5, 2.0]


def logged(*rows: list[float], **how: Any) -> LoggedSamples:
    return LoggedSamples(np.array(rows), **how)


def test_samples_are_served_in_order_and_what_was_not_asked_for_is_empty() -> None:
    samples = logged([0.1, 0.2, 0.3], [0.4, 0.5, 0.6], costs={"calls": np.array([[1.0, 2.0, 4.0]])})
    taken = samples.take(np.array([[1, 0]]), np.array([[2, 1]]))
    assert taken.values.tolist() == [[[0.2, 0.3], [0.4, 0.0]]]
    assert taken.costs["calls"].tolist() == taken.prices.tolist() == [[6.0, 1.0]]
    nothing = samples.take(np.array([[3, 3]]), np.array([[0, 0]]))
    assert nothing.values.shape == (1, 2, 0)
    assert nothing.prices.tolist() == [[0.0, 0.0]]


def test_the_costs_break_ties_in_the_order_in_which_units_are_given() -> None:
    costs = {"tokens": np.array([[5.0]]), "calls": np.array([[1.0]])}
    taken = logged([0.5, 0.5], costs=costs).take(np.array([[0]]), np.array([[2]]))
    assert taken.prices.tolist() == [[10.0]]


@given(
    st.lists(st.floats(-3, 3) | st.just(math.nan), min_size=1),
    st.sampled_from([(0.0, 1.0), (-1.0, 2.0)]),
)
def test_rewards_are_outcomes_within_the_bounds_and_failures_the_least(
    outcomes: list[float], bounds: tuple[float, float]
) -> None:
    low, high = bounds
    found = rewards_of(np.array(outcomes), Terms(size=3, low=low, high=high))
    expected = [low if math.isnan(x) else min(max(x, low), high) for x in outcomes]
    assert found.tolist() == expected


@pytest.mark.parametrize("value", [-1.0, 2.0])
def test_the_value_of_a_failure_lies_within_the_bounds_their_ends_included(value: float) -> None:
    terms = Terms(size=3, low=-1.0, high=2.0)
    assert rewards_of(np.array([np.nan]), terms, value).tolist() == [value]
    for beyond in (math.nextafter(-1.0, -2), math.nextafter(2.0, 3), math.nan):
        with pytest.raises(ValueError, match="failure_value: expected a reward within the bounds"):
            rewards_of(np.array([np.nan]), terms, beyond)


def test_bounds_that_nobody_stated_hold_for_half_of_the_outcomes_and_a_quarter_beyond() -> None:
    terms = Terms(size=3)

    def refused(*outcomes: float) -> bool:
        try:
            rewards_of(np.array(outcomes), terms, stated=False)
        except ValueError:
            return True
        return False

    assert not refused(1.25, -0.25)
    assert refused(1.2500001, -0.2500001)
    assert not refused(9.0, 0.5)  # half of them
    assert refused(9.0, 9.0, 0.5)
    assert refused(9.0, 9.0, 0.5, math.nan, math.nan)  # failures say nothing of the scale
    assert not refused(math.nan)
