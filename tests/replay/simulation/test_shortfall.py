"""How often the bootstrap's time is enough: between what was measured, and nowhere beyond."""

import math

import pytest

from replay.simulation.shortfall import HELD, SHARE, held_by, note_on_times


def test_what_was_measured_is_stated_as_it_is_and_more_runs_never_hold_less_often():
    assert {n: held_by(n, SHARE) for n in HELD} == HELD
    limits = [held_by(n, SHARE) for n in range(min(HELD), 200)]
    assert limits == sorted(limits)
    assert max(limits) == max(HELD.values()) < SHARE


@pytest.mark.parametrize(("runs", "share"), [(4, 0.9), (0, 0.9), (20, 0.8), (20, 0.95)])
def test_nothing_is_stated_of_what_was_not_measured(runs, share):
    assert math.isnan(held_by(runs, share))


def test_a_note_is_about_the_smallest_group_and_there_is_none_where_that_is_too_small():
    [note] = note_on_times([20, 6, 50])
    assert "of 6 runs it is one in 73 % of samples" in note
    assert note_on_times([20, 4]) == note_on_times([]) == []
