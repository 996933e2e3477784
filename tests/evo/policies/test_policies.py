"""What every policy keeps, and how policies are found by name."""

import numpy as np
import pytest
from built import build
from hypothesis import given, settings
from hypothesis import strategies as st

from evo.policies import POLICIES, UCB1, Draws, find_policy, learns

pytestmark = [
    pytest.mark.filterwarnings("ignore::evo.policies.PolicyWarning"),
    # The made-up runs are short, so that policies use them up.
    pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning"),
]


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
