"""The bilinear fit of the depth-breadth grid and the regime that it implies.

After "Compute Allocation in Evolutionary Search" (arXiv 2605.29268): with V the best fitness after
T generations of N children,

    log(1 - V) = b0 + a log T + b log N + c log T log N.

The regression is plain least squares on each cell's mean over runs of log(1 - V). That makes the
coefficients linear in whole runs, b = sum over N of the mean over its runs of A_N y_run, so that
the bootstrap of whole runs is a weighted mean per run and takes a millisecond, and intervals are
those of a stratified mean. (Least squares' own intervals take cells for independent though those of
equal N share runs; statsmodels would add nothing.) The log of a cell's mean gap is the other
choice; `sensitivity` shows it, and what the ceiling does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from replay.statistics import interval, resampled_rows
from replay.sweep import Cells, FloatArray, IntArray, cells, one_sweep

if TYPE_CHECKING:
    import pandas as pd

Regime = Literal["depth corner", "breadth corner", "interior", "undetermined"]
"""Where the best split of a budget lies: at N = 1, at T = 1, between, or not known."""
REGIMES: tuple[Regime, ...] = get_args(Regime)

NAMES = ("b0", "a", "b", "c")
MODELS = ("budget", "additive", "bilinear")
"""The fit and two smaller ones: b0 + a log(T N), and without the product."""


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """Where the fitted surface is best for one budget.

    Attributes:
        calls: The budget C.
        regime: The most probable regime, or `undetermined` below the asked certainty.
        probabilities: Bootstrap probability of each regime.
        generations: T of the best split on the fitted surface, as a real number.
        children: N, likewise.
        plateau: Least and greatest T that lose at most the asked amount of log(1 - V).
    """

    calls: int
    regime: Regime
    probabilities: dict[str, float]
    generations: float
    children: float
    plateau: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class BilinearFit:
    """A fit of log(1 - V) on log T, log N and their product.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        coefficients: b0, a, b and c, each {"value", "low", "high"}.
        level: Nominal coverage of the intervals.
        scores: One row per model (`budget`, `additive`, `bilinear`): r2 over cells, and r2_cv with
            each N predicted from the others, so that no run serves both sides.
        sensitivity: The fit again per ceiling and per what is averaged: `log` (mean of logs, what
            `coefficients` are) or `gap` (log of the mean gap): b0, a, b, c, r2 and capped, the
            share of values at the ceiling.
        ceiling: Fitness above this counts as this.
        n_cells: Cells that were fitted.
        n_runs: Whole runs that they rest on.
        draws: Bootstrap samples of (b0, a, b, c), (resamples, 4).
    """

    task: str
    model: str
    coefficients: dict[str, dict[str, float]]
    level: float
    scores: pd.DataFrame
    sensitivity: pd.DataFrame
    ceiling: float
    n_cells: int
    n_runs: int
    draws: FloatArray

    @property
    def r2(self) -> float:
        """Share of the variance of cells that the bilinear model explains."""
        return float(self.scores["r2"].loc["bilinear"])

    def __str__(self) -> str:
        """Coefficients with intervals, and R2 beside the smaller models."""
        lines = [
            f"{self.task}, {self.model}: log(1 - V) = b0 + a log T + b log N + c log T log N "
            f"({self.n_cells} cells, {self.n_runs} runs, {self.level:.0%} intervals)"
        ]
        for name, found in self.coefficients.items():
            lines.append(
                f"  {name:<2} {found['value']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}]"
            )
        for row in self.scores.itertuples():
            lines.append(f"  R2 {row.Index:<9} {row.r2:.3f}, each N left out {row.r2_cv:.3f}")
        return "\n".join(lines)

    def predict(self, generations: ArrayLike, children: ArrayLike) -> FloatArray:
        """Fitted V of cells (T, N), vectors of equal length."""
        beta = np.array([self.coefficients[name]["value"] for name in NAMES])
        return predicted_fitness(beta, generations, children)

    def regime_at(self, calls: int, *, certainty: float = 0.7) -> Regime:
        """Regime of a budget of `calls`; see `optimum`."""
        return self.optimum(calls, certainty=certainty).regime

    def optimum(self, calls: int, *, certainty: float = 0.7, loss: float = 0.05) -> Optimum:
        """Where the fitted surface is best for a budget.

        The split is interior if it lies more than half a doubling from both ends, that is, if the
        best power of two is no corner.

        Args:
            calls: The budget C, at least 4 (below, every split is a corner).
            certainty: Bootstrap probability that a regime must have to be named.
            loss: What the plateau may lose, in log(1 - V).

        Raises:
            ValueError: If `calls` is below 4.
        """
        if calls < 4:
            raise ValueError(f"expected a budget of at least 4 calls, got {calls!r}")
        L = math.log(calls)
        beta = np.array([[self.coefficients[name]["value"] for name in NAMES]])
        x = float(_best_log_generations(beta, L)[0])
        drawn = _best_log_generations(self.draws, L)
        interior = (drawn > math.log(2) / 2) & (drawn < L - math.log(2) / 2)
        probabilities = {
            "depth corner": float((~interior & (drawn >= L / 2)).mean()),
            "breadth corner": float((~interior & (drawn < L / 2)).mean()),
            "interior": float(interior.mean()),
        }
        likely = max(REGIMES[:3], key=lambda name: probabilities[name])
        low, high = _plateau(beta[0], L, x, loss)
        return Optimum(
            calls=calls,
            regime=likely if probabilities[likely] >= certainty else "undetermined",
            probabilities=probabilities,
            generations=math.exp(x),
            children=math.exp(L - x),
            plateau=(math.exp(low), math.exp(high)),
        )


def fit_bilinear(
    frame: pd.DataFrame,
    *,
    ceiling: float = 0.9999,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> BilinearFit:
    """Fit the bilinear model to the runs of one task and model.

    Args:
        frame: One row per run and generation, as `replay.load` returns it. Cells in which a run has
            no fitness yet are left out.
        ceiling: Fitness above this, below 1, counts as this: 1 - V must be positive, and log(1 - V)
            of a run that comes within rounding of 1 would outweigh all others.
        level: Nominal coverage of the intervals.
        resamples: Bootstrap samples of whole runs within each N.
        seed: Key of the generator.

    Raises:
        ValueError: If the frame holds several tasks or models, or too few cells to tell the four
            coefficients apart, or the ceiling is not below 1.
    """
    if not ceiling < 1:
        raise ValueError(f"expected a ceiling below 1, such as 0.9999, got {ceiling!r}")
    sweep = one_sweep(frame)
    grid = cells(sweep)
    kept = np.flatnonzero(np.isfinite(grid.means))
    design = _design(grid.generations[kept], grid.children[kept])
    if np.linalg.matrix_rank(design) < len(NAMES):
        found = sorted({(int(grid.generations[k]), int(grid.children[k])) for k in kept})
        raise ValueError(
            "expected cells of at least two T for each of at least two N, in order to tell "
            f"b0, a, b and c apart, got the cells (T, N) {found!r}"
        )
    shares = _run_shares(grid, kept, design, ceiling)
    found_interval = interval(
        shares,
        strata=sweep.children,
        level=level,
        method="studentised",
        resamples=resamples,
        seed=seed,
    )
    target = _targets(grid, kept, ceiling, "log")
    rows = resampled_rows(sweep.children, resamples, seed)
    return BilinearFit(
        task=sweep.task,
        model=sweep.model,
        coefficients={
            name: {"value": float(value), "low": float(low), "high": float(high)}
            for name, value, low, high in zip(
                NAMES, found_interval.value, found_interval.low, found_interval.high, strict=True
            )
        },
        level=level,
        scores=model_scores(grid.generations[kept], grid.children[kept], target),
        sensitivity=_sensitivity(grid, kept, design, ceiling),
        ceiling=ceiling,
        n_cells=len(kept),
        n_runs=len(sweep.runs),
        draws=shares[rows].mean(axis=1),
    )


def predicted_fitness(
    coefficients: FloatArray, generations: ArrayLike, children: ArrayLike
) -> FloatArray:
    """V of cells (T, N) under coefficients (..., 4) in the order of `NAMES`."""
    return np.asarray(1 - np.exp(coefficients @ _design(generations, children).T))


def _design(generations: ArrayLike, children: ArrayLike) -> FloatArray:
    """Columns 1, log T, log N and log T log N, (..., 4)."""
    t, n = np.log(generations), np.log(children)
    return np.stack([np.ones_like(t), t, n, t * n], axis=-1)


def _log_gaps(grid: Cells, kept: IntArray, ceiling: float) -> FloatArray:
    """log(1 - V) of each run in each cell, NaN where the cell lacks that run."""
    return np.asarray(np.log(1 - np.minimum(grid.values[:, kept], ceiling)))


def _targets(grid: Cells, kept: IntArray, ceiling: float, average: str) -> FloatArray:
    """What each cell is fitted to, (cells,): mean of logs (`log`) or log of the mean (`gap`)."""
    logs = _log_gaps(grid, kept, ceiling)
    if average == "log":
        return np.asarray(np.nanmean(logs, axis=0))
    return np.asarray(np.log(np.nanmean(np.exp(logs), axis=0)))


def _run_shares(grid: Cells, kept: IntArray, design: FloatArray, ceiling: float) -> FloatArray:
    """(runs, 4) whose mean over runs is the least-squares fit, each run's share in it."""
    logs = _log_gaps(grid, kept, ceiling)
    present, mean = grid.present[:, kept], np.nanmean(logs, axis=0)
    away = np.where(present, logs - mean, 0.0) / present.sum(axis=0)
    weights = np.linalg.pinv(design)
    shares = np.zeros((len(grid.sweep.runs), len(weights)))
    for N, rows in grid.sweep.strata():
        columns = grid.children[kept] == N
        size = rows.stop - rows.start
        even = mean[columns] / size  # a cell's mean is shared by all runs of its N
        shares[rows] = (even + away[:size, columns]) @ weights[:, columns].T
    return shares * len(shares)


