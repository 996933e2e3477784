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
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Protocol

import numpy as np

from evo.logs.cost import UNITS
from evo.logs.given import as_float
from evo.logs.records import Model
from evo.plugins import meant

if TYPE_CHECKING:
    from evo.policies.base import Bools, Floats

    Amounts = Mapping[str, float] | Mapping[str, Floats]
    """Costs by unit: one, or one for each replicate."""

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
    """Returns the limits of a budget by unit; empty: none.

    BudgetError: a unit is none of `UNITS` nor of `more`, or unknown for one of the runs that are to
    keep it, or a limit is not a positive, finite number.
    """
    if budget is not None and not isinstance(budget, Mapping):
        raise BudgetError(f"budget: expected limits by unit such as {{'calls': 512}}: {budget!r}")
    callers = [
        of
        for each in headers
        if budget
        for of in (each, getattr(each, "critic", None), *getattr(each, "models", ()))
    ]
    models = {id(of.model): of.model for of in callers if of}
    for unit, limit in (budget or {}).items():
        if unit not in UNITS and unit not in more:
            known = ", ".join([*more, *UNITS])
            hint = meant(str(unit), (*more, *UNITS))
            raise BudgetError(f"budget: expected a unit out of {known}, got {unit!r}{hint}")
        number = isinstance(limit, Real) and not isinstance(limit, bool)
        if not number or not 0 < as_float(limit) < math.inf:
            raise BudgetError(
                f"budget: expected a positive, finite number of {unit}, got {limit!r:.60}; for no "
                f"limit, leave {unit} out"
            )
        needed = UNITS[unit].needs if unit in UNITS else ()
        for model in models.values():
            if any(getattr(model, field) is None for field in needed):
                what = "prices " if unit == "dollars" else ""
                raise BudgetError(
                    f"budget: {unit} cannot be counted, because the model {model.name!r} has no "
                    f"{what}{', '.join(needed)}; give it some in a models.toml, or use "
                    "another unit"
                )
    return {unit: float(limit) for unit, limit in (budget or {}).items()}


@dataclass(frozen=True)
class Worst:
    """What a run of T generations may cost at worst, by unit; maybe infinite.

    That is generation 0, each other one, and the test at the end; of a fork those `shared`, 0
    included, cost nothing.
    """

    initial: Mapping[str, float]
    generation: Mapping[str, float]
    generations: int
    final: Mapping[str, float] = field(default_factory=dict)
    shared: int = 0

    def left(self, settled: int) -> dict[str, float]:
        """Returns the maximal cost of the generations after the first ones, by unit."""
        done = max(settled, self.shared)
        parts = [self.initial] * (done == 0) + [self.final] * bool(self.final)
        rest = max(0, self.generations + 1 - max(done, 1))
        return {
            unit: math.fsum([rest * most if rest else 0.0, *(each[unit] for each in parts)])
            for unit, most in self.generation.items()
        }


def affordable(runs: Sequence[Worst], limits: Mapping[str, float]) -> tuple[int, int] | None:
    """Returns how many runs, served one after another, a budget completes and how many it begins.

    Every generation is assumed to cost what it costs at worst. None: that has no bound in a unit of
    the budget, or the budget counts seconds, which nobody knows beforehand.
    """
    worst = [run.left(0)[unit] for run in runs for unit in limits]
    if "seconds" in limits or not all(map(math.isfinite, worst)):
        return None
    spent = dict.fromkeys(limits, 0.0)
    for place, run in enumerate(runs):
        for generation in range(run.shared, run.generations + 1):
            if any(spent[unit] >= limit for unit, limit in limits.items()):
                return place, place + (generation > run.shared)
            cost = run.generation if generation else run.initial
            spent = {unit: amount + cost[unit] for unit, amount in spent.items()}
    return len(runs), len(runs)


