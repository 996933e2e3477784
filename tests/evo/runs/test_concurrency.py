"""Presets and the two-level split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evo
from evo.runs.settings import Settings


@given(st.integers(1, 500), st.integers(1, 500))
def test_a_split_never_exceeds_the_slots_and_no_further_arm_would_fit(slots, batch):
    arms, children = evo.plan_concurrency(slots, batch)
    assert 1 <= children <= batch
    assert 0 <= slots - arms * children < children


@pytest.mark.parametrize(
    ("slots", "batch", "split"),
    [(20, 5, (4, 5)), (20, 100, (1, 20)), (20, 1, (20, 1)), (10, 10, (1, 10))],
)
def test_children_are_split_before_arms(slots, batch, split):
    assert evo.plan_concurrency(slots, batch) == split


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (-1, 5)])
def test_splits_of_nothing_are_refused(numbers):
    with pytest.raises(ValueError, match="expected at least 1"):
        evo.plan_concurrency(*numbers)


def test_a_preset_stands_in_for_what_is_not_given():
    plain, preset = Settings(), Settings(preset="balanced")
    assert (plain.max_concurrent, plain.requests_per_minute) == (20, None)
    assert (preset.max_concurrent, preset.requests_per_minute) == (10, 3500)
    own = Settings(preset="balanced", max_concurrent=20, requests_per_minute=7)
    assert (own.max_concurrent, own.requests_per_minute) == (20, 7)


@pytest.mark.parametrize(
    "fields",
    [{"preset": "fast"}, {"requests_per_minute": 0}, {"tokens_per_minute": 0}],
)
def test_settings_out_of_range_are_refused(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        Settings(**fields)
