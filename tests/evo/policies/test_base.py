"""What policies share: their warnings, and the class that one's own extends."""

import functools
import inspect
import textwrap
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.plugins import MistakenType
from evo.policies import POLICIES, UCB1, Draws, IndexPolicy, PolicyWarning
from evo.policies.base import built, fraction, positive, uniform_choice
from replay.simulation.simulate import simulate


def test_a_policy_warns_where_it_cannot_work():
    with pytest.warns(PolicyWarning, match="10 arms 1 time.* only 8 rounds.*at least 11"):
        UCB1((1, 10), rounds=8, rng=Draws(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        UCB1((1, 10), rounds=11, rng=Draws(0, 1))
        POLICIES["thompson"]((1, 10), rounds=2, rng=Draws(0, 1))


@pytest.mark.filterwarnings("ignore::replay.logs.frames.ReplayWarning")  # runs are used up
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


@pytest.mark.parametrize(
    ("arms", "rounds", "warns"), [(1, 1, False), (2, 3, True), (2, 4, False), (3, 5, True)]
)
def test_as_many_rounds_as_it_tries_arms_are_enough_and_one_arm_needs_none(arms, rounds, warns):
    class Twice(UCB1):
        """Tries each arm twice first."""

        tries_each_arm = 2

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Twice((1, arms), rounds=rounds, rng=Draws(0, 1))
    assert bool(caught) == warns


@pytest.mark.parametrize("none", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_policy_needs_a_replicate_an_arm_and_a_round(none):
    replicates, arms, rounds = none
    with pytest.raises(ValueError, match="expected at least one replicate, one arm and one round"):
        POLICIES["random"]((replicates, arms), rounds=rounds, rng=Draws(0, 1))


class Alone(IndexPolicy):
    """It takes nothing but the shape."""

    def __init__(self, shape):
        super().__init__(shape, rounds=1, rng=Draws(0, shape[0]))

    def index(self):
        return -self.pulls


@pytest.mark.parametrize("build", [Alone, functools.partial(Alone), int])
def test_a_class_that_makes_no_policy_is_named(build):
    message = r"policy (Alone|int): .*rounds=\.\.\., rng=\.\.\.\), .* raised TypeError"
    with pytest.raises(ValueError, match=message):
        simulate(np.ones((2, 3)), build, rounds=2, replicates=1)
    with pytest.raises(ValueError, match="expected at least one replicate"):
        built(UCB1, (0, 1), rounds=1, rng=Draws(0, 1))


class Given(IndexPolicy):
    """Its indices are what they are set to."""

    def index(self):
        return self.values.copy()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (None, "None"),
        ([[0.0, 1.0]], r"\[\["),
        (np.zeros(2), r"an array of float64 of shape \(2,\)"),
    ],
)
def test_an_index_that_is_no_number_for_each_arm_names_the_policy(values, words):
    policy = Given((1, 2), rounds=1, rng=Draws(0, 1))
    policy.index = lambda: values
    with pytest.raises(MistakenType, match=rf"Given\.index: .* of shape \(1, 2\).* got {words}"):
        policy.ask(np.array([[True, True]]))


@given(st.lists(st.tuples(st.sampled_from([-np.inf, 0.0, 1.0]), st.booleans()), min_size=1))
def test_the_largest_index_of_the_open_arms_wins_and_of_equal_ones_the_lowest(arms):
    values, open_ = [value for value, _ in arms], [is_open for _, is_open in arms]
    if not any(open_):
        open_[0] = True
    policy = Given((1, len(arms)), rounds=1, rng=Draws(0, 1))
    policy.values = np.array([values])
    expected = max((k for k in range(len(arms)) if open_[k]), key=lambda k: (values[k], -k))
    assert policy.ask(np.array([open_])).tolist() == [expected]


def test_an_index_of_nan_is_refused_where_it_would_decide():
    policy = Given((2, 2), rounds=1, rng=Draws(0, 2))
    policy.values = np.array([[1.0, 0.0], [1.0, np.nan]])
    with pytest.raises(ValueError, match=r"Given\.index: expected numbers, got NaN for arm 1;"):
        policy.ask(np.array([[True, True], [True, True]]))
    assert policy.ask(np.array([[True, True], [True, False]])).tolist() == [0, 0]


def test_a_closed_arm_leaves_the_array_that_a_policy_returned_as_it_is():
    policy = Given((1, 2), rounds=1, rng=Draws(0, 1))
    state = np.array([[2.0, 1.0]])
    policy.index = lambda: state
    assert policy.ask(np.array([[False, True]])).tolist() == [1]
    assert policy.ask(np.array([[True, True]])).tolist() == [0]


def test_replicates_keep_means_and_counts_of_their_own():
    policy = UCB1((2, 3), rounds=9, rng=Draws(0, 2))
    for arms, rewards in (((0, 2), (1.0, 3.0)), ((0, 1), (2.0, 5.0))):
        policy.tell(np.array(arms), np.array(rewards))
    assert policy.pulls.tolist() == [[2, 0, 0], [0, 1, 1]]
    assert policy.mean.tolist() == [[1.5, np.inf, np.inf], [np.inf, 5.0, 3.0]]
    assert policy.told == 2


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_what_has_to_be_positive_is_neither_nothing_nor_endless(value):
    with pytest.raises(ValueError, match="width must be positive and finite"):
        positive("width", value)
    assert positive("width", 5e-324) == 5e-324


@pytest.mark.parametrize("value", [np.nextafter(0, -1), np.nextafter(1, 2), np.nan])
def test_a_fraction_includes_both_ends_and_nothing_beyond(value):
    with pytest.raises(ValueError, match=r"share must be within \[0, 1\]"):
        fraction("share", value)
    assert (fraction("share", 0), fraction("share", 1)) == (0, 1)


@given(
    st.lists(st.booleans(), min_size=1, max_size=9).filter(any),
    st.floats(0, 1, exclude_max=True),
)
def test_an_even_choice_cuts_the_draw_into_as_many_parts_as_arms_are_open(open_, uniform):
    arms = [k for k, is_open in enumerate(open_) if is_open]
    [chosen] = uniform_choice(np.array([open_]), np.array([uniform]))
    assert chosen == arms[int(uniform * len(arms))]
