"""A tree of programs: where it grows, and what counts for each node."""

import pytest
from archives import stream
from hypothesis import given
from hypothesis import strategies as st

from evo.keyed import KeyedStream
from evo.searches import Member, Tree


def test_a_tree_grows_where_it_pays() -> None:
    def grown(gain: float, *, fails: bool = False) -> dict[tuple[int, int], int]:
        """Depth of each program, where each child is better than its parent by `gain`."""
        search, depth = Tree(), {(0, 0): 0}
        state = search.start(Member((0, 0), 0.0), 1e-9)
        for g in range(1, 61):
            made = []
            for i, request in enumerate(search.plan(state, 2, stream(2, g))):
                [parent] = request.parents
                fitness = None if fails and parent == (1, 0) else state[parent].fitness + gain
                if fitness is not None:
                    depth[(g, i)] = depth[parent] + 1
                made.append(Member((g, i), fitness, (parent,)))
            state = search.fold(state, made)
        return depth

    deep, broad = grown(1.0), grown(-1.0)
    assert max(deep.values()) > 2 * max(broad.values())
    assert list(broad.values()).count(1) > 2 * list(deep.values()).count(1)


def test_what_a_child_came_to_counts_for_all_programs_above_it() -> None:
    search = Tree()
    state = search.start(Member((0, 0), 0.0), 1e-9)
    for generation, fitness in ((1, 1.0), (2, 2.0), (3, None)):
        child = Member((generation, 0), fitness, parents=((generation - 1, 0),))
        state = search.fold(state, [child])
    below = {place: node.below for place, node in state.items()}
    failed = -float("inf")
    assert below == {(0, 0): (1.0, 2.0, failed), (1, 0): (2.0, failed), (2, 0): (failed,)}
    widened = {place: node.widened for place, node in state.items()}
    assert widened == {(0, 0): (1.0,), (1, 0): (2.0,), (2, 0): (failed,)}


def test_requests_under_way_count_as_failed_in_a_tree() -> None:
    search = Tree()
    state = search.fold(search.start(Member((0, 0), 1.0), 0), [Member((1, 0), 0.0, ((0, 0),))])
    alone = {search.plan(state, 1, stream(1, number))[0].parents for number in range(50)}
    assert alone == {((0, 0),)}  # what else there is came to less
    together = {each.parents for each in search.plan(state, 50, stream(50, 1))}
    assert together == {((0, 0),), ((1, 0),)}

    state = search.fold(search.start(Member((0, 0), 0.0), 0), [Member((1, 0), 1.0, ((0, 0),))])
    state = search.fold(state, [Member((2, 0), 2.0, ((1, 0),))])

    def share(place: tuple[int, int], *waiting: tuple[int, int]) -> float:
        """How often a program is rewritten while others are under way."""
        under_way = [(each,) for each in waiting]
        asked = [search.plan_one(state, 1, 4, under_way, stream(1, k)) for k in range(200)]
        return sum(each.parents == (place,) for each in asked) / 200

    for place in state:
        assert share(place, *[place] * 40) < share(place) / 2
    # A request counts for the programs above the one that it rewrites, as ways to go deeper.
    assert share((0, 0), *[(2, 0)] * 40) > 2 * share((0, 0))


def test_a_tree_holds_the_ok_programs_under_the_ones_they_were_made_from() -> None:
    search, failed = Tree(), -float("inf")
    state = search.start(Member((0, 0), None), 0)
    assert state[0, 0].fitness == failed
    first = [Member((1, 0), 0.5), Member((1, 1), None), Member((1, 2), 0.25, ((0, 0),))]
    state = search.fold(state, first)  # without parents it was made from the initial program
    second = [Member((2, 0), 0.75, ((1, 2), (1, 0))), Member((2, 1), None, ((1, 0),))]
    state = search.fold(state, second)
    assert {place: node.parent for place, node in state.items()} == {
        (0, 0): None, (1, 0): (0, 0), (1, 2): (0, 0), (2, 0): (1, 2)
    }  # fmt: skip
    assert state[0, 0].children == ((1, 0), (1, 2))
    assert state[0, 0].widened == (0.5, failed, 0.25)
    assert state[0, 0].below == (0.5, failed, 0.25, 0.75, failed)
    assert state[1, 2].children == ((2, 0),)  # of two parents the first counts
    assert (state[1, 0].children, state[1, 0].widened) == ((), (failed,))


@pytest.mark.parametrize("prior", [1, 3])
def test_the_prior_is_how_often_the_own_fitness_counts(prior: int) -> None:
    search = Tree(prior=prior)

    class Fixed(KeyedStream):
        """Draws the place that it is given, if there is one, else the last."""

        def __init__(self, at: int) -> None:
            self.at, self.high = at, [0]

        def integer(self, low: int, high: int) -> int:
            assert low == 0
            self.high.append(high)
            return min(self.at, high)

    state = search.fold(search.start(Member((0, 0), 1.0), 0), [Member((1, 0), 2.0, ((0, 0),))])
    rng = Fixed(0)
    assert search.plan(state, 1, rng)[0].parents == ((1, 0),)  # own fitnesses: 1 against 2
    assert max(rng.high) == prior  # its own fitness that often, and one outcome
    # The last outcome is drawn: making one more of the first came to 2, going on came to nothing
    # but its own fitness, which is as much. Of equal ones the first, which is wider.
    assert search.plan(state, 1, Fixed(prior))[0].parents == ((0, 0),)


@given(st.lists(st.lists(st.none() | st.floats(-1, 1), min_size=2, max_size=2), max_size=5))
def test_what_is_below_a_program_is_what_its_children_came_to_and_what_is_below_them(
    fitness: list[list[float | None]],
) -> None:
    search = Tree()
    state = search.start(Member((0, 0), 0.0), 0)
    for number, row in enumerate(fitness, start=1):
        asked = search.plan(state, len(row), stream(len(row), number))
        made = [Member((number, k), value, asked[k].parents) for k, value in enumerate(row)]
        state = search.fold(state, made)
    for node in state.values():
        deeper = [value for child in node.children for value in state[child].below]
        assert sorted(node.below) == sorted([*node.widened, *deeper])
        assert [state[child].fitness for child in node.children] == [
            value for value in node.widened if value > -float("inf")
        ]
