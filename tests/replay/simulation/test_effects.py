import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from benchmarks.local_tsp_effects import widths
from synthetic_runs import as_frame

import replay
from replay.simulation import effects
from replay.simulation.effects import (
    allocation_effect,
    effect,
    policy_effect,
    pool_effect,
    pool_errors,
    pool_interval,
    time_to_threshold,
)
from replay.simulation.shortfall import held_by
from replay.simulation.simulate import Replay
from replay.statistics.intervals import FloatArray, IntArray
from replay.statistics.jackknife import jackknife


def replayed(best_fitness: FloatArray, arms: IntArray) -> Replay:
    """A replay of which only its end is known."""
    nothing = np.zeros((len(arms), 0))
    return Replay(nothing.astype(int), best_fitness, arms, nothing, {})


def draws(n, arms, replicates, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n)[:arms] for _ in range(replicates)])


def test_effects_are_paired_and_add_up():
    rng = np.random.default_rng(1)
    runs = rng.random((15, 6)).cumsum(axis=1)
    arms = draws(15, 3, 500)
    single = replayed(runs[arms[:, 0]], arms)
    random = replayed(runs[arms].mean(axis=1), arms)
    best = replayed(runs[arms].max(axis=1), arms)
    pool, allocation = pool_effect(single, random), allocation_effect(random, best)
    total = policy_effect(single, best)
    assert pool.value + allocation.value == pytest.approx(total.value)
    assert allocation.low > 0
    nothing = effect(best, best)
    assert nothing.value == 0
    assert np.isnan(nothing.low)
    assert "equal" in nothing.note
    with pytest.raises(ValueError, match="drew different arms"):
        effect(single, replayed(best.best_fitness, arms[::-1]))


def test_pools_of_one_run_have_the_interval_of_the_runs():
    values = np.array([*range(-5, 0), 0, 0, *range(1, 6)], dtype=float)
    arms = draws(12, 12, 400).reshape(-1, 1)
    found = pool_interval(values[arms[:, 0]], arms)
    student = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    np.testing.assert_allclose([found.low, found.high], student, rtol=2e-3)
    assert found.n == 12


def test_the_lower_limit_leaves_room_for_pools_in_which_all_runs_are_stuck():
    """A third of the runs get stuck, and the best of four counts: Student's limit holds in 85 %."""
    rng, K, n = np.random.default_rng(5), 4, 20

    def runs(size):
        low = rng.random(size) < 0.35
        return np.where(low, 0.3, 0.9) + np.where(low, 0.3, 0.05) * rng.random(size)

    truth = runs((200_000, K)).max(axis=1).mean()
    held, students = [], []
    for _ in range(300):
        arms = draws(n, K, 400)
        values = runs(n)[arms].max(axis=1)
        found, kept = pool_interval(values, arms), jackknife(values[:, None], arms, n)
        below, _ = pool_errors(kept, "pool")
        held.append(found.low <= truth <= found.high)
        students.append(found.value - scipy.stats.t.ppf(0.975, n - 1) * below[0] <= truth)
        assert found.low >= values.min() or found.low == pytest.approx(values.min())
    assert np.mean(held) >= 0.94
    assert np.mean(students) < 0.9


@pytest.mark.parametrize("K", [1, 3])
def test_the_interval_moves_and_grows_with_the_unit_of_fitness(K):
    values, arms = np.random.default_rng(2).beta(2, 5, size=14), draws(14, K, 800)
    best = values[arms].max(axis=1)
    found, moved = pool_interval(best, arms), pool_interval(7 + 1e6 * best, arms)
    np.testing.assert_allclose([moved.low, moved.high], [7 + 1e6 * found.low, 7 + 1e6 * found.high])


def test_more_replicates_do_not_make_up_for_runs():
    values = np.random.default_rng(0).normal(size=20)
    few, many = (draws(20, 4, replicates) for replicates in (2_000, 40_000))
    found = [pool_interval(values[arms].max(axis=1), arms) for arms in (few, many)]
    widths = [each.high - each.low for each in found]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)
    assert widths[1] > 0.3


def test_the_interval_of_an_effect_is_students_over_the_jackknife():
    values, arms = np.random.default_rng(1).normal(size=15), draws(15, 3, 3_000)
    gain = values[arms].max(axis=1) - values[arms].mean(axis=1)
    found, kept = pool_interval(gain, arms, kind="effect"), jackknife(gain[:, None], arms, 15)
    half = effects.widths(15, 3).usual * scipy.stats.t.ppf(0.975, 14)
    half *= np.sqrt(kept.variance + kept.noise)[0]
    np.testing.assert_allclose([found.low, found.high], found.value + half * np.array([-1, 1]))


