"""The loop: what ends it, what it tells whom, and what it refuses."""

import re
from dataclasses import replace

import numpy as np
import pytest

from evo.policies import POLICIES, BasePolicy, Draws
from evo.studies.allocation.loop import PullOutcome, allocate, state_digest


class Steps:
    """One replicate of arms that rise by their own step, each pull at the arm's own cost."""

    def __init__(self, steps, cost, length=100):
        self.steps, self.cost, self.length = np.array(steps), np.array(cost), length
        self.depth = np.zeros(len(steps), dtype=int)
        self.shape = (1, len(steps))

    def open_arms(self):
        return (self.depth < self.length)[None, :]

    def fitness(self):
        return (self.depth * self.steps)[None, :]

    def worst(self, arm):
        return {"calls": np.ones(1)}

    def pull(self, arm, active):
        before = self.fitness()[0, arm]
        self.depth[arm] += active
        return PullOutcome(
            arm=arm,
            before=before,
            after=self.fitness()[0, arm],
            known=self.fitness,
            made=active,
            costs={"tokens": self.cost[arm], "calls": np.ones(1)},
        )


def policy(name="ucb1", arms=2, rounds=20, **parameters):
    return POLICIES[name]((1, arms), rounds=rounds, rng=Draws(0, 1), **parameters)


@pytest.mark.parametrize(("limit", "pulls"), [(10.0, 2), (10.5, 3), (11.0, 3), (1e9, 6), (0.1, 1)])
def test_no_pull_once_what_is_spent_has_reached_the_budget(limit, pulls):
    arms = Steps([0.1, 0.2], [4.0, 6.0])
    result = allocate(policy("round_robin"), arms, rounds=6, budget={"tokens": limit})
    assert (result.pulls >= 0).sum() == pulls
    assert arms.depth.sum() == pulls
    assert (result.spent["tokens"][0, pulls - 1 :] == result.spent["tokens"][0, -1]).all() or (
        pulls == 6
    )
    assert np.isnan(result.rewards[0, pulls:]).all()
    assert (result.best_fitness[0, pulls:] == result.best_fitness[0, pulls - 1]).all()


def test_arms_without_anything_to_pull_give_an_empty_allocation():
    result = allocate(policy(), Steps([0.1, 0.2], [1.0, 1.0], length=0), rounds=3)
    assert result.pulls.tolist() == [[-1, -1, -1]]
    assert result.best_fitness.tolist() == [[0.0, 0.0, 0.0]]
    assert result.spent == {}


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_equal_histories_give_equal_digests(name):
    digests = []
    for steps in ([0.1, 0.2], [0.1, 0.2], [0.2, 0.1]):
        one = policy(name)
        np.empty(1000).fill(1.0)  # memory of another content for the scratch arrays
        allocate(one, Steps(steps, [1.0, 1.0]), rounds=15)
        digests.append(state_digest(one))
    assert digests[0] == digests[1]
    if name not in ("random", "round_robin", "single"):  # their state holds no rewards
        assert digests[0] != digests[2]


class Fixed:
    """A policy that asks for one arm and keeps what it is told."""

    def __init__(self, arm):
        self.arm, self.costs = np.asarray(arm), []

    def ask(self, open_arms):
        return self.arm

    def tell(self, arm, reward, cost):
        self.costs.append(float(cost[0]))


def test_an_arm_without_fitness_tells_the_lowest_generation_0_that_is_known():
    class Hidden(Steps):
        """Generation 0 is known with the first pull, and the last arm never has a fitness."""

        start = np.array([0.5, 0.25, np.nan])

        def fitness(self):
            return np.where(self.depth > 0, self.start, np.nan)[None, :]

        def pull(self, arm, active):
            return replace(super().pull(arm, active), before=self.start[arm])

    result = allocate(policy("round_robin", arms=3), Hidden([0.0] * 3, [1.0] * 3), rounds=3)
    assert result.rewards.tolist() == [[0.5, 0.25, 0.25]]


def test_a_policy_is_told_the_cost_in_the_unit_of_the_budget():
    for budget, cost in ((None, 1.0), ({"tokens": 99.0}, 6.0), ({"calls": 99, "tokens": 99}, 1.0)):
        fixed = Fixed([1])
        allocate(fixed, Steps([0.1, 0.2], [4.0, 6.0]), rounds=2, budget=budget)
        assert fixed.costs == [cost, cost]


