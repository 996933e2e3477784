"""Budgets: one table of units, one ledger of what is spent, one rule of who may still begin.

A generation (a pull) begins if what is settled before it, in fixed order, is below every limit: so
at most one generation overshoots, and a budget decides how many generations there are, never what
is in them. Seconds are exempt: they are the clock's, and so is what they leave undone.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from evo.cost import flops_of_tokens, price_of_tokens
from evo.records import CriticRecord, Header, Model

if TYPE_CHECKING:
    from evo.policies.base import Bools, Floats

UNITS: dict[str, str] = {
    "calls": "replies asked for, by children and by evaluations",
    "tokens": "of prompts and replies",
    "flops": "2 x active parameters x tokens that were computed",
    "dollars": "at the model's prices",
    "seconds": "of wall time",
}
"""What budgets are counted in."""

POLL = 0.1  # seconds between looks at the clock and at wishes


class BudgetError(ValueError):
    """A budget that cannot be held."""


class Calling(Protocol):
    """What calls one model, such as a run's header."""

    @property
    def model(self) -> Model:
        """The model, with its prices."""
        ...


def check_budget(
    budget: Mapping[str, float] | None, headers: Iterable[Calling] = (), *, more: Sequence[str] = ()
) -> dict[str, float]:
    """Returns the limits of a budget, whose units have to be known for all runs; empty: none.

    Args:
        budget: Limits by unit out of `UNITS`.
        headers: Of the runs that are to keep it.
        more: Units that are understood besides.

    Raises:
        BudgetError: A unit is unknown, in general or for one of the runs, or a limit not positive.
    """
    if budget is not None and not isinstance(budget, Mapping):
        raise BudgetError(f"budget: expected limits by unit such as {{'calls': 512}}: {budget!r}")
    callers = [
        of for each in headers for of in (each, getattr(each, "critic", None)) if budget and of
    ]
    models = {id(of.model): of.model for of in callers}
    for unit, limit in (budget or {}).items():
        if unit not in UNITS and unit not in more:
            known = ", ".join([*more, *UNITS])
            raise BudgetError(f"budget: expected a unit out of {known}, got {unit!r}")
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
            raise BudgetError(f"budget: expected a positive number of {unit}, got {limit!r}")
        for model in models.values():
            if unit == "dollars" and None in (model.input_price, model.output_price):
                lacks = "prices (input_price, output_price)"
            elif unit == "flops" and model.active_parameters is None:
                lacks = "active_parameters"
            else:
                continue
            raise BudgetError(
                f"budget: {unit} cannot be counted, because the model {model.name!r} has no "
                f"{lacks}; give it some in a models.toml, or use another unit"
            )
    return {unit: float(limit) for unit, limit in (budget or {}).items()}


@dataclass(frozen=True)
class Worst:
    """What generation 0 and each of T further ones may cost at worst, by unit; maybe infinite."""

    initial: Mapping[str, float]
    generation: Mapping[str, float]
    generations: int

    def left(self, settled: int) -> dict[str, float]:
        """What the rest may cost after so many generations, generation 0 being the first."""
        rest = self.generations + 1 - max(settled, 1)
        amounts = {unit: rest * most if rest > 0 else 0.0 for unit, most in self.generation.items()}
        if settled == 0:
            amounts = {unit: amount + self.initial[unit] for unit, amount in amounts.items()}
        return amounts


def worst_of(header: Header, generations: int, *, instances: int, retries: int) -> Worst:
    """Returns what T generations may cost at worst, where an evaluation makes so many calls."""
    scored = instances if header.task.score == "critic" else 0
    chosen = header.drafts if header.drafts > 1 else 0
    own, critic = _most_of_call(header, retries), _most_of_call(header.critic, retries)
    children, drafts = header.children, header.drafts

    def total(calls: int, scores: int) -> dict[str, float]:
        counts = ((calls, own), (scores, critic))
        return {u: math.fsum(k * most[u] for k, most in counts if k) for u in own}

    return Worst(
        initial=total(instances, scored),
        generation=total(children * (drafts + instances), children * (chosen + scored)),
        generations=generations,
    )


def _most_of_call(of: Header | CriticRecord | None, retries: int) -> dict[str, float]:
    if of is None:
        return {}
    model, most, attempts = of.model, of.sampling.max_tokens, 1 + retries
    # Tokens of prompt and reply: together they are within the context window.
    prompt = math.inf if model.context is None else float(model.context)
    completion = prompt if most is None else min(prompt, float(most))
    amounts = {
        "tokens": attempts * (prompt + completion),
        "flops": attempts * flops_of_tokens(prompt, 0.0, completion, model=model),
        "dollars": attempts * price_of_tokens(prompt, 0.0, completion, model=model),
    }
    known = {u: math.inf if math.isnan(amount) else amount for u, amount in amounts.items()}
    return {"calls": 1.0, **known, "seconds": 0.0}


