"""Welch's t: widths and degrees of freedom."""

import numpy as np
import pytest
from scipy import stats

from replay.statistics.welch import welch_freedom, welch_half

SIZES = [(5, 5), (6, 6), (20, 5), (7, 12), (40, 10)]


def groups(n, m, seed=0):
    rng = np.random.default_rng([seed, n, m])
    return rng.lognormal(size=n), 0.3 + 4 * rng.normal(size=m)


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_welchs_freedom_and_width(n, m, level):
    left, right = groups(n, m)
    found = stats.ttest_ind(right, left, equal_var=False)
    assert welch_freedom(left, right) == pytest.approx(found.df)
    limits = found.confidence_interval(level)
    assert welch_half(left, right, level) == pytest.approx((limits.high - limits.low) / 2)
    columns = welch_freedom(np.stack([left, 9 * left], axis=1), np.stack([right, right], axis=1))
    assert columns[0] == pytest.approx(found.df)
    assert columns[1] == pytest.approx(stats.ttest_ind(9 * left, right, equal_var=False).df)


def test_groups_without_any_spread_have_one_degree_of_freedom():
    assert welch_freedom(np.ones(4), np.zeros(7)) == 1
    assert welch_freedom(np.ones(4), np.array([0.0, 1.0, 2.0])) == pytest.approx(2)


@pytest.mark.parametrize("power", [-700, 700])
def test_sides_of_any_magnitude_neither_overflow_nor_vanish(power):
    left, right = (np.ldexp(side, power) for side in groups(7, 12))
    assert welch_freedom(left, right) == pytest.approx(welch_freedom(*groups(7, 12)))
    plain = welch_half(*groups(7, 12), 0.9)
    assert np.ldexp(welch_half(left, right, 0.9), -power) == pytest.approx(plain)


def test_a_side_without_spread_leaves_the_t_of_the_other():
    """With equal values on one side the interval is Student's for the mean of the other."""
    right = np.array([0.0, 1.0, 2.0, 4.0])
    half = stats.t.ppf(0.975, 3) * stats.sem(right)
    assert welch_half(np.full(6, 9.0), right, 0.95) == pytest.approx(half)
    assert welch_half(np.full(6, 9.0), np.zeros(4), 0.95) == 0
