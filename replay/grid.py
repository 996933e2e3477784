"""The depth-breadth grid: what each split of a budget was worth, and how sure that is.

A budget of C calls can be spent as T generations of N children, C = T * N. A cell's value is the
mean over runs of the best fitness after T generations: the mean, because that is what the next
search can expect, and since differences of means between splits are what a choice gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from replay.statistics import interval
from replay.sweep import Cells, FloatArray, IntArray, cells, sweeps

if TYPE_CHECKING:
    import pandas as pd

_BEST = ("calls", "splits", "generations", "children", "value", "p_best", "held_out")
_KNOWING = ("calls", "rule", "generations", "children", "gain")
_INTERVAL = ("low", "high", "n")

RULES = ("depth", "breadth", "square")
"""Fixed rules for a split: N = 1, T = 1, and T = N (T = 2 N where C is no square)."""


@dataclass(frozen=True)
class DepthBreadth:
    """What the splits of each budget were worth.

    Attributes:
        cells: One row per task, model and cell: generations (T), children (N), calls, value (mean
            best fitness over runs; NaN while a run has no fitness), low, high, n (runs), n_without
            (runs with no fitness yet), p_best (bootstrap probability that the cell is the best of
            its budget, whole runs resampled; ties share it).
        best: One row per task, model and budget of at least two splits: calls, splits (how many
            the best was chosen from), generations, children, value (of the split with the largest
            mean, which flatters it), p_best, held_out (value of the split chosen on all runs but
            one, on that one: what the choice is worth), low, high (interval of held_out), n.
        knowing: One row per task, model, budget and fixed rule: gain (held_out less the rule's
            value on the same runs), low, high, n.
        level: Nominal coverage of the intervals.
    """

    cells: pd.DataFrame
    best: pd.DataFrame
    knowing: pd.DataFrame
    level: float

    def __str__(self) -> str:
        """Best split and value of knowing it, one line per budget."""
        lines = []
        for (task, model), part in self.best.groupby(["task", "model"], sort=False):
            lines.append(f"{task}, {model}: best split of each budget ({self.level:.0%} intervals)")
            for row in part.itertuples():
                lines.append(
                    f"  C = {row.calls:<5} T = {row.generations:<4} N = {row.children:<4} "
                    f"best of {row.splits} with probability {row.p_best:.2f}; "
                    f"{row.held_out:.4f} [{row.low:.4f}, {row.high:.4f}] on runs left out, "
                    f"n = {row.n}"
                )
        return "\n".join(lines)


def depth_breadth(
    frame: pd.DataFrame, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> DepthBreadth:
    """Value of every cell, the best split of every budget, and the value of knowing it.

    Args:
        frame: One row per run and generation, as `replay.load` returns it.
        level: Nominal coverage of the intervals.
        resamples: Bootstrap samples of whole runs.
        seed: Key of the generator.

    Raises:
        ValueError: If the frame lacks a column or has no generation.
    """
    import pandas as pd

    found = []
    for sweep in sweeps(frame):
        made = _tables(cells(sweep), level, resamples, seed)
        for table in made:
            table.insert(0, "task", sweep.task)
            table.insert(1, "model", sweep.model)
        found.append(made)
    table, best, knowing = (pd.concat(part, ignore_index=True) for part in zip(*found, strict=True))
    return DepthBreadth(table, best, knowing, level)


def splits_by_calls(grid: Cells) -> dict[int, IntArray]:
    """Cells of each budget that has at least two splits, by calls in ascending order."""
    calls, counts = np.unique(grid.calls, return_counts=True)
    return {int(C): np.flatnonzero(grid.calls == C) for C in calls[counts > 1]}


def fixed_split(rule: str, calls: int) -> tuple[int, int]:
    """(T, N) that a fixed rule of `RULES` gives a budget of `calls`, a power of two.

    Raises:
        ValueError: If the rule is unknown or the budget no power of two.
    """
    if calls < 1 or calls & (calls - 1):
        raise ValueError(f"expected a budget that is a power of two, got {calls!r}")
    if rule not in RULES:
        raise ValueError(f"expected a rule among {RULES!r}, got {rule!r}")
    half = 2 ** ((calls.bit_length() - 1) // 2)
    N = {"depth": 1, "breadth": calls, "square": half}[rule]
    return calls // N, N


def choose_left_out(grid: Cells, among: IntArray) -> tuple[IntArray, FloatArray]:
    """Choose the best of some cells on all runs but one, and judge it on that one.

    Args:
        grid: Cells of a sweep.
        among: Which cells to choose from.

    Returns:
        Which runs k, counted within each N, all of the cells have, and the value in run k of the
        cell that is best without it.
    """
    others, held = grid.left_out()[:, among], grid.values[:, among]
    runs = np.flatnonzero((np.isfinite(others) & np.isfinite(held)).all(axis=1))
    chosen = others[runs].argmax(axis=1) if len(runs) else runs
    return runs, held[runs, chosen]


def cell_intervals(grid: Cells, level: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Interval of each cell's mean, (cells,) each; NaN where there is no mean or but one run."""
    low, high = np.full(len(grid.calls), np.nan), np.full(len(grid.calls), np.nan)
    known = np.isfinite(grid.means)
    for N in np.unique(grid.children):
        columns = np.flatnonzero((grid.children == N) & known)
        if len(columns):
            rows = grid.present[:, columns].any(axis=1)
            found = interval(
                grid.values[np.ix_(rows, columns)], level=level, missing="omit", seed=seed
            )
            low[columns], high[columns] = found.low, found.high
    return low, high


