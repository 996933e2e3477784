"""Invented runs: they climb from where all begin, and a seed means the same draws in each world."""

import numpy as np
import pytest

from replay.simulation.worlds import START, WORLDS, null, rates


@pytest.mark.parametrize("name", WORLDS)
def test_runs_climb_from_one_beginning_and_repeat(name):
    one, again = (WORLDS[name](np.random.default_rng(3), 200, 12) for _ in "ab")
    assert one.shape == (200, 13)
    assert (one == again).all()
    assert len(np.unique(one[:, 0])) == 1 or name == "ceilings"
    assert (np.diff(one, axis=1) >= 0).all()
    assert ((one >= 0) & (one <= 1)).all()


def test_one_generation_in_four_gains_where_nothing_can_be_chosen():
    climbs = null(np.random.default_rng(0), 4000, 8)
    assert climbs[:, 0] == pytest.approx(START)
    assert abs((np.diff(climbs, axis=1) > 0).mean() - 0.25) < 0.01
    half = np.log((1 - climbs[:, 4]) / 0.7), np.log((1 - climbs[:, 8]) / (1 - climbs[:, 4]))
    assert abs(np.corrcoef(*half)[0, 1]) < 0.05  # increments know nothing of the run


def test_a_rate_of_its_own_makes_a_run_climb_for_ever():
    climbs = rates(np.random.default_rng(0), 4000, 8)
    half = np.log((1 - climbs[:, 4]) / 0.7), np.log((1 - climbs[:, 8]) / (1 - climbs[:, 4]))
    assert np.corrcoef(*half)[0, 1] > 0.2


def test_a_ceiling_is_approached_and_a_jump_is_one_run_in_ten():
    ceilings = WORLDS["ceilings"](np.random.default_rng(1), 4000, 40)
    last = np.diff(ceilings, axis=1)[:, -10:].sum(axis=1)
    assert last.max() < 0.01
    assert 0.2 <= ceilings[:, 0].min() <= ceilings.max() <= 0.95
    jumps = WORLDS["jump"](np.random.default_rng(1), 4000, 40)
    assert abs((np.diff(jumps, axis=1).max(axis=1) > 0.39).mean() - 0.1) < 0.02
    steps = (np.diff(jumps, axis=1) > 0.39).nonzero()[1] + 1
    assert (steps.min(), steps.max()) == (4, 19)
