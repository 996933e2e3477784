"""The most that runs may cost: what a budget buys is what waves at that cost would begin."""

import math

import pytest

from evo.runs.bounds import CostBound, affordable
from evo.runs.budget import Ledger
from evo.runs.waves import Payer, Waves

RUN = CostBound({"calls": 2.0, "seconds": 0.0}, {"calls": 4.0, "seconds": 0.0}, generations=2)


@pytest.mark.parametrize("limit", range(1, 45, 3))
def test_a_budget_buys_what_waves_let_begin(limit: int) -> None:
    payers = [Payer(name, "", RUN.generations) for name in range(4)]
    waves = Waves(Ledger({"calls": limit}), payers)
    while wave := waves.next():
        for place, number in wave.items():
            for _ in range(number):
                payer = payers[place]
                payer.costs.append(RUN.generation if payer.costs else RUN.initial)
    made = min(len(payer.costs) for payer in payers)
    assert affordable([RUN] * 4, {"calls": limit}) == max(0, made - 1)


def test_what_has_no_bound_is_not_told() -> None:
    endless = CostBound({"calls": 0.0}, {"calls": math.inf}, generations=1)
    assert affordable([endless], {"calls": 9.0}) is None
    assert affordable([RUN], {"seconds": 9.0}) is None


def test_inherited_generations_cost_nothing() -> None:
    fork = CostBound(RUN.initial, RUN.generation, generations=2, shared=2)
    assert (RUN.total["calls"], fork.total["calls"]) == (10, 4)
    assert affordable([fork] * 3, {"calls": 12}) == 2
    assert affordable([fork] * 3, {"calls": 8}) == 1
