"""The depth-breadth grid: what each split of a budget was worth, and how sure that is.

A budget of C calls can be spent as T generations of N children, C = T * N. Splits are compared by
the mean over runs, since that is what the next search can expect, or by the median where a run has
no fitness at all: see `replay.logs.frames.FAILURES`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pandas as pd

from evo.warning import warn
from replay.logs.frames import COST_COLUMNS, Brief
from replay.logs.given import check_loaded
from replay.planning.grid import (
    Centre,
    FloatArray,
    IntArray,
    SplitCells,
    best_known,
    cells,
    centre,
    log_gaps,
    sweeps,
)
from replay.statistics.intervals import UNBOUNDED, Bounds, interval
from replay.statistics.levels import check_level

RULES = ("depth", "breadth", "square")
"""Fixed rules for a split: N = 1, T = 1, and the split nearest to T = N, the deeper of two."""
FEWEST = 5
"""Runs below which a cell has no interval and no probability of being the best."""

Axis = Literal["calls", "tokens", "flops", "dollars", "seconds"]
"""What a budget is counted in; tokens are those of prompts, cached or not, and completions."""
AXES: tuple[Axis, ...] = get_args(Axis)

_INTERVAL = ("low", "high", "n", "coverage")
_CELLS = ("generations", "children", "calls", "value", *_INTERVAL, "n_without", "median", "p_best")
_BEST = ("calls", "splits", "statistic", "generations", "children", "value", "p_best", "held_out")
_HELD_OUT = ("held_out_low", "held_out_high", "n", "coverage")
_KNOWING = ("calls", "rule", "generations", "children", "gain")
_POINTS = ("cost", "maximum", "generations", "children", "splits", "statistic", "value")


@dataclass(frozen=True, repr=False)
class DepthBreadth(Brief):
    """Fitness of the splits of each budget.

    Attributes:
        cells: One row per task, model and cell: generations (T), children (N), calls, value (mean
            best fitness over runs; NaN while a run has none), low, high, n (runs), coverage (worst
            that was measured for such intervals, as below), n_without (runs with no fitness yet),
            median (these runs at the bottom), p_best (bootstrap probability that the cell is the
            best of its budget, whole runs resampled; ties share it; NaN where a split has fewer
            than FEWEST runs).
        best: One row per task, model and budget of at least two splits: calls, splits (how many
            the best was chosen from), statistic (what they are compared by), generations, children,
            value (of the best split, which flatters it), p_best, held_out (value of the split
            chosen on all runs but one, on that one: what the choice is worth), held_out_low,
            held_out_high (its interval, not that of value), n, coverage, low, high (the same limits
            by their former names).
        knowing: One row per task, model, budget and fixed rule: gain (held_out less the rule's
            value on the same runs), low, high, n, coverage.
        level: Nominal coverage of the intervals.
    """

    cells: pd.DataFrame
    best: pd.DataFrame
    knowing: pd.DataFrame
    level: float


@dataclass(frozen=True, repr=False)
class Envelope(Brief):
    """Best-in-sweep fitness against a cost.

    Attributes:
        axis: One of `AXES`.
        points: One row per task, model and cost at which a better cell comes within reach: cost
            (mean over the cell's runs), maximum (largest cell within that cost: the usual envelope,
            which flatters), generations and children (its cell), splits (how many cells it was
            chosen from), statistic (mean, or median where a run has no fitness), value (of the cell
            chosen on all runs but one, on that one), low, high (interval of value), n,
            coverage.
        collapse: One row per task: r2 of one curve for all models, log(best - maximum) quadratic in
            log cost, models, points.
        level: Nominal coverage of the intervals.
    """

    axis: Axis
    points: pd.DataFrame
    collapse: pd.DataFrame
    level: float


def depth_breadth(
    frame: pd.DataFrame, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> DepthBreadth:
    """Value of every cell, the best split of every budget, and the value of knowing it.

    A run of T generations holds runs of all fewer. Cells are at the T that are powers of two, at
    those at which the runs of some N end, and at those at which some N has made as many calls as
    another N has at one of these; each N has a cell at all of them that its runs reach. Where these
    were more than 400, the last kind is left out but for the budgets that runs end with.

    Args:
        frame: One row per run and generation, as `replay.load` returns it.
        level: Nominal coverage of the intervals.
        resamples: Bootstrap samples of whole runs.
        seed: Key of the generator.

    Raises:
        ValueError: If the frame lacks a column or has no generation.

    Example:
        >>> found = replay.depth_breadth(frame, resamples=20)
        >>> found.best["calls"].tolist()
        [2, 4, 8]
    """
    check_loaded("depth_breadth", frame, "replay.load")
    check_level(level)
    found = []
    for sweep in sweeps(frame):
        made = _tables(cells(sweep, every=True), level, resamples, seed)
        for table in made:
            table.insert(0, "task", sweep.task)
            table.insert(1, "model", sweep.model)
        found.append(made)
    table, best, knowing = (pd.concat(part, ignore_index=True) for part in zip(*found, strict=True))
    return DepthBreadth(table, best, knowing, level)


def envelope(
    frame: pd.DataFrame,
    *,
    axis: Axis = "calls",
    level: float = 0.95,
    best: float | None = None,
    ceiling: float = 0.9999,
) -> Envelope:
    """Best-in-sweep fitness of each model against what it cost.

    Args:
        frame: One row per run and generation, as `replay.load` returns it.
        axis: What the cost is counted in. Every run must know it: unknown costs are not zero.
        level: Nominal coverage of the intervals.
        best: The best known fitness of the task; None: 1. Where that is far from what was reached
            (`replay.planning.grid.best_known`), there is no collapse without it.
        ceiling: Where the collapse takes log(best - fitness), fitness counts as at most this share
            of the way from the lowest fitness to the best.

    Raises:
        ValueError: If the axis is unknown, or no model's runs know their cost on it.

    Example:
        >>> envelope = replay.envelope(frame)
        >>> envelope.points["cost"].tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    check_loaded("envelope", frame, "replay.load")
    check_level(level)
    if axis not in AXES:
        raise ValueError(f"expected an axis among {AXES!r}, got {axis!r}")
    tables = []
    for fitness, cost in zip(sweeps(frame), sweeps(frame, COST_COLUMNS[axis]), strict=True):
        total = cost.values.copy()
        total[:, 0] = 0.0  # the initial program needs no call
        means = cells(replace(cost, values=total.cumsum(axis=1))).means
        if np.isfinite(means).any():
            points = _points(cells(fitness), means, level)
            points.insert(0, "task", fitness.task)
            points.insert(1, "model", fitness.model)
            tables.append(points)
    if not tables:
        later = frame[frame["generation"] > 0]
        known = [
            name for name, column in COST_COLUMNS.items() if column in later and later[column].any()
        ]
        raise ValueError(
            f"no run here knows its {axis}; axes that are known: {known!r}. FLOPs need the model's "
            "active parameters, dollars its prices"
        )
    joined = pd.concat(tables, ignore_index=True)
    logged = frame.groupby("task")["best_fitness"].agg(["min", "max"])
    rows = []
    for task, part in joined.groupby("task", sort=False):
        lowest, highest = float(logged["min"][task]), float(logged["max"][task])
        try:
            r2 = _collapse(part, best_known(best, lowest, highest), ceiling, lowest)
        except ValueError as error:
            warn(f"no collapse for {task}: {error}")
            r2 = np.nan
        rows.append((task, r2, part["model"].nunique(), len(part)))
    collapse = pd.DataFrame(rows, columns=["task", "r2", "models", "points"])
    return Envelope(axis, joined, collapse, level)


