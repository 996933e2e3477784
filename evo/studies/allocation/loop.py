"""The one loop: a policy pulls arms within a budget, live or over logs.

With several rounds in flight the policy is asked again before earlier rewards are in. It is asked
whenever fewer are in flight than may be, so the order in which rounds are completed determines
everything: a replay that tells in the order of a live allocation repeats it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from evo.plugins import MistakenType
from evo.policies.base import Bools, Floats, Ints, Policy, described
from evo.policies.learned import reward_of
from evo.policies.rewards import Pull, Reward, find_reward, improved
from evo.runs.budget import Ledger, check_budget
from evo.studies.allocation.goal import AllocationGoal, goal_at

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class PullOutcome(Pull):
    """A pull as the arms report it.

    Attributes:
        made: (replicates,), False where the replicate was not active, or is now over because the
            arm had no next generation; `after` is then `before`.
        costs: By unit, (replicates,): what each pull cost, an arm's generation 0 with its first
            pull; NaN where unknown.
    """

    made: Bools
    costs: Mapping[str, Floats]


class Arms(Protocol):
    """The arms of an allocation: live runs (one replicate) or logged ones (many)."""

    @property
    def shape(self) -> tuple[int, int]:
        """(replicates, arms)."""

    def open_arms(self) -> Bools:
        """(replicates, arms), the arms that may be pulled. Not written to by the caller."""

    def fitness(self) -> Floats:
        """(replicates, arms), each arm's fitness so far, NaN while nothing is ok or known."""

    def worst(self, arm: Ints) -> Mapping[str, Floats]:
        """By unit, (replicates,): the most that pulls of these arms may cost; others: no bound."""

    def pull(self, arm: Ints, active: Bools) -> PullOutcome:
        """Advance these arms by one generation; replicates not active stay as they are.

        Called when the round is completed, so that nothing of a pull in flight is known before.
        """


class RoundWatcher(Protocol):
    """Receives every round, for a log or a progress bar."""

    def asked(self, round_index: int, arm: Ints) -> None:
        """The policy picked these arms, (replicates,); nothing was spent yet."""

    def completed(self, round_index: int, reward: Floats, outcome: PullOutcome) -> None:
        """The policy has received the rewards, (replicates,), and its state includes them."""


class InOrder:
    """Carries the pulls in flight, and decides which of them is completed next.

    Rounds land in an order laid down, then in the order asked: as if each took as long.
    """

    def __init__(self, order: Iterable[int] = ()) -> None:
        self._order = deque(order)

    def begin(self, round_index: int, arm: Ints) -> None:
        """The policy asked for these arms, (replicates,): their work may begin."""

    def land(self, flying: Sequence[int]) -> int:
        """The round to complete next, out of those in flight in the order asked; waits for it."""
        index = self._order.popleft() if self._order else self.first(flying)
        if index not in flying:
            raise ValueError(
                f"round {index} is to be completed next, but only {list(flying)} are in flight: "
                f"an order of another allocation, or of another number in flight"
            )
        return index

    def first(self, flying: Sequence[int]) -> int:
        """The first to be complete: the oldest."""
        return flying[0]


