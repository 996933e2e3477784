"""What every search keeps, whatever it chooses; a new one joins by a line in SEARCHES."""

from collections.abc import Sequence
from dataclasses import FrozenInstanceError, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from archives import archive_of, stream
from hypothesis import given, settings
from hypothesis import strategies as st

import evo
from evo.logs.records import SearchRecord
from evo.searches import (
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
from evo.searches.base import Place
from evo.searches.registry import search_of
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


@dataclass(frozen=True)
class Forgetful:
    """A search of a user who forgot to return what was planned."""

    name = "forgetful"

    def start(self, initial: object, min_improvement: float) -> None:
        return None

    def plan(self, state: object, children: int, rng: object) -> None:
        return None

    def fold(self, state: object, generation: object) -> None:
        return None


def test_a_search_that_plans_no_requests_is_told_what_is_expected(tmp_path) -> None:  # type: ignore[no-untyped-def]
    how = {"generations": 1, "children": 2, "log": tmp_path / "a.jsonl", "progress": False}
    with pytest.raises(TypeError, match=r"search 'forgetful': .*a list of 2 requests.*got None"):
        evo.run("mmd", search=Forgetful(), **how)


@dataclass(frozen=True)
class Raising(Forgetful):
    """Fails at the first generation that it is given."""

    name = "raising"

    def plan(self, state: object, children: int, rng: object) -> list[Request]:
        return [Request(((0, 0),))] * children

    def fold(self, state: object, generation: object) -> object:
        return generation["best"]  # type: ignore[index]


@dataclass(frozen=True)
class Bare(Forgetful):
    """Plans places in place of requests."""

    name = "bare"

    def plan(self, state: object, children: int, rng: object) -> list[tuple[int, int]]:  # type: ignore[override]
        return [(0, 0)] * children


@dataclass(frozen=True)
class Whole(Forgetful):
    """Plans requests of programs in place of their places."""

    name = "whole"

    def start(self, initial: Member, min_improvement: float) -> Member:  # type: ignore[override]
        return initial

    def plan(self, state: Member, children: int, rng: object) -> list[Request]:  # type: ignore[override]
        return [Request((state,))] * children  # type: ignore[arg-type]


@dataclass(frozen=True)
class Noting(Whole):
    """Keeps what it has seen in itself, where a search that resumes or forks does not find it."""

    seen: list[Place] = field(default_factory=list)
    name = "noting"

    def plan(self, state: Member, children: int, rng: object) -> list[Request]:  # type: ignore[override]
        return [Request((self.seen[-1] if self.seen else state.place,))] * children

    def fold(self, state: Member, generation: Sequence[Member]) -> Member:  # type: ignore[override]
        self.seen.extend(member.place for member in generation)
        return state


@pytest.mark.parametrize(
    ("search", "kind", "message"),
    [
        (Noting, ValueError, r"search 'noting': `fold` changed the search itself: .*seen was \[\]"),
        (
            Raising,
            ValueError,
            r"search 'raising': `fold` raised TypeError: .*evo.resume\(LOG, search",
        ),
        (Bare, TypeError, r"search 'bare': .*a list of 2 requests.*got \[\(0, 0\)"),
        (Whole, TypeError, r"search 'whole': .*a list of 2 requests.*got \[Request"),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_search_that_fails_is_named(search, kind, message, asynchronous, tmp_path) -> None:  # type: ignore[no-untyped-def]
    how = {"generations": 2, "children": 2, "log": tmp_path / "a.jsonl", "progress": False}
    message = message.replace("a list of 2", "a list of 1") if asynchronous else message
    with pytest.raises(kind, match=message):
        evo.run("mmd", search=search(), asynchronous=asynchronous, **how)


@pytest.mark.parametrize("name", ALL)
def test_a_search_is_a_value_that_nobody_changes(name: str) -> None:
    field = next(iter(fields_of(ALL[name])), "name")
    with pytest.raises(FrozenInstanceError):
        setattr(ALL[name], field, 1)


def test_defaults_are_those_that_logs_were_made_with() -> None:
    assert MapElites().bins == 10
    assert Islands().population.size == 10


@pytest.mark.parametrize("search", [Pareto(metrics=("nothing",)), MapElites(metrics=("nothing",))])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_search_that_fails_before_the_first_call_leaves_no_log_and_is_run_again(
    search: Pareto | MapElites, asynchronous: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"generations": 1, "children": 2, "log": path, "progress": False}
    how["asynchronous"] = asynchronous
    words = "metrics: expected names .*correct it and run again: nothing was called"
    with pytest.raises(ValueError, match=words):
        evo.run("mmd", search=search, **how)
    assert not path.exists()
    log = evo.run("mmd", search=type(search)(metrics=("objective",)), **how)
    assert len(log.calls) == 2


@dataclass(frozen=True)
class Planning(Forgetful):
    """Plans what it is given."""

    planned: tuple[object, ...] = ()
    name = "planning"

    def plan(self, state: object, children: int, rng: object) -> Any:
        return [*self.planned] * (1 if children == 1 else 2)


ROOT: Place = (0, 0)


@pytest.mark.parametrize(
    "planned",
    [
        (),
        (Request((ROOT,)),) * 3,
        (Request(()),),
        (Request(((7, 7),)),),
        (Request((("a", "b"),)),),  # type: ignore[arg-type]
        (Request((ROOT,), operator="destroy"),),
        (Request((ROOT,), operator=[]),),  # type: ignore[arg-type]
        (Request((ROOT,), temperature=7.0),),
        (ROOT,),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_search_that_plans_what_cannot_be_leaves_no_log(
    planned: tuple[object, ...], asynchronous: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    how: dict[str, Any] = {"generations": 1, "children": 2, "log": path, "progress": False}
    how["asynchronous"] = asynchronous
    if asynchronous and len(planned) == 3:
        return  # the first request is taken
    message = "search 'planning': .*correct it and run again: nothing was called"
    with pytest.raises((ValueError, TypeError), match=message):
        evo.run("mmd", search=Planning(planned), **how)
    assert not path.exists()
    log = evo.run("mmd", search=Planning((Request(([0, 0],)),)), **how)  # type: ignore[arg-type]
    assert len(log.calls) == 2


def test_no_seed_of_a_search_that_fails_before_the_first_call_leaves_a_log(
    tmp_path: Path,
) -> None:
    how: dict[str, Any] = {"seeds": [1, 2, 3], "generations": 1, "children": 2}
    how |= {"log_dir": tmp_path, "progress": False}
    with pytest.raises(ValueError, match="nothing was called, and no log is kept"):
        evo.run_many("mmd", search=Pareto(metrics=("nothing",)), **how)
    assert [*tmp_path.iterdir()] == []
    logs = evo.run_many("mmd", search=Pareto(metrics=("objective",)), **how)
    assert len(logs) == len([*tmp_path.iterdir()]) == 3


@pytest.mark.parametrize("in_flight", [1, 2])
def test_an_allocation_whose_search_fails_before_calls_goes_on_with_a_corrected_one(
    in_flight: int, tmp_path: Path
) -> None:
    how: dict[str, Any] = {"arms": 2, "rounds": 4, "children": 2, "in_flight": in_flight}
    how |= {"log_dir": tmp_path / "a", "progress": False}
    with pytest.raises(
        ValueError, match=r"metrics: expected .*correct it, and the same with log_dir"
    ):
        evo.allocate_live("mmd", "ucb1", search=Pareto(metrics=("nothing",)), **how)
    done = evo.allocate_live("mmd", "ucb1", search=Pareto(metrics=("objective",)), **how)
    assert len(done.pulls) == 4


def test_a_search_that_fails_after_calls_keeps_its_log(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(ValueError, match="run with another log begins anew, with other fields"):
        evo.run("mmd", search=Raising(), generations=2, children=2, log=path, progress=False)
    assert len(evo.read_log(path).calls) == 2
