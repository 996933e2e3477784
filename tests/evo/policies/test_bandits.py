"""Policies by index, at random, in turn and by elimination, against scalar loops and posteriors."""

import functools
import math
from collections import Counter

import numpy as np
import pytest
from built import build, pulls_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest, norm, t

from evo.policies import POLICIES, Draws
from replay.simulation.simulate import simulate

pytestmark = [
    pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning"),
    # The made-up runs are short, so that policies use them up.
    pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning"),
]


def textbook_ucb1(arms, rounds):
    """Auer, Cesa-Bianchi & Fischer 2002, figure 1, over one replicate."""
    n, total, pulls = [0] * len(arms), [0.0] * len(arms), []
    for t_ in range(rounds):
        choice = [k for k in range(len(arms)) if n[k] + 1 < len(arms[k])]
        if not choice:
            break
        index = {
            k: total[k] / n[k] + math.sqrt(2 * math.log(t_) / n[k]) if n[k] else math.inf
            for k in choice
        }
        best = max(choice, key=lambda k: (index[k], -k))
        n[best] += 1
        total[best] += arms[best][n[best]]
        pulls.append(best)
    return pulls


def test_ucb1_equals_the_textbook_loop_on_2_000_cases():
    rng = np.random.default_rng(1)
    cases = 0
    for arms in range(2, 51, 4):
        batch, rounds = 205, 64 if arms < 12 else 20 + arms // 2
        steps = rng.integers(0, 4, (batch, arms, 13)) * (rng.random((batch, arms, 13)) < 0.4)
        fitness = (rng.integers(0, 5, (batch, arms, 1)) + steps.cumsum(axis=2)) / 16  # up to 2.5
        lengths = rng.integers(1, 13, (batch, arms))
        fitness = np.where(np.arange(13) <= lengths[..., None], fitness, np.nan)
        rows = np.arange(batch * arms).reshape(batch, arms)
        replay = simulate(
            fitness.reshape(-1, 13), "ucb1", rounds=rounds, replicates=batch, arms=rows
        )
        for case in range(batch):
            trajectories = [fitness[case, k, : lengths[case, k] + 1].tolist() for k in range(arms)]
            expected = textbook_ucb1(trajectories, rounds)
            got = replay.pulls[case] - case * arms
            assert got[: len(expected)].tolist() == expected
            assert (replay.pulls[case, len(expected) :] == -1).all()
            cases += 1
    assert cases >= 2_000


def test_thompson_draws_from_the_posterior_of_known_spread():
    policy = build("thompson", (4000, 2))
    for reward in (0.9, 0.7):
        policy.tell(np.zeros(4000, dtype=int), np.full(4000, reward))
    draws, precision = policy.index(), 1 / 0.1**2 + 2 / 0.1**2
    posterior = norm((0.5 / 0.1**2 + 1.6 / 0.1**2) / precision, 1 / math.sqrt(precision))
    assert kstest(draws[:, 0], posterior.cdf).pvalue > 1e-3
    assert kstest(draws[:, 1], norm(0.5, 0.1).cdf).pvalue > 1e-3


def test_discounted_ucb_forgets_as_its_formula_says():
    policy = POLICIES["discounted_ucb"]((1, 2), rounds=20, rng=Draws(0, 1), discount=0.8, c=0.7)
    history = [(0, 0.5), (1, 0.2), (0, 0.9), (1, 0.4), (1, 0.1)]
    for arm, reward in history:
        policy.tell(np.array([arm]), np.array([reward]))
    weight, total = np.zeros(2), np.zeros(2)
    for age, (arm, reward) in enumerate(reversed(history)):
        weight[arm] += 0.8**age
        total[arm] += 0.8**age * reward
    expected = total / weight + 0.7 * np.sqrt(math.log(weight.sum()) / weight)
    assert policy.told == pytest.approx(weight.sum())
    assert policy.index()[0] == pytest.approx(expected)


