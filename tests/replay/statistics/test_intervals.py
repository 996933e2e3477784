import csv
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import chain_runs

import replay
import replay.statistics.intervals
from replay.statistics.comparison import compare
from replay.statistics.intervals import Interval, curve_band, interval

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from interval_coverage import DISTRIBUTIONS, coverage

RUNS = np.random.default_rng(3).gamma(2.0, 1.0, size=12)
STATISTICS = ("mean", "median", 0.8)


def shipped():
    with Path(replay.statistics.intervals.__file__).with_name("coverage.csv").open() as file:
        return list(csv.DictReader(file))


def limits(found):
    return np.array([found.value, found.low, found.high])


def test_symmetric_runs_have_students_interval_and_a_long_tail_stretches_it():
    values = np.linspace(-3, 3, 12)
    student = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    np.testing.assert_allclose(limits(interval(values))[1:], student)
    tail = np.array([0.0, 0.0, 0.1, 0.2, 5.0] + [0.1] * 7)
    student = scipy.stats.ttest_1samp(tail, 0).confidence_interval()
    found = interval(tail)
    assert found.low == pytest.approx(student.low)
    assert found.high > student.high + 0.5
    np.testing.assert_allclose(limits(interval(-tail)), -limits(found)[[0, 2, 1]])


def test_the_stretch_is_by_the_skewness_and_fades_as_runs_are_added():
    weights = ((8, 2.25, 1.22), (10, 2.25, 1), (15, 1.0, 1), (20, 0.75, 1), (40, 0.3, 1),
               (200, 0.055, 1))  # fmt: skip
    for n, weight, factor in weights:
        values = np.random.default_rng(n).exponential(size=n)
        error = values.std(ddof=1) / np.sqrt(n)
        skewness = ((values - values.mean()) ** 3).mean() / values.std(ddof=1) ** 3
        half = factor * scipy.stats.t.ppf(0.975, n - 1) * error
        found = interval(values)
        assert found.high - found.value == pytest.approx(half * (1 + weight * skewness))
        assert found.value - found.low == pytest.approx(half)


def test_a_mean_says_what_it_cannot_cover_and_a_median_needs_not():
    values = np.random.default_rng(0).normal(size=12)
    assert "one run in 4 does may be absent" in interval(values).caveat
    assert "rarer than 1 run in 4: not covered" in str(interval(values))
    assert interval(values, "median").caveat == ""
    assert interval(values[:3]).caveat == ""


@pytest.mark.parametrize(("statistic", "least"), [("mean", 5), ("median", 6), (0.9, 29), (0.1, 29)])
def test_below_its_n_a_statistic_has_no_interval_and_says_so(statistic, least):
    values = np.random.default_rng(0).normal(size=least)
    assert np.isfinite(limits(interval(values, statistic))).all()
    few = interval(values[1:], statistic)
    assert np.isnan([few.low, few.high, few.coverage]).all()
    assert f"needs {least}" in few.note
    assert np.isfinite(few.value)
    assert str(few).count(few.note) == str(few).count("n = ") == 1


@pytest.mark.parametrize("statistic", STATISTICS)
def test_equal_values_have_no_interval(statistic):
    found = interval([0.3] * 40, statistic)
    assert found.value == pytest.approx(0.3)
    assert np.isnan(found.low)
    assert "all values are equal" in found.note


def test_order_statistics_hold_the_median_as_often_as_the_binomial_says():
    values = np.arange(10.0)
    found = interval(values, "median")
    assert (found.low, found.high) == (1, 8)  # 97.9 %; 2 to 8 would hold it in 93.5 %
    assert limits(interval(np.full(30, -np.inf), "median"))[0] == -np.inf


@given(
    st.lists(st.floats(-3, 3), min_size=6, max_size=30),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from([-5.0, 0.0, 5.0]),
    st.sampled_from(["mean", "median"]),
)
def test_intervals_move_with_the_scale(values, a, b, statistic):
    runs = np.round(np.array(values), 3)  # apart by more than rounding, or equal
    found, moved = interval(runs, statistic), interval(a * runs + b, statistic)
    if np.ptp(runs) > 0:
        np.testing.assert_allclose(limits(moved), a * limits(found) + b, atol=1e-9 * (1 + a))


