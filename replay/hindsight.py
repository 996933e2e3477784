"""Baselines that know the logs beforehand: bounds for policies, and reported apart from them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evo.policies.base import Bools, Floats, Ints

_STATES = 200_000
"""States that the search for the best schedule may look at."""


@dataclass(frozen=True)
class Logged:
    """Logged runs, checked.

    Attributes:
        fitness: (runs, generations + 1), NaN while nothing is ok and after a run's end.
        lengths: (runs,), last logged generation.
        costs: By unit, (runs, generations + 1).
    """

    fitness: Floats
    lengths: Ints
    costs: dict[str, Floats]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.fitness)


@dataclass(frozen=True)
class Hindsight:
    """A baseline that fixes its pulls from the logs.

    Attributes:
        schedule: From the logs, the rows that are each replicate's arms (replicates, K), rounds
            and budget to the arms to pull, (replicates, rounds).
    """

    schedule: Callable[[Logged, Ints, int, Mapping[str, float]], Ints]


class Schedule:
    """A policy that pulls what was laid down; where that arm is closed, the first open one."""

    def __init__(self, arms: Ints) -> None:
        self.arms = arms
        self.told = 0

    def ask(self, open_arms: Bools) -> Ints:
        """The scheduled arm of each replicate."""
        arm = self.arms[:, self.told]
        is_open = open_arms[np.arange(len(arm)), arm]
        return np.where(is_open, arm, open_arms.argmax(axis=1))

    def tell(self, arm: Ints, reward: Floats, cost: Floats) -> None:
        """Go on to the next round."""
        self.told += 1


def oracle_arm(logged: Logged, rows: Ints, rounds: int, budget: Mapping[str, float]) -> Ints:
    """All pulls to the arm that ends highest: the best final fitness that any schedule reaches.

    Exact: a schedule's final fitness is that of one of its arms after n of the pulls, and all
    pulls to that arm are at least n. The same holds for a budget in any cost, and the earliest
    round at which any schedule reaches a threshold is likewise that of a single arm.
    """
    depth = np.minimum(logged.lengths, rounds)
    for unit, limit in budget.items():
        own = logged.costs[unit][:, 1:]
        before = np.cumsum(own, axis=1) - own
        before[:, 1:] += np.nan_to_num(logged.costs[unit][:, :1])  # paid with the first pull
        depth = np.minimum(depth, (before < limit).sum(axis=1))
    reached = np.fmax.accumulate(logged.fitness, axis=1)[np.arange(logged.runs), depth]
    final = np.where(np.isnan(reached), -np.inf, reached)
    return np.repeat(final[rows].argmax(axis=1)[:, None], rounds, axis=1)


def oracle_allocation(logged: Logged, rows: Ints, rounds: int, budget: Mapping[str, float]) -> Ints:
    """The schedule with the largest mean over all rounds of the best fitness so far.

    Exact, by search (see `_best_schedule`). Its final fitness may be below that of `oracle_arm`,
    which is the bound for the end. A round in which nothing is ok yet counts as fitness 0, or as
    the lowest of the arms if that is lower.

    Raises:
        ValueError: There is a budget other than rounds.
        RuntimeError: The search is too large: many arms that all rise in many steps.
    """
    if budget:
        raise ValueError(
            f"oracle_allocation knows no budget other than rounds, got {dict(budget)!r}; "
            f"oracle_arm does"
        )
    found: dict[tuple[int, ...], Ints] = {}
    schedules = np.empty((len(rows), rounds), dtype=np.intp)
    for replicate, arms in enumerate(rows):
        runs = np.unique(arms)
        key = tuple(runs.tolist())
        if key not in found:
            found[key] = runs[_best_schedule(_heights(logged, runs, rounds), rounds)]
        schedules[replicate] = (arms == found[key][:, None]).argmax(axis=1)
    return schedules


def _heights(logged: Logged, runs: Ints, rounds: int) -> Floats:
    """Best fitness of these runs after 0 ... rounds pulls, carried on after a run's end."""
    best = np.fmax.accumulate(logged.fitness[runs], axis=1)
    depth = np.minimum(np.arange(rounds + 1), logged.lengths[runs][:, None])
    best = np.take_along_axis(best, depth, axis=1)
    lowest = float(np.fmin.reduce(best, axis=None, initial=0.0))
    return np.where(np.isnan(best), lowest, best)


def _best_schedule(heights: Floats, rounds: int) -> Ints:
    """Arms in the order of pulls that maximises the sum over rounds of the best height so far.

    A pull helps only as part of a stretch that ends above the best so far, and may as well wait
    until just before that stretch's end; so a schedule is a sequence of stretches, each to the
    next depth at which an arm exceeds the best so far. Depths by arm say all about a state: the
    pulls made are their sum, the best so far their largest height. The search is A*: it goes on
    from the state whose sum so far plus a bound on the rest is largest. The bound takes, for each
    later round, the highest that any one arm could be by then.
    """
    start = (0,) * len(heights)
    sums = {start: 0.0}
    parent: dict[tuple[int, ...], tuple[int, ...]] = {}
    done: set[tuple[int, ...]] = set()
    queue = [(-_bound(heights, start, rounds), start)]
    while len(done) < _STATES:
        _, depths = heapq.heappop(queue)
        if depths in done:
            continue
        done.add(depths)
        best = max(float(heights[arm, depth]) for arm, depth in enumerate(depths))
        left = rounds - sum(depths)
        final = True
        for arm, depth in enumerate(depths):
            higher = heights[arm, depth + 1 : depth + left + 1] > best
            if not higher.any():
                continue
            final = False
            pulls = int(higher.argmax()) + 1
            after = (*depths[:arm], depth + pulls, *depths[arm + 1 :])
            total = sums[depths] + best * (pulls - 1) + float(heights[arm, depth + pulls])
            if total > sums.get(after, -np.inf):
                sums[after] = total
                parent[after] = depths
                heapq.heappush(queue, (-total - _bound(heights, after, rounds), after))
        if final:
            return _pulls(parent, depths, rounds)
    raise RuntimeError(
        f"the best schedule of {len(heights)} arms over {rounds} rounds was not found within "
        f"{_STATES} states; take fewer arms or rounds, or oracle_arm"
    )


def _bound(heights: Floats, depths: tuple[int, ...], rounds: int) -> float:
    """At least the sum of the best height over the rounds left."""
    left = rounds - sum(depths)
    ahead = [heights[arm, depth + 1 : depth + left + 1] for arm, depth in enumerate(depths)]
    best = max(heights[arm, depth] for arm, depth in enumerate(depths))
    return float(np.maximum(np.maximum.reduce(ahead), best).sum())


def _pulls(
    parent: Mapping[tuple[int, ...], tuple[int, ...]], depths: tuple[int, ...], rounds: int
) -> Ints:
    """The arm of each round on the way to these depths; the last arm keeps the rounds left."""
    stretches: list[int] = []
    while depths in parent:
        before = parent[depths]
        arm = next(k for k, depth in enumerate(depths) if depth > before[k])
        stretches[:0] = [arm] * (depths[arm] - before[arm])
        depths = before
    last = stretches[-1] if stretches else 0
    return np.array(stretches + [last] * (rounds - len(stretches)), dtype=np.intp)


HINDSIGHT: dict[str, Hindsight] = {
    "oracle_arm": Hindsight(oracle_arm),
    "oracle_allocation": Hindsight(oracle_allocation),
}
"""Hindsight baselines by name; no policies, since they know what they could not."""
