"""What other tasks say of how to split a budget, and how far a plan believes them.

For each earlier task a kernel is fitted to its logs, and every split of the budget is simulated, as
for the pilot. What is borrowed is the lead of each split over the one nearest to T = N, as a share
of the way from the lowest parent to the best known fitness. Of J tasks the mean of these leads is
what a further task is expected to have, by a deviation of sqrt(1 + 1 / J) times that between them
(their own errors are part of it). The pilot's lead and the expected one are then averaged, each
weighed by the inverse of its variance (partial pooling), with Satterthwaite's degrees of freedom:
the pilot's runs less one, and the tasks less one.

Where the pilot is further from the expected lead than its own error explains, tasks evidently
differ by that much, and the deviation between them is set to it. So a pilot of another kind lets go
of what other tasks say, and a large pilot has no need of them.

Arms and forecasts rest on the pilot alone. `tests/benchmarks/planner_earlier.py` measures what
helpful and misleading tasks are worth.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evo.logs.log import Log
from replay.logs.frames import originals
from replay.logs.tables import children as children_of
from replay.planning.grid import FloatArray
from replay.planning.kernel import Kernel, fit_kernel, simulate_kernels
from replay.planning.leads import (
    critical,
    lead_and_spread,
    middle_of,
    nearest_square,
    widened,
)

FEWEST_TASKS = 3
"""Fewer earlier tasks do not tell how tasks differ."""

SEARCHES = 50
"""Runs that are simulated in each world of an earlier task."""

Logs = str | os.PathLike[str] | Log


@dataclass(frozen=True, kw_only=True)
class Borrowed:
    """What a plan took from other tasks.

    Attributes:
        tasks: Task and model of each, in order of first appearance.
        runs: Their runs, all together.
        sizes: N of each split of the budget.
        leads: Lead of each split over that nearest to T = N on each earlier task, (tasks, splits),
            as a share of the way from the lowest parent to the best known fitness.
        expected: Lead to expect of each split on a further task, (splits,).
        deviation: Of such a lead, (splits,); at least how far the pilot evidently is from it.
        weight: Of the pilot's own lead in the plan's, (splits,), from 0 to 1.
    """

    tasks: tuple[str, ...]
    runs: int
    sizes: tuple[int, ...]
    leads: FloatArray
    expected: FloatArray
    deviation: FloatArray
    weight: FloatArray

    def __str__(self) -> str:
        """What was borrowed, and how much the pilot's own leads count, in words."""
        names = ", ".join(self.tasks[:4]) + (" ..." if len(self.tasks) > 4 else "")
        said = f"borrowed from {self.runs} runs of {len(self.tasks)} other tasks ({names}): "
        others = np.flatnonzero(self.deviation > 0)
        if not len(others):
            return f"{said}nothing, since no split has a lead there"
        first = others[self.expected[others].argmax()]
        own = 100 * self.weight[others]
        return (
            f"{said}a further task is expected to have N = {self.sizes[first]} "
            f"{self.expected[first]:+.3f} of the way to the best fitness ahead of T = N (standard "
            f"deviation {self.deviation[first]:.3f}); the pilot's own leads count "
            f"{own.min():.0f} to {own.max():.0f} %; arms and forecasts rest on the pilot alone"
        )


def earlier_children(earlier: Logs | Sequence[Logs] | pd.DataFrame) -> pd.DataFrame:
    """The children of earlier tasks, from logs, from a frame that names its logs, or as they are.

    Raises:
        ValueError: If a frame does not say which logs it came from.
    """
    if not isinstance(earlier, pd.DataFrame):
        return children_of(
            *([earlier] if isinstance(earlier, str | os.PathLike | Log) else earlier)
        )
    return earlier if "parent_fitness" in earlier else children_in(earlier)


def children_in(frame: pd.DataFrame) -> pd.DataFrame:
    """The children of the frame's generations, from the logs named in its column `source`.

    Raises:
        ValueError: If the frame does not say which logs it came from.
    """
    if "source" not in frame or not frame["source"].astype(bool).all():
        raise ValueError(
            "the frame does not say which logs it came from; pass children=replay.children(...), "
            "or as earlier= such a table"
        )
    frame = originals(frame, quiet=True)
    table = children_of(*frame["source"].unique())
    depth = frame.groupby("source")["generation"].max()
    return table[table["generation"] <= table["source"].map(depth)]


