"""How far a critic agrees with a task: the share of pairs, its interval, and what it says."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.runs.agreement import LEAST, agreement_of
from evo.tasks.instances import read_instances


def test_a_critic_is_checked_against_right_answers() -> None:
    found = evo.check_critic("offline-2", progress=False)
    assert found.right + found.wrong + found.unscored == len(
        read_instances(evo.load_task("word_problems").record)
    )
    assert 0.65 < found.low < found.value < found.high < 1
    assert found.better_than_chance
    assert "better than chance" in str(found)
    blind = agreement_of([0.5] * 30, [0.5] * 30)
    assert (blind.value, blind.better_than_chance) == (0.5, False)
    assert "not better than chance" in str(blind)
    assert "too few" in str(agreement_of([1.0] * 9, [0.0] * 3))
    assert repr(found) == str(found)
    perfect = agreement_of([1.0] * 20, [0.0] * 20)
    assert perfect.value == 1.0
    assert 0.8 < perfect.low < 1.0 == pytest.approx(perfect.high)
    with pytest.raises(ValueError, match="checked on a text with a data set"):
        evo.check_critic("offline-2", "mmd")


def test_the_interval_of_an_agreement_covers_it() -> None:
    rng = random.Random(0)
    shift, hits = 1.0, 0
    truth = 0.5 * (1 + math.erf(shift / 2))  # of two normals a standard deviation apart
    for _ in range(200):
        right = [rng.gauss(shift, 1) for _ in range(20)]
        found = agreement_of(right, [rng.gauss(0, 1) for _ in range(25)])
        hits += found.low <= truth <= found.high
    assert 0.9 < hits / 200 <= 1.0


SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=12)


@given(SCORES, SCORES)
def test_the_share_of_wrong_above_right_is_what_is_left(
    right: list[float], wrong: list[float]
) -> None:
    found, other = agreement_of(right, wrong), agreement_of(wrong, right)
    assert (found.right, found.wrong) == (len(right), len(wrong)) == (other.wrong, other.right)
    if not right or not wrong:
        assert math.isnan(found.value)
        assert math.isnan(found.low)
        return
    pairs = [(r > w) + (r == w) / 2 for r in right for w in wrong]
    assert found.value == pytest.approx(sum(pairs) / len(pairs))
    assert found.value + other.value == pytest.approx(1)
    if min(len(right), len(wrong)) < LEAST:
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert not found.better_than_chance
    else:
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.low < found.high
        # The interval holds at both ends of the scale alike.
        assert (other.low, other.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-6)


def test_more_wrong_replies_than_right_ones_are_as_sure_as_the_other_way_round() -> None:
    found, other = (agreement_of([0.5, 1.0] * m, [0.0, 0.5] * n) for m, n in ((3, 20), (20, 3)))
    assert (found.low, found.high) == pytest.approx((other.low, other.high))
    equal = agreement_of([0.5, 1.0] * 20, [0.0, 0.5] * 20)
    assert found.low < equal.low


def test_five_replies_of_each_kind_are_the_least_for_an_interval() -> None:
    assert math.isnan(agreement_of([1.0] * 4, [0.0] * 50).low)
    assert math.isnan(agreement_of([1.0] * 50, [0.0] * 4).low)
    assert agreement_of([1.0] * 5, [0.0] * 5).low > 0.5


def test_more_replies_make_the_interval_narrower() -> None:
    few, many = (agreement_of([0.5, 1.0] * n, [0.0, 0.5] * n) for n in (5, 50))
    assert few.value == many.value == 0.875
    assert few.low < many.low
    assert many.high < few.high


def test_an_interval_that_begins_at_chance_is_not_better_than_chance() -> None:
    assert not evo.Agreement(0.7, 0.5, 0.8, 9, 9, 0).better_than_chance
    assert evo.Agreement(0.7, math.nextafter(0.5, 1), 0.8, 9, 9, 0).better_than_chance


def test_replies_without_a_score_are_told_only_where_there_are_some() -> None:
    assert "without a score" not in str(agreement_of([1.0] * 5, [0.0] * 5))
    assert str(agreement_of([1.0] * 5, [0.0] * 5, unscored=3)).endswith(
        "5 right and 5 wrong replies, 3 without a score"
    )
