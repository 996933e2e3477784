from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog


def grid():
    """25 touching circles in a square grid and one in a gap: every contact is tight."""
    middle = np.arange(5) / 5 + 0.1
    centers = np.array([(x, y) for x in middle for y in middle] + [(0.2, 0.2)])
    return centers, np.array([0.1] * 25 + [0.1 * (np.sqrt(2) - 1)])


def largest_sum(centers):
    """The largest sum of radii that circles at these centers can have (linear programming)."""
    pairs = list(combinations(range(26), 2))
    a = np.zeros((len(pairs), 26))
    for row, (i, j) in enumerate(pairs):
        a[row, [i, j]] = 1
    distance = [np.hypot(*(centers[i] - centers[j])) for i, j in pairs]
    wall = np.minimum(centers, 1 - centers).min(axis=1)
    return -linprog(-np.ones(26), A_ub=a, b_ub=distance, bounds=[(0, w) for w in wall]).fun


def assert_exactly_legal(centers, radii):
    x, y, r = ([Fraction(float(v)) for v in column] for column in (*centers.T, radii))
    for i in range(26):
        assert 0 <= r[i] <= min(x[i], y[i], 1 - x[i], 1 - y[i])
    for i, j in combinations(range(26), 2):
        assert (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 >= (r[i] + r[j]) ** 2


def test_the_tolerance_counts_for_fitness_and_not_for_strict_fitness(cp):
    centers, radii = grid()
    metrics = cp.score((centers, radii + 4e-7))
    bound = largest_sum(centers) / 2.635
    assert metrics["fitness"] > bound + 1e-6
    assert bound - 1e-12 < metrics["strict_fitness"] <= bound + 1e-14
    for wrong in (radii + 6e-7, radii + 0.1, radii - 0.2):
        with pytest.raises(ValueError, match=r"overlap|leaves|is negative"):
            cp.score((centers, wrong))


@given(seed=st.integers(0, 2**32), scale=st.sampled_from([0, 1e-18, 1e-12, 1e-7, 2e-7]))
def test_strict_radii_pass_an_exact_check(cp, seed, scale):
    rng = np.random.default_rng(seed)
    centers, radii = grid()
    centers = centers + scale * rng.uniform(-1, 1, centers.shape)
    radii = radii + scale * rng.uniform(-1, 1, radii.shape)
    strict = cp.evaluator._strict_radii(centers, radii)
    assert_exactly_legal(centers, strict)
    assert (strict <= radii).all()
    assert strict.sum() >= radii.sum() - 26 * 3 * scale - 1e-13
    assert cp.score((centers, radii))["strict_fitness"] == pytest.approx(strict.sum() / 2.635)


def test_zero_radii_and_coincident_centers_are_legal(cp):
    assert set(cp.score((np.full((26, 2), 0.5), np.zeros(26))).values()) == {0.0}
    one = np.zeros(26)
    one[0] = 0.5
    centers = np.full((26, 2), 0.5)
    centers[1:] = 0.0
    metrics = cp.score((centers, one, "a sum that is ignored"))
    assert metrics["objective"] == 0.5
    assert metrics["strict_fitness"] == metrics["fitness"]
