"""Two groups of runs: difference of means, and probability of improvement."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy import stats
from synthetic_runs import as_frame

import replay
from replay.statistics.comparison import compare
from replay.statistics.exchange import exchange

SIZES = [(5, 5), (6, 6), (20, 5), (7, 12), (40, 10)]


def groups(n, m, seed=0):
    rng = np.random.default_rng([seed, n, m])
    return rng.lognormal(size=n), 0.3 + 4 * rng.normal(size=m)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_probability_of_improvement_is_mann_and_whitneys(n, m):
    left, right = groups(n, m)
    found = compare(left, right)
    u = stats.mannwhitneyu(right, left).statistic
    assert found.probability.value == pytest.approx(u / (n * m))
    tied = compare(np.round(left), np.round(right)).probability.value
    assert tied == pytest.approx(
        stats.mannwhitneyu(np.round(right), np.round(left)).statistic / n / m
    )


RUNS = np.random.default_rng(3).gamma(2.0, 1.0, size=12)


def test_ties_count_half_in_the_probability_of_improvement():
    a, b = [0.0, 0.0, 1.0, 1.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0, 2.0]
    wins = scipy.stats.mannwhitneyu(b, a).statistic
    assert compare(a, b).probability.value == pytest.approx(wins / 30)
    assert compare(a[:5], b, paired=True).probability.value == pytest.approx((3 + 1) / 5)


def test_comparisons_are_welchs_and_mirror():
    a, b = RUNS[:6], RUNS[6:] + 0.5
    found, reverse = compare(a, b), compare(b, a)
    welch = scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval()
    np.testing.assert_allclose([found.difference.low, found.difference.high], welch)
    assert reverse.difference.value == pytest.approx(-found.difference.value)
    assert reverse.probability.value == pytest.approx(1 - found.probability.value)
    assert 0 <= found.probability.low <= found.probability.value <= found.probability.high <= 1
    few = compare(a[:4], b)
    assert np.isnan(few.difference.low)
    assert "needs 5" in few.difference.note


@pytest.mark.parametrize(("n", "m"), [(5, 12), (12, 5), (6, 40)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_of_two_groups_is_the_wider_of_welchs_and_the_exchanges(n, m, level):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=n), 1 + 5 * rng.normal(size=m)
    found = compare(a, b, level=level).difference
    welch = scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(level)
    free = exchange(b, a, level=level)
    wider = [min(welch.low, free.low), max(welch.high, free.high)]
    np.testing.assert_allclose([found.low, found.high], wider)
    assert found.n == n + m


def test_pairs_take_out_what_runs_share():
    rng = np.random.default_rng(0)
    base = rng.normal(size=12)
    better = base + 0.1 + 0.01 * rng.normal(size=12)
    paired, apart = compare(base, better, paired=True), compare(base, better)
    assert paired.difference.low > 0 > apart.difference.low
    assert paired.probability.value == 1
    assert paired.probability.low == pytest.approx(0.025 ** (1 / 12))
    with pytest.raises(ValueError, match="equal length"):
        compare(base, better[1:], paired=True)


def test_separated_groups_have_limits_from_as_many_pairs():
    low, high = np.arange(5.0), np.arange(11.0, 18.0)
    found = compare(low, high)
    welch = scipy.stats.ttest_ind(high, low, equal_var=False).confidence_interval()
    assert found.difference.low <= welch.low
    assert found.difference.high >= welch.high
    sure = scipy.stats.binomtest(5, 5).proportion_ci()
    np.testing.assert_allclose([found.probability.low, found.probability.high], sure)
    turned = compare(high, low).probability
    assert (turned.value, turned.low, turned.high) == (0, 0, pytest.approx(1 - sure.low))
    assert found.probability.note == ""
    flat = compare([1.0] * 5, [2.0] * 5)
    assert "all values of a group are equal" in flat.difference.note
    assert flat.probability.low > 0.4


def test_an_interval_of_the_probability_is_delongs_around_mann_and_whitneys():
    """Placement values by hand: how much of the other side each run beats, or is beaten by."""
    a, b = [0.0, 1.0, 2.0, 5.0, 7.0], [1.5, 3.0, 4.0, 6.0, 8.0, 9.0]
    beaten = [sum(y > x for y in b) / 6 for x in a]
    beats = [sum(y > x for x in a) / 5 for y in b]
    spread = scipy.stats.ttest_ind(beats, beaten, equal_var=False).confidence_interval(0.9)
    # The half-width of the difference of both means is that of their common mean.
    half = (spread.high - spread.low) / 2
    found = compare(a, b, level=0.9).probability
    assert found.value == pytest.approx(np.mean(beats)) == pytest.approx(np.mean(beaten))
    assert found.low == pytest.approx(max(found.value - half, 0))
    assert found.high == pytest.approx(min(found.value + half, 1))
    assert (found.n, found.level, found.statistic) == (11, 0.9, "probability of improvement")


@pytest.mark.parametrize("n", [1, 4])
def test_below_five_runs_only_clopper_and_pearsons_interval_exists(n):
    a, b = np.arange(n, dtype=float), np.arange(n) + 0.5
    pairs = compare(a, b, paired=True)
    assert np.isnan(pairs.difference.low)
    exact = scipy.stats.binomtest(n, n).proportion_ci()
    assert (pairs.probability.low, pairs.probability.high) == (pytest.approx(exact.low), 1)
    apart = compare(a, b + n).probability  # every run of b beats every one of a
    assert (apart.low, apart.high) == (pytest.approx(exact.low), 1)
    mixed = compare([0.0, 2.0, 3.0, 5.0], [1.0, 1.0, 4.0, 9.0])
    for found in (mixed.difference, mixed.probability):
        assert np.isnan([found.low, found.high, found.coverage]).all()
        assert found.note == "n = 4 is too small for an interval (needs 5)"


def test_equal_runs_on_both_sides_have_no_spread_to_judge_by():
    found = compare([0.5] * 6, [0.5] * 7)
    assert (found.difference.value, found.probability.value) == (0, 0.5)
    for each in (found.difference, found.probability):
        assert np.isnan(each.low)
        assert each.note == "all values are equal: no spread to judge by"


@pytest.mark.parametrize(
    ("a", "b", "paired", "message"),
    [
        ([], [1.0], False, "at least one run"),
        ([1.0], [], False, "at least one run"),
        ([], [], True, "at least one run"),
        ([1.0, 2.0], [1.0], True, r"two vectors of equal length, got shapes \(2,\) and \(1,\)"),
        ([[1.0], [2.0]], [1.0], False, r"expected two vectors, got shapes \(2, 1\) and \(1,\)"),
        ([1.0, np.nan], [1.0], False, "1 of 2 runs have NaN"),
        ([1.0], [0.0, -np.inf], False, "a run in which nothing was ever ok has no mean"),
    ],
)
def test_sides_that_cannot_be_compared_are_refused(a, b, paired, message):
    with pytest.raises(ValueError, match=message):
        compare(a, b, paired=paired)


def test_a_level_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        compare([1.0], [2.0], level=1.0)


def test_pairs_have_limits_where_a_judge_of_pairs_gives_some() -> None:
    a, b = np.random.default_rng(3).random((2, 9))
    for n in range(2, 9):
        found = compare(a[:n], b[:n], paired=True).difference
        sides = {"x": a[:n], "y": b[:n]}
        parts = [
            as_frame(np.column_stack([0 * ends, ends]), children=4, seeds=range(n)).assign(
                search=name, run=lambda part, name=name: name + part["run"]
            )
            for name, ends in sides.items()
        ]
        frame = pd.concat(parts, ignore_index=True)
        judged = replay.judge(frame, {"search": "y"}, {"search": "x"})
        assert judged.interval.value == pytest.approx(found.value)
        assert np.isnan(found.low) == np.isnan(judged.interval.low) == (n < 6)
        assert ("needs 6" in found.note) == ("needs 6" in judged.interval.note) == (n < 6)
