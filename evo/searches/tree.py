"""A tree of programs that grows wider or deeper, wherever more may be gained."""

from __future__ import annotations

import math
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
    """

    prior: int = 1

    name = "tree"

    def __post_init__(self) -> None:
        check_whole("prior", self.prior, 1)

    def start(self, initial: Member, min_improvement: float) -> dict[Place, Node]:
        """Returns the state before generation 1."""
        fitness = NOTHING if initial.fitness is None else initial.fitness
        return {initial.place: Node(fitness, None)}

    def plan(self, state: dict[Place, Node], children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        wider: dict[Place, int] = {}
        deeper: dict[Place, int] = {}
        return [Request((self._walk(state, wider, deeper, rng),)) for _ in range(children)]

    def _walk(
        self,
        state: dict[Place, Node],
        wider: dict[Place, int],
        deeper: dict[Place, int],
        rng: KeyedStream,
    ) -> Place:
        """Returns the program where a walk stops, and counts it as a request under way."""
        place = (0, 0)
        while True:
            node = state[place]
            best, chosen = self._draw(node.fitness, node.widened, wider.get(place, 0), rng), place
            for child in node.children:
                below = state[child]
                drawn = self._draw(below.fitness, below.below, deeper.get(child, 0), rng)
                if drawn > best:
                    best, chosen = drawn, child
            if chosen == place:
                wider[place] = wider.get(place, 0) + 1
                return place
            deeper[chosen] = deeper.get(chosen, 0) + 1
            place = chosen

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
        born: dict[Place, list[Place]] = {}
        widened: dict[Place, list[float]] = {}
        below: dict[Place, list[float]] = {}
        found = dict(state)
        for member in generation:
            parent = member.parents[0] if member.parents else (0, 0)
            fitness = NOTHING if member.fitness is None else member.fitness
            widened.setdefault(parent, []).append(fitness)
            if member.fitness is not None:
                born.setdefault(parent, []).append(member.place)
                found[member.place] = Node(fitness, parent)
            place: Place | None = parent
            while place is not None:
                below.setdefault(place, []).append(fitness)
                place = state[place].parent
        for place, outcomes in below.items():
            node = found[place]
            found[place] = replace(
                node,
                children=(*node.children, *born.get(place, ())),
                widened=(*node.widened, *widened.get(place, ())),
                below=(*node.below, *outcomes),
            )
        return found
