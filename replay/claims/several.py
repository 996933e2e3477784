"""`judge` over several tasks: these tasks, and what they say of further ones.

Effects are in standard deviations within tasks. The verdict is of these tasks; a second interval,
over tasks, is for further ones, whose effects may differ: see `replay.statistics.strata`.

- Groups: runs are exchanged within tasks, those of one seed staying together, as
  `replay.compare(frame, by=...)` does for every pair of configurations. The unit is the standard
  deviation of all runs of both sides.
- Policies: each task has its own pools, and the unit is the standard deviation of what the second
  policy reaches there: see `replay.simulation.together`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from evo.logs.types import Fields, JsonObject
from evo.policies import PolicyClass
from evo.warning import warn
from replay.claims.decision import kurtosis_of, p_above
from replay.claims.found import Found, mean_cost
from replay.claims.sides import SEVERAL_TASKS, Sides, lengths, sides_of
from replay.claims.verdict import NO_SPREAD, PAIRS_EXCHANGED, SKEWED_PAIRS
from replay.logs.frames import ReplayWarning
from replay.simulation.earlier import Earlier
from replay.simulation.effects import spread_of
from replay.simulation.pools import ENOUGH, MOST, WORLDS, Pools
from replay.simulation.simulate import label_of
from replay.simulation.together import Scaled, effects_together
from replay.statistics.intervals import FloatArray, Interval, too_few
from replay.statistics.resampling import tail_p
from replay.statistics.strata import (
    Stratum,
    all_paired,
    compare_strata,
    further_tasks,
    needed_for,
)

SCALE = "standard deviations within tasks"


def shared_tasks(frame: pd.DataFrame, a: Fields, b: Fields) -> list[str]:
    """The tasks of which both sides have runs, in order; empty where each side has one task.

    Raises:
        ValueError: A side has several tasks and the other none of them.
    """
    if "task" not in frame or "task" in a or "task" in b:
        return []
    sides = []
    for side in (a, b):
        rows = np.ones(len(frame), dtype=bool)
        for column, value in side.items():
            if column in frame:
                rows &= (frame[column] == value).to_numpy()
        sides.append(frame.loc[rows, "task"].unique().tolist())
    if max(map(len, sides)) < 2 or not min(map(len, sides)):
        return []
    shared = [task for task in sides[0] if task in sides[1]]
    if not shared:
        raise ValueError(
            f"expected a task of which both sides have runs, got {sides[0]} and {sides[1]}; "
            f"{SEVERAL_TASKS}"
        )
    if left := sorted(set(sides[0] + sides[1]) - set(shared)):
        _left_out(left, "only one side has runs of them")
    return shared


def strata_of(
    frame: pd.DataFrame, tasks: Sequence[str], a: Fields, b: Fields, calls: int | None
) -> tuple[dict[str, Stratum], dict[str, Sides]]:
    """The two sides on each task, in standard deviations, and as they are.

    Raises:
        ValueError: No task has two runs on each side that differ at all.
    """
    found = {task: sides_of(frame[frame["task"] == task], a, b, calls) for task in tasks}
    strata = {
        task: Stratum(sides.left, sides.right, sides.pairs)
        for task, sides in found.items()
        if min(len(sides.left), len(sides.right)) > 1
    }
    strata = {task: each.over(each.scale) for task, each in strata.items() if each.scale > 0}
    if left := [task for task in tasks if task not in strata]:
        _left_out(left, "a side has fewer than two runs of them, or all runs are alike")
    if not strata:
        raise ValueError(
            f"expected a task with at least two runs on each side that differ, got none of {tasks}"
        )
    return strata, {task: found[task] for task in strata}


def _left_out(tasks: Sequence[str], why: str) -> None:
    warn(f"tasks {', '.join(tasks)} are left out: {why}", ReplayWarning)


def groups_on_tasks(
    strata: Mapping[str, Stratum],
    sides: Mapping[str, Sides],
    names: tuple[str, str],
    margin: float,
    level: float,
    seed: int,
) -> Found:
    """Two groups of runs over tasks, before the verdict."""
    parts = [*strata.values()]
    found = compare_strata(parts, level=level, margin=margin, seed=seed)
    paired = all_paired(parts)
    runs = sum(len(each.left) + len(each.right) for each in parts)
    n, least = (runs // 2 if paired else runs), sum(min(len(s.left), len(s.right)) for s in parts)
    few = least < (needed := needed_for(parts))
    note = too_few(least, needed) if few else ""
    if not note and np.isinf([found.low, found.high]).any():
        note = "so few exchanges are possible that they exclude no effect"
    limits = (math.nan, math.nan) if note else (found.low, found.high)
    if not note and not found.error > 0:  # which decides, as for one task, and bounds nothing
        note = NO_SPREAD
    shown = (math.nan, math.nan) if note else limits
    interval = Interval(
        value=found.value, low=shown[0], high=shown[1], n=n, level=level, statistic="difference",
        note=note,
    )  # fmt: skip
    alone = [compare_strata([each], seed=seed) for each in parts]
    together = ", those of a pair with each other" if any(each.pairs for each in parts) else ""
    null = (
        PAIRS_EXCHANGED if paired else
        f"runs exchanged between the sides within each task{together}, or equal means by Welch's "
        "t, whichever is the less clear"
    )  # fmt: skip
    depths = np.array([each.depths for each in sides.values()])
    after = [_range(column) for column in depths.T]
    about: JsonObject = {
        "a": names[0], "b": names[1], "interval": interval, "null": null, "n": n,
        "p": math.nan if few else min(1.0, 2 * min(found.p_greater, found.p_less)),
        "p_greater": math.nan if few else found.p_greater,
        "p_less": math.nan if few else found.p_less,
        "p_within": math.nan if few else found.p_within,
        "points": tuple(
            np.concatenate([getattr(each, side) - _middle(each) for each in parts])
            for side in ("left", "right")
        ),
        "setting": f"whole runs of {len(parts)} tasks after {lengths(*after)}",
        "unit": "pairs" if paired else "runs", "taken_for_granted": SKEWED_PAIRS if paired else "",
        **_over_tasks([*strata], [each.value for each in alone], [each.error for each in alone],
                      level),
    }  # fmt: skip
    kurtosis = kurtosis_of(*(
        each for s in parts for each in ((s.left - s.right,) if paired else (s.left, s.right))
    ))  # fmt: skip
    return Found(
        about,
        limits,
        found.error,
        found.freedom,
        mean_cost([each.cost for each in sides.values()]),
        runs / n,
        kurtosis,
    )


def _middle(stratum: Stratum) -> float:
    return float((stratum.left.mean() + stratum.right.mean()) / 2)


def _range(numbers: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _over_tasks(
    tasks: Sequence[str], values: Sequence[float], errors: Sequence[float], level: float
) -> JsonObject:
    """Fields of the verdict that only several tasks have."""
    effects, known = np.array(values), np.maximum(errors, 1e-9)
    further = further_tasks(effects, known, level)
    return {
        "scale": SCALE, "further": further,
        "effects": pd.DataFrame({"task": tasks, "effect": effects, "error": errors,
                                 "pooled": further.pooled}),
    }  # fmt: skip


class TaskPools:
    """Pools of the runs of each of several tasks, see `Pools`."""

    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        arms: int | None,
        rounds: int | None,
        reward: str,
        seed: int,
        earlier: Earlier | None = None,
    ) -> None:
        self.pools: dict[str, Pools] = {}
        self._scales: dict[str | PolicyClass, FloatArray] = {}
        for task, part in frame.groupby("task", sort=False):
            own = earlier
            if isinstance(earlier, pd.DataFrame):
                own = earlier[earlier["task"] == task]
            try:
                self.pools[str(task)] = Pools(
                    part, arms=arms, rounds=rounds, reward=reward, seed=seed, earlier=own
                )
            except ValueError as error:
                raise ValueError(f"{task}: {error}") from error

    def scales(self, b: str | PolicyClass) -> FloatArray:
        """Standard deviation of what a policy reaches on each task, (tasks,)."""
        if b not in self._scales:
            every = self.pools.values()
            self._scales[b] = np.array([spread_of(pools.play(b).replay) for pools in every])
        return self._scales[b]

    def null_p(self, a: str | PolicyClass, b: str | PolicyClass) -> float:
        """As `Pools.null_p`, of the mean effect over tasks."""
        scales, each = self.scales(b), [*self.pools.values()]
        ends = [float(np.mean(pools.ends(a) - pools.ends(b))) for pools in each]
        rounding = np.array([pools.rounding for pools in each])
        value, drawn = float(np.mean((ends - rounding) / scales)), np.empty(0)
        while len(drawn) < MOST and (drawn >= value).sum() < ENOUGH:
            batch = len(drawn) // WORLDS
            effects = [pools.permuted(a, batch) - pools.permuted(b, batch) for pools in each]
            drawn = np.append(drawn, np.mean(effects / scales[:, None], axis=0))
        return tail_p(value, drawn, ENOUGH)


def policies_on_tasks(
    pools: TaskPools,
    a: str | PolicyClass,
    b: str | PolicyClass,
    level: float,
    cost: Mapping[str, float] | None = None,
) -> Found:
    """Two policies over tasks, before the verdict; `cost` is that of a run, where it matters."""
    each, scales = [*pools.pools.values()], pools.scales(b)
    parts = [
        Scaled(own.effect(a, b, level=level), float(scale), own.K, task)
        for (task, own), scale in zip(pools.pools.items(), scales, strict=True)
    ]
    name = f"{label_of(a)} less {label_of(b)}"
    found = effects_together(parts, level=level, name=name)
    limits, n = found.interval, found.interval.n
    greater = p_above(found.interval.value, (limits.low, limits.high), n, level)
    about: JsonObject = {
        "a": label_of(a), "b": label_of(b), "interval": limits, "n": n,
        "points": tuple(
            np.concatenate([own.ends(side) / one for own, one in zip(each, scales, strict=True)])
            for side in (a, b)
        ),
        "null": f"no effect over runs, Student's t with {found.freedom:.3g} degrees of freedom",
        "p": 2 * min(greater, 1 - greater), "p_greater": greater, "p_less": 1 - greater,
        "setting": f"pools of K = {_range([own.K for own in each])} of the logged runs of each of "
        f"{len(each)} tasks, drawn without replacement, {_range([own.rounds for own in each])} "
        f"pulls, {each[0].reward}",
        **_over_tasks([*pools.pools], [*found.values], [*found.errors], level),
    }  # fmt: skip
    wider = "one that holds in worlds where few runs decide"
    return Found(about, found.limits, found.error, found.freedom, cost or {}, 1.0, wider=wider)
