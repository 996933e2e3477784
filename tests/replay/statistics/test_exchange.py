"""Exchanges of runs against SciPy's permutation tests, plain loops and worlds without an effect."""

import itertools

import numpy as np
import pytest
from scipy import stats

from replay.statistics.exchange import EXCHANGES, Exchanges, exchange, moves

RNG = np.random.default_rng(0)


def welch(x, y, axis):
    return stats.ttest_ind(x, y, axis=axis, equal_var=False).statistic


@pytest.mark.parametrize("sizes", [(5, 5), (7, 4), (3, 8)])
def test_without_pairs_it_is_scipys_permutation_test_of_welchs_t(sizes):
    left, right = RNG.lognormal(size=sizes[0]), RNG.lognormal(size=sizes[1]) + 0.5
    found = exchange(left, right)
    for p, side in ((found.p_greater, "greater"), (found.p_less, "less")):
        expected = stats.permutation_test(
            (left, right), welch, alternative=side, vectorized=True, n_resamples=np.inf
        )
        assert p == pytest.approx(expected.pvalue)
    t = stats.ttest_ind(left, right, equal_var=False)
    assert found.value / found.error == pytest.approx(t.statistic)


@pytest.mark.parametrize("n", [6, 9])
def test_pairs_have_their_signs_flipped(n):
    left, right = RNG.normal(0.7, 1, size=n), RNG.normal(size=n)
    found = exchange(left, right, pairs=n)
    expected = stats.permutation_test(
        (left - right,), np.mean, permutation_type="samples", alternative="greater",
        n_resamples=np.inf,
    )  # fmt: skip
    assert found.p_greater == pytest.approx(expected.pvalue)
    assert found.error == pytest.approx(stats.sem(left - right))
    flips = np.array(list(itertools.product([0, 1], repeat=n)), dtype=bool)[1:]
    means = [(left - right)[flip].mean() for flip in flips]  # typical values (Hartigan 1969)
    rejected = int(0.025 * 2**n)
    assert found.low == pytest.approx(np.sort(means)[rejected - 1])
    assert found.high == pytest.approx(np.sort(means)[-rejected])


def test_some_pairs_stay_together_and_each_exchange_keeps_the_sizes():
    a, b, m = 4, 3, 2
    every = moves(a, b, m) == 1
    assert len(every) == 2**2 * 3 == len({tuple(row) for row in every})
    assert not every[0].any()
    left, right = RNG.normal(size=a), RNG.normal(size=b)
    sides = Exchanges(left, right, pairs=m)
    for row, t in zip(every, sides.statistic(0.3), strict=True):
        x, rest = left - 0.3, np.concatenate([left[m:] - 0.3, right[m:]])
        mine = (np.arange(len(rest)) < a - m) != row[m:]
        one = np.concatenate([np.where(row[:m], right[:m], x[:m]), rest[mine]])
        other = np.concatenate([np.where(row[:m], x[:m], right[:m]), rest[~mine]])
        assert (len(one), len(other)) == (a, b)
        away = (one - one.mean())[:m] @ (other - other.mean())[:m]
        variance = one.var(ddof=1) / a + other.var(ddof=1) / b
        variance -= 2 * away / np.sqrt(a * (a - 1) * b * (b - 1))
        assert t == pytest.approx((one.mean() - other.mean()) / np.sqrt(variance))


@pytest.mark.parametrize(("a", "b", "pairs"), [(20, 5, 0), (9, 9, 9), (12, 10, 5), (6, 6, 0)])
def test_the_interval_holds_what_is_not_rejected(a, b, pairs):
    left, right = RNG.lognormal(size=a), RNG.lognormal(size=b)
    sides, found = (each(left, right, pairs=pairs) for each in (Exchanges, exchange))
    for limit, sign in ((found.low, 1), (found.high, -1)):
        step = 1e-6 * found.error
        assert sides.p(limit - sign * step, sign) <= 0.025 < sides.p(limit + sign * step, sign)
    assert (found.low > 0) == (found.p_greater <= 0.025)
    assert (found.high < 0) == (found.p_less <= 0.025)


