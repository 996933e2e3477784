"""How well a sweep's cells are predicted from its other N: the kernel beside simpler ways.

The runs of one N are left out at a time, and their cells are predicted from the rest by the kernel,
by the bilinear fit, and by the nearest cells that are left: equal T at half and twice N, averaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from replay.bilinear import fit_bilinear, predicted_fitness
from replay.grid import cell_intervals
from replay.kernel import fit_kernel
from replay.sweep import Cells, FloatArray, IntArray, cells, one_sweep

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("kernel", "bilinear", "nearest")


def leave_one_size_out(
    frame: pd.DataFrame,
    children: pd.DataFrame,
    *,
    kernels: int = 40,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Predict the cells of each N from the runs of the others.

    Args:
        frame: Sweeps of at least three N, as `replay.load` returns them.
        children: Their children, as `replay.children` returns them.
        kernels: Resampled kernels.
        level: Nominal coverage of the intervals.
        seed: Key of the generator.

    Returns:
        One row per task, model, cell and method of `METHODS`: generations, children, predicted,
        low, high, extrapolated (share of simulated runs that end where too few parents were seen;
        the kernel's alone), observed (mean over the runs left out), n (those runs), noise (standard
        error of that mean). Intervals: of
        the kernel, where a mean over n runs will lie; of the fit, where its surface lies; of the
        nearest cells, where the mean of each lies, averaged.
    """
    import pandas as pd

    parts = []
    for (task, model), part in frame.groupby(["task", "model"], sort=False):
        logged = children[(children["task"] == task) & (children["model"] == model)]
        grid = cells(one_sweep(part))
        for N in np.unique(grid.children):
            at = np.flatnonzero((grid.children == N) & np.isfinite(grid.means))
            depths = grid.generations[at]
            rest = part[part["children"] != N]
            table = {
                "kernel": fit_kernel(logged[logged["children"] != N]).predict(
                    int(N),
                    depths.tolist(),
                    of_runs=int(grid.counts[at].min()),
                    kernels=kernels,
                    level=level,
                    seed=seed,
                ),
                "bilinear": _by_fit(rest, depths, int(N), level, seed),
                "nearest": _by_nearest(cells(one_sweep(rest)), depths, int(N), level, seed),
            }
            for name, cells_of_n in table.items():
                made = cells_of_n.rename(columns={"value": "predicted"})
                made.insert(0, "task", str(task))
                made.insert(1, "model", str(model))
                made.insert(2, "method", name)
                made["observed"], made["n"] = grid.means[at], grid.counts[at]
                made["noise"] = np.nanstd(grid.values[:, at], axis=0, ddof=1) / np.sqrt(made["n"])
                parts.append(made)
    return pd.concat(parts, ignore_index=True)


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Error and coverage of each method.

    Args:
        table: As `leave_one_size_out` returns it.

    Returns:
        One row per task, model and method: error (mean absolute error in fitness), floor (what it
        would be if the true means were known, for normal noise), coverage (share of cells inside
        their interval), cells; over cells that every method predicts.
    """
    key = ["task", "model", "generations", "children"]
    complete = table.groupby(key)["predicted"].transform("count") == table["method"].nunique()
    part = table[complete]
    part = part.assign(
        error=(part["predicted"] - part["observed"]).abs(),
        coverage=part["observed"].between(part["low"], part["high"]),
        floor=part["noise"] * np.sqrt(2 / np.pi),
        cells=1,
    )
    grouped = part.groupby(["task", "model", "method"], sort=False)
    columns = {"error": "mean", "floor": "mean", "coverage": "mean", "cells": "sum"}
    return grouped.agg(columns).reset_index()


def _by_fit(
    frame: pd.DataFrame, generations: IntArray, children: int, level: float, seed: int
) -> pd.DataFrame:
    fit = fit_bilinear(frame, level=level, seed=seed)
    sizes = np.full(len(generations), children)
    drawn = predicted_fitness(fit.draws, generations, sizes)
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(drawn, tails, axis=0)
    return _table(generations, children, fit.predict(generations, sizes), low, high)


def _by_nearest(
    grid: Cells, generations: IntArray, children: int, level: float, seed: int
) -> pd.DataFrame:
    limits = np.stack([grid.means, *cell_intervals(grid, level, seed)])
    found = np.full((3, len(generations)), np.nan)
    for at, T in enumerate(generations):
        near = (grid.generations == T) & (np.abs(np.log2(grid.children / children)) < 1.5)
        if near.any():
            found[:, at] = limits[:, near].mean(axis=1)
    return _table(generations, children, *found)


def _table(
    generations: IntArray, children: int, value: FloatArray, low: FloatArray, high: FloatArray
) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "generations": generations,
            "children": children,
            "value": value,
            "low": low,
            "high": high,
            "extrapolated": np.nan,
        }
    )
