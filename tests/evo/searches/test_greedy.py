"""Greedy search: which child becomes the parent, and that best of N never takes one."""

import math

import pytest
from archives import archive_of, stream

from evo.searches import BestOfN, Greedy, Member


def parent(search: Greedy | BestOfN, rows: list[list[float | None]], least: float, start=0.5):  # type: ignore[no-untyped-def]
    """Returns the parent of every request after some generations."""
    state = search.start(Member((0, 0), start), least)
    for generation in archive_of(rows):
        state = search.fold(state, generation)
    [request] = set(search.plan(state, 3, stream(3, len(rows))))
    assert request.operator == "rewrite"
    [place] = request.parents
    return place


@pytest.mark.parametrize(
    ("rows", "least", "place"),
    [
        ([], 0.0, (0, 0)),
        ([[0.5, 0.5]], 0.0, (0, 0)),  # as good is not better
        ([[0.5, math.nextafter(0.5, 1)]], 0.0, (1, 1)),
        ([[0.75, 0.5]], 0.25, (0, 0)),  # better by no more than is asked for
        ([[0.875, 0.75]], 0.25, (1, 0)),
        ([[None, 0.6, 0.6]], 0.0, (1, 1)),  # of equal ones the first
        ([[0.6, 0.9], [0.8, 0.7]], 0.0, (1, 1)),  # a worse generation changes nothing
        ([[0.6, 0.7], [0.7, 0.8]], 0.0, (2, 1)),
        ([[None, None], [None, None]], 0.0, (0, 0)),
    ],
)
def test_the_parent_is_the_best_so_far(
    rows: list[list[float | None]], least: float, place: tuple[int, int]
) -> None:
    assert parent(Greedy(), rows, least) == place
    assert parent(BestOfN(), rows, least) == (0, 0)


def test_any_child_that_is_ok_replaces_an_initial_program_that_failed() -> None:
    assert parent(Greedy(), [[None, -7.0, -8.0]], 0.5, start=None) == (1, 1)


def test_steps_that_are_too_small_do_not_add_up() -> None:
    """Each child is compared with its parent, which the ones before have not become."""
    assert parent(Greedy(), [[0.5625], [0.625], [0.6875]], 0.125) == (3, 0)
    assert parent(Greedy(), [[0.5625], [0.625]], 0.125) == (0, 0)
