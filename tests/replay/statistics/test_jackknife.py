"""The variance over runs against the delete-one jackknife and against worlds drawn anew."""

import itertools

import numpy as np
import pytest

from replay.statistics.jackknife import jackknife


def every_pool(n, K):
    return np.array(list(itertools.combinations(range(n), K)))


@pytest.mark.parametrize(("n", "K"), [(6, 2), (7, 3), (8, 4)])
def test_over_all_pools_the_sum_is_the_delete_one_jackknife(n, K):
    runs = np.random.default_rng(n).lognormal(size=n)
    pools = every_pool(n, K)
    best = runs[pools].max(axis=1)
    found = jackknife(best[:, None], pools, n)
    without = np.array([best[(pools != i).all(axis=1)].mean() for i in range(n)])
    delete_one = (n - 1) / n * ((without - without.mean()) ** 2).sum()
    correction = (n - 1) / n * (n / (n - K)) ** 2 * K * (1 - K / n) * found.noise[0]
    assert found.variance[0] + correction == pytest.approx(delete_one)
    assert found.mean[0] == pytest.approx(best.mean())


def test_for_pools_of_one_run_it_is_the_variance_of_a_mean():
    runs = np.random.default_rng(1).normal(size=12)
    arms = np.tile(np.arange(12), 4000)[:, None]
    found = jackknife(runs[arms], arms, 12)
    assert found.variance[0] == pytest.approx(runs.var(ddof=1) / 12, rel=2e-3)


def test_the_randomness_of_a_policy_is_averaged_out():
    """Noise ten times as large as the runs' spread leaves the variance over runs where it was."""
    rng = np.random.default_rng(2)
    runs, n, K = rng.normal(size=10), 10, 2
    arms = rng.random((60_000, n)).argsort(axis=1)[:, :K]
    quiet = runs[arms].mean(axis=1)
    loud = quiet[:, None] + 10 * rng.normal(size=(60_000, 40))
    expected = jackknife(quiet[:, None], arms, n).variance[0]
    found = jackknife(loud, arms, n)
    error = found.variance.std(ddof=1) / np.sqrt(40)
    assert abs(found.variance.mean() - expected) < 3 * error
    assert error < 0.1 * expected
    uncorrected = 10 / 9 * (n / (n - K)) ** 2 * (found.influence**2).sum(axis=0)
    assert uncorrected.mean() > 1.2 * expected


def test_it_estimates_the_variance_over_runs_drawn_anew():
    rng, n, K = np.random.default_rng(3), 12, 3
    pools = every_pool(n, K)
    worlds = rng.normal(size=(1500, n))
    best = worlds[:, pools].max(axis=2)
    found = jackknife(best.T, pools, n)
    assert found.variance.mean() == pytest.approx(best.mean(axis=1).var(), rel=0.25)


@pytest.mark.parametrize(
    ("values", "arms", "n", "message"),
    [
        (np.zeros((4, 1)), np.zeros((3, 2), int), 5, "one that drew|shape"),
        (np.zeros((2, 1)), np.array([[0, 1], [1, 0]]), 2, "fewer arms than runs"),
        (np.zeros((2, 1)), np.array([[0, 0], [1, 2]]), 4, "drew some twice"),
        (np.zeros((2, 1)), np.array([[0, 2, 2], [0, 1, 2]]), 4, "drew some twice"),
    ],
)
def test_mistakes_are_named(values, arms, n, message):
    with pytest.raises(ValueError, match=message):
        jackknife(values, arms, n)
