"""A search of one's own: widen or deepen by Thompson sampling at every node (after AB-MCTS)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.keyed import KeyedStream
from evo.searches import Member, Request
from evo.searches.base import Place


@dataclass(frozen=True)
class Node:
    """A program, those made from it, and the fitness of everything below it."""

    own: float
    children: tuple[Place, ...] = ()
    below: tuple[float, ...] = ()


@dataclass(frozen=True)
class Branching:
    """Each request goes down from the root and stops where a new child promises most.

    What an option promises is a draw out of what came of it; a request of the same generation
    counts as one that came to nothing.
    """

    name = "branching"

    def start(self, initial: Member, min_improvement: float) -> dict[Place, Node]:
        return {initial.place: Node(float("-inf") if initial.fitness is None else initial.fitness)}

    def plan(self, state: dict[Place, Node], children: int, rng: KeyedStream) -> list[Request]:
        pending: dict[Place, int] = {}
        return [Request((self._descend(state, pending, rng),)) for _ in range(children)]

    def _descend(
        self, state: dict[Place, Node], pending: dict[Place, int], rng: KeyedStream
    ) -> Place:
        place = (0, 0)
        while True:
            node = state[place]
            nothing = (float("-inf"),) * pending.get(place, 0)
            pending[place] = len(nothing) + 1
            options = [
                (rng.pick((node.own, *(state[c].own for c in node.children), *nothing)), place)
            ]
            for child in node.children:
                seen = (state[child].own, *state[child].below)
                options.append((rng.pick(seen + (float("-inf"),) * pending.get(child, 0)), child))
            best = max(options, key=lambda option: option[0])[1]
            if best == place:
                return place
            place = best

    def fold(self, state: dict[Place, Node], generation: Sequence[Member]) -> dict[Place, Node]:
        state = dict(state)
        above = {child: place for place, node in state.items() for child in node.children}
        for member in generation:
            if member.fitness is None:
                continue
            place: Place | None = member.parents[0]
            state[member.place] = Node(member.fitness)
            state[place] = replace(state[place], children=(*state[place].children, member.place))
            while place is not None:
                state[place] = replace(state[place], below=(*state[place].below, member.fitness))
                place = above.get(place)
        return state
