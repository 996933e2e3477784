from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replay.statistics import (
    METHODS,
    STATISTICS,
    compare,
    curve_band,
    interquartile_mean,
    interval,
    resampled_rows,
)

RUNS = np.random.default_rng(3).gamma(2.0, 1.0, size=12)


def limits(found):
    return np.array([found.value, found.low, found.high])


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_agrees_with_scipy(method, statistic):
    theirs = scipy.stats.bootstrap(
        (RUNS,),
        STATISTICS[statistic],
        method=method,
        n_resamples=50_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    ours = interval(RUNS, statistic=statistic, method=method, resamples=50_000)
    tolerance = 0.03 * (theirs.high - theirs.low)
    assert ours.low == pytest.approx(theirs.low, abs=tolerance)
    assert ours.high == pytest.approx(theirs.high, abs=tolerance)


def test_interquartile_mean_is_the_trimmed_mean():
    for n in range(1, 14):
        values = np.random.default_rng(n).normal(size=(3, n))
        expected = scipy.stats.trim_mean(values, 0.25, axis=1)
        np.testing.assert_allclose(interquartile_mean(values), expected)


def test_studentised_mean_of_normal_runs_is_close_to_students_interval():
    values = np.random.default_rng(0).normal(size=40)
    student = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    for method in ("studentised", "expanded"):
        found = interval(values, method=method, resamples=20_000)
        width = student.high - student.low
        np.testing.assert_allclose([found.low, found.high], student, atol=0.06 * width)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_default_covers_93_to_97_percent_for_ten_normal_runs(statistic):
    rng, held = np.random.default_rng(11), []
    for seed in range(20):
        found = interval(rng.normal(size=(10, 100)), statistic=statistic, seed=seed)
        held.append((found.low <= 0) & (found.high >= 0))
    # Three standard errors of 2,000 trials beyond what the docs say: 93.7, 96.5 and 96.5.
    assert 0.93 - 0.008 <= np.mean(held) <= 0.97 + 0.008


def test_percentile_covers_too_little_for_ten_runs():
    rng, held = np.random.default_rng(11), []
    for seed in range(10):
        found = interval(rng.normal(size=(10, 100)), method="percentile", seed=seed)
        held.append((found.low <= 0) & (found.high >= 0))
    assert np.mean(held) < 0.92


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("statistic", [*STATISTICS, np.max])
def test_columns_are_what_each_gives_alone(method, statistic):
    matrix = np.random.default_rng(0).normal(size=(8, 5))
    together = interval(matrix, statistic=statistic, method=method)
    for column in range(5):
        alone = interval(matrix[:, column], statistic=statistic, method=method)
        np.testing.assert_allclose(
            [alone.value, alone.low, alone.high],
            [together.value[column], together.low[column], together.high[column]],
            rtol=1e-12,
        )
    turned = interval(matrix.T, statistic=statistic, method=method, axis=1)
    np.testing.assert_array_equal(turned.low, together.low)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_location_and_scale(method, statistic):
    plain = limits(interval(RUNS, statistic=statistic, method=method))
    moved = limits(interval(5 + 2 * RUNS, statistic=statistic, method=method))
    np.testing.assert_allclose(moved, 5 + 2 * plain, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_higher_levels_are_wider_and_hold_the_value(method):
    found = [interval(RUNS, method=method, level=level) for level in (0.5, 0.8, 0.95)]
    for narrow, wide in pairwise(found):
        assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9),
    method=st.sampled_from(METHODS),
    statistic=st.sampled_from(sorted(STATISTICS)),
)
@example(values=[0.0, 3.77e-130], method="bca", statistic="iqm")
@settings(max_examples=100, deadline=None)
def test_any_runs_give_ordered_limits(values, method, statistic):
    found = interval(values, method=method, statistic=statistic, resamples=100)
    assert found.low <= found.high
    if method in {"expanded", "percentile"}:
        spread = 1e-9 * (1 + max(map(abs, values)))
        assert min(values) - spread <= found.low <= found.high <= max(values) + spread


