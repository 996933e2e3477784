import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import replay
from replay.simulation.effects import (
    allocation_effect,
    effect,
    pool_effect,
    time_to_threshold,
)
from replay.statistics.intervals import FloatArray, IntArray


@dataclass
class Played:
    """A replay as the statistics see it."""

    best_fitness: FloatArray
    arms: IntArray


def draws(n, arms, replicates, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n)[:arms] for _ in range(replicates)])


def test_effects_are_paired_and_add_up():
    rng = np.random.default_rng(1)
    runs = rng.random((15, 6)).cumsum(axis=1)
    arms = draws(15, 3, 500)
    single = Played(runs[arms[:, 0]], arms)
    random = Played(runs[arms].mean(axis=1), arms)
    best = Played(runs[arms].max(axis=1), arms)
    pool, allocation = pool_effect(single, random), allocation_effect(random, best)
    total = effect(single, best)
    assert pool.value + allocation.value == pytest.approx(total.value)
    assert allocation.low > 0
    nothing = effect(best, best)
    assert nothing.value == 0
    assert np.isnan(nothing.low)
    assert "equal" in nothing.note
    with pytest.raises(ValueError, match="drew different arms"):
        effect(single, Played(best.best_fitness, arms[::-1]))


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


def test_of_a_replay_each_replicate_is_a_sample():
    rng = np.random.default_rng(0)
    runs = np.maximum.accumulate(rng.random((20, 40)), axis=1)
    arms = draws(20, 4, 1000)
    played = Played(runs[arms].max(axis=1), arms)
    found = time_to_threshold(played, 0.95)
    share = (played.best_fitness >= 0.95).mean(axis=0)
    assert found.time == np.flatnonzero(share >= 0.9)[0] + 1
    assert found.low <= found.time <= found.high
    assert found.n == 20


@pytest.mark.parametrize("arguments", [{"share": 0}, {"rule": "mean"}, {"share": 1.5}])
def test_mistakes_name_what_came(arguments):
    with pytest.raises(ValueError, match=repr(next(iter(arguments.values())))):
        time_to_threshold(CURVES, 0.5, **arguments)