def model_scores(generations: IntArray, children: IntArray, target: FloatArray) -> pd.DataFrame:
    """R2 of each model of `MODELS`, on all cells and with each N left out.

    Args:
        generations: T of each cell, (cells,).
        children: N of each cell, (cells,).
        target: Its log(1 - V), (cells,).

    Returns:
        As `BilinearFit.scores`.
    """
    import pandas as pd

    design = _design(generations, children)
    budget = np.column_stack([design[:, 0], design[:, 1] + design[:, 2]])
    found = {}
    for name, matrix in zip(MODELS, (budget, design[:, :3], design), strict=True):
        predicted = np.empty_like(target)
        for N in np.unique(children):
            out = children == N
            predicted[out] = matrix[out] @ _solve(matrix[~out], target[~out])
        fitted = matrix @ _solve(matrix, target)
        found[name] = {"r2": _r2(target, fitted), "r2_cv": _r2(target, predicted)}
    return pd.DataFrame.from_dict(found, orient="index")


def _sensitivity(grid: Cells, kept: IntArray, design: FloatArray, ceiling: float) -> pd.DataFrame:
    """The fit for other ceilings and the other average."""
    import pandas as pd

    values = grid.values[:, kept]
    rows = []
    for limit in sorted({0.99, 0.999, ceiling, 0.999999}):
        for average in ("log", "gap"):
            target = _targets(grid, kept, limit, average)
            beta = _solve(design, target)
            capped = float((values >= limit).sum() / np.isfinite(values).sum())
            rows.append((limit, average, *beta, _r2(target, design @ beta), capped))
    return pd.DataFrame(rows, columns=["ceiling", "average", *NAMES, "r2", "capped"])


