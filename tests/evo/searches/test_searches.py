"""What every search keeps, whatever it chooses; a new one joins by a line in SEARCHES."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evo
from evo.keyed import KeyedStream
from evo.logs.records import SearchRecord
from evo.searches import (
    SEARCHES,
    BestOfN,
    Greedy,
    Islands,
    MapElites,
    Member,
    Pareto,
    Population,
    Request,
    Search,
    Tree,
    find_search,
)
from evo.searches.base import choose, plan_one, ranked
from evo.searches.registry import record_of, search_of
from evo.values import fields_of, source_hash

ALL: dict[str, Search] = {
    "greedy": Greedy(),
    "best_of_n": BestOfN(),
    "population": Population(size=5),
    "islands": Islands(islands=3, interval=2, population=Population(size=3, elite=1)),
    "one island": Islands(islands=1, interval=1),
    "map_elites": MapElites(bins=4),
    "pareto": Pareto(),
    "tree": Tree(prior=2),
}


def stream(children: int, number: int) -> KeyedStream:
    return KeyedStream("search", 7, children, number)


def archive_of(fitness: list[list[float | None]]) -> list[list[Member]]:
    return [
        [Member((g, i), value) for i, value in enumerate(row)]
        for g, row in enumerate(fitness, start=1)
    ]


def walk(search: Search, initial: Member, archive: list[list[Member]]):  # type: ignore[no-untyped-def]
    """Yields (state, requests of the next generation) after each complete generation."""
    state = search.start(initial, 1e-9)
    children = len(archive[0]) if archive else 4
    for number, generation in enumerate([*archive, []], start=1):
        yield state, search.plan(state, children, stream(children, number))
        if generation:
            state = search.fold(state, generation)


fitnesses = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-3, 3))


@st.composite
def archives(draw: st.DrawFn) -> list[list[Member]]:
    children = draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(fitnesses, min_size=children, max_size=children), max_size=6))
    return archive_of(rows)


@pytest.mark.parametrize("search", ALL.values(), ids=ALL)
@given(archive=archives(), initial=fitnesses)
def test_parents_are_ok_programs_of_complete_generations(
    search: Search, archive: list[list[Member]], initial: float | None
) -> None:
    first = Member((0, 0), initial)
    known = {first.place: first} | {m.place: m for row in archive for m in row}
    for complete, (_, requests) in enumerate(walk(search, first, archive)):
        for request in requests:
            assert request.parents
            for place in request.parents:
                assert place[0] <= complete
                assert known[place].fitness is not None or place == (0, 0)


@pytest.mark.parametrize("search", ALL.values(), ids=ALL)
@settings(max_examples=30)
@given(archive=archives())
def test_a_prefix_plans_what_the_longer_run_planned(
    search: Search, archive: list[list[Member]]
) -> None:
    initial = Member((0, 0), 0.1)
    whole = list(walk(search, initial, archive))
    if archive:
        shorter = list(walk(search, initial, archive[:-1]))
        assert whole[: len(shorter) - 1] == shorter[:-1]
    assert whole == list(walk(search, initial, archive))


@pytest.mark.parametrize("search", ALL.values(), ids=ALL)
def test_decisions_do_not_depend_on_the_scale(search: Search) -> None:
    rows = [[0.1 * ((7 * g + 3 * i) % 11) for i in range(4)] for g in range(6)]
    rows[2][1] = None  # type: ignore[call-overload]
    other = [[None if v is None else 100 * v - 5 for v in row] for row in rows]
    one = [requests for _, requests in walk(search, Member((0, 0), 0.3), archive_of(rows))]
    two = [requests for _, requests in walk(search, Member((0, 0), 25.0), archive_of(other))]
    assert one == two


@pytest.mark.parametrize("search", ALL.values(), ids=ALL)
def test_a_search_survives_its_record(search: Search) -> None:
    fields = msgspec.json.decode(msgspec.json.encode(fields_of(search)))
    assert search_of(SearchRecord(name=search.name, fields=fields)) == search
    assert source_hash(search) == source_hash(replace(search)) != ""


def test_best_of_n_always_asks_for_the_initial_program() -> None:
    for _, requests in walk(BestOfN(), Member((0, 0), 0.0), archive_of([[0.5, 0.9]] * 3)):
        assert [r.parents for r in requests] == [((0, 0),)] * 2


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


def test_islands_keep_apart_until_they_migrate() -> None:
    inner = Population(size=4, elite=1, crossover_rate=0.0, tournament=1)
    search = Islands(islands=2, interval=3, migrants=1, population=inner)
    initial = Member((0, 0), 0.0)
    rows = [[1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.5, 4.5], [1.6, 2.6, 3.6, 4.6], [0.1] * 4]
    island: dict[tuple[int, int], set[int]] = {(0, 0): {0, 1}}
    for (_, requests), row in zip(walk(search, initial, archive_of(rows)), rows, strict=False):
        number = len({g for g, _ in island})
        for i, request in enumerate(requests):
            here = ((number - 1) * 4 + i) % 2
            if number <= 3:
                assert all(here in island[place] for place in request.parents)
        island |= {(number, i): {((number - 1) * 4 + i) % 2} for i in range(len(row))}
    states = [state for state, _ in walk(search, initial, archive_of(rows))]
    assert (3, 2) not in {m.place for m in states[2].islands[1].members}
    assert (3, 2) in {
        m.place for m in states[3].islands[1].members
    }  # best of island 0, by the ring
    assert (3, 3) in {m.place for m in states[3].islands[0].members}


def test_every_island_gets_its_turn_with_one_child_a_generation() -> None:
    search = Islands(islands=3, interval=100)
    state = search.start(Member((0, 0), 0.0), 1e-9)
    for g in range(1, 7):
        state = search.fold(state, [Member((g, 0), float(g))])
    places = [{m.place[0] for m in people.members} for people in state.islands]
    assert places == [{0, 1, 4}, {0, 2, 5}, {0, 3, 6}]


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


def scored(place: int, *scores: float) -> Member:
    named = dict(zip("abc", scores, strict=True))
    return Member((1, place), sum(scores) / 3, (), "", {"speed": 2.0 * place}, named)


def test_a_frontier_holds_what_is_best_on_some_instance() -> None:
    search = Pareto()
    state = search.start(Member((0, 0), 0.0, (), "", {"speed": 9.0}, dict.fromkeys("abc", 0.0)), 0)
    generation = [scored(0, 1, 0, 0), scored(1, 0, 1, 0.5), scored(2, 0.9, 0.9, 0.4)]
    state = search.fold(state, [*generation, scored(3, 1, 0, 0.5), scored(4, 0, 0.9, 0)])
    # Of those that are the best, (1, 0) shares all it is best on with (1, 3), which is better.
    assert search.weights(state) == {(1, 1): 2.0, (1, 3): 2.0}
    places = [r.parents[0] for r in search.plan(state, 3000, stream(3000, 2))]
    assert abs(places.count((1, 1)) / 3000 - 0.5) < 0.05
    fast = Pareto(metrics=("-speed", "speed"))
    state = fast.fold(fast.start(Member((0, 0), 0.0, (), "", {"speed": 9.0}), 0), generation)
    assert fast.weights(state) == {(0, 0): 1.0, (1, 0): 1.0}


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


def test_what_is_private_reaches_no_search() -> None:
    initial = Member((0, 0), 0.5, (), "x", {"objective": 1.0})
    for search in (MapElites(metrics=("check_fitness",)), Pareto(metrics=("check_fitness",))):
        with pytest.raises(ValueError, match=r"public metrics of the task \(.*objective\)"):
            search.start(initial, 1e-9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: MapElites(bins=0), "bins"),
        (lambda: MapElites(metrics=()), "metrics"),
        (lambda: Tree(prior=0), "prior"),
        (lambda: find_search("gredy"), "did you mean 'greedy'"),
        (lambda: Population(size=0), "size"),
        (lambda: Population(size=2, elite=3), "elite"),
        (lambda: Population(size=2, elite=2), "elite: expected fewer than size"),
        (lambda: find_search({"name": "population", "size": 5, "elite": 5}), "elite"),
        (lambda: Islands(migrants=-1), "migrants"),
        (lambda: Islands(islands=0), "islands"),
        (lambda: Population(tournament=0), "tournament"),
        (lambda: Population(crossover_rate=1.5), "crossover_rate"),
        (lambda: Islands(interval=0), "interval"),
        (lambda: search_of(SearchRecord(name="own")), "not known here"),
        (lambda: find_search({"name": "population", "size": "many"}), "fields do not fit"),
        (lambda: find_search({"name": "islands", "population": {"sise": 1}}), "population.sise"),
    ],
)
def test_mistakes_are_named(wrong, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        wrong()


SMALLEST: list[Search] = [
    *(Population(size=size, tournament=1, elite=0) for size in (1, 2, 3)),
    *(Population(size=size) for size in (1, 2, 3)),
    Islands(islands=1, interval=1, migrants=0, population=Population(size=1)),
    Islands(islands=2, interval=1, migrants=1, population=Population(size=2)),
    MapElites(bins=1),
    Tree(prior=1),
    Pareto(),
]


@pytest.mark.parametrize("search", SMALLEST, ids=str)
def test_the_smallest_parameters_let_better_children_become_parents(search: Search) -> None:
    state = search.start(Member((0, 0), 0.0, (), "x"), 1e-9)
    parents = set()
    for g in range(1, 9):
        requests = search.plan(state, 2, stream(2, g))
        parents |= {request.parents[0][0] for request in requests}
        state = search.fold(
            state,
            [
                Member((g, i), float(g + i), each.parents, "x" * g)
                for i, each in enumerate(requests)
            ],
        )
    assert max(parents) >= 5


def test_a_population_of_a_log_keeps_an_elite_that_is_refused_now() -> None:
    fields = fields_of(Population(size=3)) | {"elite": 3}
    for record in (
        SearchRecord(name="population", fields=fields),
        SearchRecord(name="islands", fields=fields_of(Islands()) | {"population": fields}),
    ):
        found = search_of(record)
        assert record_of(found) == record
        state = found.start(Member((0, 0), 0.0), 1e-9)
        assert found.fold(state, [Member((1, 0), 1.0)]) != state
    assert fields_of(Population())["elite"] == fields_of(Population(size=3))["elite"] == 2
    assert (
        search_of(SearchRecord(name="population", fields=fields_of(Population()))) == Population()
    )


def test_a_search_of_ones_own_is_known_once_it_is_registered() -> None:
    @dataclass(frozen=True)
    class Latest(Greedy):
        name = "latest"

    with pytest.raises(TypeError, match="expected the name of a search"):
        find_search(Latest)  # type: ignore[arg-type]
    SEARCHES["latest"] = Latest
    try:
        assert find_search("latest") == Latest() == search_of(SearchRecord(name="latest"))
        assert source_hash(Latest()) != source_hash(Greedy())
    finally:
        del SEARCHES["latest"]


def test_a_class_of_ones_own_does_not_have_the_name_of_a_built_in_search(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Mine(Greedy):
        """Its log would go on with the built-in one."""

    log = evo.run("mmd", generations=1, children=1, log=tmp_path / "a.jsonl", progress=False)
    how = {"generations": 1, "children": 1, "log": tmp_path / "b.jsonl", "progress": False}
    for wrong in (
        lambda: find_search(Mine()),
        lambda: evo.run("mmd", search=Mine(), **how),
        lambda: evo.resume(log.path, search=Mine(), generations=2, progress=False),
    ):
        with pytest.raises(ValueError, match=r"'greedy' is the name of a built-in one.*Mine"):
            wrong()
    with pytest.raises(TypeError, match=r"give an instance of the class, Population\(\.\.\.\)"):
        evo.resume(log.path, search=Population, generations=2, progress=False)  # type: ignore[arg-type]
    assert not (tmp_path / "b.jsonl").exists()


@dataclass(frozen=True)
class LatestOf:
    """Rewrites one of the children of the last generation."""

    which: int = 0
    name = "latest_of"

    def start(self, initial: Member, min_improvement: float) -> tuple[Member, ...]:
        return (initial,)

    def plan(self, state: tuple[Member, ...], children: int, rng: KeyedStream) -> list[Request]:
        return [Request((state[self.which % len(state)].place,))] * children

    def fold(self, state: object, generation: list[Member]) -> tuple[Member, ...]:
        return tuple(each for each in generation if each.fitness is not None) or state


def test_a_log_is_played_again_with_its_search_or_says_that_plans_were_not_checked(
    tmp_path: Path,
) -> None:
    log = evo.run("mmd", search=LatestOf(), generations=2, children=2, log=tmp_path / "a.jsonl",
                  progress=False)  # fmt: skip
    unknown = evo.rerun(log.path)
    assert unknown.same
    assert not unknown.plans_checked
    assert "'latest_of', not known here, plans the same was not checked" in str(unknown)
    known = evo.rerun(log.path, search=LatestOf())
    assert known.same
    assert known.plans_checked
    assert str(known).endswith("all the same")
    with pytest.raises(ValueError, match="the log was made by 'latest_of'"):
        evo.rerun(log.path, search=LatestOf(1))


def test_a_search_by_its_fields_is_the_search_itself() -> None:
    named = find_search({"name": "islands", "islands": 3, "population": {"size": 4}})
    assert named == Islands(islands=3, population=Population(size=4))
    assert record_of(named) == record_of(Islands(islands=3, population=Population(size=4)))
    assert record_of("greedy") is None
    assert record_of("population") == record_of(Population())


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


def test_a_child_replaces_its_parent_if_it_is_better_by_more_than_is_asked() -> None:
    def chosen(*fitness: float | None, best: float | None, least: float) -> int | None:
        members = [Member((1, index), value) for index, value in enumerate(fitness)]
        found = choose(members, best, least)
        return None if found is None else found.place[1]

    assert chosen(0.5, best=0.5, least=0.0) is None
    assert chosen(0.5, math.nextafter(0.5, 1), best=0.5, least=0.0) == 1
    assert chosen(0.75, best=0.5, least=0.25) is None
    assert chosen(None, 0.75, best=0.5, least=0.125) == 1
    assert chosen(None, best=None, least=0.0) is None
    # Of those that are nearly equal the first; where nothing is asked for, of equal ones only.
    close = (0.6, 0.6 + 5e-10, 0.6 + 5e-10)
    assert chosen(*close, best=0.5, least=1e-9) == 0
    assert chosen(*close, best=0.5, least=1e-3) == 0
    assert chosen(*close, best=0.5, least=0.0) == 1
    assert chosen(0.6, 0.6 + 2e-9, best=0.5, least=1e-3) == 1


def test_of_equal_members_the_earliest_ranks_first() -> None:
    known = {(2, 0): 0.5, (1, 1): 0.5, (1, 0): 0.5, (3, 0): None, (3, 1): 0.7}
    members = [Member(place, fitness) for place, fitness in known.items()]
    assert [each.place for each in ranked(members)] == [(3, 1), (1, 0), (1, 1), (2, 0)]


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


def test_scores_that_are_nearly_equal_or_nothing_count_on_the_frontier() -> None:
    def candidates(*scores: dict[str, float | None]) -> set[int]:
        search = Pareto()
        state = search.start(Member((0, 0), None), 0)
        made = [Member((1, k), 0.5 - k / 9, scores=each) for k, each in enumerate(scores)]
        return {place[1] for place in search.weights(search.fold(state, made))}

    last_bit = math.nextafter(1.0, 2)
    assert candidates({"a": 1.0, "b": 0.0}, {"a": last_bit, "b": 0.0}) == {0}
    assert candidates({"a": 0.0, "b": 1.0}, {"a": -1.0, "b": 1.0}) == {0}
    assert candidates({"a": None, "b": 1.0}, {"a": -1.0, "b": 0.5}) == {0, 1}


def test_a_frontier_forgets_what_is_best_on_nothing() -> None:
    search = Pareto()
    state = search.start(Member((0, 0), 0.0, scores={"a": 0.0}), 0)
    state = search.fold(state, [Member((1, 0), 1.0, scores={"a": 1.0})])
    assert [each.place for each in state.members] == [(1, 0)]


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


def test_a_request_alone_is_that_of_a_generation_of_one_child() -> None:
    search = Population(size=9, tournament=1)
    state = search.fold(search.start(Member((0, 0), 0.0), 0), archive_of([[0.1] * 8])[0])
    for number in range(30):
        alone = plan_one(search, state, number, 4, (), stream(1, number))
        assert [alone] == search.plan(state, 1, stream(1, number))
