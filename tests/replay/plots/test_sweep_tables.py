"""Numbers, places and texts of figures of sweeps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.plots.style import ranged
from replay.plots.sweep_tables import asked_of, round_values, seed_means, short, words_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"), (False, "False"), (np.True_, "True"), (16, "16"), (1_048_576, "1048576"),
        (np.int64(1_048_576), "1048576"), (1_048_576.0, "1048576"), (0.6, "0.6"), (1.0, "1"),
        (1 / 3, "0.333333"), (1e-9, "1e-9"), (1e30, "1e30"), (math.inf, "inf"), ("ucb1", "ucb1"),
        (-2.0, "-2"),
    ],
)  # fmt: skip
def test_a_value_is_written_as_it_was_given_and_whole_numbers_with_all_digits(value, text):
    assert short(value) == text


def test_what_a_configuration_does_not_have_is_left_out():
    row = {"a": None, "b": math.nan, "c": 0, "d": "", "fitness": 0.5, "fitness_low": 0.25,
           "fitness_high": 0.75, "n": 4}  # fmt: skip
    assert asked_of(row, ["a", "b", "c", "d"]) == ["c", "d"]
    assert words_of(row, ["a", "c"]) == f"c = 0\nmean fitness {ranged(0.5, 0.25, 0.75)}, n = 4"


@pytest.mark.parametrize(
    ("low", "high", "values"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0.1, 1.35, [0.25, 0.5, 0.75, 1, 1.25]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (0.3, 0.3, [0.3]),
        (5, 4, [5]),
    ],
)
def test_round_values_by_hand(low, high, values):
    assert round_values(low, high) == pytest.approx(values)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 9))
def test_round_values_lie_inside_evenly_and_are_no_more_than_wanted_and_one(low, width, most):
    found = round_values(low, low + width, most)
    assert len(found) <= most + 1
    slack = 1e-6 * max(abs(low), width)
    assert all(low - slack <= each <= low + width + slack for each in found)
    if len(found) > 2:
        steps = np.diff(found)
        np.testing.assert_allclose(steps, steps[0], rtol=1e-4, atol=slack)


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (1, "mean without an interval, as there is 1 seed and intervals need 5"),
        (4, "mean without an interval, as there are 4 seeds and intervals need 5"),
    ],
)
def test_too_few_seeds_have_no_interval(seeds, words):
    assert seed_means(seeds) == words
    assert "interval over 5 seeds" in seed_means(5, " of it")
    assert seed_means(5, " of it").startswith("mean of it and ")