def fixed_split(rule: str, generations: IntArray, children: IntArray) -> int | None:
    """Which of some splits (T, N) of a budget a rule of `RULES` takes; None if it is not there."""
    if rule == "square":
        off = np.abs(np.log(generations / children))
        return int(np.lexsort((children, off.round(9)))[0])
    found = np.flatnonzero({"depth": children, "breadth": generations}[rule] == 1)
    return int(found[0]) if len(found) else None


def choose_left_out(grid: SplitCells, among: IntArray) -> tuple[IntArray, FloatArray]:
    """Choose the best of some cells on all runs but one, and judge it on that one.

    Returns which runs k, counted within each N, all of the cells have, and the value in run k of
    the cell that is best without it.
    """
    others, held = grid.left_out(grid.statistic(among))[:, among], grid.values[:, among]
    runs = np.flatnonzero(~(np.isnan(others) | np.isnan(held)).any(axis=1))
    chosen = others[runs].argmax(axis=1) if len(runs) else runs
    return runs, held[runs, chosen]


def _summary(
    values: FloatArray, statistic: Centre, level: float, bounds: Bounds = UNBOUNDED
) -> tuple[float, float, float, int, float]:
    """Mean or median over runs with low, high, n and coverage; NaN where there is none."""
    n = len(values)
    if n < FEWEST or not np.isfinite(values).all():
        return float(centre(values, statistic)) if n else np.nan, np.nan, np.nan, n, np.nan
    found = interval(values, statistic, level, bounds=bounds)
    return found.value, found.low, found.high, n, found.coverage