def mean_interval(values: FloatArray, level: float, seed: int) -> tuple[float, float, float, int]:
    """Mean over runs with low, high and n; NaN without runs."""
    if not len(values):
        return np.nan, np.nan, np.nan, 0
    found = interval(values, level=level, seed=seed)
    return found.value, found.low, found.high, found.n


def _tables(
    grid: Cells, level: float, resamples: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The three tables of `DepthBreadth` for one task and model."""
    import pandas as pd

    means, drawn = grid.means, grid.resampled(resamples, seed)
    low, high = cell_intervals(grid, level, seed)
    p_best = np.full(len(means), np.nan)
    best, knowing = [], []
    for C, splits in splits_by_calls(grid).items():
        among = splits[np.isfinite(means[splits])]
        if len(among) < 2:
            continue
        p_best[among] = _share_of_best(drawn[:, among])
        top = among[means[among].argmax()]
        split = (grid.generations[top], grid.children[top])
        runs, held = choose_left_out(grid, among)
        best.append(
            (C, len(among), *split, means[top], p_best[top], *mean_interval(held, level, seed))
        )
        for rule in RULES:
            T, N = fixed_split(rule, C)
            at = among[(grid.generations[among] == T) & (grid.children[among] == N)]
            if len(at):
                gain = held - grid.values[runs, at[0]]
                knowing.append((C, rule, T, N, *mean_interval(gain, level, seed)))
    table = pd.DataFrame(
        {
            "generations": grid.generations,
            "children": grid.children,
            "calls": grid.calls,
            "value": means,
            "low": low,
            "high": high,
            "n": grid.counts,
            "n_without": (grid.present & np.isnan(grid.values)).sum(axis=0),
            "p_best": p_best,
        }
    )
    return (
        table,
        pd.DataFrame(best, columns=[*_BEST, *_INTERVAL]),
        pd.DataFrame(knowing, columns=[*_KNOWING, *_INTERVAL]),
    )


def _share_of_best(drawn: FloatArray) -> FloatArray:
    """How often each column of (resamples, splits) is the largest, ties shared, (splits,)."""
    filled = np.where(np.isnan(drawn), -np.inf, drawn)
    largest = filled >= filled.max(axis=1, keepdims=True) - 1e-12  # ties up to rounding
    return np.asarray((largest / largest.sum(axis=1, keepdims=True)).mean(axis=0))
