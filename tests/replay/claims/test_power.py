import numpy as np
import pandas as pd
import pytest
from benchmarks.power_bands import A, B, as_frame, stated
from scipy.stats import nct, norm, t

import replay
from replay.claims.decision import VERDICTS, decide, power_band, shrunk
from replay.claims.decision import power as power_at
from replay.claims.power import _drawn, _judged, _Pilot, _pooled, _rows, _shares, power
from replay.statistics.groups import compare_groups


def pilot(seed=0, n=10, effect=1.0):
    rng = np.random.default_rng(seed)
    return as_frame(rng.normal(effect, 1, n), rng.normal(0, 1, n))


@pytest.mark.thorough
def test_what_is_stated_comes_true_in_studies_drawn_from_the_pilot():
    """A fast form of benchmarks/power_bands.py, which judges 400 studies."""
    rng = np.random.default_rng(1)
    left, right = rng.normal(0.9, 1, 10), rng.normal(0, 1, 8)
    said = stated(power(as_frame(left, right), A, B, runs=14, studies=300), 14)["probability"]
    pilot_of = compare_groups(left, right)
    left = left - pilot_of.value + shrunk(pilot_of.value, pilot_of.error)
    studies = [(rng.choice(left, 14), rng.choice(right, 14)) for _ in range(300)]
    found = [compare_groups(*each).p_greater <= 0.025 for each in studies]
    assert np.mean(found) == pytest.approx(said, abs=0.1)
    judged = [replay.judge(as_frame(*each), A, B).verdict for each in studies[:12]]
    assert [verdict == "greater" for verdict in judged] == found[:12]


def test_large_pilots_state_the_power_of_the_t_test():
    frame = pilot(2, n=200, effect=0.8)
    values = frame[frame["generation"] == 1].groupby("model")["best_fitness"]
    sizes = values.std().pow(2).mean() ** 0.5
    away = (values.mean()["a"] - values.mean()["b"]) / sizes * np.sqrt(15 / 2)
    expected = 1 - nct.cdf(t.ppf(0.975, 28), 28, away)
    row = stated(power(frame, A, B, runs=15, studies=200), 15)
    assert row["probability"] == pytest.approx(expected, abs=0.1)
    assert row["low"] <= expected <= row["high"]
    assert row["high"] - row["low"] < 0.4


def normal_pilot(least=5):
    """A pilot whose studies are normal with a standard error of .2 and limits two of them away."""

    def studies(n, count, rng):
        value = 0.5 + 0.2 * rng.standard_normal(count)
        return zip(value, value - 0.4, value + 0.4, strict=True)

    return _Pilot(
        effect=0.5,
        error=0.4,
        freedom=3.0,
        inflation=1.5,
        unit="runs",
        least=least,
        studies=studies,
        kurtosis=0.0,
    )


def rows_of(pilot, n, band, studies):
    drawn = _drawn(pilot, n, studies, seed=0, progress=False)
    return list(_rows(pilot, n, drawn, margin=0.0, band=band, seed=0))


def test_bands_are_those_of_students_t_and_chi_squared():
    """In closed form: the effect moves by t errors, and studies spread by 1.5 times their own."""
    rows = rows_of(normal_pilot(), 8, band=0.6, studies=3000)
    greater = next(row for row in rows if row["verdict"] == "greater")
    rng = np.random.default_rng(1)
    spread = np.sqrt(3 / rng.chisquare(3, 100_000))
    effect = 0.5 + 0.4 * spread * rng.standard_normal(100_000)
    open_to = norm.cdf(effect / (0.2 * 1.5 * spread) - 2)
    less = 0.5 * (1 - (0.4 / 0.5) ** 2)
    assert greater["probability"] == pytest.approx(norm.cdf(less / 0.2 - 2), abs=0.03)
    ends = [greater["low"], greater["high"]]
    np.testing.assert_allclose(ends, np.quantile(open_to, [0.2, 0.8]), atol=0.03)


@pytest.mark.parametrize(("runs", "settled"), [(4, False), (5, True)])
def test_the_least_number_of_runs_may_settle(runs, settled):
    rows = rows_of(normal_pilot(least=5), runs, band=0.8, studies=200)
    assert (rows[0]["high"] > 0.5) == settled


def test_verdicts_are_counted_by_the_rule_that_decides():
    low, high = np.array([[0.1, 0.1, -0.3, -0.2, -0.2]]), np.array([[0.3, 0.2, -0.1, 0.2, 0.3]])
    for margin in (0.0, 0.25):
        found = _shares(low, high, margin)[:, 0]
        verdicts = [decide(*each, margin) for each in zip(low[0], high[0], strict=True)]
        np.testing.assert_allclose(found, [verdicts.count(each) / 5 for each in VERDICTS])


def test_small_pilots_leave_the_power_open():
    narrow = stated(power(pilot(3, n=100), A, B, runs=12, studies=100), 12)
    wide = stated(power(pilot(3, n=6), A, B, runs=12, studies=100), 12)
    assert wide["high"] - wide["low"] > 1.5 * (narrow["high"] - narrow["low"])


def test_probabilities_of_the_verdicts_sum_to_one_and_grow_with_the_runs():
    table = power(pilot(4, effect=1.5), A, B, runs=[6, 12, 24], studies=60)
    np.testing.assert_allclose(table.groupby("runs")["probability"].sum(), 1)
    assert set(table["verdict"]) == {"greater", "less", "undetermined"}
    greater = table[table["verdict"] == "greater"]
    assert greater["probability"].is_monotonic_increasing
    assert ((table["low"] <= table["high"]) & (table["low"] >= 0) & (table["high"] <= 1)).all()


