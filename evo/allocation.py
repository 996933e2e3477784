"""The one loop: a policy pulls arms within a budget, live or over logs."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evo.policies.base import Bools, Floats, Ints, Policy
from evo.rewards import Pull, Reward, find_reward


@dataclass(frozen=True)
class Outcome(Pull):
    """A pull as the arms report it.

    Attributes:
        made: (replicates,), False where the replicate was not active, or is now over because the
            arm had no next generation; `after` is then `before`.
        costs: By unit, (replicates,): what each pull cost; NaN where unknown.
    """

    made: Bools
    costs: Mapping[str, Floats]


class Arms(Protocol):
    """What a policy allocates over: live runs (one replicate) or logged ones (many)."""

    @property
    def shape(self) -> tuple[int, int]:
        """(replicates, arms)."""

    def open_arms(self) -> Bools:
        """(replicates, arms), the arms that may be pulled. Not written to by the caller."""

    def fitness(self) -> Floats:
        """(replicates, arms), each arm's fitness so far, NaN while nothing is ok."""

    def pull(self, arm: Ints, active: Bools) -> Outcome:
        """Advance these arms by one generation; replicates not active stay as they are."""


class Watcher(Protocol):
    """Is told of every round, for a log or a progress bar."""

    def asked(self, round_index: int, arm: Ints) -> None:
        """The policy picked these arms, (replicates,); nothing was spent yet."""

    def told(self, round_index: int, reward: Floats, outcome: Outcome) -> None:
        """The policy was told the rewards, (replicates,), and its state now includes them."""


@dataclass(frozen=True)
class Allocations:
    """The pulls of each replicate. All arrays are (replicates, rounds).

    Attributes:
        pulls: The arm pulled; -1 once the replicate is over.
        rewards: What the policy was told; NaN once over.
        best_fitness: Best over the arms so far, the initial program included; carried on once
            over, NaN while nothing is ok.
        spent: By unit, what was spent up to and including the round; carried on once over.
    """

    pulls: Ints
    rewards: Floats
    best_fitness: Floats
    spent: dict[str, Floats]


def allocate(
    policy: Policy,
    arms: Arms,
    *,
    rounds: int,
    budget: Mapping[str, float] | None = None,
    reward: str | Reward = "best_fitness",
    watcher: Watcher | None = None,
) -> Allocations:
    """Let a policy pull arms, one each round, until the rounds or the budget are used up.

    A replicate is over once all its arms are closed, once it asked for an arm that has no next
    generation, or once what it spent has reached the budget: the pull that crosses the budget is
    the last. The policy is still asked for it, with all arms open, so that the draws of the others
    do not depend on it, and its answer is not used.

    Args:
        policy: Made for `arms.shape`.
        arms: Live or logged; left in the state after the last pull.
        rounds: Pulls of each replicate at most.
        budget: Limits by unit (such as calls, tokens, flops, dollars, seconds), each a unit of
            the arms' costs; the policy is told the cost in the first of them, else 1 per pull.
        reward: Name out of `evo.rewards.REWARDS`, or a function of a pull.
        watcher: Told of every round.

    Raises:
        ValueError: The policy picked an arm that is closed or does not exist, a budget is not
            positive or in a unit the arms do not count in, or a cost it needs is unknown.
    """
    limits = dict(budget or {})
    for unit, limit in limits.items():
        if not limit > 0:
            raise ValueError(f"expected a positive budget of {unit}, got {limit!r}")
    reward_of = find_reward(reward)
    tell = _tell_of(policy)
    replicates, n_arms = arms.shape
    rows = np.arange(replicates) * n_arms

    alive = np.ones(replicates, dtype=bool)
    best = np.fmax.reduce(arms.fitness(), axis=1)
    spent: dict[str, Floats] = {}
    record = _Record(replicates, rounds)
    for index in range(rounds):
        open_arms = arms.open_arms()
        if not open_arms.all():
            alive &= open_arms.any(axis=1)
        for unit in limits.keys() & spent.keys():
            alive &= spent[unit] < limits[unit]
        if not alive.all():
            if not alive.any():
                break
            open_arms = open_arms | ~alive[:, None]
        arm = policy.ask(open_arms)
        _check_pick(arm, open_arms, rows)
        if watcher:
            watcher.asked(index, arm)
        outcome = arms.pull(arm, alive)
        alive &= outcome.made
        if not alive.any():
            break
        value = reward_of(outcome)
        _spend(spent, limits, outcome.costs, alive)
        tell(arm, value, outcome.costs[next(iter(limits))] if limits else np.ones(replicates))
        best = np.fmax(best, outcome.after)
        record.add(alive, arm, value, best, spent)
        if watcher:
            watcher.told(index, value, outcome)
    return record.finish(best, spent)


