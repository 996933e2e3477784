"""The envelope: the best that a sweep reached within a budget, on any axis of cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from replay.grid import choose_left_out, mean_interval
from replay.sweep import Cells, FloatArray, cells, sweeps
from replay.table import COSTS

if TYPE_CHECKING:
    import pandas as pd

Axis = Literal["calls", "tokens", "flops", "dollars", "seconds"]
"""What a budget is counted in; tokens are those of prompts, cached or not, and completions."""
AXES: tuple[Axis, ...] = get_args(Axis)

_POINTS = ("cost", "maximum", "generations", "children", "splits", "value", "low", "high", "n")


@dataclass(frozen=True)
class Envelope:
    """Best-in-sweep fitness against a cost.

    Attributes:
        axis: One of `AXES`.
        points: One row per task, model and cost at which a better cell comes within reach: cost
            (mean over the cell's runs), maximum (largest cell mean within that cost: the usual
            envelope, which flatters), generations and children (its cell), splits (how many cells
            it was chosen from), value (of the cell chosen on all runs but one, on that one), low,
            high (interval of value), n.
        collapse: One row per task: r2 of one curve for all models, log(1 - maximum) quadratic in
            log cost, models, points.
        level: Nominal coverage of the intervals.
    """

    axis: Axis
    points: pd.DataFrame
    collapse: pd.DataFrame
    level: float

    def __str__(self) -> str:
        """Last point of each envelope, and how far one curve fits all models."""
        last = self.points.groupby(["task", "model"], sort=False).tail(1)
        lines = [f"best in sweep within a number of {self.axis} ({self.level:.0%} intervals)"]
        for row in last.itertuples():
            lines.append(
                f"  {row.task}, {row.model}: {row.maximum:.4f} at {row.cost:.4g} {self.axis}, the "
                f"best of {row.splits} cells; {row.value:.4f} [{row.low:.4f}, {row.high:.4f}] on "
                f"runs left out, n = {row.n}"
            )
        for row in self.collapse.itertuples():
            lines.append(f"  {row.task}: one curve for {row.models} models, R2 {row.r2:.3f}")
        return "\n".join(lines)


def envelope(
    frame: pd.DataFrame,
    *,
    axis: Axis = "calls",
    level: float = 0.95,
    ceiling: float = 0.9999,
    seed: int = 0,
) -> Envelope:
    """Best-in-sweep fitness of each model against what it cost.

    Args:
        frame: One row per run and generation, as `replay.load` returns it.
        axis: What the cost is counted in. Every run must know it: unknown costs are not zero.
        level: Nominal coverage of the intervals.
        ceiling: Fitness above this counts as this where the collapse takes log(1 - fitness).
        seed: Key of the generator.

    Raises:
        ValueError: If the axis is unknown, or no model's runs know their cost on it.
    """
    import pandas as pd

    if axis not in AXES:
        raise ValueError(f"expected an axis among {AXES!r}, got {axis!r}")
    tables = []
    for fitness, cost in zip(sweeps(frame), sweeps(frame, COSTS[axis]), strict=True):
        total = cost.values.copy()
        total[:, 0] = 0.0  # the initial program needs no call
        means = cells(replace(cost, values=total.cumsum(axis=1))).means
        if np.isfinite(means).any():
            points = _points(cells(fitness), means, level, seed)
            points.insert(0, "task", fitness.task)
            points.insert(1, "model", fitness.model)
            tables.append(points)
    if not tables:
        raise ValueError(
            f"no run here knows its {axis}; axes that are known: {_known(frame)!r}. FLOPs need the "
            "model's active parameters, dollars its prices"
        )
    joined = pd.concat(tables, ignore_index=True)
    rows = [
        (task, _collapse(part, ceiling), part["model"].nunique(), len(part))
        for task, part in joined.groupby("task", sort=False)
    ]
    collapse = pd.DataFrame(rows, columns=["task", "r2", "models", "points"])
    return Envelope(axis, joined, collapse, level)


def _points(grid: Cells, cost: FloatArray, level: float, seed: int) -> pd.DataFrame:
    """The envelope's points for one task and model, `cost` (cells,)."""
    import pandas as pd

    means = grid.means
    known = np.flatnonzero(np.isfinite(means) & np.isfinite(cost))
    known = known[np.argsort(cost[known], kind="stable")]
    highest = np.maximum.accumulate(means[known])
    last = np.flatnonzero(np.diff(cost[known], append=np.inf) > 0)  # of the cells of each cost
    rows = []
    for at in last[np.diff(highest[last], prepend=-np.inf) > 0]:
        among = known[: at + 1]
        _, held = choose_left_out(grid, among)
        value, low, high, n = mean_interval(held, level, seed)
        top = among[means[among].argmax()]
        split = (grid.generations[top], grid.children[top])
        rows.append((cost[known[at]], highest[at], *split, len(among), value, low, high, n))
    return pd.DataFrame(rows, columns=_POINTS)


def _collapse(points: pd.DataFrame, ceiling: float) -> float:
    """R2 of log(1 - maximum) on a quadratic in log cost; NaN with fewer than four points."""
    if len(points) < 4:
        return float("nan")
    target = np.log(1 - np.minimum(points["maximum"].to_numpy(np.float64), ceiling))
    x = np.log(points["cost"].to_numpy(np.float64))
    fitted = np.polynomial.Polynomial.fit(x, target, deg=2)(x)
    total = float(((target - target.mean()) ** 2).sum())
    return 1 - float(((target - fitted) ** 2).sum()) / total if total > 0 else float("nan")


def _known(frame: pd.DataFrame) -> list[str]:
    """Axes that some run of the frame knows."""
    later = frame[frame["generation"] > 0]
    return [
        axis for axis, column in COSTS.items() if column in later and later[column].notna().any()
    ]
