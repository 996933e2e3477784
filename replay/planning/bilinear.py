"""The bilinear fit of the depth-breadth grid and the regime that it implies.

After "Compute Allocation in Evolutionary Search" (arXiv 2605.29268): with V the best fitness after
T generations of N children,

    log(best - V) = b0 + a log T + b log N + c log T log N,   best = 1 on the unit scale.

The regression is plain least squares on each cell's mean over runs of log(best - V). That makes the
coefficients linear in whole runs, so that their covariance over whole runs within each N is exact,
and their intervals are Student's with Satterthwaite's degrees of freedom. (Least squares' own
intervals take cells for independent though those of equal N share runs.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from replay.logs.given import check_loaded
from replay.planning.depth import explained
from replay.planning.grid import (
    FloatArray,
    IntArray,
    SplitCells,
    best_known,
    cells,
    log_gaps,
    one_sweep,
)
from replay.statistics.intervals import student
from replay.statistics.levels import check_level
from replay.statistics.numbers import with_limits

Regime = Literal["depth corner", "breadth corner", "interior", "undetermined"]
"""Where the best split of a budget lies: at N = 1, at T = 1, between, or not known."""
REGIME_NAMES: tuple[Regime, ...] = get_args(Regime)

NAMES = ("b0", "a", "b", "c")
HALF_DOUBLING = math.log(2) / 2
_FLAT = 1e-9  # a surface that varies less than this in log(best - V) has no optimum


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best split of one budget on the fitted surface.

    Attributes:
        calls: The budget C.
        regime: The most probable regime, or `undetermined` below the asked certainty.
        probabilities: Probability of each regime; NaN where runs are too few to say.
        generations: T of the best split on the fitted surface, as a real number.
        children: N, likewise.
        plateau: Least and greatest T that lose at most the asked amount of log(best - V).
    """

    calls: int
    regime: Regime
    probabilities: dict[str, float]
    generations: float
    children: float
    plateau: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class BilinearFit:
    """A fit of log(best - V) on log T, log N and their product.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        coefficients: b0, a, b and c, each {"value", "low", "high"}; low and high are NaN where
            the fit needs a cell that a single run reaches.
        level: Nominal coverage of the intervals.
        r2: Share of the variance of cells that the fit explains.
        best: The best known fitness.
        ceiling: See `fit_bilinear`.
        n_cells: Cells that were fitted.
        n_without: Cells left out because one of their runs has no fitness yet.
        n_single: Cells that a single run reaches. They are left out; where the fit needs them,
            there are no intervals.
        n_runs: Whole runs that they rest on.
        draws: Draws of (b0, a, b, c) around the fit, (resamples, 4); none without intervals.
    """

    task: str
    model: str
    coefficients: dict[str, dict[str, float]]
    level: float
    r2: float
    best: float
    ceiling: float
    n_cells: int
    n_without: int
    n_single: int
    n_runs: int
    draws: FloatArray

    def __str__(self) -> str:
        """Coefficients with intervals, and R2."""
        lines = [
            f"{self.task}, {self.model}: log({self.best:g} - V) = b0 + a log T + b log N + "
            f"c log T log N ({self.n_cells} cells, {self.n_runs} runs, nominal "
            f"{100 * self.level:g} % intervals)"
        ]
        for name, found in self.coefficients.items():
            sure = f"{found['value']:+.4f}"
            if len(self.draws):
                sure = with_limits(found["value"], found["low"], found["high"], "{:+.4f}".format)
            lines.append(f"  {name:<2} {sure}")
        if not len(self.draws):
            lines.append(
                f"  no intervals: {self.n_single} of the cells are reached by a single run, and "
                "the fit needs them; a second run of these N, as deep as the first, gives intervals"
            )
        elif self.n_single:
            lines.append(f"  {self.n_single} cells left out, as a single run reaches them")
        if self.n_without:
            lines.append(f"  {self.n_without} cells left out, as a run has no fitness there")
        return "\n".join([*lines, f"  R2 {self.r2:.3f}"])

    __repr__ = __str__

    def predict(self, generations: ArrayLike, children: ArrayLike) -> FloatArray:
        """Fitted V of cells (T, N), vectors of equal length."""
        beta = np.array([self.coefficients[name]["value"] for name in NAMES])
        return np.asarray(self.best - np.exp(_design(generations, children) @ beta))

    def regime_at(self, calls: int, *, certainty: float = 0.7) -> Regime:
        """Regime of a budget of `calls`; see `optimum`."""
        return self.optimum(calls, certainty=certainty).regime

    def optimum(self, calls: int, *, certainty: float = 0.7, loss: float = 0.05) -> Optimum:
        """Returns the best split of a budget on the fitted surface.

        The split is interior if it lies more than half a doubling from both ends, that is, if the
        best power of two is no corner. A surface without slope counts for each regime alike.

        Args:
            calls: The budget C, at least 4 (below, every split is a corner).
            certainty: Probability that a regime must have to be named.
            loss: What the plateau may lose, in log(best - V).

        Raises:
            ValueError: If `calls` is below 4.
        """
        if calls < 4:
            raise ValueError(f"expected a budget of at least 4 calls, got {calls!r}")
        L = math.log(calls)
        beta = np.array([[self.coefficients[name]["value"] for name in NAMES]])
        x = float(_best_log_generations(beta, L)[0])
        found = _best_log_generations(self.draws, L)
        flat = (np.abs(self.draws[:, 1:]) * [L, L, L**2]).sum(axis=1) < _FLAT
        interior = (found > HALF_DOUBLING) & (found < L - HALF_DOUBLING)
        deep = ~interior & (found >= L / 2)
        shares = [np.where(flat, 1 / 3, kind) for kind in (deep, ~interior & ~deep, interior)]
        probabilities: dict[str, float] = {
            name: float(share.mean()) if len(share) else math.nan
            for name, share in zip(REGIME_NAMES, shares, strict=False)
        }
        likely = max(REGIME_NAMES[:3], key=lambda name: probabilities[name])
        low, high = _plateau(beta[0], L, x, loss)
        return Optimum(
            calls=calls, probabilities=probabilities,
            regime=likely if probabilities[likely] >= certainty else "undetermined",
            generations=math.exp(x), children=math.exp(L - x),
            plateau=(math.exp(low), math.exp(high)),
        )  # fmt: skip


