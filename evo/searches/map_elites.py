"""A map of elites: the best program of each cell of a grid of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.keyed import KeyedStream
from evo.searches.base import Member, Request, check_whole, ranked

LENGTH = "length"
"""The feature that every program has: the number of its characters."""


@dataclass(frozen=True)
class Explored:
    """A map under way: the initial program fills gaps; the members are those that are ok."""

    initial: Member
    members: tuple[Member, ...] = ()


@dataclass(frozen=True)
class MapElites:
    """Children rewrite the best programs of cells that are drawn at random.

    The features of a program, public metrics of its evaluation or its length, place it in a cell of
    a grid; each cell keeps its best program (Mouret and Clune, arXiv 1504.04909). Each request
    draws an occupied cell, all alike likely. The bins of a feature are of equal width between the
    least and the greatest value so far, so no limits have to be known beforehand.

    Attributes:
        metrics: Names of the features; `length` is the number of characters of the program.
        bins: Number of bins of each feature, at least 1.

    Example:
        >>> from evo.keyed import KeyedStream
        >>> search = evo.searches.MapElites(metrics=("length",), bins=8)
        >>> state = search.start(evo.searches.Member((0, 0), 0.5, program="x = 1"), 0.0)
        >>> search.plan(state, 1, KeyedStream(0))[0].parents
        ((0, 0),)
    """

    metrics: tuple[str, ...] = (LENGTH,)
    bins: int = 10

    name = "map_elites"

    def __post_init__(self) -> None:
        check_whole("bins", self.bins, 1)
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(
                f"metrics: expected at least one and all different, got {self.metrics!r}"
            )

    def start(self, initial: Member, min_improvement: float) -> Explored:
        """Returns the state before generation 1.

        Raises:
            ValueError: The initial program lacks a public metric of that name.
        """
        state = Explored(initial)
        if initial.fitness is None:
            return state
        for name in self.metrics:
            if name != LENGTH and name not in initial.metrics:
                known = ", ".join([LENGTH, *initial.metrics])
                raise ValueError(
                    f"metrics: expected names of public metrics of the task ({known}), got {name!r}"
                )
        return replace(state, members=(initial,))

    def plan(self, state: Explored, children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        elites = self.elites(state) or [state.initial]
        return [Request((rng.pick(elites).place,)) for _ in range(children)]

    def elites(self, state: Explored) -> list[Member]:
        """Returns the best program of each occupied cell, in the order of the cells."""
        features = {member.place: self._features(member) for member in state.members}
        columns = list(zip(*features.values(), strict=True))
        lows, highs = [min(each) for each in columns], [max(each) for each in columns]
        cells: dict[tuple[int, ...], Member] = {}
        for member in ranked(state.members):
            values = zip(features[member.place], lows, highs, strict=True)
            cells.setdefault(tuple(self._bin(*each) for each in values), member)
        return [cells[cell] for cell in sorted(cells)]

    def fold(self, state: Explored, generation: Sequence[Member]) -> Explored:
        """Returns the state after a complete generation; what lacks a feature is left out."""
        placed = [
            member
            for member in generation
            if member.fitness is not None
            and all(name == LENGTH or name in member.metrics for name in self.metrics)
        ]
        return replace(state, members=(*state.members, *placed))

    def _features(self, member: Member) -> tuple[float, ...]:
        length = float(len(member.program or ""))
        return tuple(length if n == LENGTH else member.metrics[n] for n in self.metrics)

    def _bin(self, value: float, low: float, high: float) -> int:
        if not high > low:
            return 0
        share = (value / 2 - low / 2) / (high / 2 - low / 2)  # halves do not overflow
        return min(int(share * self.bins), self.bins - 1)
