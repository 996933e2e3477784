"""The data of the budget explorer: logged values of each split, and the kernel's predictions.

A split (T, N) that was logged is shown by its runs. One that was not, though runs as deep and as
broad were (`Kernel.inside`), is shown by runs that the child-outcome kernel of
`replay.planning.kernel` simulates: KERNELS kernels resampled over whole runs, GROUPS groups of RUNS
runs each, so that its interval is that of what RUNS logged runs would show.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from replay.explorers.budget_values import Behind, ChosenRun, SplitValue
from replay.logs.frames import COST_COLUMNS, is_stand_in
from replay.planning.grid import FloatArray, GridSweep, one_sweep
from replay.planning.kernel import FEWEST, fit_kernel
from replay.plots.style import ranged
from replay.statistics.intervals import (
    LEAST,
    Interval,
    clopper_pearson,
    curve_band,
    interval,
    measured,
)
from replay.statistics.welch import welch_half

if TYPE_CHECKING:
    import pandas as pd

    from replay.planning.kernel import Kernel

KERNELS, GROUPS, RUNS = 10, 12, 10
LEVEL = 0.95
MOST_ENDS = 12
"""Depths at which runs end, beside the powers of two, that the heatmap has columns for at most."""

NAMES = ("choice", "twice as deep", "twice as broad")

MAPS = {"fitness": "mean best fitness", "behind": "less the best of the same budget"}
"""What colours of the heatmap mean, by the value of the setting."""

CostAxis = Literal["generation", "calls", "tokens", "flops", "dollars"]
"""What a split's curves are drawn against."""

UNITS: dict[CostAxis, str] = {
    "generation": "generation",
    "calls": "LLM calls",
    "tokens": "tokens (prompt and completion)",
    "flops": "FLOPs",
    "dollars": "US dollars",
}