def test_runs_without_any_fitness_have_a_median_and_no_mean():
    values = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -np.inf]
    found = interval(values, "median")
    assert found.value == pytest.approx(0.35)
    assert found.low == -np.inf
    with pytest.raises(ValueError, match="has no mean"):
        interval(values)
    assert interval([-np.inf] * 4 + [1.0] * 3, 0.2).value == -np.inf


def test_shares_are_clopper_and_pearsons_at_any_n():
    for hits, n in ((0, 1), (3, 3), (2, 7), (40, 50)):
        found = interval(np.arange(n) < hits, "share")
        exact = scipy.stats.binomtest(hits, n).proportion_ci()
        np.testing.assert_allclose([found.low, found.high], exact, atol=1e-12)
    with pytest.raises(ValueError, match="zeros and ones"):
        interval([0.5, 1.0], "share")


def test_betting_stays_in_the_unit_interval_and_narrows_with_runs():
    rng = np.random.default_rng(0)
    few, many = (interval(rng.beta(0.2, 2, n), method="betting") for n in (10, 200))
    assert 0 <= few.low < many.low < many.value < many.high < few.high <= 1
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        interval([0.2] * 5 + [1.5], method="betting")


@pytest.mark.parametrize("statistic", STATISTICS)
def test_columns_are_treated_one_by_one_and_missing_runs_left_out(statistic):
    matrix = np.random.default_rng(0).normal(size=(40, 3))
    matrix[3, 1] = matrix[5, 2] = matrix[6, 2] = np.nan
    together = interval(matrix, statistic, missing="omit")
    for column in range(3):
        alone = interval(matrix[~np.isnan(matrix[:, column]), column], statistic)
        at = [together.value[column], together.low[column], together.high[column]]
        np.testing.assert_allclose(at, limits(alone))
        assert (together.n[column], together.coverage[column]) == (alone.n, alone.coverage)
    with pytest.raises(ValueError, match="3 of 40 runs have NaN"):
        interval(matrix, statistic)


def test_labels_are_the_worst_coverage_that_was_measured():
    rows = shipped()
    for row in rows:
        if (row["kind"], row["level"]) == ("mean", "0.95"):
            values = np.random.default_rng(0).normal(size=int(row["n"]))
            worst = min(0.95, *(float(row[name]) for name in DISTRIBUTIONS))
            assert interval(values).coverage == worst
            assert f"{100 * worst:.0f} % interval" in str(interval(values))
    five = next(row for row in rows if (row["kind"], row["level"]) == ("mean", "0.95"))
    assert five["n"] == "5"
    assert float(five["normal"]) >= 0.93


@pytest.mark.parametrize("least", [0.5, 0.87, 0.94])
def test_an_interval_of_nominal_level_says_what_it_covered_at_least(least):
    made = Interval(value=0.0, low=-1.0, high=1.0, n=12, coverage=0.95, least=least)
    nominal, covered = re.findall(r"(\d+) %", made.label)
    assert (int(nominal) / 100, int(covered) / 100) == (made.level, least)
    assert "at least" not in Interval(value=0.0, low=-1.0, high=1.0, n=12, least=0.95).label


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("kind", ["mean", "median", "difference"])
def test_shipped_coverages_are_what_simulation_finds(kind, name):
    n = 6 if kind == "median" else 5
    [row] = [
        row for row in shipped() if (row["kind"], row["level"], row["n"]) == (kind, "0.95", str(n))
    ]
    found = coverage(kind, name, n, 0.95, 1500, seed=9)
    assert found == pytest.approx(float(row[name]), abs=0.035)


@pytest.mark.parametrize(
    ("n", "cost"), [(5, 4.7), (6, 3.2), (7, 2.5), (8, 1.8), (9, 1.6), (10, 1.44), (15, 1.19)]
)
def test_the_cost_in_width_for_normal_runs_is_the_one_that_is_stated(n, cost):
    values = np.random.default_rng(n).normal(size=(n, 4000))
    found = interval(values)
    half = scipy.stats.t.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    assert (found.high - found.low).mean() / (2 * half).mean() == pytest.approx(cost, rel=0.05)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.9, 1.0]), min_size=1, max_size=12), st.data())