def test_a_margin_adds_the_verdict_within_it():
    rng = np.random.default_rng(5)
    frame = as_frame(rng.normal(0, 0.1, 12), rng.normal(0, 0.1, 12))
    table = power(frame, A, B, runs=20, margin=0.5, studies=40)
    row = table[table["verdict"] == "within margin"].iloc[0]
    assert row["probability"] == 1
    assert row["low"] > 0.9


def test_runs_of_equal_seeds_are_drawn_as_pairs():
    """Pairs differ by little although runs differ by much: unpaired, nothing would be found."""
    rng = np.random.default_rng(6)
    level = rng.normal(0, 10, 12)
    frame = as_frame(level + rng.normal(0.5, 0.3, 12), level)
    frame["seed"] %= 1000
    row = stated(power(frame, A, B, runs=10, studies=60), 10)
    assert row["unit"] == "pairs"
    assert row["probability"] > 0.9


def test_fewer_runs_than_any_verdict_needs_settle_nothing():
    table = power(pilot(7, effect=9), A, B, runs=[4, 8], studies=20)
    few = table[table["runs"] == 4].set_index("verdict")["probability"]
    assert few["undetermined"] == 1
    assert stated(table, 8)["probability"] == 1


def test_pooled_sides_have_both_tails():
    rng = np.random.default_rng(8)
    quiet = np.r_[np.zeros(11), 1e-3]
    frame = as_frame(rng.normal(2, 1, 12), quiet)
    own, both = (power(frame, A, B, runs=8, studies=40, pooled=p, seed=1) for p in (False, True))
    assert not own.equals(both)


def test_policies_are_judged_on_pools_drawn_from_the_pilot():
    from synthetic_runs import as_frame as runs

    rng = np.random.default_rng(9)
    rate = np.where(np.arange(20) % 2, 0.0, 0.02)[:, None]
    best = 0.1 + rate * np.arange(21) + 0.001 * rng.random((20, 1))
    frame = runs(best, children=1, seeds=range(20))
    table = power(frame, "best_arm", "round_robin", runs=[20], studies=12, arms=4)
    assert stated(table, 20)["probability"] > 0.8
    assert set(table["unit"]) == {"runs"}


def policy_runs(seed, n=10):
    """Runs that jump now and then, so that a run that stands twice in a pool moves the effect."""
    from synthetic_runs import as_frame as runs

    rng = np.random.default_rng(seed)
    jumps = (rng.random((n, 16)) < 0.3).cumsum(axis=1) * rng.random((n, 1))
    return runs(np.c_[np.zeros(n), jumps], children=1, seeds=range(n))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_stated_of_policies_lies_within_its_band(seed):
    table = power(
        policy_runs(seed), "thompson", "single", runs=[10, 30], arms=5, studies=60, progress=False
    )
    assert (table["low"] <= table["probability"]).all()
    assert (table["probability"] <= table["high"]).all()


def test_bands_hold_the_power_at_the_effect_that_was_seen():
    for effect in (0.0, 0.02, 0.1, 0.5, 2.0):
        low, high = power_band(effect, 0.5, 9.0, 40.0)
        assert low <= power_at(effect, 0.5 / 40**0.5, 9.0 * 40) <= high


def test_a_bar_shows_how_far_the_studies_are(capsys):
    power(pilot(), A, B, runs=8, studies=5, progress=True)
    assert "studies of 8 runs" in capsys.readouterr().err
    power(pilot(), A, B, runs=8, studies=5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"runs": 1}, "runs: expected at least 2, got 1"),
        ({"runs": []}, "expected numbers of runs"),
        ({"runs": 8, "band": 1.5}, "band between 0 and 1"),
        ({"runs": 8, "margin": -1}, "margin of 0 or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        power(pilot(), A, B, **settings)


def test_a_policy_is_not_compared_with_a_group():
    with pytest.raises(ValueError, match="two policies or two"):
        power(pilot(), "ucb1", B, runs=8)


def test_the_same_seed_gives_the_same_table():
    pd.testing.assert_frame_equal(*(power(pilot(), A, B, runs=8, studies=20) for _ in range(2)))


def test_pooled_sides_keep_their_own_mean_and_spread():
    rng = np.random.default_rng(3)
    left, right = rng.lognormal(0, 1, 9), 5 + 0.1 * rng.normal(size=14)
    for pooled, own in zip(_pooled(left, right), (left, right), strict=True):
        assert len(pooled) == 23
        assert [pooled.mean(), pooled.std()] == pytest.approx([own.mean(), own.std()])
    one, other = (pooled - pooled.mean() for pooled in _pooled(left, right))
    np.testing.assert_allclose(one / one.std(), other / other.std())


@pytest.mark.parametrize("pairs", [0, 7])
@pytest.mark.thorough
def test_a_simulated_study_settles_where_judging_it_rejects_and_nowhere_else(pairs):
    """Its limits use other exchanges than those that decide, so they are moved across zero."""
    rng = np.random.default_rng(4)
    settled = 0
    for _ in range(150):
        left, right = rng.exponential(1.6, 7), rng.exponential(1.0, 7)
        _, low, high = _judged(left, right, pairs, 0.6, 0.95, False, 0)
        found = compare_groups(left, right, pairs=pairs)
        above, below = found.p_greater, found.p_less
        assert (low > 0, high < 0) == (above <= 0.025, below <= 0.025)
        settled += low > 0
    assert 5 < settled < 100
