"""The interface of a search: a frozen value that chooses the programs to rewrite next.

A search sees an archive, generation 0 and all complete generations, never T. It plans one request
per child and folds a complete generation into its state; both are pure:

    state = search.start(initial, min_improvement)
    for number, generation in enumerate(archive, start=1):
        requests = search.plan(state, children, KeyedStream("search", seed, children, number))
        state = search.fold(state, generation)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Protocol, TypeGuard, TypeVar

from evo.keyed import KeyedStream
from evo.logs.caps import above, cap
from evo.plugins import MistakenType
from evo.values import FieldChanged, called_on

Place = tuple[int, int]
"""Generation and index of a program; (0, 0) is the initial program."""

C = TypeVar("C")
V = TypeVar("V")

TIE = 1e-9
"""Fitnesses so close to each other count as equal."""


class _ReadOnly(Mapping[str, V]):
    """A copy of a mapping that nobody writes into; unlike a `mappingproxy` it can be copied."""

    def __init__(self, values: Mapping[str, V]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> V:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True)
class Member:
    """A program of the archive, which all searches and filters of a run share and only read.

    Attributes:
        place: Its generation and index.
        fitness: None where its evaluation failed.
        parents: The places of the programs that it was made from, if any.
        program: Its text; None where the reply held none, or a filter refused it.
        metrics: Its public metrics by name.
        scores: Its score on each instance of a data set that is not held out, by the instance's id.

    Example:
        >>> evo.searches.Member((1, 0), 0.7, parents=((0, 0),), metrics={"length": 12.0}).fitness
        0.7
    """

    place: Place
    fitness: float | None
    parents: tuple[Place, ...] = ()
    program: str | None = field(default=None, repr=False, compare=False)
    metrics: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    scores: Mapping[str, float | None] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", _ReadOnly(self.metrics))
        object.__setattr__(self, "scores", _ReadOnly(self.scores))


@dataclass(frozen=True)
class Request:
    """Describes how one child is to be made.

    Attributes:
        parents: Generation and index of the program to rewrite, and those of a second one to
            combine it with, if any.
        operator: What the prompt asks for: "rewrite", "mutate" or "cross".
        temperature: Sampling temperature of this child's calls, in [0, 2]; None: the run's.

    Example:
        >>> evo.searches.Request(((0, 0),)).operator
        'rewrite'
    """

    parents: tuple[Place, ...]
    operator: str = "rewrite"
    temperature: float | None = None


class Search(Protocol):
    """A rule that chooses which programs the next children rewrite.

    A search is a frozen dataclass with the three methods below and a `name`; its fields are part of
    a run's identity.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Latest:
        ...     name = "latest"
        ...     version = 1
        ...     def start(self, initial, min_improvement):
        ...         return initial.place
        ...     def plan(self, state, children, rng):
        ...         return [evo.searches.Request((state,))] * children
        ...     def fold(self, state, generation):
        ...         ok = [member.place for member in generation if member.fitness is not None]
        ...         return ok[-1] if ok else state
        >>> settings = {"generations": 1, "children": 2, "log": new(), "progress": False}
        >>> evo.run("mmd", search=Latest(), **settings).header.search.name
        'latest'
    """

    @property
    def name(self) -> str:
        """Its name in `evo.SEARCHES`."""
        ...

    def start(self, initial: Member, min_improvement: float) -> Any:
        """Returns the state before generation 1, whether or not the initial program is ok.

        A child replaces its parent only if better by more than `min_improvement`.
        """
        ...

    def plan(self, state: Any, children: int, rng: KeyedStream) -> Sequence[Request]:
        """Returns one request per child of the next generation, in order."""
        ...

    def fold(self, state: Any, generation: Sequence[Member]) -> Any:
        """Returns the state after a complete generation, its children by index."""
        ...


class SearchError(ValueError):
    """A search raised an error, or planned what cannot be.

    Attributes:
        what: What it raised or planned; the message also says what to do.
    """

    def __init__(
        self,
        what: str,
        advice: str = "correct its code, then `evo resume LOG --search FILE.py:CLASS` or "
        "evo.resume(LOG, search=...) goes on with the run; a run with another log begins anew, "
        "with other fields, too",
    ) -> None:
        super().__init__(f"{what}; {advice}")
        self.what = what

    def before_calls(self) -> SearchError:
        """Returns the error of a run that has called nothing, and whose log is not kept."""
        advice = "correct it and run again: nothing was called, and no log is kept"
        return type(self)(self.what, advice)


class SearchTypeError(SearchError, MistakenType):
    """A search returned a value of another type than it has to."""


def start(search: Search, initial: Member, min_improvement: float) -> Any:
    """Returns the state of a search before generation 1; its failure names the search."""
    return _asked(search, "start", initial, min_improvement)


def plan(search: Search, state: Any, children: int, rng: KeyedStream) -> Sequence[Request]:
    """Returns what a search plans, one request per child; its failure names the search.

    Raises:
        SearchError: It raised, or returned something other than requests.
    """
    requests: object = _asked(search, "plan", state, children, rng)
    if not isinstance(requests, list | tuple) or not all(map(_is_request, requests)):
        raise SearchTypeError(
            f"search {search.name!r}: expected `plan` to return a list of {children} requests, one "
            "for each child, such as [evo.searches.Request(((0, 0),))] * children, got "
            f"{requests!r:.200}"
        )
    return requests


def fold(search: Search, state: Any, generation: Sequence[Member]) -> Any:
    """Returns the state of a search after a generation; its failure names the search."""
    return _asked(search, "fold", state, generation)


def _asked(search: Search, method: str, *given: object) -> Any:
    try:
        return called_on(search, method, *given)
    except FieldChanged as error:
        raise SearchError(
            f"search {search.name!r}: `{method}` changed the search itself: {error}; keep what "
            "changes in the state, which `start` and `fold` return"
        ) from None
    except Exception as error:
        raise SearchError(
            f"search {search.name!r}: `{method}` raised {type(error).__name__}: {error}"
        ) from error


def _is_request(given: object) -> TypeGuard[Request]:
    """Whether a value is a request whose parents are places."""
    parents = getattr(given, "parents", None)
    return (
        hasattr(given, "operator")
        and isinstance(parents, list | tuple)
        and all(isinstance(each, list | tuple) and len(each) == 2 for each in parents)
        and all(isinstance(number, Integral) for each in parents for number in each)
    )


def plan_one(
    search: Search,
    state: Any,
    number: int,
    children: int,
    waiting: Sequence[tuple[Place, ...]],
    rng: KeyedStream,
) -> Request:
    """Returns one request of a run without a barrier, in which children are complete one by one.

    It is planned as a generation of one child, unless the search has a method `plan_one`.

    Args:
        search: The search.
        state: Its state after all children that are complete.
        number: The number of the request, from 0.
        children: How many children make a generation.
        waiting: The parents of the children under way.
        rng: A stream for this request.
    """
    if not hasattr(search, "plan_one"):
        requests = plan(search, state, 1, rng)
        if not requests:
            raise SearchError(
                f"search {search.name!r}: expected a request for each of 1 children, got 0"
            )
        return requests[0]
    own: object = _asked(search, "plan_one", state, number, children, waiting, rng)
    if not _is_request(own):
        raise SearchTypeError(
            f"search {search.name!r}: expected `plan_one` to return a request, such as "
            f"evo.searches.Request(((0, 0),)), got {own!r:.200}"
        )
    return own


def fold_one(search: Search, state: Any, member: Member, number: int, children: int) -> Any:
    """Returns the state after one more child of a run without a barrier; see `plan_one`."""
    if hasattr(search, "fold_one"):
        return _asked(search, "fold_one", state, member, number, children)
    return fold(search, state, [member])


def choose(
    children: Iterable[C],
    best_fitness: float | None,
    min_improvement: float,
    of: Callable[[C], float | None] = operator.attrgetter("fitness"),
) -> C | None:
    """Returns the child that replaces its parent by the fitness of each, or None.

    Fitnesses within `TIE`, or `min_improvement` if that is less, count as equal, and of equal
    children the first one wins: last-bit differences between processors do not change the choice.
    The parent's best fitness is None while nothing is ok.
    """
    known = [(fitness, child) for child in children if (fitness := of(child)) is not None]
    if best_fitness is not None:
        known = [each for each in known if each[0] > best_fitness + min_improvement]
    if not known:
        return None
    nearly = max(fitness for fitness, _ in known) - min(min_improvement, TIE)
    return next(child for fitness, child in known if fitness >= nearly)


def ranked(members: Iterable[Member]) -> list[Member]:
    """Returns the members that are ok, best first; of equal ones the earliest first."""
    able = [(-each.fitness, each.place, each) for each in members if each.fitness is not None]
    return [member for _, _, member in sorted(able, key=lambda each: each[:2])]


def check_share(name: str, value: float) -> None:
    """Raises if a value is not in [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name}: expected a number in [0, 1], got {value!r}")


def check_whole(name: str, value: int, low: int) -> None:
    """Raises if a value is not a whole number from `low` on, or more work than is allowed."""
    if type(value) is not int or value < low:
        raise ValueError(f"{name}: expected a whole number of at least {low}, got {value!r}")
    if value > cap("EVO_MAX_CHILDREN"):
        raise ValueError(f"{name}: expected less, got {value:,}: {above('EVO_MAX_CHILDREN')}")