def test_limits_stay_within_the_bounds_of_scores(values, data):
    """A mean, a median or a quantile of shares of solved instances is a share itself."""
    statistic = data.draw(st.sampled_from(["mean", "median", 0.9]))
    own, within = interval(values, statistic), interval(values, statistic, bounds=(0.0, 1.0))
    assert str(within) == str(own.within((0.0, 1.0)))
    if not np.isnan(own.low):
        assert 0 <= within.low <= within.value <= within.high <= 1
        assert (within.low, within.high) == (max(own.low, 0), min(own.high, 1))


def test_bounds_that_do_not_hold_are_refused():
    with pytest.raises(
        ValueError, match=r"around all values, from 0\.2 to 1\.5, got \(0\.0, 1\.0\)"
    ):
        interval([0.2, 1.5], bounds=(0.0, 1.0))


def test_bands_keep_to_the_bounds_and_have_gaps_where_runs_are_few():
    matrix = np.maximum.accumulate(np.random.default_rng(0).beta(2, 0.3, size=(8, 6)), axis=1)
    matrix[4:, 4:] = np.nan
    band = curve_band(matrix, statistic="mean", first=1, bounds=(0.0, 1.0))
    assert band.index.tolist() == [1, 2, 3, 4, 5, 6]
    assert band["n"].tolist() == [8, 8, 8, 8, 4, 4]
    assert band["high"].max() <= 1
    for column in range(4):  # as of any mean of the same runs
        alone = interval(matrix[:, column], bounds=(0.0, 1.0))
        limits = [*band.loc[column + 1, ["low", "high"]]]
        assert limits == pytest.approx([alone.low, alone.high])
    assert band["low"].isna().tolist() == [False] * 4 + [True] * 2
    mirrored = curve_band(-matrix, statistic="mean", first=1, bounds=(-1.0, 0.0))
    np.testing.assert_allclose(mirrored["low"], -band["high"])


@pytest.mark.parametrize("power", [-1000, -300, 300, 990])
def test_no_power_of_two_changes_an_interval(power):
    """Fitness of 1e300 or of 1e-300 neither overflows nor vanishes in squares."""
    scale = 2.0**power
    np.testing.assert_array_equal(limits(interval(scale * RUNS)), scale * limits(interval(RUNS)))
    for paired in (True, False):
        one = compare(RUNS[:6], RUNS[6:], paired=paired)
        other = compare(scale * RUNS[:6], scale * RUNS[6:], paired=paired)
        np.testing.assert_array_equal(limits(other.difference), scale * limits(one.difference))


@pytest.mark.parametrize("q", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("n", [9, 10, 16, 23, 40])
def test_order_statistics_are_the_closest_pair_that_holds_and_then_the_most_central(n, q):
    """Against every pair, with SciPy's binomial."""
    binomial = scipy.stats.binom(n, q)
    pairs = []
    for first in range(n):
        for last in range(first + 1, n):
            below, above = binomial.cdf(first), 1 - binomial.cdf(last)
            if 1 - below - above >= 0.95:
                pairs.append((last - first, round(abs(below - above), 12), first, last))
    found = interval(np.arange(float(n)), q if q != 0.5 else "median")
    if not pairs:
        assert np.isnan(found.low)
        return
    width, balance, *_ = min(pairs)
    best = [(first, last) for *rank, first, last in pairs if rank == [width, balance]]
    assert (found.low, found.high) in best


@pytest.mark.parametrize("q", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("n", [5, 12, 31])
def test_a_quantile_is_linear_between_runs(n, q):
    values = np.random.default_rng(n).normal(size=n)
    assert interval(values, q).value == pytest.approx(np.quantile(values, q))


def test_betting_knows_at_each_run_only_those_before():
    """Waudby-Smith and Ramdas' hedged bets, one run after the other in plain Python."""
    values = np.random.default_rng(4).beta(0.5, 1.0, 15)
    n, bar = len(values), np.log(2 / 0.05)
    held = []
    for mean in np.linspace(0, 1, 1001)[1:-1]:
        total, squares, variance = 0.5, 0.25, 0.25
        gains = [[0.0], [0.0]]
        for k, value in enumerate(values, start=1):
            stake = np.sqrt(2 * bar / (n * variance))
            up, down = min(stake, 0.5 / mean), min(stake, 0.5 / (1 - mean))
            gains[0].append(gains[0][-1] + np.log1p(up * (value - mean)))
            gains[1].append(gains[1][-1] + np.log1p(-down * (value - mean)))
            total += value
            squares += (value - total / (k + 1)) ** 2
            variance = squares / (k + 1)
        if max(*gains[0][1:], *gains[1][1:]) < bar:
            held.append(mean)
    found = interval(values, method="betting")
    assert found.low == pytest.approx(held[0] - 0.001)
    assert found.high == pytest.approx(held[-1] + 0.001)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.0}, "between 0 and 1"),
        ({"statistic": "mode"}, "expected a statistic"),
        ({"statistic": 1.5}, "expected a statistic"),
        ({"method": "jackknife"}, "expected a statistic"),
        ({"missing": "drop"}, "expected missing"),
    ],
)
def test_mistakes_are_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        interval(RUNS, **arguments)


