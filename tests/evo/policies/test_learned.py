"""Policies that learn from earlier runs, in worlds where it is known what there is to gain."""

import functools
import json

import numpy as np
import pytest

import replay
from evo.policies import POLICIES, Draws, FreezeThaw, OptimalStopping, PolicyWarning, find_policy

LEARNERS = ("optimal_stopping", "freeze_thaw")


def ceilings(n: int, rounds: int = 16, seed: int = 0) -> np.ndarray:
    """Runs that climb quickly to a ceiling of their own."""
    rng = np.random.default_rng(seed)
    top = rng.beta(2, 2, (n, 1))
    climbs = np.concatenate([np.zeros((n, 1)), (rng.random((n, rounds)) < 0.6).cumsum(1)], axis=1)
    return 0.2 + 0.75 * top * (1 - np.exp(-0.6 * climbs))


def played(name: str, fitness: np.ndarray, **settings) -> np.ndarray:
    settings = {"rounds": 16, "arms": 5, "replicates": 300} | settings
    return replay.simulate(fitness, name, **settings).best_fitness[:, -1]


@pytest.mark.parametrize("name", LEARNERS)
def test_where_runs_have_ceilings_of_their_own_learning_beats_one_run(name) -> None:
    fitness, earlier = ceilings(200, seed=1), ceilings(60, seed=2)
    gain = played(name, fitness, earlier=earlier).mean() - played("single", fitness).mean()
    assert gain > 0.05


@pytest.mark.parametrize("name", LEARNERS)
def test_where_every_run_climbs_alike_nothing_is_left(name) -> None:
    steps = 1 + 0.2 * np.random.default_rng(0).random((90, 16))
    fitness = np.concatenate([np.zeros((90, 1)), steps.cumsum(axis=1)], axis=1)
    settings = {"earlier": fitness[30:], "rounds": 16, "arms": 5, "replicates": 200}
    pulls = replay.simulate(fitness[:30], name, **settings).pulls
    assert (pulls == pulls[:, :1]).mean() > 0.9


@pytest.mark.parametrize("name", LEARNERS)
def test_a_change_of_scale_changes_no_pull(name) -> None:
    fitness, earlier = ceilings(40, seed=1), ceilings(30, seed=2)
    settings = {"rounds": 16, "arms": 5, "replicates": 100}
    one = replay.simulate(fitness, name, earlier=earlier, **settings)
    other = replay.simulate(1000 * fitness - 7, name, earlier=1000 * earlier - 7, **settings)
    assert np.array_equal(one.pulls, other.pulls)


@pytest.mark.parametrize("name", LEARNERS)
def test_what_was_learned_stands_in_json_and_replaces_the_earlier_runs(name) -> None:
    earlier = ceilings(30)
    taught = POLICIES[name]((1, 4), rounds=16, rng=Draws(0, 1), earlier=earlier)
    learned = json.loads(json.dumps(taught.learned))
    fitness, settings = ceilings(20, seed=3), {"rounds": 16, "arms": 4, "replicates": 64}
    one = replay.simulate(fitness, name, earlier=earlier, **settings)
    again = replay.simulate(fitness, find_policy(name, learned=learned), **settings)
    assert np.array_equal(one.pulls, again.pulls)


@pytest.mark.parametrize("name", LEARNERS)
def test_policies_that_learn_receive_the_best_fitness_whatever_the_reward(name) -> None:
    settings = {"rounds": 8, "arms": 4, "replicates": 20, "earlier": ceilings(30)}
    one, other = (
        replay.simulate(ceilings(20), name, reward=reward, **settings)
        for reward in ("best_fitness", "rank")
    )
    assert np.array_equal(one.rewards, other.rewards)


@pytest.mark.parametrize("name", LEARNERS)
def test_of_the_others_each_replicate_learns_from_all_runs_but_its_arms(name) -> None:
    fitness, settings = ceilings(30), {"rounds": 16, "seed": 4}
    made = replay.simulate(fitness, name, arms=5, replicates=70, earlier="others", **settings)
    for i in (0, 69):
        rest = np.setdiff1d(np.arange(30), made.arms[i])
        alone = replay.simulate(
            fitness, name, arms=made.arms[i][None], replicates=1, earlier=fitness[rest], **settings
        )
        assert np.array_equal(alone.pulls[0], made.pulls[i])


@pytest.mark.parametrize("name", LEARNERS)
def test_without_earlier_runs_one_arm_is_pulled_and_a_warning_says_so(name) -> None:
    settings = {"rounds": 8, "arms": 4, "replicates": 10}
    with pytest.warns(PolicyWarning, match="was given no earlier runs"):
        one = replay.simulate(ceilings(20), name, **settings)
    single = replay.simulate(ceilings(20), "single", **settings)
    assert np.array_equal(one.pulls, single.pulls)


def test_a_quantile_of_0_never_leaves_an_arm_and_one_of_1_leaves_nearly_all() -> None:
    earlier = ceilings(30)
    settings = {"rounds": 16, "arms": 4, "replicates": 50}
    never = functools.partial(OptimalStopping, earlier=earlier, q=0.0, at=2)
    always = functools.partial(OptimalStopping, earlier=2 * earlier, q=1.0, at=2)
    one, other = (replay.simulate(ceilings(20), each, **settings) for each in (never, always))
    assert (one.pulls == one.pulls[:, :1]).all()
    assert all(len(set(pulls[:8])) == 4 for pulls in other.pulls.tolist())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 5)), "at least 5 earlier runs"),
        (np.zeros(5), "expected earlier runs of shape"),
        (np.full((6, 5), np.inf), "finite fitness"),
    ],
)
def test_earlier_runs_that_teach_nothing_are_refused(given, message) -> None:
    with pytest.raises(ValueError, match=message):
        FreezeThaw((1, 2), rounds=4, rng=Draws(0, 1), earlier=given)
    with pytest.raises(ValueError, match="needs at least 20 runs besides the 4 arms"):
        replay.simulate(ceilings(12), "freeze_thaw", rounds=4, arms=4, earlier="others")
