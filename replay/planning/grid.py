"""Runs of one task and model as dense arrays, and the depth-breadth cells they hold.

By the prefix property a run of N children that is D generations deep holds a run of every depth
T <= D: it stands in all cells (T, N) up to there. Cells of equal N therefore share runs, those of
different N do not, and whole runs are what is resampled.

A run's value in a cell is its best fitness so far, the initial program included; where nothing is
ok yet it is minus infinity. Such a run has a rank and counts in a median, but there is no mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from replay.logs.frames import (
    bounds_of,
    distinct_runs,
    independent_runs,
    matrix_of,
    models_apart,
    require_alike,
    run_lengths,
)
from replay.logs.given import check_runs
from replay.statistics.intervals import UNBOUNDED, Bounds

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Centre = Literal["mean", "median"]

FAR = 3
"""Gap to 1, in ranges of the logged fitness, beyond which 1 is not taken for the best known."""


MOST_CELLS = 400
"""Cells of a sweep beyond which there are no further ones, see `cells`."""


@dataclass(frozen=True, kw_only=True)
class GridSweep:
    """Runs of one task and model, in ascending order of N.

    Attributes:
        runs: Identifier of each run, (runs,).
        children: N of each run, (runs,).
        depth: Generations of each run, (runs,).
        values: A column of the frame by generation, (runs, deepest + 1); NaN after a run's end and
            wherever the frame has NaN.
        bounds: Lowest and highest value that there is.
    """

    task: str
    model: str
    runs: NDArray[np.object_]
    children: IntArray
    depth: IntArray
    values: FloatArray
    bounds: Bounds = UNBOUNDED

    def strata(self) -> Iterator[tuple[int, slice]]:
        """Each N with the rows of its runs."""
        found, first = np.unique(self.children, return_index=True)
        last = [*first[1:].tolist(), len(self.children)]
        for N, start, stop in zip(found.tolist(), first.tolist(), last, strict=True):
            yield N, slice(start, stop)


@dataclass(frozen=True, kw_only=True)
class SplitCells:
    """The cells (T, N) of a sweep in ascending order of N, then T.

    T are the powers of two, and those at which N spends a budget that runs of some N end with; see
    `cells` for further ones.

    Attributes:
        sweep: The runs they are made of.
        generations: T of each cell, (cells,).
        children: N of each cell, (cells,).
        values: Value of the k-th run of each cell's N, (most runs of an N, cells); NaN where there
            is no such run or it is not that deep, minus infinity where nothing is ok yet.
    """

    sweep: GridSweep
    generations: IntArray
    children: IntArray
    values: FloatArray

    @property
    def calls(self) -> IntArray:
        """C = T * N of each cell, (cells,)."""
        return np.asarray(self.generations * self.children)

    @property
    def counts(self) -> IntArray:
        """Runs in each cell, (cells,)."""
        return np.asarray((~np.isnan(self.values)).sum(axis=0))

    @property
    def means(self) -> FloatArray:
        """Mean of each cell over its runs, (cells,); NaN where one of them has no value."""
        means = self.centres("mean")
        return np.where(np.isfinite(means), means, np.nan)

    def centres(self, statistic: Centre) -> FloatArray:
        """Mean or median of each cell over its runs, (cells,)."""
        return centre(self.values, statistic)

    def statistic(self, among: IntArray) -> Centre:
        """What cells can be compared by: the mean if each of their runs has a value."""
        return "median" if np.isneginf(self.values[:, among]).any() else "mean"

    def resampled(self, resamples: int, seed: int, statistic: Centre = "mean") -> FloatArray:
        """Means or medians of bootstrap samples of whole runs within each N, (resamples, cells).

        NaN where a sample holds no run that is as deep as the cell.
        """
        rng = np.random.default_rng([seed, len(self.sweep.runs)])
        found = np.empty((resamples, len(self.calls)))
        for N, part in self.sweep.strata():
            columns, n = np.flatnonzero(self.children == N), part.stop - part.start
            drawn = rng.integers(0, n, (resamples, n)).T
            found[:, columns] = centre(self.values[:, columns][drawn], statistic)
        return found

    def left_out(self, statistic: Centre = "mean") -> FloatArray:
        """Mean or median of each cell without its k-th run, same shape as `values`.

        NaN where there is no such run or no other. To choose a cell by these and to judge it by
        `values` is free of the bias of a maximum.
        """
        others = [centre(np.delete(self.values, k, 0), statistic) for k in range(len(self.values))]
        return np.where(np.isnan(self.values), np.nan, np.reshape(others, self.values.shape))


def sweeps(frame: pd.DataFrame, column: str = "best_fitness") -> list[GridSweep]:
    """One sweep per task, model, search and settings, as they come first, without forks, aloud.

    What tells runs of a task and model apart, see `models_apart`, is named beside the model.

    Args:
        frame: One row per run and generation, as `replay.load` returns it.
        column: Which column becomes `values`.

    Raises:
        ValueError: If the frame is empty or lacks a column, or if the N of a run varies.
    """
    needed = {"run", "task", "model", "children", "generation", column}
    if missing := sorted(needed - set(frame.columns)):
        raise ValueError(
            f"expected a frame as replay.load makes it, but it has no column {missing!r}; "
            f"it has {sorted(frame.columns)!r}"
        )
    frame = independent_runs(distinct_runs(frame))
    check_runs(frame)
    if frame["run"].isna().any():
        raise ValueError("expected a run identifier in every row, got missing ones in column 'run'")
    made = []
    families = frame.groupby(["task", models_apart(frame)], sort=False, dropna=False)
    for (task, model), part in families:
        size = part.groupby("run", sort=False)["children"]
        if (varies := size.nunique() > 1).any():
            raise ValueError(f"the number of children varies within run {varies.idxmax()!r}")
        children, depth = size.first(), run_lengths(part)
        order = np.argsort(children.to_numpy(np.int64), kind="stable")
        made.append(
            GridSweep(
                task=str(task),
                model=str(model),
                runs=children.index.to_numpy(dtype=object)[order],
                children=children.to_numpy(np.int64)[order],
                depth=depth[order],
                values=matrix_of(part, column)[order],
                bounds=bounds_of(part) if column == "best_fitness" else (0.0, math.inf),
            )
        )
    return made


def one_sweep(frame: pd.DataFrame, column: str = "best_fitness") -> GridSweep:
    """The sweep of a frame of one task, model and search; a column of it as for `sweeps`.

    Raises:
        ValueError: If it holds several; the message lists them.
    """
    found = sweeps(frame, column)
    if len(found) > 1:
        require_alike(frame, "expected runs")
        names = [(sweep.task, sweep.model) for sweep in found]
        raise ValueError(
            f"expected runs of one task and one model, by one search, got {names!r}; select some "
            "with frame[(frame.task == ...) & (frame.model == ...) & (frame.search == ...)], or "
            "`--where task=NAME --where model=NAME --where search=NAME`"
        )
    return found[0]


def cells(sweep: GridSweep, *, every: bool = False) -> SplitCells:
    """The cells of a sweep.

    Args:
        sweep: The runs.
        every: Whether cells are also at the T at which the runs of another N end, at those at which
            some N has spent exactly what another has at its own T, and, of all of these, wherever
            runs reach them, so that a map has no hole; not where that were more than `MOST_CELLS`.
            Fits do without, as these cells add no runs.

    Raises:
        ValueError: If no run has a generation beyond the initial program.
    """
    deepest = {N: int(sweep.depth[part].max()) for N, part in sweep.strata()}
    depths = _every_depth(deepest) if every else _depths(deepest)
    columns = [(N, T, part) for N, part in sweep.strata() for T in sorted(depths[N])]
    if not columns:
        raise ValueError("expected runs with at least one generation, got initial programs only")
    most = max(part.stop - part.start for _, _, part in columns)
    values = np.full((most, len(columns)), np.nan)
    for at, (_, T, part) in enumerate(columns):
        best = np.nan_to_num(sweep.values[part, T], nan=-np.inf)
        values[: len(best), at] = np.where(sweep.depth[part] >= T, best, np.nan)
    return SplitCells(
        sweep=sweep,
        generations=np.array([T for _, T, _ in columns]),
        children=np.array([N for N, _, _ in columns]),
        values=values,
    )


def _depths(deepest: Mapping[int, int]) -> dict[int, set[int]]:
    """Returns the T at which each N has a cell, see `SplitCells`, by the last T of each N."""
    ends = {N * T for N, T in deepest.items()}
    return {N: _powers(T) | _spent(N, ends, T) for N, T in deepest.items()}


def _every_depth(deepest: Mapping[int, int]) -> dict[int, set[int]]:
    """Returns all T at which each N has a cell, see `cells`, by the last T of each N."""
    shown = _powers(max(deepest.values())) | set(deepest.values())
    budgets = {N * T for N in deepest for T in shown if deepest[N] >= T}
    shown = shown.union(*(_spent(N, budgets, most) for N, most in deepest.items()))
    found = {N: {T for T in shown if 0 < T <= most} for N, most in deepest.items()}
    return found if sum(map(len, found.values())) <= MOST_CELLS else _depths(deepest)


def _powers(most: int) -> set[int]:
    """The powers of two up to a T."""
    return {2**k for k in range(most.bit_length())}


def _spent(N: int, budgets: Iterable[int], most: int) -> set[int]:
    """The T, up to one, at which N has spent one of some budgets exactly."""
    return {C // N for C in budgets if C % N == 0 and 0 < C // N <= most}


def best_known(best: float | None, lowest: float, highest: float) -> float:
    """The best known fitness of a task: as given, or 1 where fitness is plausibly on that scale.

    Raises:
        ValueError: It was not given, and the gap between the highest fitness and 1 exceeds FAR
            times the range of what was logged.
    """
    if best is not None:
        return best
    if 1 - highest > FAR * (highest - lowest):
        raise ValueError(
            f"expected best=, the best known fitness of the task: runs range from {lowest:g} to "
            f"{highest:g}, and 1 lies more than {FAR} times that range above them, so that it says "
            f"nothing about what can be reached; {what_to_give(lowest, highest)}; or 1 if that is "
            "the best known"
        )
    return 1.0


def what_to_give(lowest: float, highest: float) -> str:
    """Which value of `best=` suits runs between two values of fitness."""
    if highest <= lowest:
        return (
            "pass best= (--best) on the scale of these runs: the best fitness that anybody has "
            "reached, which these runs do not tell, as none of their programs is better than "
            "another"
        )
    return (
        "pass best= (--best) on the scale of these runs: the best fitness that anybody has reached,"
        " or where none is known the highest here plus what these runs span, "
        f"best={2 * highest - lowest:.4g}"
    )


def log_gaps(values: FloatArray, best: float, ceiling: float, lowest: float) -> FloatArray:
    """log(best - values), with values at most at `ceiling` of the way from `lowest` to `best`."""
    return np.asarray(np.log(np.maximum(best - values, (1 - ceiling) * (best - lowest))))


def centre(values: FloatArray, statistic: Centre) -> FloatArray:
    """Mean or median along the first axis of the numbers that are not NaN; NaN without any."""
    count = (~np.isnan(values)).sum(axis=0)
    if statistic == "mean":
        total = np.where(np.isnan(values), 0.0, values).sum(axis=0)
        out = np.full(count.shape, np.nan)
        return np.asarray(np.divide(total, count, out=out, where=count > 0))
    ordered: FloatArray = np.sort(values, axis=0)  # NaN last
    middle = [(np.maximum(count - 1, 0)) // 2, np.minimum(count // 2, len(values) - 1)]
    pair: FloatArray = np.take_along_axis(ordered, np.stack(middle), axis=0)
    return np.asarray(pair.sum(axis=0) / 2)
