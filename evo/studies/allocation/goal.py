"""What ends an allocation before its rounds do, and what closes an arm for good.

Both are goals and do not identify an allocation: one that goes on may be given others. From where
on they hold is counted in rounds, so that an allocation that is played again meets each of them
where it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from evo.logs.inputs import as_float, at_least
from evo.logs.records import Record
from evo.runs.settings import Goal

AllocationEnd = Literal["completed", "target", "patience", "budget", "stopped", "over"]
"""Why an allocation ended: all rounds are made; an arm reached the target; the patience closed the
last arm; the budget is spent; a stop was asked for; no arm has a next generation."""


class AllocationGoal(Record, frozen=True, kw_only=True, tag_field="kind", tag="goal"):
    """The goal of a session, which holds once so many rounds were asked and completed.

    Attributes:
        asked: Rounds that earlier sessions asked.
        told: Rounds that they completed.
        target: Fitness at which the allocation ends, whichever arm reaches it; None: none.
        patience: Generations in a row that do not raise the best fitness of an arm, after which it
            is closed; None: never.
    """

    asked: int = 0
    told: int = 0
    target: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        Goal(0, self.target, self.patience)  # raises where there can be no such goal

    @property
    def pair(self) -> tuple[float | None, int | None]:
        """The target and the patience."""
        return self.target, self.patience


def goal_of(target: float | None = None, patience: int | None = None) -> AllocationGoal:
    """Returns a goal of numbers of any kind; raises a ValueError where there can be none."""
    return AllocationGoal(
        target=None if target is None else as_float(target),
        patience=None if patience is None else at_least("patience", patience, 1),
    )


def goal_at(goals: Sequence[AllocationGoal], asked: int, told: int) -> AllocationGoal:
    """Returns the goal that holds after so many rounds: the last one that was reached."""
    reached = [each for each in goals if each.asked <= asked and each.told <= told]
    return reached[-1] if reached else AllocationGoal()
