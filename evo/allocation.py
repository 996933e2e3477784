"""The one loop: a policy pulls arms within a budget, live or over logs.

With several rounds in flight the policy is asked again before earlier rewards are in. It is asked
whenever fewer are in flight than may be, so the order in which rounds are told settles everything:
a replay that tells in the order of a live allocation repeats it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
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
        """Advance these arms by one generation; replicates not active stay as they are.

        Called when the round is told, so that nothing of a pull in flight is known before.
        """


class Watcher(Protocol):
    """Is told of every round, for a log or a progress bar."""

    def asked(self, round_index: int, arm: Ints) -> None:
        """The policy picked these arms, (replicates,); nothing was spent yet."""

    def told(self, round_index: int, reward: Floats, outcome: Outcome) -> None:
        """The policy was told the rewards, (replicates,), and its state now includes them."""


class Flights(Protocol):
    """Carries the pulls in flight, and says which of them is told next."""

    def begin(self, round_index: int, arm: Ints) -> None:
        """The policy asked for these arms, (replicates,): their work may begin."""

    def land(self, flying: Sequence[int]) -> int:
        """The round to be told next, out of those in flight in the order asked; waits for it."""


class InOrder:
    """Rounds land in an order laid down, then in the order asked: as if each took as long.

    Args:
        told: Rounds in the order told.
    """

    def __init__(self, told: Iterable[int] = ()) -> None:
        self._told = deque(told)

    def begin(self, round_index: int, arm: Ints) -> None:
        """Nothing to do before it lands."""

    def land(self, flying: Sequence[int]) -> int:
        """The next round of the order, or the first to be complete.

        Raises:
            ValueError: The next round of the order is not in flight.
        """
        index = self._told.popleft() if self._told else self.first(flying)
        if index not in flying:
            raise ValueError(
                f"round {index} is to be told next, but only rounds {list(flying)} are in flight: "
                f"an order of another allocation, or of another number in flight"
            )
        return index

    def first(self, flying: Sequence[int]) -> int:
        """The first to be complete: the oldest."""
        return flying[0]


@dataclass(frozen=True)
class Allocations:
    """The pulls of each replicate. Arrays are (replicates, rounds) unless said otherwise.

    Attributes:
        pulls: By round asked: the arm pulled; -1 once the replicate is over.
        rewards: By round asked: what the policy was told; NaN once over.
        best_fitness: After so many rounds were told: best over the arms so far, the initial
            program included; carried on once over, NaN while nothing is ok.
        spent: By unit, after so many rounds were told: what was spent; carried on once over.
        told: (rounds told,), rounds in the order told.
        apart: (replicates,), True where a replicate had to wait for a pull while others could go
            on. From there on it is not simulated: it needs an allocation of its own.
    """

    pulls: Ints
    rewards: Floats
    best_fitness: Floats
    spent: dict[str, Floats]
    told: Ints
    apart: Bools


def allocate(
    policy: Policy,
    arms: Arms,
    *,
    rounds: int,
    budget: Mapping[str, float] | None = None,
    reward: str | Reward = "best_fitness",
    in_flight: int = 1,
    flights: Flights | None = None,
    watcher: Watcher | None = None,
) -> Allocations:
    """Let a policy pull arms, one each round, until the rounds or the budget are used up.

    A replicate is over once all its arms are closed, once it asked for an arm that has no next
    generation, or once what it spent has reached the budget: no pull begins after the one that
    crosses the budget, and what is in flight then is told. The policy is still asked for it, with
    all arms open, so that the draws of the others do not depend on it, and its answer is not used.

    An arm has one pull in flight at most: to the policy it is closed meanwhile. Where all open
    arms are in flight, one has to be told before the policy is asked again.

    Args:
        policy: Made for `arms.shape`.
        arms: Live or logged; left in the state after the last pull.
        rounds: Pulls of each replicate at most.
        budget: Limits by unit (such as calls, tokens, flops, dollars, seconds), each a unit of
            the arms' costs; the policy is told the cost in the first of them, else 1 per pull.
        reward: Name out of `evo.rewards.REWARDS`, or a function of a pull.
        in_flight: Rounds asked and not yet told at most; with 1 a round ends before the next.
        flights: What carries them; None: each takes as long as any other.
        watcher: Told of every round.

    Raises:
        ValueError: The policy picked an arm that is closed or does not exist, a budget is not
            positive or in a unit the arms do not count in, or a cost it needs is unknown.
    """
    if in_flight < 1:
        raise ValueError(f"in_flight: expected at least 1, got {in_flight!r}")
    for unit, limit in (budget or {}).items():
        if not limit > 0:
            raise ValueError(f"expected a positive budget of {unit}, got {limit!r}")
    flights = flights or InOrder()
    game = _Game(policy, arms, rounds, dict(budget or {}), find_reward(reward), flights, watcher)
    while True:
        if len(game.flying) < in_flight and game.ask():
            continue
        if not game.flying:
            return game.record.finish(game.best, game.spent, game.apart)
        game.tell(flights.land(tuple(game.flying)))


class _Game:
    """An allocation under way.

    Attributes:
        alive: (replicates,), those that may be asked for another pull.
        apart: See `Allocations`.
        flying: By round: arms asked for, and in which replicates; in the order asked.
        best: (replicates,), best fitness told so far.
        spent: By unit, (replicates,).
    """

    def __init__(
        self,
        policy: Policy,
        arms: Arms,
        rounds: int,
        limits: Mapping[str, float],
        reward: Reward,
        flights: Flights,
        watcher: Watcher | None,
    ) -> None:
        replicates, n_arms = arms.shape
        self.alive = np.ones(replicates, dtype=bool)
        self.apart = np.zeros(replicates, dtype=bool)
        self.flying: dict[int, tuple[Ints, Bools]] = {}
        self.best: Floats = np.fmax.reduce(arms.fitness(), axis=1)
        self.spent: dict[str, Floats] = {}
        self.record = _Record(replicates, rounds)
        self._policy, self._arms, self._limits = policy, arms, limits
        self._reward, self._flights, self._watcher = reward, flights, watcher
        self._tell = _tell_of(policy)
        self._unit = next(iter(limits), None)
        self._rows = np.arange(replicates) * n_arms
        self._asked, self._rounds = 0, rounds

    def ask(self) -> bool:
        """Ask for the next round; False if no replicate can go on before another pull is told."""
        if self._asked == self._rounds:
            return False
        open_arms = self._arms.open_arms()
        if not open_arms.all():
            self.alive &= open_arms.any(axis=1)
        for unit in self._limits.keys() & self.spent.keys():
            self.alive &= self.spent[unit] < self._limits[unit]
        if self.flying:
            open_arms = self._not_flying(open_arms)
            stuck = self.alive & ~open_arms.any(axis=1)
            if stuck.any():
                if (stuck == self.alive).all():
                    return False
                self.apart |= stuck
                self.alive &= ~stuck
        if not self.alive.all():
            if not self.alive.any():
                return False
            open_arms = open_arms | ~self.alive[:, None]
        arm = self._policy.ask(open_arms)
        _check_pick(arm, open_arms, self._rows)
        if self._watcher:
            self._watcher.asked(self._asked, arm)
        self.flying[self._asked] = arm, self.alive.copy()
        self._flights.begin(self._asked, arm)
        self._asked += 1
        return True

    def _not_flying(self, open_arms: Bools) -> Bools:
        free = open_arms.copy()
        for arm, _ in self.flying.values():
            free.reshape(-1)[self._rows + arm] = False
        return free

    def tell(self, index: int) -> None:
        """Tell the policy what a round in flight came to."""
        arm, active = self.flying.pop(index)
        outcome = self._arms.pull(arm, active)
        made = outcome.made
        if not made.all():
            self._end(active & ~made)
            if not made.any():
                return
        value = self._reward(outcome)
        _spend(self.spent, self._limits, outcome.costs, made)
        cost = outcome.costs[self._unit] if self._unit else np.ones(len(made))
        self._tell(arm, value, cost)
        self.best = np.fmax(self.best, outcome.after)
        self.record.add(index, made, arm, value, self.best, self.spent)
        if self._watcher:
            self._watcher.told(index, value, outcome)

    def _end(self, failed: Bools) -> None:
        """These replicates are over, and what they have in flight with them."""
        self.alive &= ~failed
        rest = {index: (arm, active & ~failed) for index, (arm, active) in self.flying.items()}
        self.flying = {index: flight for index, flight in rest.items() if flight[1].any()}


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
        self._pulls = np.full(shape, -1, dtype=np.intp)
        self._rewards = np.full(shape, np.nan)
        self._best = np.empty(shape)
        self._spent: dict[str, Floats] = {}
        self._told: list[int] = []

    def add(
        self,
        index: int,
        made: Bools,
        arm: Ints,
        reward: Floats,
        best: Floats,
        spent: Mapping[str, Floats],
    ) -> None:
        """One round that was told."""
        everyone = bool(made.all())
        self._pulls[index] = arm if everyone else np.where(made, arm, -1)
        self._rewards[index] = reward if everyone else np.where(made, reward, np.nan)
        row = len(self._told)
        self._best[row] = best
        for unit, amount in spent.items():
            self._spent.setdefault(unit, np.empty(self._best.shape))[row] = amount
        self._told.append(index)

    def finish(self, best: Floats, spent: Mapping[str, Floats], apart: Bools) -> Allocations:
        """The result; rounds that no replicate played carry on what was reached."""
        told = len(self._told)
        self._best[told:] = best
        for unit, amount in spent.items():
            self._spent[unit][told:] = amount
        return Allocations(
            pulls=self._pulls.T,
            rewards=self._rewards.T,
            best_fitness=self._best.T,
            spent={unit: amount.T for unit, amount in self._spent.items()},
            told=np.array(self._told, dtype=np.intp),
            apart=apart,
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
    made: Bools,
) -> None:
    """Add what these pulls cost; unknown stays unknown, which no budget can be held in."""
    for unit in limits:
        if unit not in costs:
            raise ValueError(
                f"expected a budget in a unit that the arms count in, {sorted(costs)}, got {unit!r}"
            )
        if np.isnan(costs[unit][made]).any():
            raise ValueError(
                f"what a pull cost in {unit} is unknown, so a budget of {unit} cannot be held; "
                f"use another unit, or a rule for attempts without usage"
            )
    for unit, cost in costs.items():
        paid = np.where(made, cost, 0.0)
        spent[unit] = spent[unit] + paid if unit in spent else paid
