"""Effects of policies on several tasks together, in standard deviations of the baseline.

Each task has its own runs and pools. Its effect is divided by the standard deviation of what the
baseline reaches there over replicates (of `single`: of the runs), so that tasks of any scale count
alike. The tasks' errors are independent, and degrees of freedom are Satterthwaite's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from replay.simulation.widths import SURE, widths
from replay.statistics.intervals import FloatArray, Interval, student


class Scaled(NamedTuple):
    """The effect on one task: its interval in fitness, the unit, K of its pools, and its name."""

    found: Interval
    scale: float
    arms: int
    task: str = ""


class EffectTogether(NamedTuple):
    """What several tasks say of an effect of policies.

    Attributes:
        interval: Mean of the tasks' effects with its interval for these tasks; n counts all runs.
        limits: Those that decide: with fewer than SURE runs in all they hold in worlds where few
            runs decide, too, as for one task.
        error: Standard error.
        freedom: Its degrees of freedom.
        values: Effect of each task, (tasks,).
        errors: Their standard errors, (tasks,).
    """

    interval: Interval
    limits: tuple[float, float]
    error: float
    freedom: float
    values: FloatArray
    errors: FloatArray


def effects_together(parts: Sequence[Scaled], *, level: float, name: str) -> EffectTogether:
    """Combines the effects of some tasks, each with an interval of this level.

    Raises:
        ValueError: A task without an interval, or on which what the baseline reaches never differs.
    """
    for number, part in enumerate(parts, 1):
        if math.isnan(part.found.low) or not part.scale > 0:
            why = part.found.note or "what the baseline reaches does not differ between replicates"
            which = part.task or f"number {number}"
            raise ValueError(
                f"expected tasks whose effect has an interval, {which} has none: {why}; leave out "
                "its runs"
            )
    known = [(part.found, widths(part.found.n, part.arms)) for part in parts]
    values = np.array([part.found.value / part.scale for part in parts])
    errors = np.array([
        (found.high - found.low) / 2 / float(student(level, found.n - 1)) / wide.usual / part.scale
        for part, (found, wide) in zip(parts, known, strict=True)
    ])  # fmt: skip
    square = errors**2
    shares = square / square.sum()
    freedom = 1 / sum(
        share**2 / (found.n - 1) for share, (found, _) in zip(shares, known, strict=True)
    )
    error = math.sqrt(square.sum()) / len(parts)
    n, value = sum(found.n for found, _ in known), float(values.mean())
    usual, worst = (
        float(shares @ [getattr(wide, each) for _, wide in known]) for each in ("usual", "worst")
    )
    half = float(student(level, freedom)) * error
    decides = half * (max(usual, worst) if n < SURE else usual)
    made = dataclasses.replace(
        parts[0].found, value=value, low=value - usual * half, high=value + usual * half, n=n,
        coverage=level, statistic=name, least=min(wide.least for _, wide in known),
    )  # fmt: skip
    return EffectTogether(
        made, (value - decides, value + decides), usual * error, freedom, values, usual * errors
    )
