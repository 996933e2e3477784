"""Islands: whose turn it is, and who migrates where."""

from dataclasses import replace

from archives import archive_of, stream
from hypothesis import given
from hypothesis import strategies as st

from evo.searches import Islands, Member, Population
from evo.searches.base import plan_one


def test_every_island_gets_its_turn_with_one_child_a_generation() -> None:
    search = Islands(islands=3, interval=100)
    state = search.start(Member((0, 0), 0.0), 1e-9)
    for g in range(1, 7):
        state = search.fold(state, [Member((g, 0), float(g))])
    places = [{m.place[0] for m in people.members} for people in state.islands]
    assert places == [{0, 1, 4}, {0, 2, 5}, {0, 3, 6}]


def test_guests_take_the_place_of_the_worst_so_that_no_island_outgrows_its_size() -> None:
    search = Islands(islands=3, interval=2, migrants=2, population=Population(size=4, elite=1))
    state = search.start(Member((0, 0), 0.0), 1e-9)
    for g in range(1, 9):
        before = state
        state = search.fold(state, [Member((g, i), g + i / 12) for i in range(12)])
        assert all(len(people.members) <= 4 for people in state.islands)
        if g % 2 == 0:
            apart = replace(search, interval=100).fold(before, [
                Member((g, i), g + i / 12) for i in range(12)
            ])  # fmt: skip
            for k, people in enumerate(state.islands):
                guests, own = apart.islands[k - 1].members[:2], apart.islands[k].members
                expected = {m.place for m in (*own[:2], *guests)}
                assert {m.place for m in people.members} == expected


@given(
    st.lists(st.lists(st.sampled_from([None, 0.1, 0.4, 0.7]), min_size=3, max_size=3), max_size=5)
)
def test_islands_that_complete_one_by_one_are_those_that_complete_together(
    fitness: list[list[float | None]],
) -> None:
    search = Islands(islands=3, interval=2, population=Population(size=3, elite=1))
    alone = together = search.start(Member((0, 0), 0.2), 0)
    for before, generation in enumerate(archive_of(fitness)):
        together = search.fold(together, generation)
        for index, member in enumerate(generation):
            alone = search.fold_one(alone, member, 3 * before + index, 3)
        assert alone.islands == together.islands


def test_requests_that_are_made_one_by_one_go_to_the_islands_in_turn() -> None:
    search = Islands(islands=3, interval=100, population=Population(size=3, elite=1))
    [children] = archive_of([[1.0, 2.0, 3.0]])
    state = search.fold(search.start(Member((0, 0), 0.0), 0), children)
    homes = [{member.place for member in people.members} for people in state.islands]
    for number in range(30):
        request = plan_one(search, state, number, 3, (), stream(1, number))
        assert set(request.parents) <= homes[number % 3]


def test_members_go_round_the_ring_once_a_migration() -> None:
    """The best of island k is next on island k + 1, and on no other; the last passes to the
    first."""
    search = Islands(islands=3, interval=2, population=Population(size=5, elite=1))
    initial = Member((0, 0), 0.0)
    one, two = archive_of([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    before = search.fold(search.start(initial, 0), one)
    assert [len(people.members) for people in before.islands] == [2, 2, 2]
    after = search.fold(before, two)
    assert [people.members[0].place for people in after.islands] == [(2, 2), (2, 1), (2, 2)]
    assert [people.members[1].place for people in after.islands] == [(2, 0), (2, 0), (2, 1)]
    assert after.generation == 2


def test_a_member_that_is_there_already_does_not_come_as_a_guest() -> None:
    search = Islands(islands=1, interval=1, migrants=2, population=Population(size=3, elite=1))
    [children] = archive_of([[0.4, 0.5, 0.6]])
    state = search.fold(search.start(Member((0, 0), 0.0), 0), children)
    assert [m.place for m in state.islands[0].members] == [(1, 2), (1, 1), (0, 0)]


def test_without_migrants_islands_stay_apart() -> None:
    apart, rare = (
        Islands(islands=2, interval=k, migrants=0 if k == 1 else 1, population=Population(size=4))
        for k in (1, 1000)
    )
    one = two = apart.start(Member((0, 0), 0.0), 0)
    for generation in archive_of([[0.1 * k, 0.3, 0.2 * k] for k in range(6)]):
        one, two = apart.fold(one, generation), rare.fold(two, generation)
        assert one == two
