"""Numbers, places and texts of figures of sweeps."""

import math

import numpy as np
import pytest

from replay.plots.style import ranged
from replay.plots.sweep_tables import asked_of, seed_means, short, words_of


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