def test_no_runs_are_told():
    for nothing in ([], np.empty((0, 2))):
        with pytest.raises(ValueError, match="at least one run"):
            interval(nothing)


@pytest.mark.parametrize("q", [0.1, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9])
def test_a_quantile_says_from_how_many_runs_on_it_has_an_interval(q):
    statistic = "median" if q == 0.5 else q
    least = next(
        n for n in range(2, 99) if np.isfinite(interval(np.arange(float(n)), statistic).low)
    )
    for n in (2, least - 1):
        assert f"needs {least})" in interval(np.arange(float(n)), statistic).note


@pytest.mark.parametrize("level", [0.0, 1.0, 95, float("nan")])
def test_no_verb_takes_a_level_that_is_no_share(level) -> None:
    frame, _ = chain_runs(sizes=(1, 2, 4), budget=8, seeds=range(6))
    fitness = replay.fitness_matrix(frame[frame["children"] == 1])
    single, ucb1 = (
        replay.simulate(fitness, name, rounds=8, arms=2, replicates=50)
        for name in ("single", "ucb1")
    )
    verbs = {
        "judge": lambda: replay.judge(frame, {"children": 1}, {"children": 2}, level=level),
        "power": lambda: replay.power(frame, {"children": 1}, {"children": 2}, runs=9, level=level),
        "diagnose": lambda: replay.diagnose(frame, level=level),
        "depth_breadth": lambda: replay.depth_breadth(frame, level=level),
        "envelope": lambda: replay.envelope(frame, level=level),
        "fit_bilinear": lambda: replay.fit_bilinear(frame, level=level),
        "interval": lambda: replay.interval([0.1, 0.2], level=level),
        "pool_interval": lambda: replay.pool_interval(single, single.arms, level=level),
        "pool_effect": lambda: replay.pool_effect(single, ucb1, level=level),
        "policy_effect": lambda: replay.policy_effect(single, ucb1, level=level),
        "allocation_effect": lambda: replay.allocation_effect(single, ucb1, level=level),
    }
    takes = {
        name
        for name in replay.__all__
        if inspect.isfunction(verb := getattr(replay, name))
        and "level" in inspect.signature(verb).parameters
    }
    assert takes == set(verbs)
    for verb in verbs.values():
        with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
            verb()


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_values_whose_sums_may_be_infinite_are_refused(statistic: str) -> None:
    values = np.array([0.1, 0.5, -0.3, 0.4, 0.2, 0.6, 0.7])
    with pytest.raises(ValueError, match=r"expected values from -1e\+300 to 1e\+300, got 1e\+307"):
        replay.interval(values * 1e308, statistic)
    assert np.isfinite(replay.interval(values * 1e300, statistic).high)


def test_a_quantile_has_the_words_of_the_median_and_no_caveat_of_means() -> None:
    values = np.random.default_rng(0).random(20)
    for of in (0.5, 0.7, "median", "share"):
        found = interval(values.round() if of == "share" else values, of)
        assert found.caveat == ""
        assert "not covered" not in str(found)
    assert "not covered" in str(interval(values))