def fit_bilinear(
    frame: pd.DataFrame,
    *,
    best: float | None = None,
    ceiling: float = 0.9999,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> BilinearFit:
    """Fit the bilinear model to the runs of one task and model.

    Args:
        frame: One row per run and generation, as `replay.load` returns it. Cells in which a run has
            no fitness yet are left out.
        best: The best known fitness of the task, on the scale of the frame; None: 1, where that is
            not far from what was reached (`replay.planning.grid.best_known`).
        ceiling: Fitness counts as at most this share, below 1, of the way from the lowest fitness
            to the best: best - V must be positive, and log(best - V) of a run that comes within
            rounding of the best would outweigh all others.
        level: Nominal coverage of the intervals.
        resamples: Draws of the coefficients from which regimes get their probabilities.
        seed: Key of the generator.

    Raises:
        ValueError: If the frame holds several tasks or models, or too few cells to tell the four
            coefficients apart, or the ceiling is not below 1, or `best` is not the best.

    Example:
        >>> fit = replay.fit_bilinear(frame, best=1.0, resamples=100)
        >>> sorted(fit.coefficients)
        ['a', 'b', 'b0', 'c']
    """
    check_loaded("fit_bilinear", frame, "replay.load")
    check_level(level)
    if not ceiling < 1:
        raise ValueError(f"expected a ceiling below 1, such as 0.9999, got {ceiling!r}")
    sweep = one_sweep(frame)
    grid = cells(sweep)
    complete = np.flatnonzero(np.isfinite(grid.means))
    several = complete[grid.counts[complete] >= 2]
    # A cell that one run reaches has no spread of its own: it is left out if the fit can do so.
    kept = several if _identified(grid, several) else complete
    design = _design(grid.generations[kept], grid.children[kept])
    if not _identified(grid, kept):
        found = sorted({(int(grid.generations[k]), int(grid.children[k])) for k in kept})
        raise ValueError(
            "expected cells of at least two T for each of at least two N, in order to tell "
            f"b0, a, b and c apart, got the cells (T, N) {found!r}"
        )
    values, lowest = grid.values[:, kept], float(np.nanmin(sweep.values))
    known = values[~np.isnan(values)]
    best = best_known(best, lowest, float(known.max()))
    if not lowest < best or np.mean(known >= best) > 0.5:
        raise ValueError(
            f"expected best= to be the best known fitness, above most of what was reached, got "
            f"{best!r} where runs reach {known.min():g} to {known.max():g}; pass best= of this "
            "task (--best)"
        )
    logs = log_gaps(values, best, ceiling, lowest)
    beta, covariance, freedom = _fit(grid, kept, design, logs)
    half = np.full(len(NAMES), np.nan)
    draws = np.empty((0, len(NAMES)))
    if freedom is not None:
        half = student(level, freedom) * np.sqrt(np.diag(covariance))
        rng = np.random.default_rng([seed, len(sweep.runs)])
        spread = np.sqrt(freedom.min() / rng.chisquare(freedom.min(), (resamples, 1)))
        normal = rng.multivariate_normal(np.zeros(len(NAMES)), covariance, resamples, method="svd")
        draws = beta + normal * spread
    coefficients = {
        name: {"value": float(value), "low": float(value - away), "high": float(value + away)}
        for name, value, away in zip(NAMES, beta, half, strict=True)
    }
    return BilinearFit(
        task=sweep.task, model=sweep.model, coefficients=coefficients, level=level, best=best,
        r2=explained(np.nanmean(logs, axis=0), design @ beta, least=_FLAT**2),
        ceiling=ceiling, n_cells=len(kept),
        n_without=int(np.isneginf(grid.values).any(axis=0).sum()),
        n_single=len(complete) - len(several), n_runs=len(sweep.runs),
        draws=draws,
    )  # fmt: skip


def _design(generations: ArrayLike, children: ArrayLike) -> FloatArray:
    """Columns 1, log T, log N and log T log N, (..., 4)."""
    t, n = np.log(generations), np.log(children)
    return np.stack([np.ones_like(t), t, n, t * n], axis=-1)


def _identified(grid: SplitCells, kept: IntArray) -> bool:
    """Whether some cells tell the four coefficients apart."""
    design = _design(grid.generations[kept], grid.children[kept])
    return bool(kept.size and np.linalg.matrix_rank(design) == len(NAMES))


def _fit(
    grid: SplitCells, kept: IntArray, design: FloatArray, logs: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Least squares on the cells' means, its covariance over whole runs, and degrees of freedom.

    The covariance is the sum over N of that of a sum of its runs' shares: run i moves a cell that
    n runs reach by (y_i - mean) / n. There are no degrees of freedom where a cell has one run.
    """
    weights, count, mean = np.linalg.pinv(design), grid.counts[kept], np.nanmean(logs, axis=0)
    away = np.nan_to_num((logs - mean) / np.sqrt(count * np.maximum(count - 1, 1)))
    parts, freedom = [], []
    for N, rows in grid.sweep.strata():
        columns = grid.children[kept] == N
        shares = away[: rows.stop - rows.start, columns] @ weights[:, columns].T
        parts.append(shares.T @ shares)
        freedom.append(count[columns].min(initial=rows.stop - rows.start) - 1)
    covariance = np.sum(parts, axis=0)
    if count.min() < 2:
        return weights @ mean, covariance, None
    each = np.array([np.diag(part) for part in parts])
    squares = (each**2 / np.maximum(freedom, 1)[:, None]).sum(axis=0)
    everything = np.full(len(NAMES), float(sum(freedom)))
    satterthwaite = np.divide(each.sum(axis=0) ** 2, squares, out=everything, where=squares > 0)
    return weights @ mean, covariance, satterthwaite


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