def _tables(
    grid: SplitCells, level: float, resamples: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The three tables of `DepthBreadth` for one task and model."""
    p_best, bounds = np.full(len(grid.calls), np.nan), grid.sweep.bounds
    best, knowing = [], []
    drawn: dict[Centre, FloatArray] = {}
    calls, counts = np.unique(grid.calls, return_counts=True)
    for C in calls[counts > 1].tolist():
        among = np.flatnonzero(grid.calls == C)
        statistic = grid.statistic(among)
        if statistic not in drawn:
            drawn[statistic] = grid.resampled(resamples, seed, statistic)
        if grid.counts[among].min() >= FEWEST:
            p_best[among] = _share_of_best(drawn[statistic][:, among])
        centres = grid.centres(statistic)
        top = among[centres[among].argmax()]
        head = (C, len(among), statistic, grid.generations[top], grid.children[top], centres[top])
        runs, held = choose_left_out(grid, among)
        best.append((*head, p_best[top], *_summary(held, statistic, level, bounds)))
        for rule in RULES:
            at = fixed_split(rule, grid.generations[among], grid.children[among])
            if at is not None:
                own = grid.values[runs, among[at]]
                same = held == own  # as where neither has anything
                gain = np.where(same, 0.0, held - np.where(same, 0.0, own))
                split = (grid.generations[among[at]], grid.children[among[at]])
                knowing.append((C, rule, *split, *_summary(gain, statistic, level)))
    summaries = [_summary(own[~np.isnan(own)], "mean", level, bounds) for own in grid.values.T]
    table = pd.DataFrame(summaries, columns=["value", *_INTERVAL]).assign(
        generations=grid.generations, children=grid.children, calls=grid.calls, value=grid.means,
        n=grid.counts, n_without=np.isneginf(grid.values).sum(axis=0),
        median=grid.centres("median"), p_best=p_best,
    )[list(_CELLS)]  # fmt: skip
    return (
        table,
        pd.DataFrame(best, columns=[*_BEST, *_HELD_OUT]).assign(
            low=lambda table: table["held_out_low"], high=lambda table: table["held_out_high"]
        ),
        pd.DataFrame(knowing, columns=[*_KNOWING, *_INTERVAL]),
    )


def _share_of_best(drawn: FloatArray) -> FloatArray:
    """How often each column of (resamples, splits) is the largest, ties shared, (splits,)."""
    filled = np.where(np.isnan(drawn), -np.inf, drawn)
    most = filled.max(axis=1, keepdims=True)
    finite = np.where(np.isfinite(filled), np.abs(filled), 0.0)
    slack = 1e-12 * finite.max(axis=1, keepdims=True)  # ties up to rounding
    largest = (filled == most) | (filled >= most - slack)
    return np.asarray((largest / largest.sum(axis=1, keepdims=True)).mean(axis=0))


def _points(grid: SplitCells, cost: FloatArray, level: float) -> pd.DataFrame:
    """The envelope's points for one task and model, `cost` (cells,)."""
    known = np.flatnonzero(np.isfinite(cost))
    statistic = grid.statistic(known)
    centres = grid.centres(statistic)
    known = known[np.argsort(cost[known], kind="stable")]
    highest = np.maximum.accumulate(centres[known])
    last = np.flatnonzero(np.diff(cost[known], append=np.inf) > 0)  # of the cells of each cost
    rises = highest[last] > np.concatenate([[-np.inf], highest[last][:-1]])
    rows = []
    for at in last[rises]:
        among = known[: at + 1]
        _, held = choose_left_out(grid, among)
        top = among[centres[among].argmax()]
        split = (grid.generations[top], grid.children[top], len(among), statistic)
        rows.append(
            (
                cost[known[at]],
                highest[at],
                *split,
                *_summary(held, statistic, level, grid.sweep.bounds),
            )
        )
    return pd.DataFrame(rows, columns=[*_POINTS, *_INTERVAL])


def explained(target: FloatArray, fitted: FloatArray, *, least: float) -> float:
    """R2, the share of variance that is explained; NaN where there is no more than `least`."""
    total = float(((target - target.mean()) ** 2).sum())
    return 1 - float(((target - fitted) ** 2).sum()) / total if total > least else np.nan


def _collapse(points: pd.DataFrame, best: float, ceiling: float, lowest: float) -> float:
    """R2 of log(best - maximum) on a quadratic in log cost; NaN with fewer than four points."""
    if len(points) < 4 or not lowest < best:
        return float("nan")
    target = log_gaps(points["maximum"].to_numpy(np.float64), best, ceiling, lowest)
    x = np.log(points["cost"].to_numpy(np.float64))
    fitted = np.polynomial.Polynomial.fit(x, target, deg=2)(x)
    return explained(target, fitted, least=0.0)
