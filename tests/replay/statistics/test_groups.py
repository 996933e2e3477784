"""Two groups: the exchange of runs and Welch's t together."""

import numpy as np
import pytest
import scipy.stats
from benchmarks.group_nulls import tails
from hypothesis import given
from hypothesis import strategies as st

from replay.statistics.exchange import exchange
from replay.statistics.groups import compare_groups, freedom_of, unlike


@given(st.integers(0, 10**6), st.integers(3, 9), st.integers(3, 9), st.floats(0.1, 9))
def test_p_is_the_larger_of_both_and_agrees_with_the_interval(seed, n, m, spread):
    rng = np.random.default_rng(seed)
    left, right = rng.normal(0.7, 1, n), spread * rng.normal(size=m)
    found, free = compare_groups(left, right), exchange(left, right)
    welch = scipy.stats.ttest_ind(left, right, equal_var=False, alternative="greater")
    assert found.p_greater == pytest.approx(max(free.p_greater, welch.pvalue))
    assert found.p_less == pytest.approx(max(free.p_less, 1 - welch.pvalue))
    rejected = 2 * min(found.p_greater, found.p_less) <= 0.05
    assert rejected == (not found.low <= 0 <= found.high)
    turned = compare_groups(right, left)
    assert turned.p_less == pytest.approx(found.p_greater, abs=0.02)


@pytest.mark.thorough
def test_a_small_group_with_the_larger_spread_is_not_called_different_more_often_than_stated():
    """Exchanging alone calls a difference in 15 % of these; the draws here are few."""
    rng, called = np.random.default_rng(1), 0
    for _ in range(200):
        found = compare_groups(3 * rng.normal(size=5), rng.normal(size=20))
        called += 2 * min(found.p_greater, found.p_less) <= 0.05
    assert called / 200 <= 0.09


def test_pairs_alone_are_judged_by_their_signs():
    rng = np.random.default_rng(2)
    left, right = rng.normal(1, 1, 8), rng.normal(size=8)
    found, free = compare_groups(left, right, pairs=8), exchange(left, right, pairs=8)
    assert found[:5] == free[:5]
    assert found.freedom == 7


def test_partly_paired_groups_have_freedom_between_their_pairs_and_all_runs():
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=9), rng.normal(size=12)
    assert 4 <= freedom_of(left, right, 5) <= 4 + 8 + 11
    welch = scipy.stats.ttest_ind(left, right, equal_var=False).df
    assert freedom_of(left, right) == pytest.approx(welch)
    np.testing.assert_allclose(freedom_of(1e3 * left, 1e3 * right, 5), freedom_of(left, right, 5))


def test_a_margin_is_met_only_where_both_tests_say_so():
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=12), rng.normal(size=12)
    wide, narrow = (compare_groups(left, right, margin=m).p_within for m in (3.0, 0.3))
    assert wide < 0.01 < narrow
    assert np.isnan(compare_groups(left, right).p_within)


def test_unlike_spreads_and_shapes_are_named():
    rng = np.random.default_rng(5)
    normal = rng.normal(size=30)
    assert unlike(normal, normal + 1) == ""
    assert "standard deviations differ by a factor of 3" in unlike(3 * normal, normal)
    assert "skewnesses differ" in unlike(np.exp(1.5 * normal), 4 * rng.normal(size=30))
    assert unlike(np.zeros(5), np.arange(5.0)) == "the runs of one side do not differ"
    assert unlike(np.zeros(5), np.ones(5)) == ""


@pytest.mark.parametrize(("n", "m"), [(5, 7), (6, 12)])
def test_p_is_that_of_the_benchmarks_own_code(n, m):
    rng = np.random.default_rng(6)
    left, right = rng.normal(0.5, 1, (40, n)), 2 * rng.normal(size=(40, m))
    expected = np.maximum(*tails(left, right, 4000))
    found = [compare_groups(a, b) for a, b in zip(left, right, strict=True)]
    p = [2 * min(each.p_greater, each.p_less) for each in found]
    np.testing.assert_allclose(p, expected, atol=0.05)