class Ledger:
    """What is spent, against limits; every verb counts with it.

        ledger = Ledger({"calls": 512})
        while ledger.open().all():
            ledger.settle(cost_of_one_more)

    Attributes:
        limits: By unit; see `check_budget`.
        replicates: Independent accounts side by side; a live one is a single account.
        spent: By unit of what was settled, limited or not, (replicates,).
        settled: Generations settled by run, generation 0 included: none is counted twice.
    """

    def __init__(self, limits: Mapping[str, float] | None = None, replicates: int = 1) -> None:
        self.limits = dict(limits or {})
        self.replicates = replicates
        self.spent: dict[str, Floats] = {}
        self.settled: dict[Hashable, int] = {}

    def settle(self, costs: Mapping[str, Any], made: Bools | None = None) -> None:
        """Adds what something cost."""
        self.check(costs, made)
        for unit, cost in costs.items():
            paid = np.where(True if made is None else made, cost, 0.0)
            before = self.spent.get(unit)
            self.spent[unit] = np.full(self.replicates, paid) if before is None else before + paid

    def check(self, costs: Mapping[str, Any], made: Bools | None = None) -> None:
        """Raises BudgetError unless costs are known in the units of all limits; as `settle`."""
        for unit in self.limits:
            if unit not in costs:
                known = sorted(costs)
                raise BudgetError(f"budget: nothing is counted in {unit!r} here, only in {known}")
            unknown = np.isnan(costs[unit])
            if (unknown if made is None else unknown & made).any():
                raise BudgetError(
                    f"budget: what this cost in {unit} is unknown (attempts without usage?), so a "
                    f"limit in {unit} cannot be held; use another unit"
                )

    def open(self, reserved: Mapping[str, Any] | None = None) -> Bools:
        """(replicates,), where another generation may begin.

        Args:
            reserved: By unit, what is under way and may cost at worst, a number or (replicates,).
        """
        below = np.ones(self.replicates, dtype=bool)
        for unit, limit in self.limits.items():
            spent = self.spent.get(unit, 0.0)
            below &= (spent if reserved is None else spent + reserved.get(unit, math.inf)) < limit
        return below

    @property
    def exhausted(self) -> str | None:
        """The first unit whose limit is reached on the first account; None while none is."""
        for unit, limit in self.limits.items():
            if unit in self.spent and self.spent[unit][0] >= limit:
                return unit
        return None

    @property
    def total(self) -> dict[str, float]:
        """What was spent on the first account, by unit."""
        return {unit: float(amount[0]) for unit, amount in self.spent.items()}


class Turns:
    """Runs that share a ledger come out as if served one after another; thread-safe.

    A run goes on early if even the worst case of all runs before it leaves room, and is over once
    what they have spent already leaves none; between the two it waits. So the order in which work
    is done never changes what is done.

    Args:
        ledger: Settled with what the runs cost.
        runs: In the fixed order: a run's name in the ledger, and what it may cost at worst.
    """

    def __init__(self, ledger: Ledger, runs: Sequence[tuple[Hashable, Worst]]) -> None:
        self._ledger, self._runs = ledger, runs
        self._limits = {u: limit for u, limit in ledger.limits.items() if u != "seconds"}
        self._before = ledger.total
        self._costs: list[list[Mapping[str, float]]] = [[] for _ in runs]
        self._spent = [dict.fromkeys(self._limits, 0.0) for _ in runs]
        self._left = [worst.left(ledger.settled.get(name, 0)) for name, worst in runs]
        self._changed = threading.Condition()
        self._began = time.monotonic()
        seconds = ledger.limits.get("seconds", math.inf) - self._before.get("seconds", 0.0)
        self._deadline = self._began + seconds

    def may_begin(self, place: int, stopped: Callable[[], bool]) -> bool:
        """Whether a run's next generation may begin; waits until that is certain, or stopped."""
        with self._changed:
            while not stopped():
                if time.monotonic() >= self._deadline or not self._leaves_room(place, worst=False):
                    return False
                if self._leaves_room(place, worst=True):
                    return True
                self._changed.wait(POLL)
        return False

    def settle(self, place: int, costs: Sequence[Mapping[str, float]]) -> None:
        """Counts a run's generations that were not counted yet."""
        name, worst = self._runs[place]
        done = self._ledger.settled.get(name, 0)
        new = costs[done : worst.generations + 1]
        for cost in new:
            self._ledger.check({**cost, "seconds": 0.0})
        with self._changed:
            self._ledger.settled[name] = done + len(new)
            self._costs[place] += new
            for unit in self._limits:
                self._spent[place][unit] += math.fsum(cost[unit] for cost in new)
            self._left[place] = worst.left(done + len(new))
            self._changed.notify_all()

    def add(self, place: int, cost: Mapping[str, float]) -> None:
        """Counts what a run cost beside its generations."""
        with self._changed:
            self._costs[place].append(cost)
            for unit in self._limits:
                self._spent[place][unit] += cost[unit]

    def finish(self, place: int) -> None:
        """Notes that a run costs nothing more."""
        with self._changed:
            self._left[place] = dict.fromkeys(self._limits, 0.0)
            self._changed.notify_all()

    def close(self) -> None:
        """Hands over to the ledger, in the fixed order, and with it the seconds that it took."""
        for costs in (each for run in self._costs for each in run):
            self._ledger.settle({**costs, "seconds": 0.0})
        unlimited = dict.fromkeys(self._limits, 0.0)
        self._ledger.settle({**unlimited, "seconds": time.monotonic() - self._began})

    def _leaves_room(self, place: int, *, worst: bool) -> bool:
        for unit, limit in self._limits.items():
            amount = self._before.get(unit, 0.0)
            amount += math.fsum(each[unit] for each in self._spent[: place + 1])
            if worst:
                amount += sum(each[unit] for each in self._left[:place])
            if amount >= limit:
                return False
        return True
