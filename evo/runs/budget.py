"""Budgets: one table of units, one ledger of what is spent, one rule of who may still begin.

A generation (a pull) begins if what is settled before it, in fixed order, is below every limit: so
at most one generation overshoots, and a budget decides how many generations there are, never what
is in them. Seconds are exempt: they are the clock's, and so is what they leave undone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Protocol

import numpy as np

from evo.logs.cost import UNITS
from evo.logs.inputs import as_float
from evo.logs.records import Header, Model
from evo.plugins import meant
from evo.runs.screening import embedding_models

if TYPE_CHECKING:
    from evo.policies.base import Bools, Floats

    Amounts = Mapping[str, float] | Mapping[str, Floats]
    """Costs by unit: one, or one for each replicate."""


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
    keep it, or a limit is not a positive, finite number, of calls a whole one.
    """
    if budget is not None and not isinstance(budget, Mapping):
        raise BudgetError(
            f"budget: expected limits by unit such as {{'calls': 512}}, got {budget!r}"
        )
    callers = [
        of
        for each in headers
        if budget
        for of in (each, getattr(each, "critic", None), *getattr(each, "models", ()))
    ]
    asked = [of.model for of in callers if of]
    asked += [
        model for each in callers if isinstance(each, Header) for model in embedding_models(each)
    ]
    models = {id(model): model for model in asked}
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
        if unit == "calls" and unit not in more and as_float(limit) % 1:
            raise BudgetError(f"budget: expected a whole number of calls, got {limit!r}")
        needed = UNITS[unit].needs if unit in UNITS else ()
        for model in models.values():
            if any(getattr(model, field) is None for field in needed):
                what = "prices " if unit == "dollars" else ""
                fields = ", ".join(f"{field}=..." for field in needed)
                own = f"evo.Model({model.name!r}, call=..., {fields})"
                where = "a models.toml" if model.function is None else own
                raise BudgetError(
                    f"budget: {unit} cannot be counted, because the model {model.name!r} has no "
                    f"{what}{', '.join(needed)}; give it some in {where}, or use "
                    "another unit"
                )
    return {unit: float(limit) for unit, limit in (budget or {}).items()}


class Ledger:
    """Compares costs with limits; every function with a budget uses it.

        while ledger.open().all():
            ledger.settle(cost_of_one_more)

    Replicates are independent accounts side by side; a live one is a single account. What is
    `spent` goes by unit, (replicates,), `settled` generations by run: none is counted twice.
    `dearest` is the most that something of a kind has cost so far, by unit; see `evo.runs.waves`.
    `under_way` is what has been spent on the generation under way of a run without a barrier, by
    run and unit, until that is settled.
    """

    def __init__(self, limits: Mapping[str, float] | None = None, replicates: int = 1) -> None:
        self.limits = dict(limits or {})
        self.replicates = replicates
        self.spent: dict[str, Floats] = {}
        self.settled: dict[Hashable, int] = {}
        self.dearest: dict[Hashable, dict[str, float]] = {}
        self.under_way: dict[Hashable, Mapping[str, float]] = {}

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
                    f"limit in {unit} cannot be held; use another unit, or have a model's function "
                    "state its usage, also as evo.Reply(None, usage={...}) in place of an error; a "
                    "log that holds such an attempt goes on in another unit alone"
                )

    def open(self, reserved: Amounts | None = None) -> Bools:
        """(replicates,), where another generation may begin beside what is reserved, by unit."""
        below = np.ones(self.replicates, dtype=bool)
        for unit, limit in self.limits.items():
            spent = self.spent.get(unit, 0.0)
            spent += math.fsum(each.get(unit, 0.0) for each in self.under_way.values())
            below &= (spent if reserved is None else spent + reserved.get(unit, math.inf)) < limit
        return below

    @property
    def exhausted(self) -> str | None:
        """The first unit whose limit is reached on the first account; None while none is."""
        total = self.total
        return next((u for u, limit in self.limits.items() if total.get(u, 0.0) >= limit), None)

    @property
    def total(self) -> dict[str, float]:
        """The costs on the first account, by unit, those of what is under way included."""
        total = {unit: float(amount[0]) for unit, amount in self.spent.items()}
        for cost in self.under_way.values():
            total |= {unit: total.get(unit, 0.0) + amount for unit, amount in cost.items()}
        return total