def test_tell_may_leave_out_the_cost():
    class Plain(Fixed):
        def tell(self, arm, reward):
            self.costs.append(float(reward[0]))

    plain = Plain([0])
    allocate(plain, Steps([0.5, 0.2], [4.0, 6.0]), rounds=2)
    assert plain.costs == [0.5, 1.0]


class Careless(BasePolicy):
    """Pulls arm 0, and writes into all that it is given and into what it returned."""

    def __init__(self, *given, **how):
        super().__init__(*given, **how)
        self.pick = np.zeros(self.replicates, dtype=int)

    def ask(self, open_arms):
        open_arms[:] = False
        self.pick[:] = 0
        return self.pick

    def tell(self, arm, reward, cost):
        for given in (arm, reward, cost, self.pick):
            given[:] = 1


def test_what_a_policy_writes_into_changes_nothing_that_is_recorded():
    for build in (Careless, POLICIES["single"]):
        arms = Steps([0.1, 0.2], [4.0, 6.0])
        made = build((1, 2), rounds=3, rng=Draws(0, 1))
        result = allocate(made, arms, rounds=3, budget={"tokens": 100.0})
        assert result.pulls.tolist() == [[0, 0, 0]]
        np.testing.assert_allclose(result.rewards, [[0.1, 0.2, 0.3]])
        assert result.spent["tokens"].tolist() == [[4.0, 8.0, 12.0]]


@pytest.mark.parametrize("method", ["ask", "tell"])
def test_what_a_users_policy_raises_names_it_and_its_method(method):
    made = Careless((1, 2), rounds=3, rng=Draws(0, 1))
    setattr(made, method, lambda *given: {}["key"])
    message = f"policy Careless: `{method}` raised KeyError: 'key'; correct it and run again"
    with pytest.raises(ValueError, match=message) as raised:
        allocate(made, Steps([0.1, 0.2], [4.0, 6.0]), rounds=3)
    assert isinstance(raised.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ([2], r"picked arm 2 in replicate 0, where only \[0, 1\] are open"),
        ([-1], "picked arm -1"),
        ([0, 1], r"integers of shape \(1,\)"),
        ([0.0], r"integers of shape \(1,\), got an array of float64 of shape \(1,\)$"),
    ],
)
def test_a_pick_that_is_no_open_arm_is_refused(arm, message):
    with pytest.raises(ValueError, match=message):
        allocate(Fixed(arm), Steps([0.1, 0.2], [1.0, 1.0]), rounds=2)


@pytest.mark.parametrize("pick", [None, 0, [0]])
def test_a_pick_that_is_no_array_is_shown(pick):
    policy = Fixed([0])
    policy.ask = lambda open_arms: pick
    with pytest.raises(
        ValueError, match=rf"integers of shape \(1,\), got {re.escape(repr(pick))}$"
    ):
        allocate(policy, Steps([0.1, 0.2], [1.0, 1.0]), rounds=2)


def test_a_closed_arm_is_refused():
    arms = Steps([0.1, 0.2], [1.0, 1.0], length=2)
    arms.depth[:] = [2, 1]
    with pytest.raises(ValueError, match=r"picked arm 0 in replicate 0, where only \[1\] are open"):
        allocate(Fixed([0]), arms, rounds=2)


def test_wrong_budgets_are_refused():
    arms = Steps([0.1, 0.2], [1.0, np.nan])
    with pytest.raises(ValueError, match="positive, finite number of tokens, got 0"):
        allocate(policy(), arms, rounds=2, budget={"tokens": 0})
    with pytest.raises(ValueError, match=r"'dollars' here, only in \['calls', 'tokens'\]"):
        allocate(policy(), arms, rounds=2, budget={"dollars": 1.0})
    with pytest.raises(ValueError, match="in tokens is unknown"):
        allocate(policy(), arms, rounds=2, budget={"tokens": 10.0})


def test_an_unknown_cost_stays_unknown_where_no_budget_needs_it():
    result = allocate(policy(), Steps([0.1, 0.2], [1.0, np.nan]), rounds=3, budget={"calls": 9})
    np.testing.assert_array_equal(result.spent["tokens"], [[1.0, np.nan, np.nan]])


class Half:
    """A policy that asks and is never told."""

    def ask(self, open_arms):
        return np.zeros(1, dtype=int)


def test_what_is_no_policy_is_refused_before_the_first_pull():
    arms = Steps([0.1, 0.2], [1.0, 1.0])
    with pytest.raises(TypeError, match="got one of class Half without tell"):
        allocate(Half(), arms, rounds=3)
    assert arms.depth.sum() == 0