@dataclass(frozen=True)
class Allocations:
    """The pulls of each replicate. Arrays are (replicates, rounds) unless stated otherwise.

    Attributes:
        pulls: By round asked: the arm pulled; -1 once the replicate is over.
        rewards: By round asked: the reward the policy received; NaN once over.
        best_fitness: After so many completed rounds: best over the arms so far, the initial
            program included; carried on once over, NaN while nothing is ok.
        spent: By unit, after so many completed rounds: what was spent; carried on once over.
        told: (completed rounds,), rounds in the order of completion.
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
    budget: Mapping[str, float] | Ledger | None = None,
    cost_unit: str | None = None,
    reward: str | Reward = "best_fitness",
    goals: Sequence[AllocationGoal] = (),
    in_flight: int = 1,
    flights: InOrder | None = None,
    watcher: RoundWatcher | None = None,
) -> Allocations:
    """Let a policy pull arms, one each round, until the rounds or the budget are used up.

    A replicate is over once all its arms are closed, once it asked for an arm that has no next
    generation, once one of its arms reached the target, or once what it spent has reached the
    budget; what is in flight then is completed. The policy is still asked for it, with
    all arms open, so that the draws of the others do not depend on it, and its answer is not used.

    An arm has one pull in flight at most: to the policy it is closed meanwhile. Where all open
    arms are in flight, or what is in flight might use up the budget, one has to be completed before
    the policy is asked again: so at most one pull exceeds a budget.

    Args:
        policy: Made for `arms.shape`.
        arms: Live or logged; left in the state after the last pull.
        rounds: Pulls of each replicate at most.
        budget: Limits by unit of the arms' costs; or a ledger, which these pulls may share with
            others.
        cost_unit: Unit of the cost that the policy receives. None: the first one of the limits; for
            a ledger, or without limits, a pull costs 1.
        reward: Name out of `evo.policies.rewards.REWARDS`, or a function of a pull.
        goals: Target and patience, in the order in which they come into force; several only for
            one replicate.
        in_flight: Rounds asked and not yet completed at most; with 1 a round ends before the next.
        flights: What carries them; None: each takes as long as any other.
        watcher: Receives every round.
    """
    if in_flight < 1:
        raise ValueError(f"in_flight: expected at least 1, got {in_flight!r}")
    if missing := [n for n in ("ask", "tell") if not callable(getattr(policy, n, None))]:
        raise MistakenType(
            f"expected a policy, which has ask(open_arms) and tell(arm, reward, cost), got one of "
            f"class {type(policy).__name__} without {' and '.join(missing)}"
        )
    if not isinstance(budget, Ledger):
        cost_unit = cost_unit or next(iter(budget or ()), None)
        budget = Ledger(check_budget(budget, more=tuple(budget or ())), arms.shape[0])
    game = _Game(
        policy, arms, find_reward(reward_of(policy, reward)), watcher, budget, rounds, cost_unit,
        goals,
    )  # fmt: skip
    flights = flights or InOrder()
    while True:
        if len(game.flying) < in_flight and (arm := _ask(game)) is not None:
            flights.begin(game.asked - 1, arm)
        elif game.flying:
            _tell(game, flights.land(tuple(game.flying)))
        else:
            break
    played = len(game.told)
    game.bests[played:] = game.best  # rounds that no replicate played carry on what was reached
    for unit, amounts in game.spent.items():
        amounts[played:] = game.ledger.spent[unit]
    return Allocations(
        pulls=game.pulls.T,
        rewards=game.rewards.T,
        best_fitness=game.bests.T,
        spent={unit: amount.T for unit, amount in game.spent.items()},
        told=np.array(game.told, dtype=np.intp),
        apart=game.apart,
    )


@dataclass(eq=False)
class _Game:
    """The state of an allocation in progress.

    `alive` (replicates,) may be asked for another pull; `flying` are by round the arms asked for,
    and in which replicates; `best` and `lowest` (replicates,) are the best fitness received, and
    the lowest generation 0 known, of the arms that are `seen` (None: all). What `Allocations` gives
    has a row for each round.
    """

    policy: Policy
    arms: Arms
    reward: Reward
    watcher: RoundWatcher | None
    ledger: Ledger
    rounds: int
    unit: str | None
    goals: Sequence[AllocationGoal]
    asked: int = 0
    flying: dict[int, tuple[Ints, Bools]] = field(default_factory=dict)
    told: list[int] = field(default_factory=list)
    spent: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        replicates, n_arms = self.arms.shape
        self.alive = np.ones(replicates, dtype=bool)
        self.apart = np.zeros(replicates, dtype=bool)
        self.at = np.arange(replicates) * n_arms  # where each replicate's arms begin, flat
        first = self.arms.fitness()
        self.best: Floats = np.fmax.reduce(first, axis=1)
        self.lowest: Floats = np.fmin.reduce(first, axis=1)
        self.seen: Bools | None = None if not np.isnan(first).any() else ~np.isnan(first)
        self.pulls = np.full((self.rounds, replicates), -1, dtype=np.intp)
        self.rewards = np.full(self.pulls.shape, np.nan)
        self.bests = np.empty(self.pulls.shape)
        self.barren = np.zeros(n_arms * replicates, dtype=np.intp)  # generations, as in a run
        self.ask = _named(self.policy, "ask", self.policy.ask)
        self.tell = _named(self.policy, "tell", _tell_of(self.policy))

    def within_goal(self, open_arms: Bools) -> tuple[Bools, Bools]:
        """The open arms that the patience leaves open, and the replicates that go on."""
        goal = goal_at(self.goals, self.asked, len(self.told))
        if goal.patience is not None:
            open_arms = open_arms & (self.barren < goal.patience).reshape(open_arms.shape)
        going: Bools = np.asarray(open_arms.any(axis=1))
        if goal.target is not None:
            going &= ~np.asarray(self.best >= goal.target)
        return open_arms, going


def _ask(game: _Game) -> Ints | None:
    """Asks for the next round; None if no replicate can go on before another pull is completed."""
    if game.asked == game.rounds:
        return None
    open_arms = game.arms.open_arms()
    if game.goals:
        open_arms, going = game.within_goal(open_arms)
        if not (going & game.alive).any():
            return None  # with `alive` as it is, since another goal may come into force
        game.alive &= going
    if not open_arms.all():
        game.alive &= open_arms.any(axis=1)
    if game.ledger.limits:
        game.alive &= game.ledger.open()
    if game.flying:
        open_arms, stuck = _while_flying(game, open_arms)
        if stuck.any():
            if (stuck == game.alive).all():
                return None
            game.apart |= stuck
            game.alive &= ~stuck
    if not game.alive.all():
        if not game.alive.any():
            return None
        open_arms = open_arms | ~game.alive[:, None]
    arm = game.ask(open_arms.copy())  # what it is given it may write into
    _check_pick(arm, open_arms, game.at)
    arm = arm.copy()  # and what it returns it may use again
    if game.watcher:
        game.watcher.asked(game.asked, arm)
    game.flying[game.asked] = arm, game.alive.copy()
    game.asked += 1
    return arm


def _while_flying(game: _Game, open_arms: Bools) -> tuple[Bools, Bools]:
    """The arms that are open and not in flight, and the replicates that have to wait."""
    free = open_arms.copy()
    for arm, _ in game.flying.values():
        free.reshape(-1)[game.at + arm] = False
    stuck = game.alive & ~free.any(axis=1)
    if game.ledger.limits:
        flights = [(game.arms.worst(arm), active) for arm, active in game.flying.values()]
        reserved = {
            unit: sum(
                (np.where(active, worst.get(unit, np.inf), 0.0) for worst, active in flights),
                np.zeros(game.ledger.replicates),
            )
            for unit in game.ledger.limits
        }
        stuck |= game.alive & ~game.ledger.open(reserved)
    return free, stuck


def _tell(game: _Game, index: int) -> None:
    """Gives the policy the reward of a round in flight."""
    arm, active = game.flying.pop(index)
    outcome = game.arms.pull(arm, active)
    made = outcome.made
    everyone = bool(made.all())
    if not everyone:  # the others are over, and what they have in flight with them
        game.alive &= ~(failed := active & ~made)
        rest = {index: (arm, active & ~failed) for index, (arm, active) in game.flying.items()}
        game.flying = {index: flight for index, flight in rest.items() if flight[1].any()}
        if not made.any():
            return
    if game.seen is not None:  # generation 0 of arms that are pulled for the first time
        at, seen = game.at + arm, game.seen.reshape(-1)
        lowest = np.fmin(game.lowest, outcome.before)
        game.lowest = np.where(made & ~seen[at], lowest, game.lowest)
        seen[at] |= made
        game.seen = None if seen.all() else game.seen
    if game.goals:
        at = game.at + arm
        barren = np.where(improved(outcome) > 0, 0, game.barren[at] + 1)
        game.barren[at] = np.where(made, barren, game.barren[at])
    pull = Pull(arm, outcome.before, outcome.after, outcome.known, game.lowest)
    value = game.reward(pull)
    game.ledger.settle(outcome.costs, None if everyone else made)
    cost = outcome.costs[game.unit].copy() if game.unit else np.ones(len(made))
    game.tell(arm.copy(), value.copy(), cost)
    game.best = np.fmax(game.best, outcome.after)
    game.pulls[index] = arm if everyone else np.where(made, arm, -1)
    game.rewards[index] = value if everyone else np.where(made, value, np.nan)
    row = len(game.told)
    game.bests[row] = game.best
    for unit, amount in game.ledger.spent.items():
        if unit not in game.spent:
            game.spent[unit] = np.empty(game.bests.shape)
        game.spent[unit][row] = amount
    game.told.append(index)
    if game.watcher:
        game.watcher.completed(index, value, outcome)


def state_digest(policy: Policy) -> str:
    """SHA-256 (hex) of what a policy knows, by which a resumed allocation is checked.

    Last bits of exp and log may differ between processors, and with them digests between machines.
    """
    digest = hashlib.sha256()
    for name, value in sorted(vars(policy).items()):
        if not name.startswith("_") and isinstance(value, np.ndarray | int | float):
            array = np.ascontiguousarray(value)
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def _named(policy: Policy, method: str, function: Callable[..., Made]) -> Callable[..., Made]:
    """A method of a user's policy, whose failure of any kind is a ValueError that names it."""
    if type(policy).__module__.partition(".")[0] == "evo":
        return function  # what a policy of this package raises is a bug, and shows its traceback

    def called(*given: Any) -> Made:
        try:
            return function(*given)
        except (ValueError, MistakenType):
            raise
        except Exception as error:  # a stranger's code may raise anything
            raise ValueError(
                f"policy {type(policy).__name__}: `{method}` raised {type(error).__name__}: "
                f"{error}; correct it and run again"
            ) from error

    return called


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
    whole = isinstance(arm, np.ndarray) and arm.dtype.kind in "iu"
    if not whole or arm.shape != (replicates,):
        raise ValueError(
            f"expected the policy to pick one arm in each replicate, integers of shape "
            f"({replicates},), got {described(arm)}"
        )
    if arm.min() < 0 or arm.max() >= n_arms or not open_arms.reshape(-1)[rows + arm].all():
        inside = (arm >= 0) & (arm < n_arms)
        wrong = ~inside | ~open_arms[np.arange(replicates), np.where(inside, arm, 0)]
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the policy picked arm {int(arm[first])} in replicate {first}, where only "
            f"{np.flatnonzero(open_arms[first]).tolist()} are open; `ask` must pick an open arm"
        )
