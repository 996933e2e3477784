"""A population: who survives, who becomes a parent, and what it is asked for."""

import pytest
from archives import archive_of, stream
from hypothesis import given
from hypothesis import strategies as st

from evo.searches import Member, Population
from evo.searches.base import ranked
from evo.searches.population import LoggedPopulation


def test_elite_survives_worse_children_and_selection_keeps_the_best() -> None:
    search = Population(size=3, elite=1)
    state = search.start(Member((0, 0), 0.9), 1e-9)
    state = search.fold(state, archive_of([[0.1, 0.2, 0.3, 0.4]])[0])
    assert [m.place for m in state.members] == [(0, 0), (1, 3), (1, 2)]
    state = search.fold(state, [Member((2, 0), 0.2), Member((2, 1), None)])
    assert [m.place for m in state.members] == [(0, 0), (1, 3), (2, 0)]  # children before older


def test_crossover_takes_two_parents_and_its_rate_is_kept() -> None:
    search = Population(size=30, crossover_rate=0.25, mutation_rate=0.5, tournament=1)
    state = search.start(Member((0, 0), 0.0), 1e-9)
    state = search.fold(state, archive_of([[0.01 * i for i in range(29)]])[0])
    requests = search.plan(state, 4000, stream(4000, 2))
    share = {o: sum(r.operator == o for r in requests) / 4000 for o in ("cross", "mutate")}
    assert abs(share["cross"] - 0.25 * 29 / 30) < 0.03
    assert abs(share["mutate"] / (1 - share["cross"]) - 0.5) < 0.03
    assert {len(r.parents) for r in requests if r.operator == "cross"} == {2}
    assert {len(r.parents) for r in requests if r.operator != "cross"} == {1}
    chosen = {place for request in requests for place in request.parents}
    assert chosen == {member.place for member in state.members}  # the best and the worst, too


def test_a_larger_tournament_presses_harder() -> None:
    def mean_rank(tournament: int) -> float:
        search = Population(size=20, tournament=tournament, crossover_rate=0.0)
        state = search.start(Member((0, 0), 0.0), 1e-9)
        state = search.fold(state, archive_of([[1.0 + i for i in range(19)]])[0])
        rank = {m.place: k for k, m in enumerate(state.members)}
        requests = search.plan(state, 2000, stream(2000, 2))
        return sum(rank[r.parents[0]] for r in requests) / 2000

    assert abs(mean_rank(1) - 9.5) < 0.6
    assert mean_rank(1) > mean_rank(2) + 2 > mean_rank(5) + 4


def test_a_population_is_its_elite_its_newcomers_and_the_best_of_the_older() -> None:
    search = Population(size=4, elite=1)
    state = search.start(Member((0, 0), 0.5), 0)
    first, second = archive_of([[0.1, 0.2, 0.3, 0.4, 0.45, None], [0.05, 0.01]])
    state = search.fold(state, first)
    assert [each.fitness for each in state.members] == [0.5, 0.45, 0.4, 0.3]
    state = search.fold(state, second)
    assert [each.fitness for each in state.members] == [0.5, 0.45, 0.05, 0.01]


@pytest.mark.parametrize(("rate", "operator"), [(1.0, "mutate"), (0.0, "rewrite")])
def test_one_member_is_not_crossed_with_itself(rate: float, operator: str) -> None:
    search = Population(crossover_rate=1.0, mutation_rate=rate)
    requests = search.plan(search.start(Member((0, 0), 0.5), 0), 50, stream(50, 1))
    assert {(each.parents, each.operator) for each in requests} == {(((0, 0),), operator)}


@given(st.sampled_from([0.0, 0.25, 1.0]), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 30))
def test_rates_change_what_is_asked_for_and_not_who_is_drawn(
    crossover: float, mutation: float, number: int
) -> None:
    """Each request takes as many draws whatever comes of them."""
    plain = Population(size=9, crossover_rate=1.0)
    other = Population(size=9, crossover_rate=crossover, mutation_rate=mutation)
    [children] = archive_of([[0.1 * k for k in range(8)]])
    state = plain.fold(plain.start(Member((0, 0), 0.5), 0), children)
    one, two = (search.plan(state, 5, stream(5, number)) for search in (plain, other))
    assert [each.parents[0] for each in one] == [each.parents[0] for each in two]
    operators = {each.operator for each in two}
    if crossover == 0.0:
        assert "cross" not in operators
    if mutation in (0.0, 1.0):
        assert ("mutate" if mutation == 0.0 else "rewrite") not in operators


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_the_elite_is_2_or_what_leaves_room_for_one_child(size: int) -> None:
    assert Population(size=size).elite == min(2, size - 1)
    assert Population(size=size, elite=size - 1).elite == size - 1
    with pytest.raises(ValueError, match=f"elite: expected fewer than size \\({size}\\)"):
        Population(size=size, elite=size)
    assert LoggedPopulation(size=size, elite=size).elite == size
    with pytest.raises(ValueError, match="elite: expected at most size"):
        LoggedPopulation(size=size, elite=size + 1)


@given(
    st.lists(st.lists(st.none() | st.floats(0, 1), min_size=4, max_size=4), max_size=5),
    st.integers(1, 5),
    st.integers(0, 4),
)
def test_a_population_is_ranked_never_outgrows_its_size_and_keeps_its_best(
    fitness: list[list[float | None]], size: int, elite: int
) -> None:
    search = Population(size=size, elite=min(elite, size - 1))
    state = search.start(Member((0, 0), 0.5), 0)
    for generation in archive_of(fitness):
        before, state = state.members, search.fold(state, generation)
        assert list(state.members) == ranked(state.members)
        assert len(before) <= len(state.members) <= size
        assert {*before[: search.elite]} <= {*state.members}
        new = ranked(generation)[: size - min(search.elite, len(before))]
        assert {*new} <= {*state.members}


def test_while_nothing_is_ok_the_initial_program_is_rewritten() -> None:
    search = Population(size=3)
    state = search.fold(search.start(Member((0, 0), None), 0), [Member((1, 0), None)])
    assert state.members == ()
    assert {each.parents for each in search.plan(state, 9, stream(9, 1))} == {((0, 0),)}
