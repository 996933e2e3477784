"""Searches by name, and what a log keeps of one."""

from dataclasses import dataclass
from pathlib import Path

import pytest

import evo
from evo.keyed import KeyedStream
from evo.logs.records import SearchRecord
from evo.runs.configuration import make_header
from evo.searches import SEARCHES, Greedy, Islands, Member, Population, Request, Tree, find_search
from evo.searches.registry import is_search, known_search, record_of, search_of
from evo.values import fields_of, source_hash


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
    with pytest.raises(ValueError, match="search 'greedy': unknown field 'size', it has none"):
        record_of({"name": "greedy", "size": 3})
    assert record_of("population") == record_of(Population())


def test_a_log_goes_on_with_its_own_search_alone() -> None:
    greedy = make_header("mmd")
    tree = make_header("mmd", search=Tree(prior=2))
    assert (greedy.search, search_of(greedy.search)) == (None, Greedy())
    assert known_search(greedy) is known_search(greedy, Greedy()) is greedy
    with pytest.raises(ValueError, match="the log was made by 'greedy', got Tree"):
        known_search(greedy, Tree())
    assert known_search(tree) == known_search(tree, Tree(prior=2)) == tree
    with pytest.raises(ValueError, match="the log was made by 'tree'"):
        known_search(tree, Tree(prior=3))


def test_what_is_a_search_is_told_from_the_name_of_one() -> None:
    assert is_search(Tree())
    assert not any(map(is_search, ("tree", {"name": "tree"}, Tree, None)))
