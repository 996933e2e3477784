"""Baselines that know the logs beforehand: bounds for policies, and reported apart from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evo.policies.base import Bools, Floats, Ints


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


HINDSIGHT: dict[str, Hindsight] = {
    "oracle_arm": Hindsight(oracle_arm),
}
"""Hindsight baselines by name; no policies, since they know what they could not."""
