"""Keyed draws: frozen values, ranges, and shares that are as stated."""

import hashlib
import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.keyed import KeyedStream

FROZEN = [86, 76, 28, 23, 89, 98, 83, 84]

keys = st.lists(st.integers() | st.text(max_size=5) | st.none(), max_size=3)


@given(keys)
def test_draws_are_those_of_pythons_generator_seeded_by_the_key(key):
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    expected = random.Random(int.from_bytes(digest[:16], "big"))
    stream = KeyedStream(*key)
    assert [stream.uniform(0, 1) for _ in range(3)] == [expected.random() for _ in range(3)]


def test_values_are_those_of_every_platform_and_version():
    """Logged plans rest on them."""
    stream = KeyedStream("a", 1)
    assert [stream.integer(0, 99) for _ in range(8)] == FROZEN
    assert KeyedStream("a", 1).integer(0, 99) != KeyedStream("a", "1").integer(0, 99)


@given(keys, st.integers(-50, 50), st.integers(0, 30))
def test_integers_have_both_their_ends(key, low, width):
    stream = KeyedStream(*key)
    drawn = [stream.integer(low, low + width) for _ in range(20)]
    assert all(low <= each <= low + width for each in drawn)


def test_every_integer_comes_about_as_often():
    stream = KeyedStream(3)
    found = Counter(stream.integer(-1, 2) for _ in range(8000))
    assert set(found) == {-1, 0, 1, 2}
    assert all(abs(count - 2000) < 4 * 39 for count in found.values())  # four deviations


@given(keys, st.lists(st.integers(), unique=True, min_size=1, max_size=9), st.data())
def test_a_sample_has_different_items_and_all_of_them_are_a_permutation(key, items, data):
    count = data.draw(st.integers(0, len(items)))
    before = list(items)
    found = KeyedStream(*key).sample(items, count)
    assert len(set(found)) == count
    assert set(found) <= set(items)
    assert items == before
    assert KeyedStream(*key).sample(items, len(items))[:count] == found
    assert sorted(KeyedStream(*key).sample(items, len(items))) == sorted(items)


def test_weights_are_shares_and_nothing_without_a_weight_is_drawn():
    stream = KeyedStream("w")
    weights = {"never": 0.0, "a": 1.0, "b": 3.0, "also never": 0.0}
    found = Counter(stream.weighted(weights) for _ in range(4000))
    assert set(found) == {"a", "b"}
    assert abs(found["a"] - 1000) < 4 * 28


def test_rounding_beyond_the_last_weight_draws_the_last_that_has_one(monkeypatch):
    stream = KeyedStream()
    monkeypatch.setattr(stream._random, "random", lambda: 1.0)
    assert stream.weighted({"a": 0.1, "b": 0.2, "none": 0.0}) == "b"
    monkeypatch.setattr(stream._random, "random", lambda: 0.0)
    assert stream.weighted({"none": 0.0, "a": 0.1, "b": 0.2}) == "a"


@pytest.mark.parametrize(("probability", "share"), [(0.0, 0), (1.0, 1), (0.25, 0.25)])
def test_a_chance_is_taken_as_often_as_stated_and_uses_one_draw(probability, share):
    stream = KeyedStream("c")
    found = [stream.chance(probability) for _ in range(2000)]
    assert abs(sum(found) / 2000 - share) < 0.04
    one, other = KeyedStream("d"), KeyedStream("d")
    one.chance(probability)
    other.uniform(0, 1)
    assert one.pick(range(1000)) == other.pick(range(1000))


def test_uniform_draws_lie_between_their_ends_and_a_pick_reaches_every_item():
    stream = KeyedStream("u")
    drawn = [stream.uniform(-2, 3) for _ in range(500)]
    assert -2 <= min(drawn) < -1.9
    assert 2.9 < max(drawn) < 3
    assert {stream.pick("abc") for _ in range(50)} == set("abc")
