"""Policies: against independent scalar loops, and by the relations that define them."""

import functools
import inspect
import math
import textwrap
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest, norm, t

from evo.policies import (
    POLICIES,
    UCB1,
    Draws,
    IndexPolicy,
    PolicyWarning,
    find_policy,
    learns,
)
from evo.policies.draws import BLOCK
from replay.simulation.simulate import simulate

pytestmark = [
    pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning"),
    # The made-up runs are short, so that policies use them up.
    pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning"),
]


def build(name, shape, *, rounds=50, seed=0):
    return find_policy(name)(shape, rounds=rounds, rng=Draws(seed, shape[0]))


def pulls_of(name, arms, rounds, *, replicates=1, seed=0):
    """Pulls of each replicate as lists; arms are trajectories of any lengths."""
    width = max(map(len, arms))
    fitness = np.array([[*arm, *[np.nan] * (width - len(arm))] for arm in arms])
    pulls = simulate(fitness, name, rounds=rounds, replicates=replicates, seed=seed).pulls
    return [[k for k in row if k >= 0] for row in pulls.tolist()]


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
def test_exp3_survives_20_000_rounds(name):
    rounds = 20_000
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


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25)
@given(data=st.data())
def test_no_closed_arm_is_picked(name, data):
    """Even where arms close and open again at will, as busy arms do."""
    replicates = data.draw(st.integers(1, 70))
    arms, rounds = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    policy = build(name, (replicates, arms), rounds=rounds)
    for _ in range(rounds):
        open_arms = rng.random((replicates, arms)) < rng.choice([0.3, 0.9])
        open_arms[np.arange(replicates), rng.integers(arms, size=replicates)] = True
        arm = policy.ask(open_arms)
        assert arm.shape == (replicates,)
        assert open_arms[np.arange(replicates), arm].all()
        policy.tell(arm, rng.normal(0.5, 1.0, replicates))


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


@pytest.mark.parametrize(
    "name", [n for n in POLICIES if n != "successive_halving" and not learns(POLICIES[n])]
)
def test_inspect_shows_what_the_ask_went_by(name):
    policy = build(name, (40, 3))
    open_arms = np.ones((40, 3), dtype=bool)
    open_arms[:, 1] = False
    for _ in range(8):
        arm = policy.ask(open_arms)
        (seen,) = policy.inspect().items()
        policy.tell(arm, np.linspace(0, 1, 40))
    kind, values = seen
    assert values.shape == (40, 3)
    if kind == "probability":
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
        assert (values[:, 1] == 0).all()
    elif name != "epsilon_greedy":
        assert (values.argmax(axis=1) == arm).all()


def test_a_policy_warns_where_it_cannot_work():
    with pytest.warns(PolicyWarning, match="10 arms 1 time.* only 8 rounds.*at least 11"):
        UCB1((1, 10), rounds=8, rng=Draws(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        UCB1((1, 10), rounds=11, rng=Draws(0, 1))
        POLICIES["thompson"]((1, 10), rounds=2, rng=Draws(0, 1))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ucb1", {"c": -1.0}, "c must be 0 or more"),
        ("discounted_ucb", {"discount": 0.0}, "discount must be above 0"),
        ("epsilon_greedy", {"epsilon": 1.5}, "epsilon must be within"),
        ("exp3p", {"gamma": 0.0}, "gamma must be positive"),
        ("exp3p", {"gamma": 1.0}, "gamma must be 0 or more and below 1"),
        ("exp3ix", {"gamma": -0.1}, "gamma must be 0 or more"),
        ("exp3_mixed", {"reward_range": (1.0, 1.0)}, "low < high"),
        ("exp3_mixed", {"eta": -1.0}, "eta must be 0 or more"),
        ("thompson", {"prior_std": 0.0}, "prior_std must be positive"),
        ("thompson_nig", {"prior_shape": -1.0}, "prior_shape must be positive"),
    ],
)
def test_wrong_parameters_are_named(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        POLICIES[name]((1, 3), rounds=10, rng=Draws(0, 1), **parameters)


def test_unknown_policies_list_the_known():
    with pytest.raises(ValueError, match=r"round_robin.*got 'ubc'"):
        find_policy("ubc")
    with pytest.raises(TypeError, match="callable"):
        find_policy(3)
    assert find_policy("ucb") is UCB1


def test_the_policy_in_the_docstring_runs():
    text = inspect.cleandoc(IndexPolicy.__doc__)  # as Python 3.13 stores it
    example = text.split("pulled:\n\n")[1].split("Attributes:")[0]
    fitness = np.maximum.accumulate(np.random.default_rng(0).random((5, 30)), axis=1)
    code = textwrap.dedent(example).replace("replay.simulate", "last = simulate")
    scope = {
        "IndexPolicy": IndexPolicy,
        "np": np,
        "functools": functools,
        "simulate": simulate,
        "fitness": fitness,
    }
    exec(code, scope)
    assert len(code.strip().splitlines()) <= 20
    assert scope["last"].pulls.shape == (1000, 64)
    assert scope["last"].pulls[0, :5].tolist() == [0, 1, 2, 3, 4]


class TestDraws:
    def test_replicates_get_the_same_however_many_there_are(self):
        few, many = Draws(7, 5), Draws(7, 3 * BLOCK + 1)
        for _ in range(40):
            assert (few.random((5, 4)) == many.random((3 * BLOCK + 1, 4))[:5]).all()
            assert (few.random(5) == many.random(3 * BLOCK + 1)[:5]).all()
            normal = many.standard_normal((3 * BLOCK + 1, 2))
            assert (few.standard_normal((5, 2)) == normal[:5]).all()

    def test_chunks_are_parts_of_the_whole(self):
        whole, part = Draws(7, 200), Draws(7, 72, first=2 * BLOCK)
        across, one = Draws(7, 90, first=30), Draws(7, 1, first=199)
        for _ in range(300):
            drawn = whole.random((200, 3))
            assert (drawn[128:] == part.random((72, 3))).all()
            assert (drawn[30:120] == across.random((90, 3))).all()
            assert (drawn[199:] == one.random((1, 3))).all()

    def test_kinds_do_not_disturb_each_other(self):
        alone, mixed = Draws(1, 4), Draws(1, 4)
        for _ in range(5):
            mixed.standard_normal((4, 3))
            assert (alone.random(4) == mixed.random(4)).all()

    def test_draws_have_their_distribution(self):
        draws = Draws(2, 1000)
        uniform = np.concatenate([draws.random((1000, 5)) for _ in range(10)], axis=None)
        normal = np.concatenate([draws.standard_normal((1000, 5)) for _ in range(10)], axis=None)
        assert kstest(uniform, "uniform").pvalue > 1e-3
        assert kstest(normal, "norm").pvalue > 1e-3

    def test_seeds_keys_and_blocks_differ(self):
        streams = [Draws(0, 128), Draws(1, 128), Draws(0, 128, key=1), Draws(2**70, 128)]
        values = {tuple(d.random(128)[at : at + 2]) for d in streams for at in (0, BLOCK)}
        assert len(values) == 8

    def test_wrong_sizes_and_seeds_are_refused(self):
        with pytest.raises(ValueError, match=r"got \(3, 2\)"):
            Draws(0, 4).random((3, 2))
        with pytest.raises(ValueError, match="seed of 0 or more, got -1"):
            Draws(-1, 4)