@pytest.mark.parametrize("method", METHODS)
def test_identical_runs_have_no_spread_and_one_run_no_interval(method):
    for statistic in STATISTICS:
        same = limits(interval([0.3] * 6, method=method, statistic=statistic))
        np.testing.assert_allclose(same, 0.3)
    one = interval([0.3], method=method)
    assert one.value == 0.3
    assert one.n == 1
    assert np.isnan([one.low, one.high]).all()


def test_equal_arguments_give_equal_bytes_and_leave_the_global_generator_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    first, second, other = (interval(RUNS, seed=seed) for seed in (1, 1, 2))
    assert first == second
    assert first != other
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


def test_strata_keep_their_sizes():
    strata = np.array(list("aabbbbc"))
    rows = resampled_rows(strata, 50, 0)
    assert all(sorted(strata[row]) == sorted(strata) for row in rows)
    # Between-stratum differences are no uncertainty.
    values = np.array([0.0, 0.1, 0.2, 10.0, 10.1, 10.2])
    tasks = list("aaabbb")
    for method in METHODS:
        kept = interval(values, strata=tasks, method=method)
        pooled = interval(values, method=method)
        assert kept.high - kept.low < 0.2 * (pooled.high - pooled.low)


def test_missing_is_never_silent():
    with pytest.raises(ValueError, match="1 of 3 runs have NaN"):
        interval([0.1, np.nan, 0.2])
    with pytest.raises(ValueError, match="finite"):
        interval([0.1, np.inf], missing="omit")
    left = interval([0.1, np.nan, 0.2, 0.4], missing="omit")
    assert left.n == 3
    np.testing.assert_array_equal(limits(left), limits(interval([0.1, 0.2, 0.4])))


def test_band_counts_the_runs_of_each_column():
    matrix = np.array([[0.1, 0.2, 0.5], [0.2, 0.3, np.nan], [0.1, 0.4, np.nan], [np.nan] * 3])
    band = curve_band(matrix, first=1)
    assert band.index.tolist() == [1, 2, 3]
    assert band["n"].tolist() == [3, 3, 1]
    assert band["value"].tolist() == [0.1, 0.3, 0.5]
    assert np.isnan(band.loc[3, "low"])
    assert (band.loc[:2, "low"] <= band.loc[:2, "high"]).all()


def test_comparison():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 30), rng.normal(2, 1, 30)
    found, reverse = compare(a, b), compare(b, a)
    assert found.difference.value == pytest.approx(b.mean() - a.mean())
    assert reverse.difference.value == pytest.approx(-found.difference.value)
    assert found.difference.low > 0
    u = scipy.stats.mannwhitneyu(b, a).statistic / 900
    assert found.probability.value == pytest.approx(u)
    assert reverse.probability.value == pytest.approx(1 - u)
    assert 0.5 < found.probability.low <= found.probability.high <= 1
    same = compare(a, a)
    assert same.probability.value == 0.5
    assert same.difference.low < 0 < same.difference.high


def test_pairing_removes_what_pairs_share():
    rng = np.random.default_rng(0)
    base = rng.normal(0, 5, 20)
    better = base + rng.normal(0.3, 0.1, 20)
    paired, apart = compare(base, better, paired=True), compare(base, better)
    assert paired.difference.low > 0 > apart.difference.low
    assert paired.probability.value == 1
    assert paired.difference.n == 20
    assert apart.difference.n == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"statistic": "mode"}, "mode"),
        ({"method": "normal"}, "normal"),
        ({"level": 95}, "95"),
        ({"resamples": 0}, "resample"),
        ({"strata": [1, 2]}, "stratum"),
        ({"missing": "drop"}, "drop"),
    ],
)
def test_mistakes_name_what_came(arguments, message):
    with pytest.raises(ValueError, match=message):
        interval(RUNS, **arguments)
