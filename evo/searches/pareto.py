"""A frontier of programs; each is the best at something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.keyed import KeyedStream
from evo.searches.base import TIE, Member, Place, Request, ranked


@dataclass(frozen=True)
class Frontier:
    """A frontier under way: for each objective the best score, and the programs that reach it."""

    initial: Member
    members: tuple[Member, ...] = ()


@dataclass(frozen=True)
class Pareto:
    """Children rewrite programs that are the best on some instance, or at some metric.

    The candidate selection of GEPA (Agrawal et al., arXiv 2507.19457, algorithm 2): a program is a
    candidate if no other is better on at least one objective. From the worst to the best, those
    are left out that share every objective on which they are best with another that is left. A
    request draws a candidate in proportion to the number of objectives on which it is best.

    The objectives are the instances of the task's data set, those held out left aside; without a
    data set the fitness, unless public metrics are named.

    Attributes:
        metrics: Public metrics that are the objectives in place of the instances; of one with a
            minus before its name, such as `-seconds`, less is better.

    Example:
        >>> from evo.keyed import KeyedStream
        >>> search = evo.searches.Pareto(metrics=("speed",))
        >>> state = search.start(evo.searches.Member((0, 0), 0.5, metrics={"speed": 2.0}), 0.0)
        >>> search.plan(state, 1, KeyedStream(0))[0].parents
        ((0, 0),)
    """

    metrics: tuple[str, ...] = ()

    name = "pareto"

    def start(self, initial: Member, min_improvement: float) -> Frontier:
        """Returns the state before generation 1.

        Raises:
            ValueError: The initial program lacks a public metric of that name.
        """
        if initial.fitness is None:
            return Frontier(initial)
        for name in self.metrics:
            if name.removeprefix("-") not in initial.metrics:
                known = ", ".join(initial.metrics) or "none"
                raise ValueError(
                    f"metrics: expected names of public metrics of the task ({known}), got {name!r}"
                )
        return Frontier(initial, (initial,))

    def plan(self, state: Frontier, children: int, rng: KeyedStream) -> list[Request]:
        """Returns one request per child."""
        weights = self.weights(state)
        if not weights:
            return [Request((state.initial.place,))] * children
        return [Request((rng.weighted(weights),)) for _ in range(children)]

    def weights(self, state: Frontier) -> dict[Place, float]:
        """Returns on how many objectives each candidate is the best, best fitness first."""
        fronts = self._fronts(state.members)
        order = [member.place for member in ranked(state.members)]
        left = {place for front in fronts for place in front}
        for place in reversed(order):
            own = [front for front in fronts if place in front]
            if place in left and all((front & left) - {place} for front in own):
                left.discard(place)
        return {
            place: float(sum(place in front for front in fronts))
            for place in order
            if place in left
        }

    def _fronts(self, members: Sequence[Member]) -> list[set[Place]]:
        """Returns the best programs on each objective."""
        scores = {member.place: self._scores(member) for member in members}
        names = sorted({name for each in scores.values() for name in each})
        fronts = []
        for name in names:
            known = {place: each[name] for place, each in scores.items() if name in each}
            best = max(known.values())
            fronts.append({place for place, score in known.items() if score >= best - TIE})
        return fronts

    def _scores(self, member: Member) -> dict[str, float]:
        if self.metrics:
            signs = {name: -1.0 if name.startswith("-") else 1.0 for name in self.metrics}
            values = member.metrics
            return {
                name: sign * values[name.removeprefix("-")]
                for name, sign in signs.items()
                if name.removeprefix("-") in values
            }
        scores = {name: score for name, score in member.scores.items() if score is not None}
        return scores or {"fitness": member.fitness or 0.0}

    def fold(self, state: Frontier, generation: Sequence[Member]) -> Frontier:
        """Returns the state after a complete generation: what is best on nothing is forgotten."""
        able = [member for member in generation if member.fitness is not None]
        members = [*state.members, *able]
        best = {place for front in self._fronts(members) for place in front}
        return replace(state, members=tuple(each for each in members if each.place in best))
