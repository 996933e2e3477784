"""Exponential weights, against their formulas round by round."""

import functools
import math

import numpy as np
import pytest
from built import build

from evo.policies import POLICIES, Draws
from replay.simulation.simulate import simulate

pytestmark = [
    pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning"),
    # The made-up runs are short, so that policies use them up.
    pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning"),
]


@pytest.mark.parametrize("name", ["exp3p", "exp3ix", "exp3_mixed"])
def test_exp3_probabilities_follow_their_formula(name):
    """Round by round on our own draws, with arms that close for a while."""
    K, rounds = 4, 400
    root = math.sqrt(math.log(K) / (rounds * K))
    eta, mix, beta, gamma = {
        "exp3p": (0.95 * root, 1.05 * K * root, root, 0.0),
        "exp3ix": (math.sqrt(2) * root, 0.0, 0.0, root / math.sqrt(2)),
        "exp3_mixed": (root / math.sqrt(math.e - 1), K * root / math.sqrt(math.e - 1), 0.0, 0.0),
    }[name]
    policy = build(name, (1, K), rounds=rounds)
    gains = [0.0] * K
    rng = np.random.default_rng(8)
    for round_ in range(rounds):
        closed = {round_ // 50} if 100 <= round_ < 200 else set()
        choice = [k for k in range(K) if k not in closed]
        weight = {k: math.exp(eta * gains[k]) for k in choice}
        p = {k: (1 - mix) * weight[k] / sum(weight.values()) + mix / len(choice) for k in choice}
        arm = policy.ask(np.array([[k not in closed for k in range(K)]]))
        np.testing.assert_allclose(
            policy.inspect()["probability"][0], [p.get(k, 0.0) for k in range(K)], rtol=1e-9
        )
        k, gain = int(arm[0]), float(rng.random())
        policy.tell(arm, np.array([gain]))
        for j in choice:
            gains[j] += beta / p[j]
        gains[k] += (gain - 1) / (p[k] + gamma) if name == "exp3ix" else gain / p[k]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exp3p", "exp3ix", "exp3_mixed"])
@pytest.mark.thorough
def test_exp3_survives_8_000_rounds(name):
    rounds = 8_000
    policy = build(name, (3, 3), rounds=rounds)
    open_arms = np.ones((3, 3), dtype=bool)
    best = np.array([1.02, 1.3, 0.9])  # of arm 2 in each replicate: above 1 as well
    share = 0
    for _ in range(rounds):
        arm = policy.ask(open_arms)
        policy.tell(arm, np.where(arm == 2, best, 0.5))
        share = share + (arm == 2)
    probability = policy.inspect()["probability"]
    assert np.isfinite(policy.gains).all()
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (share > 0.7 * rounds).all()


@pytest.mark.parametrize("name", ["exp3p", "exp3ix", "exp3_mixed"])
def test_reward_range_only_rescales(name):
    fitness = np.maximum.accumulate(np.random.default_rng(0).random((4, 40)), axis=1)
    plain = simulate(fitness, name, rounds=60, replicates=50)
    ranged = functools.partial(POLICIES[name], reward_range=(8.0, 24.0))
    assert (simulate(8 + 16 * fitness, ranged, rounds=60, replicates=50).pulls == plain.pulls).all()


@pytest.mark.parametrize("name", ["exp3p", "exp3_mixed"])
def test_half_of_the_pulls_are_random_at_most_unless_more_are_asked_for(name):
    short, long = (POLICIES[name]((1, 20), rounds=n, rng=Draws(0, 1)) for n in (20, 10**6))
    assert short.mix == 0.5
    assert 0 < long.mix < 0.05
    assert POLICIES[name]((1, 20), rounds=20, rng=Draws(0, 1), gamma=0.9).mix == 0.9


def test_implicit_exploration_is_half_of_the_rate_whatever_that_is():
    plain = POLICIES["exp3ix"]((1, 4), rounds=50, rng=Draws(0, 1))
    assert plain.gamma == plain.eta / 2
    assert POLICIES["exp3ix"]((1, 4), rounds=50, rng=Draws(0, 1), eta=0.3).gamma == 0.15
    assert POLICIES["exp3ix"]((1, 4), rounds=50, rng=Draws(0, 1), eta=0.3, gamma=0.0).gamma == 0.0
    with pytest.raises(ValueError, match="gamma must be 0 or more and finite, got inf"):
        POLICIES["exp3ix"]((1, 4), rounds=50, rng=Draws(0, 1), gamma=math.inf)


@pytest.mark.parametrize("name", ["exp3p", "exp3ix", "exp3_mixed"])
def test_a_reward_that_comes_late_is_weighted_by_the_probability_it_was_asked_with(name):
    """Asks of other arms in between, after which the probabilities are others, change nothing."""
    policy = POLICIES[name]((1, 2), rounds=50, rng=Draws(3, 1), eta=1.0)
    first = policy.ask(np.array([[True, False]]))
    asked = policy.asked[0, 0]
    policy.ask(np.array([[False, True]]))
    policy.gains[:] = [[0.0, 5.0]]
    before = policy.gains.copy()
    policy.tell(first, np.array([0.75]))
    assert asked == pytest.approx(1.0)
    estimate = -0.25 / (1 + policy.gamma) if name == "exp3ix" else 0.75
    assert (policy.gains - before)[0] == pytest.approx([estimate, 0.0])


@pytest.mark.parametrize("drift", [800.0, -800.0, 5000.0])
def test_weights_that_leave_the_range_of_floats_are_recentred(drift):
    plain, far = (POLICIES["exp3ix"]((1, 3), rounds=9, rng=Draws(0, 1), eta=1.0) for _ in "ab")
    plain.gains[:] = [[0.0, 1.0, 2.0]]
    far.gains[:] = plain.gains + drift
    open_arms = np.array([[True, True, False]])
    assert plain.ask(open_arms) == far.ask(open_arms)
    far.ask(open_arms)
    assert far.inspect()["probability"][0] == pytest.approx(plain.inspect()["probability"][0])
    assert abs(far.gains[0, 1]) < 1e-9


@pytest.mark.parametrize(("uniform", "arm"), [(0.0, 0), (0.25, 0), (0.2500001, 1), (1.0, 1)])
def test_a_draw_falls_on_the_arm_whose_share_it_is(uniform, arm):
    """Even if it is rounded up to 1."""

    class Fixed:
        def random(self, size):
            return np.full(size, uniform)

    policy = POLICIES["exp3ix"]((1, 3), rounds=9, rng=Fixed(), eta=1.0)
    policy.gains[:] = [[0.0, math.log(3), 9.0]]
    assert policy.ask(np.array([[True, True, False]])).tolist() == [arm]


def test_the_least_draw_does_not_fall_on_a_closed_arm():
    class Least:
        def random(self, size):
            return np.zeros(size)

    policy = POLICIES["exp3ix"]((1, 3), rounds=9, rng=Least())
    assert policy.ask(np.array([[False, True, True]])).tolist() == [1]
