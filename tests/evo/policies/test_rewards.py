"""Rewards of a pull, by their definitions."""

import numpy as np
import pytest

from evo.rewards import REWARDS, Pull, find_reward

NAN = np.nan


def reward(name, before, after, known, arm=0):
    known = np.array([known])
    pull = Pull(np.array([arm]), np.array([before]), np.array([after]), lambda: known)
    return float(REWARDS[name](pull)[0])


@pytest.mark.parametrize(
    ("name", "before", "after", "known", "expected"),
    [
        ("best_fitness", 0.5, 1.25, [1.25, 0.5], 1.25),
        ("best_fitness", NAN, NAN, [NAN, 0.5], 0.0),
        ("improvement", 0.5, 1.25, [1.25, 0.5], 0.75),
        ("improvement", NAN, 0.25, [0.25, 0.5], 0.25),
        ("improvement", NAN, NAN, [NAN, NAN], 0.0),
        ("improved", 0.5, 0.5, [0.5, 0.5], 0.0),
        ("improved", 0.5, 0.75, [0.75, 0.5], 1.0),
        ("improved", NAN, 0.0, [0.0, 0.5], 1.0),
        ("improved", NAN, NAN, [NAN, 0.5], 0.0),
        ("rank", 0.5, 1.25, [1.25, 0.5, 2.0], 0.5),
        ("rank", 0.5, 0.5, [0.5, 0.5, 0.5], 0.5),
        ("rank", NAN, NAN, [NAN, 0.5, NAN], 0.25),
        ("rank", 0.5, 0.5, [0.5], 0.5),
        ("scaled", 0.5, 1.5, [1.5, 0.5, 2.5], 0.5),
        ("scaled", 0.5, 0.5, [0.5, 0.5], 0.5),
        ("scaled", NAN, NAN, [NAN, 0.5], 0.0),
    ],
)
def test_definitions(name, before, after, known, expected):
    assert reward(name, before, after, known) == expected


@pytest.mark.parametrize("name", ["best_fitness", "improvement", "rank", "scaled"])
def test_fitness_above_1_keeps_its_signal(name):
    lower = reward(name, 0.9, 1.01, [1.01, 0.9, 1.015, 1.03])
    higher = reward(name, 0.9, 1.02, [1.02, 0.9, 1.015, 1.03])
    assert higher > lower


@pytest.mark.parametrize("name", REWARDS)
def test_rewards_are_numbers_and_leave_the_pull_alone(name):
    rng = np.random.default_rng(0)
    known = np.where(rng.random((500, 4)) < 0.4, NAN, rng.normal(size=(500, 4)))
    after = known[:, 2].copy()
    before = np.where(rng.random(500) < 0.3, NAN, after - rng.random(500))
    copies = [a.copy() for a in (known, after, before)]
    values = REWARDS[name](Pull(np.full(500, 2), before, after, lambda: known))
    assert values.shape == (500,)
    assert np.isfinite(values).all()
    for array, copy in zip((known, after, before), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_unknown_rewards_list_the_known():
    with pytest.raises(ValueError, match=r"improvement.*got 'best'"):
        find_reward("best")
    assert find_reward(len) is len