@pytest.mark.parametrize(
    ("arms", "note"),
    [
        (draws(4, 2, 50), "too small"),
        (draws(6, 6, 50), "every replicate drew all 6 runs"),
        (np.random.default_rng(0).integers(0, 8, (50, 3)), "with replacement"),
    ],
)
def test_pools_that_say_nothing_of_other_runs_have_no_interval(arms, note):
    found = pool_interval(np.random.default_rng(0).normal(size=8)[arms].max(axis=1), arms)
    assert np.isnan([found.low, found.high, found.coverage]).all()
    assert note in found.note


@pytest.mark.slow
def test_on_real_runs_the_half_widths_are_those_of_leaving_each_run_out():
    """A fast form of benchmarks/local_tsp_effects.py."""
    thompson, ucb1 = widths(["thompson", "ucb1"], 6_000)
    usual = effects.widths(24, 4).usual
    assert 0.8 < thompson.ratio / usual < 1.3
    assert 0.8 < ucb1.ratio / usual < 1.3
    assert thompson.effect > 0  # Thompson gains, of UCB1 nothing is known
    assert ucb1.low < 0


RUNS = np.maximum.accumulate(np.random.default_rng(4).beta(1, 4, size=(24, 33)), axis=1)


def test_where_a_pool_found_nothing_means_are_refused():
    runs = np.where(RUNS < 0.3, np.nan, RUNS)
    settings = {"rounds": 4, "arms": 4, "replicates": 200}
    played = [replay.simulate(runs, name, **settings) for name in ("single", "random")]
    found = pool_effect(*played)
    assert np.isnan([found.value, found.low, found.high]).all()
    assert "has no mean" in found.note


CURVES = np.array(
    [
        [0.0, 0.2, 0.6, 0.9],
        [0.0, 0.5, 0.6, 0.9],
        [0.0, 0.5, np.nan, np.nan],
        [np.nan, np.nan, 0.9, 0.9],
    ]
)


@pytest.mark.parametrize(
    ("tau", "share", "time", "reached"),
    [(0.5, 0.5, 1, 1.0), (0.5, 1.0, 2, 1.0), (0.9, 0.75, 3, 0.75), (0.9, 0.9, math.inf, 0.75)],
)
def test_quantiles_of_the_time(tau, share, time, reached):
    found = time_to_threshold(CURVES, tau, share=share, rule="share")
    assert (found.time, found.share_reached, found.n) == (time, reached, 4)
    assert np.isnan(found.low)  # four runs have no interval
    many = time_to_threshold(np.tile(CURVES, (10, 1)), tau, share=share, rule="share")
    assert many.time == time
    if share < 1:
        assert many.low <= many.time <= many.high


def test_frames_are_their_curves():
    rows = [
        {"run": f"r{run}", "generation": generation, "best_fitness": value}
        for run, curve in enumerate(CURVES)
        for generation, value in enumerate(curve)
    ]
    plain = time_to_threshold(CURVES, 0.5, share=0.5, rule="share")
    assert str(time_to_threshold(pd.DataFrame(rows), 0.5, share=0.5, rule="share")) == str(plain)


def test_the_papers_rule_is_a_quantile_of_resampled_mean_curves():
    rng = np.random.default_rng(0)
    curves = np.maximum.accumulate(rng.random((10, 30)), axis=1)
    found = time_to_threshold(curves, 0.9, resamples=4000)
    samples = np.random.default_rng(9).integers(0, 10, (4000, 10))
    share = (curves[samples].mean(axis=1) >= 0.9).mean(axis=0)
    assert found.time == pytest.approx(np.flatnonzero(share >= 0.9)[0], abs=1)
    assert found.low <= found.time <= found.high
    mean_reaches = np.flatnonzero(curves.mean(axis=0) >= 0.9)[0]
    assert found.time >= mean_reaches
    never = time_to_threshold(curves, 1.1)
    assert (never.time, never.share_reached, never.high) == (math.inf, 0, math.inf)
    assert "never" in str(never)