def test_epsilon_is_the_share_of_arms_at_random():
    policy = build("epsilon_greedy", (6000, 3))
    for arm in (0, 1, 2):
        policy.tell(np.full(6000, arm), np.full(6000, [0.3, 0.9, 0.6][arm]))
    picks = np.bincount(policy.ask(np.ones((6000, 3), dtype=bool)), minlength=3)
    assert binomtest(int(picks[0]), 6000, 0.1 / 3).pvalue > 1e-3
    assert binomtest(int(picks[1]), 6000, 0.9 + 0.1 / 3).pvalue > 1e-3


def test_discounted_ucb_without_discount_is_ucb1():
    fitness = np.maximum.accumulate(np.random.default_rng(3).random((6, 40)), axis=1)
    plain = simulate(fitness, "ucb1", rounds=100, replicates=1)
    kept = functools.partial(POLICIES["discounted_ucb"], discount=1.0)
    assert (simulate(fitness, kept, rounds=100, replicates=1).pulls == plain.pulls).all()


def test_baselines_do_what_they_say():
    fitness = np.tile(np.linspace(0, 1, 6), (3, 1)) * np.array([[0.5], [1.0], [0.7]])
    assert pulls_of("single", fitness.tolist(), 7) == [[0] * 5 + [1] * 2]
    assert pulls_of("round_robin", fitness.tolist(), 7) == [[0, 1, 2, 0, 1, 2, 0]]
    assert pulls_of("best_arm", fitness.tolist(), 9) == [[0, 1, 2, 1, 1, 1, 1, 2, 2]]
    greedy = functools.partial(POLICIES["epsilon_greedy"], epsilon=0.0)
    assert pulls_of(greedy, fitness.tolist(), 5) == [[0, 1, 2, 1, 1]]


def test_successive_halving_gives_each_phase_its_share():
    tops = np.array([[0.2], [0.9], [0.4], [0.6]])
    fitness = tops * np.linspace(0, 1, 20)
    (pulls,) = pulls_of("successive_halving", fitness.tolist(), 18)
    assert pulls[:8] == [0, 1, 2, 3] * 2
    assert pulls[8:16] == [1, 3] * 4
    assert pulls[16:] == [1, 1]


def test_successive_halving_keeps_the_larger_half_of_an_odd_number():
    tops = np.array([[0.2], [0.9], [0.4], [0.6], [0.1]])
    (pulls,) = pulls_of("successive_halving", (tops * np.linspace(0, 1, 40)).tolist(), 30)
    phases = [pulls[:10], pulls[10:19], pulls[19:29]]
    assert [sorted(set(phase)) for phase in phases] == [[0, 1, 2, 3, 4], [1, 2, 3], [1, 3]]
    assert pulls[29:] == [1]


def test_successive_halving_pulls_the_best_open_arm_once_the_kept_are_closed():
    arms = [[0.1] * 20, [0.0, *[0.9] * 3], [0.0] * 20, [0.0, *[0.8] * 3]]
    (pulls,) = pulls_of("successive_halving", arms, 16)
    assert pulls == [0, 1, 2, 3] * 2 + [1, 3] + [0] * 6


def test_student_draws_follow_the_posterior():
    policy = POLICIES["thompson_nig"]((4000, 2), rounds=10, rng=Draws(1, 4000))
    for reward in (0.2, 0.6, 0.7):
        policy.tell(np.zeros(4000, dtype=int), np.full(4000, reward))
    draws = policy.index()
    alpha, kappa = 2.5, 4.0
    mean = (0.5 + 1.5) / 4
    squares = np.var([0.2, 0.6, 0.7]) * 3
    beta = 0.01 + squares / 2 + 3 * (0.5 - 0.5) ** 2 / (2 * 4)
    posterior = t(2 * alpha, loc=mean, scale=math.sqrt(beta / (alpha * kappa)))
    assert kstest(draws[:, 0], posterior.cdf).pvalue > 1e-3
    assert kstest(draws[:, 1], t(2, loc=0.5, scale=0.1).cdf).pvalue > 1e-3


@pytest.mark.parametrize(("epsilon", "random"), [(0.0, False), (1.0, True)])
def test_epsilon_has_both_ends(epsilon, random):
    """A draw of exactly 0 explores no more with epsilon 0 than any other does."""

    class Least:
        def random(self, size):
            return np.tile([0.0 if not random else np.nextafter(1, 0), 0.9], (size[0], 1))

    policy = POLICIES["epsilon_greedy"]((1, 3), rounds=9, rng=Least(), epsilon=epsilon)
    for arm, reward in enumerate((0.9, 0.5, 0.1)):
        policy.tell(np.array([arm]), np.array([reward]))
    assert policy.ask(np.ones((1, 3), dtype=bool)).tolist() == [2 if random else 0]