@dataclass(frozen=True, kw_only=True)
class BudgetCurve:
    """One quantity of one split by generation, with its interval."""

    x: FloatArray  # cost so far, generations 1, 2, ..., T
    value: FloatArray  # same shape; NaN where some run has nothing ok yet
    low: FloatArray  # lower limit
    high: FloatArray  # upper limit
    logged: int  # how many of the points were logged; the rest are predictions
    n: int  # runs that the last point rests on
    whole: int  # how many of the logged points rest on all runs; from then on some have ended
    of: int  # runs that the first point rests on

    def columns(self, name: str) -> dict[str, FloatArray]:
        """Value and limits as columns of a table."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    @property
    def last(self) -> str:
        """The last value with its interval, in words."""
        if math.isnan(self.value[-1]):
            return "unknown, as some run has nothing ok yet"
        return ranged(*(float(part[-1]) for part in (self.value, self.low, self.high)))


@dataclass(frozen=True, kw_only=True)
class Split:
    """One way to spend a budget."""

    generations: int  # T
    children: int  # N
    fitness: BudgetCurve  # mean over runs of the best fitness so far
    reached: BudgetCurve  # share of runs that have reached tau
    costs: dict[str, Interval]  # what the split costs by unit, mean over runs; only what is known

    @property
    def logged(self) -> bool:
        """Whether runs of N children were logged as deep as this."""
        return self.fitness.logged == self.generations


class Outlook:
    """All splits of one task and model."""

    def __init__(
        self,
        fitness: GridSweep,
        costs: Mapping[CostAxis, GridSweep],
        kernel: Kernel | None = None,
        model: str | None = None,
    ) -> None:
        self.fitness = fitness
        self.model = model or fitness.model
        self.costs = costs
        self.kernel = kernel
        deepest = {N: int(fitness.depth[rows].max()) for N, rows in fitness.strata()}
        self.strata = {N: rows for N, rows in fitness.strata() if deepest[N]}
        self.depths = {N: deepest[N] for N in self.strata}
        # Caches of this object and not of its class, so that they go when it goes.
        self._bands = functools.lru_cache(maxsize=4096)(self._join)
        self.position = functools.lru_cache(maxsize=256)(self._add_up)
        self.logged = functools.lru_cache(maxsize=64)(self._average)
        self._reached = functools.lru_cache(maxsize=256)(self._count)
        self._simulated = functools.lru_cache(maxsize=64)(self._simulate)
        self.predicted = functools.lru_cache(maxsize=256)(self._predict)

    @functools.cached_property
    def largest(self) -> int:
        """The largest budget that is shown, in calls."""
        return max(N * depth for N, depth in self.depths.items())

    @property
    def about(self) -> str:
        """What the curves of fitness show."""
        lengths = (self.fitness.depth[rows] for rows in self.strata.values())
        if all(len(set(each[each > 0].tolist())) == 1 for each in lengths):
            return f"mean, {self.interval}; dashes if predicted"
        return f"mean, {self.interval}; dashes if predicted, thin if not all runs"

    @property
    def interval(self) -> str:
        """The label of the intervals of means, by the smallest number of runs of an N."""
        n = min(len(self.fitness.depth[rows]) for rows in self.strata.values())
        held = measured("mean", n, LEVEL)
        return "no interval" if n < LEAST or math.isnan(held) else f"{100 * held:.0f} % interval"

    @functools.cached_property
    def _kernels(self) -> list[Kernel]:
        return [] if self.kernel is None else list(self.kernel.resampled(KERNELS))

    @functools.cached_property
    def names(self) -> list[str]:
        """The runs, by ascending N."""
        return [str(self.fitness.runs[k]) for rows in self.strata.values() for k in _within(rows)]

    def runs_of(self, generations: int, children: int) -> list[tuple[str, float]]:
        """The logged runs of a split with their best fitness there, the best first."""
        rows = self.strata.get(children)
        if rows is None:
            return []
        deep = [k for k in _within(rows) if self.fitness.depth[k] >= generations]
        found = [
            (str(self.fitness.runs[k]), float(self.fitness.values[k, generations])) for k in deep
        ]
        return sorted(found, key=lambda each: (math.isnan(each[1]), -each[1]))

    def one_run(self, run: str, axis: CostAxis) -> ChosenRun:
        """A run by generation."""
        k = [str(each) for each in self.fitness.runs].index(run)
        N, depth = int(self.fitness.children[k]), int(self.fitness.depth[k])
        x = self.position(N, axis)
        if x is None:
            raise ValueError(
                f"these logs do not say what a run costs in {axis}; choose another cost axis"
            )
        return ChosenRun(run=run, x=x[:depth], value=self.fitness.values[k, 1 : depth + 1])

    @functools.cached_property
    def grid(self) -> tuple[list[int], list[int], FloatArray, NDArray[np.bool_]]:
        """Each N and T of the heatmap, mean best fitness (rows, columns), and what was logged."""
        rows, columns, _ = axes_of(self.depths, predicted=self.kernel is not None)
        values = np.full((len(rows), len(columns)), np.nan)
        logged = np.zeros(values.shape, dtype=bool)
        for row, column in np.ndindex(values.shape):
            if (cell := self.cell(columns[column], rows[row])) is not None:
                values[row, column], logged[row, column] = cell.value, cell.logged
        return rows, columns, values, logged

    @functools.cached_property
    def behind(self) -> dict[tuple[int, int], Behind]:
        """By T and N, how far splits of the heatmap lie behind the best of the same budget.

        The best is chosen from the same runs, which favours it. Intervals of logged means are
        Welch's; those of predicted ones hold 95 % of the simulated differences.
        """
        rows, columns, *_ = self.grid
        budgets: dict[int, list[tuple[float, int, int]]] = {}
        for N, T in itertools.product(rows, columns):
            cell = self.cell(T, N)
            if cell is not None and math.isfinite(cell.value):
                budgets.setdefault(T * N, []).append((cell.value, T, N))
        found = {}
        for splits in budgets.values():
            if len(splits) < 2:
                continue
            top, *best = max(splits)
            tied = sum(value == top for value, *_ in splits) > 1
            for value, T, N in splits:
                limits = self._apart((T, N), (best[0], best[1])) if value < top else (0.0, 0.0, "")
                found[T, N] = Behind(
                    value - top, limits[0], limits[1], (best[0], best[1]), limits[2], tied
                )
        return found

    def _apart(self, split: tuple[int, int], best: tuple[int, int]) -> tuple[float, float, str]:
        """Limits of the difference of the means of two splits, or why there are none."""
        logged = [self.depths.get(N, 0) >= T for T, N in (split, best)]
        if not any(logged):
            one, other = (self._simulated(N)[:, :, T].mean(axis=1) for T, N in (split, best))
            low, high = np.quantile(one - other, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            return float(low), float(high), ""
        if not all(logged):
            return math.nan, math.nan, "one of the two was never run"
        one, other = (self._ends(T, N) for T, N in (split, best))
        if min(len(one), len(other)) < LEAST:
            return math.nan, math.nan, f"that takes {LEAST} runs of each"
        half = float(welch_half(one, other, LEVEL))
        value = float(one.mean() - other.mean())
        if not half > 0:
            return math.nan, math.nan, "the runs of each are all alike"
        return value - half, value + half, ""

    def _ends(self, T: int, N: int) -> FloatArray:
        """Best fitness of the runs of N that are so deep."""
        rows = self.strata[N]
        return self.fitness.values[rows, T][self.fitness.depth[rows] >= T]

    def split(self, generations: int, children: int, *, axis: CostAxis, tau: float) -> Split | None:
        """The curves of a split; None if it was not logged and cannot be predicted."""
        found = self._bands(generations, children, tau)
        if found is None:
            return None
        x = self.position(children, axis)
        if x is None:
            raise ValueError(
                f"these logs do not say what a run costs in {axis}; choose another cost axis"
            )
        fitness, reached, costs = found
        at = x[:generations]
        return Split(
            generations=generations,
            children=children,
            fitness=_curve(at, *fitness),
            reached=_curve(at, *reached),
            costs=costs,
        )

    def cell(self, generations: int, children: int) -> SplitValue | None:
        """Mean best fitness of a split; None if it was not logged and cannot be predicted."""
        logged = generations <= self.depths.get(children, 0)
        if not logged and (self.kernel is None or not self.kernel.inside(generations, children)):
            return None
        band = self.logged(children) if logged else self.predicted(children, None)
        value, low, high, n = (float(column[generations]) for column in band)
        return SplitValue(value, low, high, n, logged)

    def _join(self, T: int, N: int, tau: float) -> tuple[_Band, _Band, dict[str, Interval]] | None:
        depth = min(self.depths.get(N, 0), T)
        fitness, reached = [], []
        if depth:
            fitness.append(tuple(column[1 : depth + 1] for column in self.logged(N)))
            reached.append(tuple(column[1 : depth + 1] for column in self._reached(N, tau)))
        if depth < T:
            if self.kernel is None or not self.kernel.inside(T, N):
                return None
            fitness.append(tuple(column[depth + 1 : T + 1] for column in self.predicted(N, None)))
            share = self.predicted(N, tau)
            reached.append(tuple(column[depth + 1 : T + 1] for column in share))
        bands = [
            (*(np.concatenate(parts) for parts in zip(*columns, strict=True)), depth)
            for columns in (fitness, reached)
        ]
        return bands[0], bands[1], self.costs_of(T, N)  # type: ignore[return-value]

    def _average(self, N: int) -> _Columns:
        """Mean best fitness of the runs of N by generation, with interval and n."""
        rows = self.strata[N]
        matrix = self.fitness.values[rows, : self.depths[N] + 1]
        deep = (self.fitness.depth[rows, None] >= np.arange(matrix.shape[1])).sum(axis=0)
        band = curve_band(matrix, statistic="mean", level=LEVEL, bounds=self.fitness.bounds)
        some_lack = band["n"].to_numpy() < deep  # a mean of the others would flatter
        value, low, high = (
            np.where(some_lack, np.nan, band[name].to_numpy(np.float64))
            for name in ("value", "low", "high")
        )
        return value, low, high, deep.astype(np.float64)

    def _count(self, N: int, tau: float) -> _Columns:
        """Share of the runs of N that have reached tau, with its interval."""
        rows = self.strata[N]
        matrix = self.fitness.values[rows, : self.depths[N] + 1]
        deep = self.fitness.depth[rows, None] >= np.arange(matrix.shape[1])
        hits, n = (matrix >= tau).sum(axis=0), deep.sum(axis=0).astype(np.float64)
        return (hits / n, *clopper_pearson(hits, n, LEVEL), n)

    def _simulate(self, N: int) -> NDArray[np.float32]:
        """Best fitness of simulated runs of N, (groups, RUNS, generations + 1)."""
        T = max(1, self.largest // N)
        runs = [
            kernel.simulate(T, N, runs=GROUPS * RUNS, seed=number).astype(np.float32)
            for number, kernel in enumerate(self._kernels)
        ]
        return np.concatenate(runs).reshape(KERNELS * GROUPS, RUNS, T + 1)

    def _predict(self, N: int, tau: float | None) -> _Columns:
        """Mean over simulated runs of best fitness, or of having reached tau, by generation."""
        runs = self._simulated(N) if tau is None else self._simulated(N) >= tau
        groups = runs.mean(axis=1)
        value, n = groups.mean(axis=0), np.full(groups.shape[1], float(RUNS))
        low, high = np.quantile(groups, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        if tau is not None:  # a share of RUNS runs is never a certainty
            value = (RUNS * value + 0.5) / (RUNS + 1)
            least, most = clopper_pearson(RUNS * value, n, LEVEL)
            low, high = np.minimum(low, least), np.maximum(high, most)
        return value, low, high, n

    def _add_up(self, N: int, axis: CostAxis, *, logged: bool = False) -> FloatArray | None:
        """Cost so far after generations 1, 2, ... of N children; `logged`: calls of all kinds."""
        generations = np.arange(1, max(self.depths.get(N, 0), self.largest // N) + 1)
        if axis == "generation":
            return generations.astype(np.float64)
        if axis == "calls" and not logged:
            return np.asarray(generations * float(N), dtype=np.float64)
        if axis not in self.costs:
            return None
        near = N if N in self.strata else min(self.strata, key=lambda M: abs(math.log(M / N)))
        rows = self.costs[axis].values[self.strata[near], : self.depths[near] + 1]
        first, each = np.nan_to_num(rows[:, 0]).mean(), np.nanmean(rows[:, 1:], axis=0) * N / near
        beyond = np.full(max(0, len(generations) - len(each)), each.mean())
        so_far = first + np.cumsum([*each, *beyond][: len(generations)])
        return np.asarray(so_far, dtype=np.float64)

    def costs_of(self, T: int, N: int) -> dict[str, Interval]:
        """Cost of a split by unit, mean over its runs; without interval if not logged.

        That of the initial program counts. Calls are of all kinds, and there if some are not those
        for children.
        """
        found: dict[str, Interval] = {}
        for unit, sweep in self.costs.items():
            if self.depths.get(N, 0) >= T:
                rows = self.strata[N]
                deep = sweep.depth[rows] >= T
                spent = sweep.values[rows][deep, : T + 1]
                total = np.nan_to_num(spent[:, 0]) + spent[:, 1:].sum(axis=1)
                found[unit] = interval(total, level=LEVEL, bounds=sweep.bounds)
            else:
                position = self._add_up(N, unit, logged=True)
                value = math.nan if position is None else float(position[T - 1])
                found[unit] = Interval(
                    value=value, low=math.nan, high=math.nan, n=0, level=LEVEL,
                    statistic="mean",
                )  # fmt: skip
        return found


def _within(rows: slice) -> range:
    return range(rows.start, rows.stop)


_Columns = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
_Band = tuple[FloatArray, FloatArray, FloatArray, FloatArray, int]


def outlook(
    frame: pd.DataFrame, children: pd.DataFrame | None, *, model: str | None = None
) -> Outlook:
    """The splits of the runs of one task, model and search; `model` names the last two."""
    fitness = one_sweep(frame)
    if not fitness.depth.max():
        raise ValueError("no run has a complete generation yet: there is no split to show")
    costs = {unit: one_sweep(frame, COST_COLUMNS[unit]) for unit in known_units(frame)}
    kernel = None
    if children is not None and len(children):
        try:
            kernel = fit_kernel(children)
        except ValueError:  # nothing has a fitness, or it lies beyond 1: nothing to predict from
            kernel = None
    return Outlook(fitness, costs, kernel, model)


def inside(sizes: NDArray[np.int64], depths: NDArray[np.int64], T: int, N: int) -> bool:
    """Whether a split lies inside what was logged, as `Kernel.inside` has it."""
    covered = (sizes >= N) & (depths >= T)
    return bool(covered.sum() >= FEWEST and sizes.min() <= N)


def axes_of(depths: Mapping[int, int], *, predicted: bool) -> tuple[list[int], list[int], int]:
    """Each N and T of the heatmap, and the largest budget in calls.

    T are the powers of two and those at which the runs of some N end; of the latter none but the
    last where there are more than MOST_ENDS.
    """
    largest = max(N * depth for N, depth in depths.items())
    ends = set(depths.values())
    if len(ends) > MOST_ENDS:
        ends = {max(ends)}
    deepest = largest if predicted else max(depths.values())
    powers = {2**k for k in range(deepest.bit_length())}
    rows = {*powers, *depths} if predicted else depths
    return sorted(rows), sorted(powers | ends), largest


def known_units(frame: pd.DataFrame) -> list[CostAxis]:
    """Units in which every run of one task and model states the cost of each generation.

    A model that is not an LLM costs neither FLOPs nor dollars. Calls are among them where some are
    not those for children, as where an evaluation makes calls itself.
    """
    units: list[CostAxis] = ["tokens", "flops", "dollars"]
    known = units[:1] if is_stand_in(frame["model"].iloc[0]) else units
    later = frame[frame["generation"] > 0]
    if "n_calls" in frame:
        children = frame["children"].where(frame["generation"] > 0, 0)
        known = (
            ["calls", *known] if (frame["n_calls"].fillna(children) != children).any() else known
        )
    return [
        unit
        for unit in known
        if COST_COLUMNS[unit] in later and np.isfinite(later[COST_COLUMNS[unit]]).all()
    ]


def _curve(
    x: FloatArray, value: FloatArray, low: FloatArray, high: FloatArray, n: FloatArray, logged: int
) -> BudgetCurve:
    return BudgetCurve(
        x=x, value=value, low=low, high=high, logged=logged, n=int(n[-1]),
        whole=int((n[:logged] == n[0]).sum()), of=int(n[0]),
    )  # fmt: skip
