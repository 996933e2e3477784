"""Runs as arms: which generations they offer, and that the oracle is the bound it claims to be."""

import itertools

import numpy as np
import pytest
from synthetic_runs import as_frame

from evo.policies import POLICIES
from replay.simulation.arms import HINDSIGHT, LoggedArms, checked, draw_arms
from replay.simulation.simulate import simulate

pytestmark = [
    pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning"),
    pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning"),
]

NAN = np.nan


def random_logs(rng, runs, generations, *, failing=False):
    rate = rng.choice([0.15, 0.5, 1.0])
    jumps = rng.integers(1, 9, (runs, generations)) * (rng.random((runs, generations)) < rate)
    fitness = np.c_[np.ones(runs), 1 + jumps.cumsum(axis=1)] / 64
    lengths = rng.integers(0, generations + 1, runs)
    fitness = np.where(np.arange(generations + 1) <= lengths[:, None], fitness, NAN)
    if failing:
        fitness[:, 0] = NAN
        fitness[rng.random(runs) < 0.5, :2] = NAN
    return fitness, lengths


def curves(fitness, lengths, rounds):
    """Best-so-far curves of every legal sequence of pulls."""
    for order in itertools.product(range(len(fitness)), repeat=rounds):
        if (np.bincount(order, minlength=len(fitness)) <= lengths).all():
            depth, best, curve = [0] * len(fitness), np.fmax.reduce(fitness[:, 0]), []
            for arm in order:
                depth[arm] += 1
                best = np.fmax(best, fitness[arm, depth[arm]])
                curve.append(best)
            yield np.array(curve)


@pytest.mark.parametrize("failing", [False, True])
def test_oracles_are_the_best_of_all_schedules(failing):
    rng = np.random.default_rng(6)
    compared = 0
    while compared < 40:
        fitness, lengths = random_logs(rng, 3, 6, failing=failing)
        if lengths.sum() < 6 or (failing and np.isnan(fitness[:, 1:]).all(axis=1).any()):
            continue
        every = np.array(list(curves(fitness, lengths, 6)))
        arm = simulate(fitness, "oracle_arm", rounds=6, replicates=1, lengths=lengths)
        zero = np.nan_to_num(every)
        assert arm.best_fitness[0, -1] == zero[:, -1].max()
        compared += 1


@pytest.mark.parametrize("name", [*POLICIES, *HINDSIGHT])
def test_with_one_arm_there_is_no_regret(name):
    fitness, _ = random_logs(np.random.default_rng(2), 5, 30)
    replay = simulate(fitness, name, rounds=20, arms=1, replicates=20)
    single = simulate(fitness, "single", rounds=20, arms=1, replicates=20)
    np.testing.assert_array_equal(replay.best_fitness, single.best_fitness)


def test_oracle_arm_knows_the_costs():
    fitness = np.array([[0.0, 0.1, 0.2, 0.9], [0.0, 0.3, 0.3, 0.3]])
    costs = {"tokens": np.array([[0, 5, 5, 5], [0, 1, 1, 1]])}
    for limit, best in ((10, 0.3), (10.1, 0.9)):
        replay = simulate(
            fitness, "oracle_arm", rounds=3, replicates=1, costs=costs, budget={"tokens": limit}
        )
        assert replay.best_fitness[0, -1] == best


def test_runs_are_replayed_up_to_where_they_exchange_programs():
    """Islands that exchange from generation 3 on are independent for two."""
    best = np.linspace(0, 1, 9)[None].repeat(4, axis=0)
    frame = as_frame(best, children=1, seeds=range(4)).assign(mixed=[NAN] * 9 + [3.0] * 27)
    with pytest.warns(UserWarning, match="3 of 4 runs exchange programs.* from generation 3"):
        capped = simulate(frame, "single", rounds=20, replicates=1)
    assert np.bincount(capped.pulls[0] + 1).tolist() == [6, 8, 2, 2, 2]
    whole = simulate(frame, "single", rounds=20, replicates=1, lengths=[8] * 4)
    assert np.bincount(whole.pulls[0]).tolist() == [8, 8, 4]
    with pytest.raises(ValueError, match="expected lengths"):
        simulate(frame, "single", rounds=20, lengths=[9] * 4)
    apart = simulate(frame.assign(mixed=NAN), "single", rounds=20, replicates=1)
    np.testing.assert_array_equal(apart.pulls, whole.pulls)


def affordable(costs, lengths, budget):
    """Every depth of two arms that schedules within a budget reach, generation 0 paid first."""
    found = set()
    for order in itertools.product(range(len(lengths)), repeat=int(lengths.sum())):
        depth, spent = [0] * len(lengths), 0.0
        for arm in order:
            if spent >= budget or depth[arm] == lengths[arm]:
                break
            spent += costs[arm, depth[arm] + 1] + (costs[arm, 0] if depth[arm] == 0 else 0.0)
            depth[arm] += 1
            found.add(tuple(depth))
        found.add((0,) * len(lengths))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_oracle_pays_for_generation_0_with_an_arms_first_pull(seed):
    """Against all schedules within a budget; generation 0 is dear for some arms and free for none.

    An arm without a generation counts with its initial program.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, 3)
    jumps = rng.integers(1, 9, (3, 3)).cumsum(axis=1)
    fitness = np.c_[rng.integers(0, 12, 3), 0 * jumps] + np.c_[np.zeros(3), jumps]
    fitness[:, 1:] += fitness[:, :1]
    fitness = np.where(np.arange(4) <= lengths[:, None], fitness, NAN)
    costs = rng.integers(1, 4, (3, 4)).astype(float)
    costs[:, 0] = rng.choice([0.5, 4.0, 9.0], 3)
    for budget in (1.0, 5.0, 9.0, 14.0):
        best = max(
            max(fitness[arm, depth] for arm, depth in enumerate(depths))
            for depths in affordable(costs, lengths, budget)
        )
        played = simulate(
            fitness, "oracle_arm", rounds=9, replicates=1, lengths=lengths,
            costs={"calls": costs}, budget={"calls": budget},
        )  # fmt: skip
        assert played.best_fitness[0, -1] == best


def test_the_oracle_knows_no_more_than_the_rounds_reveal():
    fitness = np.array([[0.0, 0.1, 0.1, 0.9], [0.0, 0.5, 0.5, 0.5]])
    for rounds, arm in ((1, 1), (2, 1), (3, 0)):
        played = simulate(fitness, "oracle_arm", rounds=rounds, replicates=1)
        assert (played.pulls == arm).all()


def test_the_arms_of_a_seed_stay_those_of_earlier_versions():
    drawn = draw_arms(7, 3, 5, seed=4, replace=False).tolist()
    assert drawn == [[0, 3, 4], [6, 2, 5], [2, 4, 1], [0, 5, 3], [2, 5, 4]]


def test_an_arm_may_cost_as_many_calls_as_its_dearest_generation():
    calls = np.array([[1.0, 2, 9, 4], [NAN, 3, 3, NAN], [0, 1, 5, 2]])
    logged = checked(np.zeros((3, 4)), None, {"calls": calls})
    arms = LoggedArms(logged, np.array([[2, 0], [1, 2]]))
    for arm, most in ((np.array([0, 0]), [5, 3]), (np.array([1, 1]), [9, 5])):
        assert arms.worst(arm)["calls"].tolist() == most