@pytest.mark.parametrize("n", [6, 20])
def test_the_papers_rule_holds_as_seldom_as_it_says(n):
    """Of skewed runs its time is enough less often than its share, and not less than stated."""
    rng = np.random.default_rng(n)
    values = 1 - rng.exponential(size=(600, n))  # their mean is 0, which the last column reaches
    enough = [
        time_to_threshold(np.c_[each, np.full(n, 9.0)], 0.0, resamples=400).time > 0
        for each in values
    ]
    found = time_to_threshold(np.c_[values[0], np.full(n, 9.0)], 0.0)
    assert found.held == held_by(n, 0.9)
    assert found.held - 0.04 < np.mean(enough) < 0.87
    assert f"in {100 * found.held:.0f} % of samples of {n} runs" in str(found)


def test_a_time_has_a_caveat_only_where_its_shortfall_was_measured():
    curves = np.maximum.accumulate(np.random.default_rng(0).random((8, 30)), axis=1)
    assert time_to_threshold(curves, 0.9).caveat
    assert not time_to_threshold(curves, 0.9, share=0.5).caveat
    assert not time_to_threshold(curves, 0.9, rule="share").caveat
    assert not time_to_threshold(curves[:4], 0.9).caveat


def test_of_a_replay_each_replicate_is_a_sample():
    rng = np.random.default_rng(0)
    runs = np.maximum.accumulate(rng.random((20, 40)), axis=1)
    arms = draws(20, 4, 1000)
    played = replayed(runs[arms].max(axis=1), arms)
    found = time_to_threshold(played, 0.95)
    share = (played.best_fitness >= 0.95).mean(axis=0)
    assert found.time == np.flatnonzero(share >= 0.9)[0] + 1
    assert found.low <= found.time <= found.high
    assert found.n == 20


@pytest.mark.parametrize("arguments", [{"share": 0}, {"rule": "mean"}, {"share": 1.5}])
def test_mistakes_name_what_came(arguments):
    with pytest.raises(ValueError, match=repr(next(iter(arguments.values())))):
        time_to_threshold(CURVES, 0.5, **arguments)


@pytest.mark.parametrize("scale", [1e300, -1e300])
def test_fitness_too_large_to_be_squared_is_refused_in_words(scale):
    best = np.maximum.accumulate(scale * np.random.default_rng(0).random((12, 9)), axis=1)
    frame = as_frame(best, children=2, seeds=range(12))
    halves = pd.concat(
        [
            as_frame(best / factor, children=2, seeds=range(at, at + 12)).assign(half=name)
            for name, factor, at in (("a", 1, 0), ("b", 2, 20))
        ]
    )
    for work in (
        lambda: replay.compete(frame, ["ucb1", "thompson_nig"], rounds=8, arms=3, replicates=60),
        lambda: replay.judge(frame, "thompson_nig", "single", arms=3),
        lambda: replay.judge(halves, {"half": "a"}, {"half": "b"}),
        lambda: replay.judge(halves, {"half": "a"}, {"half": "b"}, sequential=True),
        lambda: replay.diagnose(frame),
    ):
        with pytest.raises(ValueError, match=r"at most 1e\+150 in magnitude.*power of ten"):
            work()
    for policy in replay.POLICIES:
        found = replay.simulate(best, policy, rounds=8, replicates=20, arms=3)
        assert np.isfinite(found.best_fitness).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_pools_of_one_skewed_run_lean_to_the_side_to_which_the_runs_do(sign):
    values = sign * np.array([0.0, 0.1, 0.1, 0.2, 0.2, 0.3, 2.0])
    arms = draws(7, 7, 400).reshape(-1, 1)
    found, alone = pool_interval(values[arms[:, 0]], arms), replay.interval(values)
    assert sign * (alone.high + alone.low - 2 * alone.value) > 0.1
    assert [found.low, found.high] == pytest.approx([alone.low, alone.high], rel=0.01)


def test_widths_of_effects_are_those_of_the_table_and_between_them():
    assert effects.widths(10, 2).usual < effects.widths(10, 5).usual
    assert effects.widths(12, 3).worst == pytest.approx(
        np.interp(12, [10, 15], [effects.widths(10, 2.5).worst, effects.widths(15, 3.75).worst])
    )
    for n, K in ((5, 2), (10, 3), (40, 2), (200, 10)):
        usual, worst, least = effects.widths(n, K)
        assert 1 <= usual <= worst
        assert 0.5 < least <= 0.95
