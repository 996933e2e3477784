"""A better child replaces its parent only if its fresh draws say so."""

from __future__ import annotations

import pytest

from evo.logs.means import confirmed_fitness
from evo.logs.records import Confirmation, Evaluation
from evo.runs.accept import confirmation
from evo.runs.configuration import make_header


def tried(parent: list[float | None], rival: list[float | None], **fields: float) -> Confirmation:
    """What a confirmation finds whose draws have these fitnesses; None: the draw failed."""
    header = make_header("mmd", confirm=len(rival), **fields)  # type: ignore[arg-type]
    step = confirmation(header, 1, 0, "parent", "rival")
    draws = next(step)
    assert [each.program for each in draws] == ["parent"] * len(parent) + ["rival"] * len(rival)
    results = [
        Evaluation(status="error", error="no") if value is None
        else Evaluation(status="ok", fitness=value)
        for value in parent + rival
    ]  # fmt: skip
    with pytest.raises(StopIteration) as end:
        step.send(results)
    found: Confirmation = end.value.value
    return found


@pytest.mark.parametrize("place", range(3))
def test_a_rival_that_fails_one_fresh_draw_is_rejected(place: int) -> None:
    rival: list[float | None] = [0.9, 0.9, 0.9]
    rival[place] = None
    for parent in ([0.25, 0.25, 0.25], [0.25, None, 0.25]):
        found = tried(parent, rival)
        assert (found.accepted, found.bound) == (False, None)
        assert confirmed_fitness(found, False, 0.2) == (0.25 if None not in parent else 0.2)


def test_a_rival_without_failures_beats_a_parent_with_one() -> None:
    found = tried([0.9, None, 0.9], [0.1, 0.1, 0.1])
    assert (found.accepted, found.bound) == (True, None)
    assert confirmed_fitness(found, True, 0.9) == pytest.approx(0.1)


@pytest.mark.parametrize("gain", [0.0, 0.25, -0.25])
def test_a_gain_has_to_exceed_the_least_improvement(gain: float) -> None:
    for least in (0.0, 0.25):
        found = tried([0.5, 0.5], [0.5 + gain] * 2, min_improvement=least)
        assert found.bound == gain
        assert found.accepted == (gain > least)


def test_a_gain_within_the_noise_is_none() -> None:
    parent = [0.5, 0.5, 0.5, 0.5]
    assert not tried(parent, [0.9, 0.1, 0.9, 0.3]).accepted  # a mean gain of 0.05
    assert tried(parent, [0.58, 0.56, 0.55, 0.56]).accepted