def state_digest(policy: Policy) -> str:
    """SHA-256 (hex) of what a policy knows: its public arrays and numbers.

    Two allocations that made the same pulls and got the same rewards have the same digest, so a
    resumed one can be checked against its log. Last bits of exp and log may differ between
    processors, and with them digests between machines.
    """
    digest = hashlib.sha256()
    for name, value in sorted(vars(policy).items()):
        if not name.startswith("_") and isinstance(value, np.ndarray | int | float):
            array = np.ascontiguousarray(value)
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


class _Record:
    """Rows of the result, one a round, seen as columns at the end."""

    def __init__(self, replicates: int, rounds: int) -> None:
        shape = (rounds, replicates)
        self._pulls = np.empty(shape, dtype=np.intp)
        self._rewards = np.empty(shape)
        self._best = np.empty(shape)
        self._spent: dict[str, Floats] = {}
        self._rounds = 0

    def add(
        self, alive: Bools, arm: Ints, reward: Floats, best: Floats, spent: Mapping[str, Floats]
    ) -> None:
        """One round."""
        index = self._rounds
        everyone = bool(alive.all())
        self._pulls[index] = arm if everyone else np.where(alive, arm, -1)
        self._rewards[index] = reward if everyone else np.where(alive, reward, np.nan)
        self._best[index] = best
        for unit, amount in spent.items():
            self._spent.setdefault(unit, np.empty(self._best.shape))[index] = amount
        self._rounds += 1

    def finish(self, best: Floats, spent: Mapping[str, Floats]) -> Allocations:
        """The result; rounds that no replicate played carry on what was reached."""
        self._pulls[self._rounds :] = -1
        self._rewards[self._rounds :] = np.nan
        self._best[self._rounds :] = best
        for unit, amount in spent.items():
            self._spent[unit][self._rounds :] = amount
        return Allocations(
            pulls=self._pulls.T,
            rewards=self._rewards.T,
            best_fitness=self._best.T,
            spent={unit: amount.T for unit, amount in self._spent.items()},
        )


def _tell_of(policy: Policy) -> Callable[[Ints, Floats, Floats], None]:
    """The policy's `tell`, whether or not it takes a cost."""
    try:
        inspect.signature(policy.tell).bind(None, None, None)
    except TypeError:
        plain: Callable[[Ints, Floats], None] = policy.tell  # type: ignore[assignment]
        return lambda arm, reward, cost: plain(arm, reward)
    return policy.tell


def _check_pick(arm: Ints, open_arms: Bools, rows: Ints) -> None:
    replicates, n_arms = open_arms.shape
    if np.shape(arm) != (replicates,) or arm.dtype.kind not in "iu":
        raise ValueError(
            f"expected the policy to pick one arm in each replicate, integers of shape "
            f"({replicates},), got {arm!r}"
        )
    if arm.min() < 0 or arm.max() >= n_arms or not open_arms.reshape(-1)[rows + arm].all():
        inside = (arm >= 0) & (arm < n_arms)
        wrong = ~inside | ~open_arms[np.arange(replicates), np.where(inside, arm, 0)]
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the policy picked arm {int(arm[first])} in replicate {first}, where only "
            f"{np.flatnonzero(open_arms[first]).tolist()} are open; `ask` must pick an open arm"
        )


def _spend(
    spent: dict[str, Floats],
    limits: Mapping[str, float],
    costs: Mapping[str, Floats],
    alive: Bools,
) -> None:
    """Add what these pulls cost; unknown stays unknown, which no budget can be held in."""
    for unit in limits:
        if unit not in costs:
            raise ValueError(
                f"expected a budget in a unit that the arms count in, {sorted(costs)}, got {unit!r}"
            )
        if np.isnan(costs[unit][alive]).any():
            raise ValueError(
                f"what a pull cost in {unit} is unknown, so a budget of {unit} cannot be held; "
                f"use another unit, or a rule for attempts without usage"
            )
    for unit, cost in costs.items():
        paid = np.where(alive, cost, 0.0)
        spent[unit] = spent[unit] + paid if unit in spent else paid
