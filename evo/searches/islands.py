"""Several populations with migration around a ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evo.keyed import KeyedStream
from evo.searches.base import Member, Place, Request, check_whole, ranked
from evo.searches.population import LoggedPopulation, People, Population


@dataclass(frozen=True)
class Archipelago:
    """Islands under way: complete generations, and each island's population.

    Without a barrier, `generation` is the number of complete children.
    """

    generation: int
    islands: tuple[People, ...]


@dataclass(frozen=True)
class Islands:
    """Populations that exchange their best members around a ring.

    The protocol of OpenEvolve and ShinkaEvolve in its essentials: each island evolves apart and
    every so many generations copies its best members to the next island of the ring. Request i of
    generation g is made by island ((g - 1) N + i) mod K, so all islands get their turn even where
    N < K. Migration copies references to programs, not the programs.

    Attributes:
        islands: K, at least 1.
        interval: Generations between migrations, at least 1.
        migrants: Members that each island passes on.
        population: The rule within an island.

    Example:
        >>> search = evo.searches.Islands(islands=2, population=evo.searches.Population(size=4))
        >>> search.islands, search.population.size
        (2, 4)
    """

    islands: int = 5
    interval: int = 10
    migrants: int = 1
    population: Population = field(default_factory=lambda: Population(size=10))

    name = "islands"

    def __post_init__(self) -> None:
        check_whole("islands", self.islands, 1)
        check_whole("interval", self.interval, 1)
        check_whole("migrants", self.migrants, 0)

    def start(self, initial: Member, min_improvement: float) -> Archipelago:
        """Returns the state before generation 1: the initial program on every island."""
        return Archipelago(0, (self.population.start(initial, min_improvement),) * self.islands)

    def plan(self, state: Archipelago, children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        return [
            self.population.ask(state.islands[self._island(state.generation, children, i)], rng)
            for i in range(children)
        ]

    def _island(self, before: int, children: int, index: int) -> int:
        """Returns the island of a request, after so many complete generations."""
        return (before * children + index) % self.islands

    def plan_one(
        self,
        state: Archipelago,
        number: int,
        children: int,
        waiting: Sequence[tuple[Place, ...]],
        rng: KeyedStream,
    ) -> Request:
        """Returns the request of that number, in a run without a barrier."""
        return self.population.ask(state.islands[number % self.islands], rng)

    def fold_one(
        self, state: Archipelago, member: Member, number: int, children: int
    ) -> Archipelago:
        """Returns the state after one more child of a run without a barrier."""
        islands = list(state.islands)
        at = number % self.islands
        islands[at] = self.population.fold(islands[at], [member])
        done = state.generation + 1
        if done % (self.interval * children) == 0:
            islands = self._migrate(islands)
        return Archipelago(done, tuple(islands))

    def fold(self, state: Archipelago, generation: Sequence[Member]) -> Archipelago:
        """Returns the state after a complete generation."""
        newcomers: list[list[Member]] = [[] for _ in range(self.islands)]
        for member in generation:
            newcomers[self._island(state.generation, len(generation), member.place[1])].append(
                member
            )
        islands = [
            self.population.fold(people, children) if children else people
            for people, children in zip(state.islands, newcomers, strict=True)
        ]
        if (state.generation + 1) % self.interval == 0:
            islands = self._migrate(islands)
        return Archipelago(state.generation + 1, tuple(islands))

    def _migrate(self, islands: Sequence[People]) -> list[People]:
        """Returns the islands after each got the best members of the one before it."""
        moved = []
        for number, people in enumerate(islands):
            guests = islands[number - 1].members[: self.migrants]
            here = {member.place for member in people.members}
            new = [guest for guest in guests if guest.place not in here]
            kept = people.members[: self.population.size - len(new)]
            moved.append(People(people.initial, tuple(ranked([*kept, *new]))))
        return moved


@dataclass(frozen=True)
class LoggedIslands(Islands):
    """The islands of a log, on which the elite may be the whole population."""

    population: LoggedPopulation = field(default_factory=lambda: LoggedPopulation(size=10))
