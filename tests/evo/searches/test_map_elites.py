"""A map of elites: which cell a program is in, and whom a cell keeps."""

import pytest
from archives import stream
from hypothesis import given
from hypothesis import strategies as st

from evo.searches import MapElites, Member, Request


def test_a_map_keeps_the_best_program_of_each_cell() -> None:
    search = MapElites(metrics=("size", "length"), bins=2)
    found = [(0.0, "a"), (10.0, "a"), (9.0, "a" * 9), (1.0, "a" * 9), (9.5, "a" * 8)]
    members = [
        Member((1, i), 0.1 * i, (), text, {"size": size}) for i, (size, text) in enumerate(found)
    ]
    state = search.start(Member((0, 0), 0.5, (), "a", {"size": 4.0}), 1e-9)
    assert [m.place for m in search.elites(state)] == [(0, 0)]
    state = search.fold(state, [*members, Member((1, 5), None), Member((1, 6), 2.0, (), "a")])
    assert [m.place for m in search.elites(state)] == [(0, 0), (1, 3), (1, 1), (1, 4)]
    parents = {request.parents[0] for request in search.plan(state, 200, stream(200, 2))}
    assert parents == {(0, 0), (1, 3), (1, 1), (1, 4)}


def explored(search: MapElites, *found: tuple[float, float | None]) -> list[tuple[int, int]]:
    """Returns the places of the elites, of programs by their feature `x` and fitness."""
    members = [Member((1, k), value, (), "", {"x": x}) for k, (x, value) in enumerate(found)]
    state = search.start(Member((0, 0), None), 0)
    return [each.place for each in search.elites(search.fold(state, members))]


@given(
    st.lists(st.tuples(st.integers(0, 16), st.none() | st.sampled_from([0.0, 0.5, 1.0]))),
    st.sampled_from([1, 2, 4, 8]),
)
def test_each_bin_of_equal_width_keeps_the_first_of_its_best(
    more: list[tuple[int, float | None]], bins: int
) -> None:
    found = [(0, 0.25), (16, 0.25), *more]  # so that the ends are known
    cells: dict[int, list[int]] = {}
    for k, (x, value) in enumerate(found):
        if value is not None:
            cells.setdefault(min(x * bins // 16, bins - 1), []).append(k)
    best = [(1, max(cells[cell], key=lambda k: (found[k][1], -k))) for cell in sorted(cells)]
    assert explored(MapElites(metrics=("x",), bins=bins), *found) == best


def test_ends_that_are_far_apart_or_equal_have_bins() -> None:
    search = MapElites(metrics=("x",), bins=2)
    assert explored(search, (-1.7e308, 0.1), (1.7e308, 0.1), (-1e307, 0.5), (1e307, 0.5)) == [
        (1, 2),
        (1, 3),
    ]
    assert explored(search, (3.0, 0.1), (3.0, 0.5), (3.0, 0.5)) == [(1, 1)]
    assert explored(search) == explored(search, (3.0, None)) == []


def test_what_lacks_a_feature_is_left_out_and_a_feature_is_named_once() -> None:
    search = MapElites(metrics=("length", "x"), bins=2)
    state = search.start(Member((0, 0), 0.1, (), "a", {"x": 0.0}), 0)
    whole = Member((1, 1), 0.2, (), "ab", {"x": 1.0})
    state = search.fold(state, [Member((1, 0), 0.9, (), "abc", {"y": 1.0}), whole])
    assert [each.place for each in state.members] == [(0, 0), (1, 1)]
    with pytest.raises(ValueError, match="at least one and all different"):
        MapElites(metrics=("x", "length", "x"))


def test_an_empty_map_asks_for_the_initial_program() -> None:
    search = MapElites()
    assert search.plan(search.start(Member((0, 0), None), 0), 2, stream(2, 1)) == [
        Request(((0, 0),)),
        Request(((0, 0),)),
    ]