def _solve(design: FloatArray, target: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(design, target)[0])


def _r2(target: FloatArray, fitted: FloatArray) -> float:
    """Share of variance explained; NaN where all cells are equal."""
    total = float(((target - target.mean()) ** 2).sum())
    return 1 - float(((target - fitted) ** 2).sum()) / total if total > 0 else math.nan


def _best_log_generations(beta: FloatArray, L: float) -> FloatArray:
    """Where x = log T in [0, L] makes each row (b0, a, b, c) of `beta` least, (rows,)."""
    _, a, b, c = beta.T
    corner = np.where(a < b, L, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (a - b + c * L) / (2 * c)
    return np.where(c < 0, np.clip(inside, 0, L), corner)


def _plateau(beta: FloatArray, L: float, best: float, loss: float) -> tuple[float, float]:
    """Ends of the stretch of x around `best` that loses at most `loss`; sqrt(loss/|c|) inside."""
    x = np.linspace(0, L, 1001)
    surface = beta[1] * x + beta[2] * (L - x) + beta[3] * x * (L - x)
    at = int(np.abs(x - best).argmin())
    worse = np.flatnonzero(surface > surface[at] + loss)
    below, above = worse[worse < at], worse[worse > at]
    low = x[below[-1] + 1] if len(below) else 0.0
    high = x[above[0] - 1] if len(above) else L
    return float(low), float(high)
