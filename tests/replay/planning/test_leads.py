"""Which way to spend is ahead of another by more than luck accounts for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from replay.planning.leads import (
    choose_split,
    critical,
    follow,
    lead_and_margin,
    lead_and_spread,
    middle_of,
    nearest_square,
    widened,
)

ROUNDS = {1: 16, 2: 8, 4: 4, 8: 2, 16: 1}


def worlds_of(ahead, spread, count=400):
    """Means of the splits of ROUNDS by world: each ahead of N = 4 by so much, give or take."""
    noise = np.random.default_rng(0).normal(0, spread, (count, 5))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1) * spread
    noise[:, 2] = 0
    return 0.5 + np.array(ahead) + noise


def test_no_lead_is_proven_where_a_split_may_find_nothing():
    by_world = np.array([[0.1, 0.5, -np.inf], [0.2, 0.5, -np.inf], [-np.inf, 0.5, -np.inf]])
    ahead, margin = lead_and_margin(by_world, 0, 5)
    assert not (ahead > margin).any()
    assert (ahead[1], ahead[2]) == (np.inf, -np.inf)
    assert choose_split(by_world, {1: 4, 2: 2, 4: 1}, 5) == 2


@pytest.mark.parametrize("runs", [4, 12])
def test_the_margin_is_students_shared_by_all_rivals(runs):
    factor = student.ppf(1 - 0.05 / 4, runs - 1) * np.sqrt(runs / (runs - 1))
    ahead, margin = lead_and_margin(worlds_of([0.3, 0.2, 0, 0, 0], 0.1), 2, runs)
    np.testing.assert_allclose(ahead, [0.3, 0.2, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(margin, 0.1 * factor * np.array([1, 1, 0, 1, 1]))


def test_the_plan_leaves_the_middle_for_more_than_the_margin_alone():
    """T = N is N = 4; of the splits beyond their margins the best is taken."""
    factor = student.ppf(1 - 0.05 / 4, 7) * np.sqrt(8 / 7)
    for share, N in ((0.95, 4), (1.05, 1)):
        by_world = worlds_of([share * factor * 0.1, 0.01, 0, -0.2, 0], 0.1)
        assert choose_split(by_world, ROUNDS, 8) == N
    both = worlds_of([0.5, 0.6, 0, 0, -0.9], 0.1)
    assert choose_split(both, ROUNDS, 8) == 2
    noisy = both + np.random.default_rng(1).normal(0, 9, both.shape) * [0, 1, 0, 0, 0]
    assert choose_split(noisy, ROUNDS, 8) == 1
    assert choose_split(both, ROUNDS, 1) == 4
    assert choose_split(both[:, :2], {1: 8, 2: 4}, 8) == 2


def test_of_two_splits_as_near_to_the_square_the_deeper_counts():
    assert nearest_square({2: 4, 4: 2}) == 0
    assert nearest_square({4: 2, 2: 4, 8: 1}) == 1


def test_of_splits_of_equally_many_generations_the_broadest_counts():
    assert nearest_square({1: 5, 2: 5, 4: 5, 8: 5, 16: 4, 32: 4}) == 3
    assert nearest_square({1: 2, 2: 2, 4: 1}) == 1


@given(
    st.lists(st.lists(st.integers(-8, 8), min_size=3, max_size=3), min_size=2, max_size=12),
    st.integers(0, 2),
    st.integers(1, 9),
)
def test_no_way_leads_clearly_what_is_followed(worlds, base, runs):
    by_world = np.array(worlds, dtype=float) / 8
    found = follow(by_world, base, runs)
    ahead, margin = lead_and_margin(by_world, found, runs)
    assert not (ahead > margin).any()
    if found != base:
        before, least = lead_and_margin(by_world, base, runs)
        assert (before > least).any()
    else:
        assert ahead[base] == margin[base] == 0


def test_of_one_run_no_lead_is_clear_and_of_more_the_error_grows_as_they_get_fewer():
    spread = np.array([0.0, 0.5])
    assert widened(spread, 1).tolist() == [np.inf, np.inf]
    assert widened(spread, 2) == pytest.approx(spread * np.sqrt(2))
    assert widened(spread, 5) == pytest.approx(spread * np.sqrt(5 / 4))
    assert follow(np.array([[0.0, 9.0]] * 5), 0, 1) == 0
    _, margin = lead_and_margin(np.array([[0.0, 9.0, 8.0]] * 5), 1, 1)
    assert margin.tolist() == [np.inf, 0.0, np.inf]


@pytest.mark.parametrize(("ways", "rivals"), [(1, 1), (2, 1), (3, 2), (9, 8)])
def test_the_chance_of_an_error_is_shared_by_the_rivals(ways, rivals):
    assert critical(7, ways) == pytest.approx(student.ppf(1 - 0.05 / rivals, 7))


def test_a_lead_is_a_mean_over_worlds_and_its_spread_that_of_the_differences():
    by_world = np.array([[0.1, 0.3, 0.1], [0.5, 0.9, 0.5], [0.2, 0.3, 0.2]])
    ahead, spread = lead_and_spread(by_world, 0)
    difference = by_world[:, 1] - by_world[:, 0]
    assert ahead == pytest.approx([0, difference.mean(), 0])
    assert spread == pytest.approx([0, difference.std(ddof=1), 0])
    assert lead_and_spread(by_world[:1], 0)[1].tolist() == [0.0, 0.0, 0.0]  # of one world


def test_worlds_that_find_nothing_either_way_are_no_lead():
    by_world = np.array([[-np.inf, -np.inf], [0.5, 0.75]])
    assert lead_and_spread(by_world, 0)[0].tolist() == [0.0, 0.125]


def test_outcomes_count_by_their_mean_unless_the_initial_program_has_no_fitness():
    values = np.array([0.0, 0.1, 0.8])
    assert middle_of(0.0)(values) == pytest.approx(0.3)
    assert middle_of(np.nan)(values) == pytest.approx(0.1)
