"""What all searches share: who replaces a parent, ranks, and requests one by one."""

import copy
import math
import pickle
from dataclasses import asdict, dataclass

import pytest
from archives import archive_of, stream
from hypothesis import given
from hypothesis import strategies as st

from evo.keyed import KeyedStream
from evo.searches import Member, Population, Request
from evo.searches.base import check_share, check_whole, choose, fold_one, plan_one, ranked


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


def test_nobody_who_is_given_a_member_changes_it_for_others() -> None:
    given = {"speed": 1.0}
    member = Member((1, 0), 0.5, metrics=given, scores={"a": 0.5})
    given["speed"] = 2.0
    for numbers in (member.metrics, member.scores):
        with pytest.raises(TypeError, match="does not support item assignment"):
            numbers["speed"] = 3.0  # type: ignore[index]
        assert not hasattr(numbers, "update")
    assert member.metrics == {"speed": 1.0}
    for other in (copy.deepcopy(member), pickle.loads(pickle.dumps(member))):
        assert (other, other.metrics, other.scores) == (member, member.metrics, member.scores)
    assert {**asdict(member)["scores"]} == {"a": 0.5}


def test_of_equal_members_the_earliest_ranks_first() -> None:
    known = {(2, 0): 0.5, (1, 1): 0.5, (1, 0): 0.5, (3, 0): None, (3, 1): 0.7}
    members = [Member(place, fitness) for place, fitness in known.items()]
    assert [each.place for each in ranked(members)] == [(3, 1), (1, 0), (1, 1), (2, 0)]


def test_a_request_alone_is_that_of_a_generation_of_one_child() -> None:
    search = Population(size=9, tournament=1)
    state = search.fold(search.start(Member((0, 0), 0.0), 0), archive_of([[0.1] * 8])[0])
    for number in range(30):
        alone = plan_one(search, state, number, 4, (), stream(1, number))
        assert [alone] == search.plan(state, 1, stream(1, number))


@dataclass(frozen=True)
class Counting:
    """Notes with what it is called."""

    name = "counting"

    def plan(self, state: str, children: int, rng: KeyedStream) -> list[Request]:
        return [Request(((children, k),)) for k in range(children)]

    def fold(self, state: list[object], generation: list[Member]) -> list[object]:
        return [*state, ("together", [each.place for each in generation])]


@dataclass(frozen=True)
class OneByOne(Counting):
    """Knows how to go on one by one."""

    def plan_one(
        self, state: str, number: int, children: int, waiting: list[tuple[int, int]], rng: object
    ):  # type: ignore[no-untyped-def]
        return Request(((number, children), *waiting), state)

    def fold_one(self, state: list[object], member: Member, number: int, children: int):  # type: ignore[no-untyped-def]
        return [*state, (member.place, number, children)]


def test_one_child_is_a_generation_of_one_unless_the_search_knows_better() -> None:
    rng, member = stream(1, 1), Member((3, 2), 0.5)
    assert plan_one(Counting(), "state", 7, 4, [((0, 0),)], rng) == Request(((1, 0),))
    assert fold_one(Counting(), ["a"], member, 7, 4) == ["a", ("together", [(3, 2)])]
    own = plan_one(OneByOne(), "state", 7, 4, [(0, 0)], rng)  # type: ignore[list-item]
    assert own == Request(((7, 4), (0, 0)), "state")
    assert fold_one(OneByOne(), ["a"], member, 7, 4) == ["a", ((3, 2), 7, 4)]


def test_what_is_chosen_may_have_its_fitness_elsewhere() -> None:
    found = {"a": 0.4, "b": None, "c": 0.6}
    assert choose(found, 0.5, 0.0, of=found.get) == "c"
    assert choose(found, 0.6, 0.0, of=found.get) is None
    assert choose(found, None, 0.0, of=found.get) == "c"
    assert choose([], None, 0.0) is None


@given(
    st.lists(st.none() | st.integers(-9, 9).map(lambda n: n * 4e-10), max_size=6),
    st.none() | st.sampled_from([-1e-9, 0.0, 1e-9]),
    st.sampled_from([0.0, 5e-10, 1e-9, 1e-3]),
)
def test_who_is_chosen_beats_the_parent_and_no_earlier_one_is_nearly_as_good(
    fitness: list[float | None], best: float | None, least: float
) -> None:
    children = [Member((1, k), value) for k, value in enumerate(fitness)]
    able = [m for m in children if m.fitness is not None]
    better = [m for m in able if best is None or m.fitness > best + least]
    chosen = choose(children, best, least)
    if not better:
        assert chosen is None
        return
    assert chosen in better
    most = max(m.fitness for m in better) - min(least, 1e-9)
    assert next(m for m in better if m.fitness >= most) == chosen


@pytest.mark.parametrize("value", [math.nextafter(0, -1), math.nextafter(1, 2), math.nan, math.inf])
def test_a_share_is_within_0_and_1(value: float) -> None:
    check_share("rate", 0)
    check_share("rate", 1)
    with pytest.raises(ValueError, match=r"rate: expected a number in \[0, 1\]"):
        check_share("rate", value)


def test_a_whole_number_is_neither_a_switch_nor_a_float_nor_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVO_MAX_CHILDREN", "50")
    for fits in (2, 3, 50):
        check_whole("size", fits, 2)
    with pytest.raises(ValueError, match="size: expected a whole number of at least 0, got True"):
        check_whole("size", True, 0)
    for wrong in (1, 3.0, "3", None):
        with pytest.raises(ValueError, match="size: expected a whole number of at least 2, got"):
            check_whole("size", wrong, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"size: expected less, got 51: .*EVO_MAX_CHILDREN"):
        check_whole("size", 51, 2)
