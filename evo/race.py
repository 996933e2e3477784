"""The one loop of selection: a selector samples configurations within a budget, live or logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from evo.policies.base import Bools, Floats, Ints
from evo.selectors import Selector

End = Literal["certain", "exhausted", "budget"]
"""Why a race ended: what the selector is after holds at 1 - delta; it has no further samples to
ask for; what was spent reached the budget."""

ENDS: tuple[End, ...] = ("certain", "exhausted", "budget")


@dataclass(frozen=True)
class Taken:
    """Samples of one round.

    Attributes:
        values: (replicates, configurations, width), rewards, failures included at their value;
            the first `take` of each configuration count.
        costs: By unit, (replicates, configurations): what they cost together.
    """

    values: Floats
    costs: Mapping[str, Floats]


class Samples(Protocol):
    """What a selector samples: live searches (one replicate) or logged ones (many)."""

    @property
    def shape(self) -> tuple[int, int]:
        """(replicates, configurations)."""

    @property
    def sizes(self) -> Ints:
        """(configurations,), how many samples there are of each."""

    def take(self, first: Ints, number: Ints) -> Taken:
        """The samples first ... first + number - 1 of each; both (replicates, configurations)."""


@dataclass(frozen=True)
class Standing:
    """Where a race stands after a round; all arrays are (replicates, configurations).

    Attributes:
        count: Samples so far.
        mean: Mean reward; NaN before the first sample.
        lower: Lower end of its interval.
        upper: Upper end.
        alive: False once retired.
    """

    count: Ints
    mean: Floats
    lower: Floats
    upper: Floats
    alive: Bools


@dataclass(frozen=True)
class Races:
    """How the races of all replicates ended.

    Attributes:
        winner: (replicates,), the winning configuration; -1 if none is left.
        survivors: (replicates, configurations), sampled and not retired.
        standing: After the last round.
        spent: By unit, (replicates, configurations); `samples` among them.
        end: (replicates,), place in `ENDS`.
        rounds: Rounds of the longest race.
    """

    winner: Ints
    survivors: Bools
    standing: Standing
    spent: dict[str, Floats]
    end: Ints
    rounds: int


def race(
    selector: Selector,
    samples: Samples,
    *,
    budget: Mapping[str, float] | None = None,
    watcher: Callable[[Standing], None] | None = None,
) -> Races:
    """Let a selector sample configurations until it is certain, out of samples or out of budget.

    A budget in samples is met exactly. In other units no round begins once what is spent has
    reached it, so it is overrun by the last round at most.

    Args:
        selector: Made for `samples.shape`.
        samples: Live or logged.
        budget: Limits by unit: samples, or a unit of the samples' costs; all configurations
            together.
        watcher: Told where it stands after each round.

    Raises:
        ValueError: A budget is not positive, or in a unit in which nothing is counted.
    """
    limits = dict(budget or {})
    for unit, limit in limits.items():
        if not limit > 0:
            raise ValueError(f"budget: expected a positive number of {unit}, got {limit!r}")
    spent: dict[str, Floats] = {"samples": np.zeros(samples.shape)}
    broke = np.zeros(samples.shape[0], dtype=bool)
    over = broke.copy()
    rounds = 0
    while (wanted := np.where(over[:, None], 0, selector.ask())).any():
        there = np.clip(samples.sizes - selector.count, 0, wanted)
        over |= (there < wanted).any(axis=1)
        take = _within(there, limits.get("samples"), spent["samples"])
        taken = samples.take(selector.count, take)
        for unit, cost in {"samples": take.astype(float), **taken.costs}.items():
            spent[unit] = spent.get(unit, 0.0) + np.where(take > 0, cost, 0.0)
        first_cost = next(iter(taken.costs.values()), take.astype(float))
        selector.tell(take, taken.values, first_cost)
        rounds += 1
        broke |= ~selector.certain & _reached(limits, spent)
        over |= broke
        if watcher:
            watcher(standing_of(selector))
    standing = standing_of(selector)
    return Races(
        winner=selector.winner(),
        survivors=standing.alive & (standing.count > 0),
        standing=standing,
        spent=spent,
        end=np.where(selector.certain, 0, np.where(broke, 2, 1)),
        rounds=rounds,
    )


def standing_of(selector: Selector) -> Standing:
    """Where a selector stands now."""
    return Standing(
        count=selector.count.copy(),
        mean=selector.mean,
        lower=selector.lower,
        upper=selector.upper,
        alive=selector.alive.copy(),
    )


def _within(wanted: Ints, limit: float | None, spent: Floats) -> Ints:
    """As many of the samples as are left, shared out in the order of the configurations."""
    if limit is None:
        return wanted
    left = np.floor(limit - spent.sum(axis=1, keepdims=True)).astype(np.intp)
    before = np.cumsum(wanted, axis=1) - wanted
    within: Ints = np.clip(left - before, 0, wanted)
    return within


def _reached(limits: Mapping[str, float], spent: Mapping[str, Floats]) -> Bools:
    """(replicates,), whether a limit is reached."""
    reached = np.zeros(len(spent["samples"]), dtype=bool)
    for unit, limit in limits.items():
        if unit not in spent:
            raise ValueError(
                f"budget: nothing is counted in {unit!r} here (known: {', '.join(spent)})"
            )
        total = spent[unit].sum(axis=1)
        if np.isnan(total).any():
            raise ValueError(f"budget: what a sample cost in {unit} is unknown; use another unit")
        reached |= total >= limit
    return reached


class Matrix:
    """Rows of logged rewards as the samples of many replicates; see `Samples`.

    Args:
        rewards: (replicates, configurations, samples), or without the first for all replicates.
        replicates: Number of replicates, where `rewards` has no axis for them.
        sizes: (configurations,), how many samples there are of each; None: as many as columns.
        costs: By unit, (configurations, samples) or what is broadcast to it.
    """

    def __init__(
        self,
        rewards: Floats,
        *,
        replicates: int = 1,
        sizes: Ints | None = None,
        costs: Mapping[str, Floats] | None = None,
    ) -> None:
        if rewards.ndim == 2:
            rewards = np.broadcast_to(rewards, (replicates, *rewards.shape))
        self._rewards = rewards
        self.shape = (rewards.shape[0], rewards.shape[1])
        self.sizes = np.full(rewards.shape[1], rewards.shape[2]) if sizes is None else sizes
        self._totals = {
            unit: np.cumsum(np.broadcast_to(cost, rewards.shape[1:]), axis=1)
            for unit, cost in (costs or {}).items()
        }

    def take(self, first: Ints, number: Ints) -> Taken:
        """The next samples of each row."""
        size = self._rewards.shape[2]
        rows, arms = np.nonzero(number)
        at = first[rows, arms, None] + np.arange(number.max())
        values = np.zeros((*self.shape, int(number.max())))
        values[rows, arms] = self._rewards[rows[:, None], arms[:, None], np.minimum(at, size - 1)]
        arm = np.arange(self.shape[1])
        costs = {
            unit: total[arm, np.maximum(first + number - 1, 0)]
            - np.where(first > 0, total[arm, np.maximum(first - 1, 0)], 0.0)
            for unit, total in self._totals.items()
        }
        return Taken(values, costs)