def borrow(
    by_world: FloatArray,
    base: Kernel,
    rounds: Mapping[int, int],
    earlier: Logs | Sequence[Logs] | pd.DataFrame,
    *,
    kernels: int,
    seed: int,
) -> tuple[FloatArray, Borrowed]:
    """Pools the leads of a pilot's splits with those of earlier tasks.

    Args:
        by_world: The mean fitness of each split in each world of the pilot, (worlds, splits).
        base: The pilot's kernel.
        rounds: Generations that the budget pays for, by N, one for each split.
        earlier: Logs of other tasks, or a frame or a table of children of them.
        kernels: Resampled kernels of each earlier task.
        seed: Key of the generator.

    Returns:
        `by_world`, moved and drawn together so that leads over the split nearest to T = N and
        their margins are the pooled ones, and what was borrowed.

    Raises:
        ValueError: If runs of the pilot's task and model are among the earlier ones, there are
            fewer than FEWEST_TASKS other tasks, or one of them cannot be fitted.
    """
    table = earlier_children(earlier)
    grouped = table.groupby(["task", "model"], sort=False)
    parts = {(str(task), str(model)): part for (task, model), part in grouped}
    _refuse(list(parts), base)
    square = nearest_square(rounds)
    leads = np.stack(
        [
            _leads(part, f"{task}, {model}", rounds, square, kernels=kernels, seed=seed)
            for (task, model), part in parts.items()
        ]
    )
    width = base.visits.width
    pooled, deviation, weight = pool(by_world, square, len(base.sizes), width * leads)
    return pooled, Borrowed(
        tasks=tuple(f"{task} with {model}" for task, model in parts), runs=table["run"].nunique(),
        sizes=tuple(rounds), leads=leads, expected=leads.mean(axis=0),
        deviation=deviation / width, weight=weight,
    )  # fmt: skip


def pool(
    by_world: FloatArray, base: int, runs: int, leads: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pools leads over the `base`-th split with those on other tasks, (tasks, splits).

    Returns:
        `by_world` with the pooled leads, whose margins `lead_and_margin` finds for that many runs
        (at least 2); the deviation of a further task's lead and the weight of the pilot's,
        (splits,). Splits in which the pilot or another task has no finite lead stay as they are.
    """
    tasks, ways = leads.shape
    ahead, spread = lead_and_spread(by_world, base)
    own = widened(spread, runs) ** 2  # infinite for a pilot of one run
    known = np.isfinite(leads).all(axis=0) & np.isfinite(ahead) & (spread > 0)
    known &= np.arange(ways) != base
    pooled, deviation, weight = by_world.copy(), np.zeros(ways), np.ones(ways)
    for k in np.flatnonzero(known):
        expected = leads[:, k].mean()
        between = leads[:, k].var(ddof=1) * (1 + 1 / tasks)
        if np.isfinite(own[k]):
            between = max(between, (ahead[k] - expected) ** 2 - own[k])
        share = between / (between + own[k]) if between else 0.0
        parts = np.array([share**2 * own[k] if share else 0.0, (1 - share) ** 2 * between])
        freedom = np.array([max(runs - 1, 1), tasks - 1])
        variance = float(parts.sum())
        if variance > 0:
            margin = critical(variance**2 / (parts**2 / freedom).sum(), ways) * np.sqrt(variance)
        else:
            margin = 0.0
        usual = critical(max(runs - 1, 1), ways) * widened(spread[k], max(runs, 2))
        moved = expected + share * (ahead[k] - expected)
        around = by_world[:, k] - by_world[:, base] - ahead[k]
        pooled[:, k] = by_world[:, base] + moved + margin / usual * around
        deviation[k], weight[k] = np.sqrt(between), share
    return pooled, deviation, weight


def _leads(
    part: pd.DataFrame, name: str, rounds: Mapping[int, int], square: int, *, kernels: int,
    seed: int,
) -> FloatArray:  # fmt: skip
    """Leads of the splits on one earlier task, as shares of its scale, (splits,)."""
    try:
        kernel = fit_kernel(part, best=float(part["best"].iloc[0]) if "best" in part else None)
    except ValueError as error:
        raise ValueError(
            f"earlier: {name}: {error}; of an earlier task, give a table of children whose column "
            "best holds it, or leave the task out"
        ) from error
    worlds = list(kernel.resampled(kernels, seed=seed))
    middle, means = middle_of(float(kernel.fitness[0])), []
    for N, T in rounds.items():
        paths = simulate_kernels(worlds, T, N, runs=SEARCHES, seed=seed)
        final = np.nan_to_num(paths[:, -1], nan=-np.inf)
        means.append(middle(final.reshape(kernels, -1), axis=1))
    return lead_and_spread(np.stack(means, axis=1), square)[0] / kernel.visits.width


def _refuse(parts: Sequence[tuple[str, str]], base: Kernel) -> None:
    if (base.task, base.model) in parts:
        raise ValueError(
            f"earlier: expected logs of other tasks, got runs of {base.task} with {base.model}, "
            "which is planned; runs of the same task and model belong into the pilot"
        )
    if len(parts) < FEWEST_TASKS:
        raise ValueError(
            f"earlier: expected at least {FEWEST_TASKS} tasks besides the one that is planned, "
            f"since fewer do not tell how tasks differ, got {len(parts)}"
        )