class Ledger:
    """Compares costs with limits; every function with a budget uses it.

        while ledger.open().all():
            ledger.settle(cost_of_one_more)

    Replicates are independent accounts side by side; a live one is a single account. What is
    `spent` goes by unit, (replicates,), `settled` generations by run: none is counted twice.
    """

    def __init__(self, limits: Mapping[str, float] | None = None, replicates: int = 1) -> None:
        self.limits = dict(limits or {})
        self.replicates = replicates
        self.spent: dict[str, Floats] = {}
        self.settled: dict[Hashable, int] = {}

    def settle(self, costs: Amounts, made: Bools | None = None) -> None:
        """Adds what something cost."""
        self.check(costs, made)
        for unit, cost in costs.items():
            paid = cost if made is None else np.where(made, cost, 0.0)
            before = self.spent.get(unit)
            self.spent[unit] = np.full(self.replicates, paid) if before is None else before + paid

    def check(self, costs: Amounts, made: Bools | None = None) -> None:
        """Raises BudgetError unless costs are known in the units of all limits; as `settle`."""
        for unit in self.limits:
            if unit not in costs:
                known = sorted(costs)
                raise BudgetError(f"budget: nothing is counted in {unit!r} here, only in {known}")
            cost = costs[unit]
            if isinstance(cost, float | int):  # a live account: NumPy takes ten times as long
                unknown = math.isnan(cost) and (made is None or bool(made.any()))
            else:
                unknown = bool((np.isnan(cost) & (True if made is None else made)).any())
            if unknown:
                raise BudgetError(
                    f"budget: what this cost in {unit} is unknown (attempts without usage?), so a "
                    f"limit in {unit} cannot be held; use another unit"
                )

    def open(self, reserved: Amounts | None = None) -> Bools:
        """(replicates,), where another generation may begin beside what is reserved, by unit."""
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
        """The costs on the first account, by unit."""
        return {unit: float(amount[0]) for unit, amount in self.spent.items()}


class Turns:
    """Serves runs that share a ledger as if one after another; it is thread-safe.

    A run goes on early if even the worst case of all runs before it leaves room, and is over once
    what they have spent already leaves none; between the two it waits. So the order in which work
    is done never changes what is done. A run is identified by its name in the ledger.
    """

    def __init__(self, ledger: Ledger, runs: Sequence[tuple[Hashable, Worst]]) -> None:
        self._ledger, self._runs = ledger, runs
        self._limits = {u: limit for u, limit in ledger.limits.items() if u != "seconds"}
        self._before = ledger.total
        self._costs: list[list[Mapping[str, float]]] = [[] for _ in runs]
        self._spent = [dict.fromkeys(self._limits, 0.0) for _ in runs]
        self._left = [worst.left(ledger.settled.get(name, 0)) for name, worst in runs]
        self._kept = [dict.fromkeys(self._limits, 0.0) for _ in runs]
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

    def may_begin_now(self, place: int, under_way: Mapping[str, float]) -> bool:
        """Whether a run's next generation may begin already; does not wait.

        Args:
            place: The run.
            under_way: What has been spent on its generation under way.
        """
        with self._changed:
            room = self._leaves_room(place, worst=True, more=under_way)
            return room and time.monotonic() < self._deadline

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

    def keep(self, place: int, amounts: Mapping[str, float]) -> None:
        """Keeps room for what a run costs after its last generation, with which none begins."""
        known = {u: amount for u, amount in amounts.items() if u in self._limits and amount > 0}
        self._kept[place] |= known

    def add(self, place: int, cost: Mapping[str, float]) -> None:
        """Counts what a run cost beside its generations."""
        with self._changed:
            self._costs[place].append(cost)
            for unit in self._limits:
                self._spent[place][unit] += cost[unit]
                self._kept[place][unit] = 0.0

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

    def _leaves_room(
        self, place: int, *, worst: bool, more: Mapping[str, float] | None = None
    ) -> bool:
        for unit, limit in self._limits.items():
            amount = self._before.get(unit, 0.0)
            amount += math.fsum(each[unit] for each in self._spent[: place + 1])
            amount += self._kept[place][unit] + (more or {}).get(unit, 0.0)
            if worst:
                amount += sum(each[unit] for each in self._left[:place])
            if amount >= limit:
                return False
        return True
