"""Runs of one task and model as dense arrays, and the depth-breadth cells they hold.

By the prefix property a run with N children per generation that is D generations deep holds a run
of every depth T <= D: it stands in the cells (1, N), (2, N), ..., (D, N). Cells of equal N
therefore share runs, those of different N do not, and whole runs are what is resampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from replay.statistics import resampled_rows

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Runs of one task and model, in ascending order of N.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        runs: Identifier of each run, (runs,).
        children: N of each run, (runs,).
        depth: Generations of each run, (runs,).
        values: A column of the frame by generation, (runs, deepest + 1); NaN after a run's end and
            wherever the frame has NaN.
    """

    task: str
    model: str
    runs: NDArray[np.object_]
    children: IntArray
    depth: IntArray
    values: FloatArray

    def strata(self) -> Iterator[tuple[int, slice]]:
        """Each N with the rows of its runs."""
        found, first = np.unique(self.children, return_index=True)
        last = [*first[1:].tolist(), len(self.children)]
        for N, start, stop in zip(found.tolist(), first.tolist(), last, strict=True):
            yield N, slice(start, stop)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cells (T, N) of a sweep, T a power of two, in ascending order of N, then T.

    Attributes:
        sweep: The runs they are made of.
        generations: T of each cell, (cells,).
        children: N of each cell, (cells,).
        values: Value of the k-th run of each cell's N, (most runs of an N, cells); NaN where that
            run has no value.
        present: Whether there is such a run and it is that deep, same shape.
    """

    sweep: Sweep
    generations: IntArray
    children: IntArray
    values: FloatArray
    present: NDArray[np.bool_]

    @property
    def calls(self) -> IntArray:
        """C = T * N of each cell, (cells,)."""
        return np.asarray(self.generations * self.children)

    @property
    def counts(self) -> IntArray:
        """Runs in each cell, (cells,)."""
        return np.asarray(self.present.sum(axis=0))

    @property
    def means(self) -> FloatArray:
        """Mean of each cell over its runs, (cells,); NaN where a run has no value."""
        return np.asarray(self._weighted(np.ones((1, len(self.values))), slice(None))[0])

    def resampled(self, resamples: int, seed: int) -> FloatArray:
        """Means of bootstrap samples of whole runs within each N, (resamples, cells).

        NaN where a sample holds no run that is as deep as the cell.
        """
        rows = resampled_rows(self.sweep.children, resamples, seed)
        means = np.empty((resamples, len(self.calls)))
        for N, part in self.sweep.strata():
            size = part.stop - part.start
            drawn = rows[:, part] - part.start
            offset = size * np.arange(resamples)[:, None]
            weights = np.bincount((drawn + offset).ravel(), minlength=size * resamples)
            columns = self.children == N
            padded = np.zeros((resamples, len(self.values)))
            padded[:, :size] = weights.reshape(resamples, size)
            means[:, columns] = self._weighted(padded, columns)
        return means

    def left_out(self) -> FloatArray:
        """Mean of each cell without its k-th run, same shape as `values`.

        NaN where there is no such run or no other. To choose a cell by these and to judge it by
        `values` is free of the bias of a maximum.
        """
        count = self.counts - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            left = (np.where(self.present, self.values, 0.0).sum(axis=0) - self.values) / count
        return np.where(self.present & (count > 0), left, np.nan)

    def _weighted(self, weights: FloatArray, columns: slice | NDArray[np.bool_]) -> FloatArray:
        present = self.present[:, columns]
        total = weights @ np.where(present, self.values[:, columns], 0.0)
        count = weights @ present
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def sweeps(frame: pd.DataFrame, column: str = "best_fitness") -> list[Sweep]:
    """One sweep per task and model, in order of first appearance.

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
    if frame.empty:
        raise ValueError("expected at least one run, got an empty frame")
    run, names = frame["run"].factorize()
    if (frame["run"].isna()).any():
        raise ValueError("expected a run identifier in every row, got missing ones in column 'run'")
    generation = frame["generation"].to_numpy(np.int64)
    children = frame["children"].to_numpy(np.int64)
    first = np.zeros(len(names), dtype=np.int64)
    first[run[::-1]] = np.arange(len(frame))[::-1]
    if (varies := children != children[first[run]]).any():
        raise ValueError(f"the number of children varies within run {names[run[varies][0]]!r}")
    depth = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(depth, run, generation)
    matrix = np.full((len(names), int(depth.max()) + 1), np.nan)
    matrix[run, generation] = frame[column].to_numpy(np.float64)
    heads = frame[["task", "model"]].iloc[first]
    group = heads.groupby(["task", "model"], sort=False, dropna=False).ngroup().to_numpy()
    made = []
    for number in range(int(group.max()) + 1):
        rows = np.flatnonzero(group == number)
        rows = rows[np.argsort(children[first[rows]], kind="stable")]
        task, model = heads.iloc[rows[0]]
        made.append(
            Sweep(
                task=str(task),
                model=str(model),
                runs=np.asarray(names, dtype=object)[rows],
                children=children[first[rows]],
                depth=depth[rows],
                values=matrix[rows, : int(depth[rows].max()) + 1],
            )
        )
    return made


def one_sweep(frame: pd.DataFrame, column: str = "best_fitness") -> Sweep:
    """The sweep of a frame that holds one task and one model.

    Raises:
        ValueError: If it holds several; the message lists them.
    """
    found = sweeps(frame, column)
    if len(found) > 1:
        names = [(sweep.task, sweep.model) for sweep in found]
        raise ValueError(
            f"expected runs of one task and one model, got {names!r}; select one with "
            "frame[(frame.task == ...) & (frame.model == ...)]"
        )
    return found[0]


def cells(sweep: Sweep) -> Cells:
    """The cells of a sweep.

    Raises:
        ValueError: If no run has a generation beyond the initial program.
    """
    columns = []
    for N, part in sweep.strata():
        deepest = int(sweep.depth[part].max())
        columns += [(N, 2**power, part) for power in range(deepest.bit_length())]
    if not columns:
        raise ValueError("expected runs with at least one generation, got initial programs only")
    most = max(part.stop - part.start for _, _, part in columns)
    values = np.full((most, len(columns)), np.nan)
    present = np.zeros((most, len(columns)), dtype=bool)
    for at, (_, T, part) in enumerate(columns):
        size = part.stop - part.start
        values[:size, at] = sweep.values[part, T]
        present[:size, at] = sweep.depth[part] >= T
    return Cells(
        sweep=sweep,
        generations=np.array([T for _, T, _ in columns]),
        children=np.array([N for N, _, _ in columns]),
        values=values,
        present=present,
    )
