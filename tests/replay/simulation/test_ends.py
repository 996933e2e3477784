"""What policies end with is known without keeping their rounds, and is computed once."""

import functools

import numpy as np
import pytest

from evo.policies import POLICIES, learns
from replay.simulation import pools as module
from replay.simulation.pools import Pools
from replay.simulation.simulate import final_fitness, simulate

NAMES = sorted(name for name, build in POLICIES.items() if not learns(build))


def runs(seed=0, n=9, generations=10):
    steps = np.random.default_rng(seed).exponential(0.05, (n, generations)).cumsum(axis=1)
    return np.c_[np.zeros(n), 1 - np.exp(-steps)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ["whole", "some end early", "nothing ok at first"])
@pytest.mark.parametrize("policy", [*NAMES, "oracle_arm"])
def test_ends_are_those_of_the_whole_replay(policy, case):
    fitness, lengths = runs(), np.full(9, 10)
    if case == "some end early":
        lengths[::2] = 3
        fitness[np.arange(11) > lengths[:, None]] = np.nan
    elif case == "nothing ok at first":
        fitness[::3, :4] = np.nan
    how = {"rounds": 10, "arms": 3, "replicates": 150, "seed": 4, "lengths": lengths}
    ends, arms = final_fitness(fitness, policy, **how)
    whole = simulate(fitness, policy, **how)
    np.testing.assert_array_equal(ends, whole.best_fitness[:, -1])
    np.testing.assert_array_equal(arms, whole.arms)


def pools(world=0, **how):
    fitness = runs(world)
    return Pools.of(
        fitness, np.full(len(fitness), 10), **{"arms": 2, "rounds": 10, "replicates": 500} | how
    )


@pytest.mark.parametrize("policy", ["single", "random", "ucb1"])
def test_pools_say_the_same_with_and_without_the_rounds(policy):
    lean, whole = pools(), pools()
    played = whole.play(policy)
    np.testing.assert_array_equal(lean.ends(policy), played.means[:, -1])
    assert lean.ended(policy).warnings == played.warnings
    found = lean.effect(policy, "thompson")
    assert found == whole.effect(policy, "thompson")


def test_the_same_question_is_computed_once_in_a_process(monkeypatch):
    made = []
    finish = Pools._finish
    monkeypatch.setattr(Pools, "_finish", lambda self, of: made.append(of) or finish(self, of))
    first = pools(11).ends("ucb1")
    np.testing.assert_array_equal(pools(11).ends("ucb1"), first)
    assert made == ["ucb1"]
    for other in ({"arms": 3}, {"rounds": 9}, {"seed": 1}, {"replicates": 600}, {"reward": "rank"}):
        pools(11, **other).ends("ucb1")
    assert made == ["ucb1"] * 6
    own = functools.partial(POLICIES["ucb1"], c=0.1)
    for _ in range(2):  # what has no name may be another thing next time
        pools(11).ends(own)
    assert made[6:] == [own, own]
    assert len(module._kept) <= module.MOST_KEPT


@pytest.mark.parametrize("above", [0.001, 0.02, 0.3, 1.0])
def test_a_p_that_cannot_exceed_another_is_not_drawn_to_its_end(above):
    for seed in range(4):
        mine = pools(seed)
        whole = mine.null_p("thompson", "random")
        assert max(above, mine.null_p("thompson", "random", above=above)) == max(above, whole)
    value = float(np.mean(mine.ends("thompson") - mine.ends("random")))
    assert len(mine.permuted_effects("thompson", "random", value, above=1.0)) == 0
