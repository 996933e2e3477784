"""A tree of programs that grows wider or deeper, wherever more may be gained."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.keyed import KeyedStream
from evo.searches.base import Member, Place, Request, check_whole

NOTHING = -math.inf
"""What a child without a fitness came to."""


@dataclass(frozen=True)
class Node:
    """A program of the tree.

    Attributes:
        fitness: Its fitness, or what counts as nothing.
        parent: The program that it was made from; None for the initial program.
        children: The programs made from it that are ok, in order.
        widened: The fitness of each child made from it, or what counts as nothing.
        below: The same of all programs below it.
    """

    fitness: float
    parent: Place | None
    children: tuple[Place, ...] = ()
    widened: tuple[float, ...] = ()
    below: tuple[float, ...] = ()


@dataclass(frozen=True)
class Tree:
    """Children rewrite the program where a walk down the tree stops.

    The adaptive branching of AB-MCTS (Inoue et al., arXiv 2503.04412): at every program the walk
    either stops there, to make one more child of it (wider), or goes on to one of its children
    (deeper), by Thompson sampling over what each of these options came to so far. A draw is one of
    the logged outcomes themselves (bootstrap Thompson sampling: Eckles and Kaptein, arXiv
    1410.4009), so that neither the scale of the fitness nor a prior decides. Failed children count
    as the worst outcome, and so does each request of the generation under way.

    Attributes:
        prior: How often a program's own fitness counts among the outcomes of making one more child
            of it, and of going on to it; at least 1. More of it tries every option more often.

    Example:
        >>> from evo.keyed import KeyedStream
        >>> search = evo.searches.Tree()
        >>> state = search.start(evo.searches.Member((0, 0), 0.5), 0.0)
        >>> search.plan(state, 1, KeyedStream(0))[0].parents
        ((0, 0),)
    """

    prior: int = 1

    name = "tree"

    def __post_init__(self) -> None:
        check_whole("prior", self.prior, 1)

    def start(self, initial: Member, min_improvement: float) -> dict[Place, Node]:
        """Returns the state before generation 1."""
        return {initial.place: Node(_outcome(initial), None)}

    def plan(self, state: dict[Place, Node], children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        waiting: Counter[tuple[str, Place]] = Counter()
        return [Request((self._walk(state, waiting, rng),)) for _ in range(children)]

    def plan_one(
        self,
        state: dict[Place, Node],
        number: int,
        children: int,
        waiting: Sequence[tuple[Place, ...]],
        rng: KeyedStream,
    ) -> Request:
        """Returns one request of a run without a barrier; those under way count as failed."""
        counted: Counter[tuple[str, Place]] = Counter()
        for parents in waiting:
            place = parents[0]
            counted["wider", place] += 1
            while (above := state[place].parent) is not None:
                counted["deeper", place] += 1
                place = above
        return Request((self._walk(state, counted, rng),))

    def _walk(
        self, state: dict[Place, Node], waiting: Counter[tuple[str, Place]], rng: KeyedStream
    ) -> Place:
        """Returns the program where a walk stops, and counts it as a request under way."""
        place = (0, 0)
        while True:
            node = state[place]
            options = [(("wider", place), node.fitness, node.widened)]
            for child in node.children:
                options.append((("deeper", child), state[child].fitness, state[child].below))
            drawn = [self._draw(own, seen, waiting[key], rng) for key, own, seen in options]
            key, *_ = options[drawn.index(max(drawn))]
            waiting[key] += 1
            step, place = key
            if step == "wider":
                return place

    def _draw(
        self, own: float, outcomes: tuple[float, ...], waiting: int, rng: KeyedStream
    ) -> float:
        """Returns one of the outcomes of an option, those that are still awaited included."""
        drawn = rng.integer(0, self.prior + len(outcomes) + waiting - 1)
        if drawn < self.prior:
            return own
        drawn -= self.prior
        return outcomes[drawn] if drawn < len(outcomes) else NOTHING

    def fold(self, state: dict[Place, Node], generation: Sequence[Member]) -> dict[Place, Node]:
        """Returns the state after a complete generation."""
        reached: dict[Place, list[Member]] = {}
        for member in generation:
            place: Place | None = _parent(member)
            while place is not None:
                reached.setdefault(place, []).append(member)
                place = state[place].parent
        found = {
            m.place: Node(_outcome(m), _parent(m)) for m in generation if m.fitness is not None
        }
        for place, members in reached.items():
            node, own = state[place], [each for each in members if _parent(each) == place]
            found[place] = replace(
                node,
                children=(*node.children, *(each.place for each in own if each.place in found)),
                widened=(*node.widened, *map(_outcome, own)),
                below=(*node.below, *map(_outcome, members)),
            )
        return state | found


def _parent(member: Member) -> Place:
    """Returns the program that a member was made from."""
    return member.parents[0] if member.parents else (0, 0)


def _outcome(member: Member) -> float:
    """Returns the fitness of a member, or what counts as nothing."""
    return NOTHING if member.fitness is None else member.fitness