def test_results_move_with_the_scale_and_turn_with_the_sides():
    left, right = RNG.lognormal(size=9), RNG.lognormal(size=6)
    found, moved = exchange(left, right), exchange(100 * left - 7, 100 * right - 7)
    np.testing.assert_allclose([moved.low, moved.high], [100 * found.low, 100 * found.high])
    assert moved.p_greater == found.p_greater
    for one, other, pairs in ((left, right, 0), (left, left[::-1] + 0.1, 0), (left, right, 4)):
        found, turned = exchange(one, other, pairs=pairs), exchange(other, one, pairs=pairs)
        assert (turned.p_less, turned.p_greater) == (found.p_greater, found.p_less)
        np.testing.assert_allclose([turned.low, turned.high], [-found.high, -found.low])


def test_exchanges_that_tie_do_so_whatever_their_rounding():
    rng = np.random.default_rng(3)
    for _ in range(20):
        left, right = rng.integers(0, 4, size=(2, 6)).astype(float)
        whole = [Exchanges(left, right).p(0.0, sign) for sign in (1, -1)]
        tenths = [Exchanges(left * 0.1, right * 0.1).p(0.0, sign) for sign in (1, -1)]
        assert tenths == whole


def test_five_pairs_exclude_nothing_and_equal_runs_say_nothing():
    found = exchange(np.arange(5.0) + 9, np.arange(5.0) / 3, pairs=5)
    assert (found.low, found.high, found.p_greater) == (-np.inf, np.inf, 1 / 32)
    equal = exchange(np.full(6, 0.3), np.full(6, 0.3))
    assert (equal.value, equal.error, equal.p_greater, equal.p_less) == (0, 0, 1, 1)


LAWS = {
    "normal": lambda size, rng: rng.normal(size=size),
    "lognormal": lambda size, rng: rng.lognormal(size=size),
    "beta": lambda size, rng: rng.beta(0.2, 2, size=size),
    "t3": lambda size, rng: rng.standard_t(3, size=size),
    "rare": lambda size, rng: 1.0 * (rng.random(size) < 0.1) + 0.01 * rng.random(size),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sizes", [(5, 5), (20, 5)])
def test_one_law_on_both_sides_is_called_as_seldom_as_stated(law, sizes):
    """At most 2.5 % a side: 120 worlds hold the errors of a wrong null of 8.5 %."""
    rng = np.random.default_rng(1)
    worlds = [(LAWS[law](sizes[0], rng), LAWS[law](sizes[1], rng)) for _ in range(120)]
    found = [Exchanges(*world) for world in worlds]
    for sign in (1, -1):
        called = sum(each.p(0.0, sign) <= 0.025 for each in found)
        assert called <= stats.binom.ppf(0.999, 120, 0.025)


def test_mistakes_are_named_and_many_exchanges_are_drawn():
    with pytest.raises(ValueError, match="at least 2 runs in each group, got 1 and 3"):
        exchange([1.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="at least 4 runs in each group"):
        exchange([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], pairs=4)
    assert len(moves(20, 20, 0)) == EXCHANGES
    assert (moves(20, 20, 0) == moves(20, 20, 0)).all()


@pytest.mark.parametrize("n", [5, 6, 7])
def test_an_effect_is_rejected_where_its_p_is_the_level_itself(n):
    """Of 2^n exchanges of signs, the actual one alone does as well where all pairs agree."""
    left = 1 + RNG.random(n)
    for share, finite in ((1 / 2**n, True), (0.99 / 2**n, False)):
        found = exchange(left, np.zeros(n), pairs=n, level=1 - 2 * share)
        assert found.p_greater == 1 / 2**n
        assert np.isfinite([found.low, found.high]).tolist() == [finite, finite]
