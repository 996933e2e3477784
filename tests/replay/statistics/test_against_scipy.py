"""Every statistic that SciPy has, at equal and unequal, even and odd numbers of runs."""

import itertools

import numpy as np
import pytest
from scipy import stats

from replay.claims.contrasts import p_value
from replay.claims.decision import decide, detectable, power, power_band, still_needed
from replay.statistics.exchange import exchange
from replay.statistics.intervals import clopper_pearson, interval, stretches, student
from replay.statistics.jackknife import jackknife
from replay.statistics.resampling import tail_p


def groups(n, m, seed=0):
    rng = np.random.default_rng([seed, n, m])
    return rng.lognormal(size=n), 0.3 + 4 * rng.normal(size=m)


@pytest.mark.parametrize("n", [1, 2, 7, 10, 24, 41])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_clopper_and_pearson_at_every_number_of_hits(n, level):
    low, high = clopper_pearson(np.arange(n + 1), n, level)
    exact = [stats.binomtest(hits, n).proportion_ci(level, "exact") for hits in range(n + 1)]
    np.testing.assert_allclose(low, [each.low for each in exact], atol=1e-9)
    np.testing.assert_allclose(high, [each.high for each in exact], atol=1e-9)


@pytest.mark.parametrize("n", [6, 9, 10, 16, 23, 40, 57])
@pytest.mark.parametrize("q", [0.3, 0.5, 0.8])
def test_limits_of_a_quantile_hold_it_and_lie_no_wider_than_scipys(n, q):
    """SciPy's limits leave half of the error to each side; ours share it as the widths need."""
    values = np.sort(np.random.default_rng(n).normal(size=n))
    found = interval(values, "median" if q == 0.5 else q)
    theirs = stats.quantile_test(values, p=q).confidence_interval(0.95)
    first, last = (np.searchsorted(values, limit) for limit in (found.low, found.high))
    if np.isfinite([theirs.low, theirs.high]).all():
        widest = np.searchsorted(values, theirs.high) - np.searchsorted(values, theirs.low)
        assert last - first <= widest
    if np.isfinite(found.low):
        binomial = stats.binom(n, q)
        assert binomial.cdf(last) - binomial.cdf(first) >= 0.95
    else:
        assert not np.isfinite([theirs.low, theirs.high]).all()


@pytest.mark.parametrize(("n", "weight"), [(5, 4 * 2.7), (8, 2.25 * 1.22), (11, 2.0), (40, 0.3)])
def test_students_quantiles_and_the_skewness_that_stretches(n, weight):
    assert student(0.9, n - 1) == pytest.approx(stats.t.ppf(0.95, n - 1))
    values = np.random.default_rng(n).exponential(size=(n, 3))
    below, above = stretches(values)
    spreads = values.std(axis=0, ddof=1) / values.std(axis=0)
    skewness = stats.skew(values, axis=0) / spreads**3
    np.testing.assert_allclose(above - below, weight * skewness)


@pytest.mark.parametrize("n", [6, 9, 12, 30])
def test_pairs_have_the_error_of_their_differences(n):
    left, right = groups(n, n)
    found = exchange(left, right, pairs=n)
    paired = stats.ttest_rel(left, right)
    assert found.value / found.error == pytest.approx(paired.statistic)
    assert 2 * min(found.p_greater, found.p_less) == pytest.approx(paired.pvalue, abs=0.09)


def test_a_tails_p_is_that_of_a_monte_carlo_test():
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=199)
    theirs = stats.monte_carlo_test(
        np.full(2, 1.2), lambda size: np.broadcast_to(drawn[:, None], size),
        lambda x, axis: x.mean(axis=axis), n_resamples=199, alternative="greater", vectorized=True,
    )  # fmt: skip
    assert tail_p(1.2, drawn) == p_value(1.2, drawn) == pytest.approx(theirs.pvalue)


def test_the_jackknife_over_single_runs_is_the_variance_of_a_mean():
    """Each pool is one run, each run is drawn as often: delete-one, too, is s^2 / n then."""
    for n in (5, 8, 21):
        values = np.random.default_rng(n).normal(size=n)
        found = jackknife(np.tile(values, 500)[:, None], np.tile(np.arange(n), 500)[:, None], n)
        assert found.variance[0] == pytest.approx(stats.sem(values) ** 2, rel=0.02)


