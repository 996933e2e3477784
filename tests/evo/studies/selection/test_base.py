"""The bookkeeping of selectors, against sums and sorts by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.studies.selection.base import BaseSelector, Terms, only_one


class Even(BaseSelector):
    """Asks for the same number of samples of each."""

    def targets(self):
        return np.where(self.alive, self.grown(self.count), 0)


def made(*rewards, cost=None, low=0.0, high=1.0, **terms):
    """A selector of one replicate that was told some rewards of each configuration."""
    most = max(map(len, rewards))
    selector = Even(
        (1, len(rewards)), Terms(size=most + 8, low=low, high=high, **terms), rng=None
    )  # fmt: skip
    values = np.full((1, len(rewards), most), low)
    for k, each in enumerate(rewards):
        values[0, k, : len(each)] = each
    take = np.array([[len(each) for each in rewards]])
    spent = np.zeros((1, len(rewards))) if cost is None else np.array([cost], dtype=float)
    selector.tell(take, values, spent)
    return selector


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"size": 0}, "size: expected at least 1 sample, got 0"),
        ({"batch": 0}, "batch: expected at least 1 sample"),
        ({"delta": 0.0}, "delta: expected a probability"),
        ({"delta": 1.0}, "delta: expected a probability"),
        ({"low": 1.0}, r"bounds: expected two finite rewards, the lower first, got \(1\.0, 1\.0\)"),
        ({"high": math.inf}, "bounds: expected two finite rewards"),
        ({"low": math.nan}, "bounds: expected two finite rewards"),
        ({"interval": "t"}, "interval: expected anytime or compat, got 't'"),
        ({"c": 0.0}, "c: expected a positive number"),
    ],
)
def test_terms_that_make_no_sense_are_refused(terms, message):
    with pytest.raises(ValueError, match=message):
        Terms(**{"size": 5, **terms})


@pytest.mark.parametrize("shape", [(0, 2), (1, 0)])
def test_nothing_to_select_from_is_refused(shape):
    with pytest.raises(ValueError, match=r"at least one replicate and configuration, got shape"):
        Even(shape, Terms(size=3), rng=None)


rewards = st.lists(st.floats(-2, 6), min_size=1, max_size=6)


@given(st.lists(rewards, min_size=1, max_size=4))
def test_means_are_those_of_the_rewards_and_lie_in_their_intervals(every):
    selector = made(*every, low=-2.0, high=6.0)
    np.testing.assert_allclose(selector.mean[0], [np.mean(each) for each in every], atol=1e-9)
    assert selector.count[0].tolist() == [*map(len, every)]
    assert (selector.lower >= -2 - 1e-9).all()
    assert (selector.upper <= 6 + 1e-9).all()
    assert (selector.lower <= selector.upper + 1e-9).all()


def test_intervals_of_compat_are_standard_errors_around_the_mean():
    selector = made([0.2, 0.4, 0.9], [0.5], interval="compat", c=2.0)
    error = 2 * np.std([0.2, 0.4, 0.9], ddof=1) / math.sqrt(3)
    assert selector.lower[0] == pytest.approx([0.5 - error, -math.inf])
    assert selector.upper[0] == pytest.approx([0.5 + error, math.inf])


def test_samples_come_in_pieces_and_keep_their_places():
    selector = Even((1, 2), Terms(size=6), rng=None)
    free = np.zeros((1, 2))
    selector.tell(np.array([[2, 1]]), np.array([[[0.1, 0.2], [0.7, 0.0]]]), free)
    selector.tell(np.array([[1, 2]]), np.array([[[0.3, 0.0], [0.8, 0.9]]]), free)
    assert selector.values[0, 0, :3].tolist() == [0.1, 0.2, 0.3]
    assert selector.values[0, 1, :3].tolist() == [0.7, 0.8, 0.9]
    assert math.isnan(Even((1, 1), Terms(size=2), rng=None).mean[0, 0])


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_a_reward_out_of_bounds_is_refused_and_what_was_not_taken_is_not_looked_at(wrong):
    selector = Even((1, 1), Terms(size=4), rng=None)
    values = np.array([[[0.5, wrong]]])
    with pytest.raises(ValueError, match=r"within the bounds \[0\.0, 1\.0\], got .*state wider"):
        selector.tell(np.array([[2]]), values, np.zeros((1, 1)))
    selector.tell(np.array([[1]]), values, np.zeros((1, 1)))
    assert selector.mean[0, 0] == 0.5


@pytest.mark.parametrize(
    ("every", "cost", "winner"),
    [
        (([0.5, 0.5], [0.6, 0.6]), (1, 9), 1),
        (([0.5], [0.5] * 40), (1, 40), 1),  # equal means: the higher lower bound
        (([0.5], [0.5]), (3, 2), 1),  # then the cheaper one
        (([0.5], [0.5]), (math.nan, 2), 1),  # an unknown cost loses
        (([0.5], [0.5]), (2, 2), 0),  # then the first
        (([0.2], []), (1, 0), 0),  # without a sample nothing wins
    ],
)
def test_the_best_is_by_mean_then_lower_bound_then_cost_then_number(every, cost, winner):
    selector = made(*every, cost=cost)
    assert selector.winner().tolist() == [winner]
    selector.alive[0, winner] = False
    others = [k for k, each in enumerate(every) if k != winner and each]
    assert selector.winner().tolist() == (others[:1] or [-1])


def test_a_lone_configuration_wins_without_a_sample_and_is_asked_for_none():
    selector = Even((2, 1), Terms(size=5), rng=None)
    assert selector.certain.all()
    assert selector.winner().tolist() == [0, 0]
    assert not selector.ask().any()


@pytest.mark.parametrize("batch", [1, 5])
def test_samples_grow_by_a_batch_or_a_quarter_up_to_the_size(batch):
    selector = Even((1, 2), Terms(size=60, batch=batch, interval="compat"), rng=None)
    assert selector.ask().tolist() == [[max(2, batch)] * 2]
    for count in (4, 20, 41, 59, 60):
        grown = int(selector.grown(np.array(count)))
        assert grown == min(60, max(count + batch, math.ceil(1.25 * count)))


def test_the_first_look_is_no_earlier_than_a_bet_can_be_won():
    """With stakes of three quarters, n pairs of 1 against 0 win at most 1.75 ** (n - 1)."""
    selector = Even((1, 3), Terms(size=100, delta=0.05), rng=None)
    first = int(selector.grown(np.array(0)))
    needed = math.log(2 / 0.05)
    assert (first - 2) * math.log(1.75) < needed <= (first - 1) * math.log(1.75)
    pairs = made([1.0] * first, [0.0] * first, [0.0] * first)
    assert pairs.beaten_by(np.array([0])).tolist() == [[False, True, True]]
    fewer = made([1.0] * (first - 1), [0.0] * (first - 1), [0.0] * (first - 1))
    assert not fewer.beaten_by(np.array([0])).any()
    assert not pairs.beaten_by(np.array([-1])).any()


def test_one_configuration_left_is_only_one():
    assert only_one(np.array([[True, False], [True, True], [False, False]])).tolist() == [
        True, False, False,
    ]  # fmt: skip
