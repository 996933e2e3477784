"""A genetic search in which the model mutates and crosses over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.keyed import KeyedStream
from evo.searches.base import Member, Request, check_share, check_whole, ranked


@dataclass(frozen=True)
class People:
    """A population under way: the initial program fills gaps of the living, best first, all ok."""

    initial: Member
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Population:
    """A population with tournaments, elitism, crossover and mutation by the model.

    Each request draws its parents by tournament. With probability `crossover_rate` it asks to mix
    two of them; else, with probability `mutation_rate`, to mutate one, and otherwise for a plain
    rewrite. The `elite` best survive a generation; its children fill the rest, best first, then
    older members.

    Attributes:
        size: Programs kept, at least 1.
        tournament: Number of members drawn (with replacement) for each parent; the best one wins.
        elite: Members that survive whatever the children are, fewer than `size`, since no child
            would be taken otherwise; None: 2, or as many as `size` allows.
        crossover_rate: In [0, 1].
        mutation_rate: In [0, 1].

    Example:
        >>> from evo.keyed import KeyedStream
        >>> search = evo.searches.Population(size=4, crossover_rate=0.0)
        >>> state = search.start(evo.searches.Member((0, 0), 0.5), 0.0)
        >>> search.plan(state, 1, KeyedStream(0))[0].parents
        ((0, 0),)
    """

    size: int = 20
    tournament: int = 3
    elite: int = None  # type: ignore[assignment]  # a number once the value is made
    crossover_rate: float = 0.5
    mutation_rate: float = 1.0

    name = "population"

    def __post_init__(self) -> None:
        check_whole("size", self.size, 1)
        check_whole("tournament", self.tournament, 1)
        if self.elite is None:
            object.__setattr__(self, "elite", min(2, self.size - 1))
        check_whole("elite", self.elite, 0)
        self._check_elite()
        check_share("crossover_rate", self.crossover_rate)
        check_share("mutation_rate", self.mutation_rate)

    def _check_elite(self) -> None:
        if self.elite >= self.size:
            raise ValueError(f"elite: expected fewer than size ({self.size}), got {self.elite}")

    def start(self, initial: Member, min_improvement: float) -> People:
        """Returns the state before generation 1."""
        return People(initial, (initial,) if initial.fitness is not None else ())

    def plan(self, state: People, children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        return [self.ask(state, rng) for _ in range(children)]

    def ask(self, state: People, rng: KeyedStream) -> Request:
        """Returns one request, using as many draws whatever comes of them."""
        kind, change = rng.uniform(0, 1), rng.uniform(0, 1)
        first, second = self._winner(state, rng), self._winner(state, rng)
        if kind < self.crossover_rate and first.place != second.place:
            return Request((first.place, second.place), "cross")
        return Request((first.place,), "mutate" if change < self.mutation_rate else "rewrite")

    def _winner(self, state: People, rng: KeyedStream) -> Member:
        """Returns the best of some members: the one of least rank."""
        count = len(state.members)
        drawn = [rng.integer(0, max(count - 1, 0)) for _ in range(self.tournament)]
        return state.members[min(drawn)] if count else state.initial

    def fold(self, state: People, generation: Sequence[Member]) -> People:
        """Returns the state after a complete generation."""
        elite, older = state.members[: self.elite], state.members[self.elite :]
        newcomers = ranked(generation)[: self.size - len(elite)]
        kept = older[: self.size - len(elite) - len(newcomers)]
        return replace(state, members=tuple(ranked([*elite, *newcomers, *kept])))


@dataclass(frozen=True)
class LoggedPopulation(Population):
    """A population of a log, whose elite may be all of it, as earlier versions allowed."""

    def _check_elite(self) -> None:
        if self.elite > self.size:
            raise ValueError(f"elite: expected at most size ({self.size}), got {self.elite}")
