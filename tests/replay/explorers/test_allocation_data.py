"""Policies replayed over logged runs, as the explorer of allocations shows them."""

import numpy as np
import pytest
from synthetic_runs import chain_runs

import replay
from replay.explorers.allocation_data import RunsAsArms
from replay.simulation.effects import time_to_threshold


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=96, sizes=(2, 4))[0]


def test_the_numbers_are_those_of_simulate(frame):
    part = frame[frame["children"] == 2]
    pools = RunsAsArms(part)
    key = ("ucb1", (("c", 0.1),), 4, 40, "improvement", 300)
    played = pools.play(*key)
    import functools

    policy = functools.partial(replay.POLICIES["ucb1"], c=0.1)
    alone = replay.simulate(
        replay.fitness_matrix(part),
        policy,
        rounds=40,
        arms=4,
        replicates=300,
        reward="improvement",
        replace=False,
    )
    assert np.array_equal(played.replay.pulls, alone.pulls)
    assert played.curve.value == pytest.approx(alone.best_fitness.mean(axis=0))
    assert str(pools.time(0.8, *key)) == str(time_to_threshold(alone, 0.8))  # limits may be NaN


def test_shares_by_rank_add_up(frame):
    played = RunsAsArms(frame[frame["children"] == 4]).play("random", (), 5, 20, "rank", 400)
    assert played.ranks.shape == (5, 20)
    assert np.allclose(played.ranks.sum(axis=0), 1)


def test_an_oracle_of_one_arm_pulls_a_single_rank(frame):
    played = RunsAsArms(frame[frame["children"] == 4]).play("single", (), 5, 20, "rank", 100)
    single = played.replay.pulls
    assert (single == single[:, :1]).all()
    assert played.pulls.value[0] == pytest.approx(played.ranks[0].mean())
