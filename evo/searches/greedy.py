"""Greedy search, and best-of-N as its other end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.keyed import KeyedStream
from evo.searches.base import Member, Request, choose


@dataclass(frozen=True)
class GreedyArchive:
    """The best so far, or the initial program, and what a child must exceed its fitness by."""

    member: Member
    min_improvement: float


@dataclass(frozen=True)
class Greedy:
    """All children of a generation rewrite the best program so far (arXiv 2605.29268).

    This is the default search.

    Example:
        >>> from evo.keyed import KeyedStream
        >>> search = evo.searches.Greedy()
        >>> state = search.start(evo.searches.Member((0, 0), 0.5), 0.0)
        >>> state = search.fold(state, [evo.searches.Member((1, 0), 0.7)])
        >>> search.plan(state, 1, KeyedStream(0))[0].parents
        ((1, 0),)
    """

    name = "greedy"

    def start(self, initial: Member, min_improvement: float) -> GreedyArchive:
        """Returns the state before generation 1."""
        return GreedyArchive(initial, min_improvement)

    def plan(self, state: GreedyArchive, children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        return [Request((state.member.place,))] * children

    def fold(self, state: GreedyArchive, generation: Sequence[Member]) -> GreedyArchive:
        """Returns the state after a complete generation."""
        chosen = choose(generation, state.member.fitness, state.min_improvement)
        return state if chosen is None else replace(state, member=chosen)


@dataclass(frozen=True)
class BestOfN:
    """All children rewrite the initial program, so T generations of N are the best of T * N.

    This is the baseline that never builds on a rewrite.

    Example:
        >>> from evo.keyed import KeyedStream
        >>> search = evo.searches.BestOfN()
        >>> state = search.start(evo.searches.Member((0, 0), 0.5), 0.0)
        >>> state = search.fold(state, [evo.searches.Member((1, 0), 0.7)])
        >>> search.plan(state, 1, KeyedStream(0))[0].parents
        ((0, 0),)
    """

    name = "best_of_n"

    def start(self, initial: Member, min_improvement: float) -> Member:
        """Returns the state before generation 1: the initial program."""
        return initial

    def plan(self, state: Member, children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        return [Request((state.place,))] * children

    def fold(self, state: Member, generation: Sequence[Member]) -> Member:
        """Returns the state after a complete generation: the same."""
        return state