def test_ucb1_without_a_bound_follows_the_mean_and_ties_go_to_the_lowest_arm():
    policy = POLICIES["ucb1"]((1, 3), rounds=9, rng=Draws(0, 1), c=0.0)
    for arm, reward in ((0, 0.4), (1, 0.6), (2, 0.6), (0, 0.9)):  # a mean of 0.65 and two of 0.6
        policy.tell(np.array([arm]), np.array([reward]))
    open_arms = np.ones((1, 3), dtype=bool)
    assert policy.ask(open_arms).tolist() == [0]
    open_arms[0, 0] = False
    assert policy.ask(open_arms).tolist() == [1]


def test_a_discount_is_one_change_in_the_whole_time_unless_given():
    made = POLICIES["discounted_ucb"]((1, 2), rounds=64, rng=Draws(0, 1))
    assert made.discount == 1 - 1 / 32
    kept = POLICIES["discounted_ucb"]((1, 2), rounds=64, rng=Draws(0, 1), discount=1.0)
    assert kept.discount == 1.0


def test_an_arm_that_was_closed_for_long_keeps_a_finite_index():
    policy = POLICIES["discounted_ucb"]((1, 2), rounds=9, rng=Draws(0, 1), discount=0.01)
    policy.tell(np.array([0]), np.array([0.5]))
    for _ in range(300):
        policy.tell(np.array([1]), np.array([0.5]))
    assert np.isfinite(policy.index()).all()


def test_halving_by_arm_gives_every_arm_that_is_left_the_same_in_each_phase():
    """With 8 arms 8 + 4 + 2 + 1 = 15 places: 42 rounds give each of them 2 pulls, and the last
    arm those that are left."""
    by_arm = functools.partial(POLICIES["successive_halving"], share="arm")
    tops = np.array([[0.1 * k] for k in range(1, 9)])
    (pulls,) = pulls_of(by_arm, (tops * np.linspace(0, 1, 40)).tolist(), 42)
    counts = [Counter(part) for part in (pulls[:16], pulls[16:24], pulls[24:28], pulls[28:])]
    assert [set(each.values()) for each in counts] == [{2}, {2}, {2}, {14}]
    assert [set(each) for each in counts] == [set(range(8)), {4, 5, 6, 7}, {6, 7}, {7}]
    with pytest.raises(ValueError, match="expected share to be 'arm' or 'phase', got 'pull'"):
        POLICIES["successive_halving"]((1, 2), rounds=9, rng=Draws(0, 1), share="pull")


def test_of_equal_arms_halving_keeps_the_first_ones():
    (pulls,) = pulls_of("successive_halving", [[0.5] * 60] * 20, 200)
    phases = [pulls[:40], pulls[40:80], pulls[80:120], pulls[120:159]]
    assert [sorted(set(each)) for each in phases] == [[*range(n)] for n in (20, 10, 5, 3)]


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=6))
def test_a_posterior_is_the_prior_and_the_rewards_weighted_by_their_precision(rewards):
    policy = POLICIES["thompson"](
        (1, 2), rounds=9, rng=Draws(0, 1), prior_mean=0.2, prior_std=0.5, noise_std=0.25
    )
    for reward in rewards:
        policy.tell(np.array([1]), np.array([reward]))
    precision = 4 + 16 * len(rewards)
    assert policy.mean[0] == pytest.approx([0.2, (0.2 * 4 + 16 * math.fsum(rewards)) / precision])
    assert policy.std[0] == pytest.approx([0.5, precision**-0.5])


def test_the_scale_of_a_posterior_stays_finite_whatever_the_reward():
    policy = POLICIES["thompson_nig"]((1, 1), rounds=9, rng=Draws(0, 1))
    policy.tell(np.array([0]), np.array([1e200]))
    assert policy.scale.max() == 1e300
    assert np.isfinite(policy.index()).all()