@pytest.mark.parametrize("freedom", [4, 9, 23.5])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_power_is_that_of_the_noncentral_t(freedom, level):
    error, limit = 0.3, stats.t.ppf((1 + level) / 2, freedom)
    for effect in (0.0, 0.2, -0.7, 0.9):
        away = effect / error
        expected = stats.nct.sf(limit, freedom, away) + stats.nct.cdf(-limit, freedom, away)
        assert power(effect, error, freedom, level) == pytest.approx(expected, abs=1e-6)
    assert power(0.0, error, freedom, level) == pytest.approx(1 - level)
    found = detectable(error, freedom, level)
    assert found == pytest.approx(error * (limit + stats.t.ppf(0.8, freedom)))
    assert power(found, error, freedom, level) == pytest.approx(0.8, abs=0.02)
    assert np.isnan(power(1.0, 0.0, freedom, level))
    assert np.isnan(detectable(np.nan, freedom, level))


def test_runs_still_needed_have_the_power_that_is_promised_and_no_fewer_have():
    """Two groups of normal runs: SciPy's power of Welch's t with equal spreads."""
    for effect, each, level in ((0.9, 5, 0.95), (0.5, 5, 0.995), (0.3, 20, 0.95)):
        error, freedom = np.sqrt(2 / each), 2 * each - 2
        more = still_needed(
            2 * each, effect, 0.0, float(error), freedom, "undetermined", level=level
        )

        def with_more(runs, each=each, effect=effect, level=level):
            side = (2 * each + runs) / 2
            away, freedom = effect / np.sqrt(2 / side), 2 * side - 2
            limit = stats.t.ppf((1 + level) / 2, freedom)
            return stats.nct.sf(limit, freedom, away) + stats.nct.cdf(-limit, freedom, away)

        assert with_more(more - 6) < 0.8 < with_more(more + 6)
        assert with_more(more) == pytest.approx(0.8, abs=0.015)


def test_the_range_of_the_power_holds_the_true_one_as_often_as_it_is_called():
    """Pilots of ten pairs whose true effect is known: 120 of them, at three times the runs."""
    rng = np.random.default_rng(3)
    pilots = rng.normal(0.7, 1, size=(120, 10))
    true = power(0.7, 1 / np.sqrt(30), 27.0)
    errors = stats.sem(pilots, axis=1)
    bands = [
        power_band(float(x.mean()), float(e), 9.0, 3.0) for x, e in zip(pilots, errors, strict=True)
    ]
    held = np.mean([low <= true <= high for low, high in bands])
    assert 0.72 <= held <= 0.9
    wide = power_band(0.7, 0.3, 9.0, 3.0)
    assert wide[0] < power(0.7, 0.3 / np.sqrt(3), 27.0) < wide[1]
    narrow = power_band(0.7, 0.3, 9.0, 3.0, band=0.2)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    sure = power_band(50.0, 0.1, 40.0, 2.0)
    assert sure == pytest.approx((1, 1))
    assert power_band(50.0, 0.1, 40.0, 2.0, level=0.999)[0] <= sure[0]
    assert np.isnan(power_band(1.0, 0.0, 9.0, 2.0)).all()
    assert np.isnan(power_band(0.0, 1.0, 9.0, np.inf)).all()


@pytest.mark.parametrize(
    ("low", "high", "margin", "verdict"),
    [
        (0.1, 0.3, 0.0, "greater"),
        (-0.3, -0.1, 0.0, "less"),
        (-0.1, 0.3, 0.0, "undetermined"),
        (0.0, 0.3, 0.0, "undetermined"),
        (-0.3, 0.0, 0.0, "undetermined"),
        (0.1, 0.3, 0.31, "within margin"),
        (0.1, 0.3, 0.3, "greater"),
        (-0.3, -0.1, 0.3, "less"),
        (-0.2, 0.2, 0.25, "within margin"),
        (-0.2, 0.3, 0.25, "undetermined"),
        (np.nan, np.nan, 0.5, "undetermined"),
    ],
)
def test_one_rule_decides_by_the_interval_and_the_margin(low, high, margin, verdict):
    assert decide(low, high, margin) == verdict


def test_a_band_of_powers_takes_the_freedom_of_the_larger_study():
    """Three runs leave a wide t; nine times as many decide by a t that is almost normal."""
    freedom, factor, effect, error = 2.0, 9.0, 0.5, 0.4
    shares = (np.arange(32) + 0.5) / 32
    powers = []
    for chi, shift in itertools.product(stats.chi2.isf(shares, freedom), stats.norm.ppf(shares)):
        away = abs(effect / (error * np.sqrt(freedom / chi)) + shift) * np.sqrt(factor)
        limit, many = stats.t.ppf(0.975, freedom * factor), freedom * factor
        opposite = np.nan_to_num(stats.nct.cdf(-limit, many, min(away, 30)))
        powers.append(1 - stats.nct.cdf(limit, many, min(away, 30)) + opposite)
    expected = np.quantile(powers, [0.1, 0.9])
    assert power_band(effect, error, freedom, factor) == pytest.approx(expected, abs=0.002)
