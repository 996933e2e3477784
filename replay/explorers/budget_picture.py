"""The budget explorer's picture as a figure: a heatmap of splits, and the curves of three."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from replay.explorers.budget_arrays import cost_limits, fitness_limits
from replay.explorers.budget_data import NAMES, UNITS, BudgetCurve, Split
from replay.explorers.budget_view import BudgetView
from replay.plots import style
from replay.plots.shapes import cell_frame, draw_heat, place
from replay.plots.style import PALETTE, TEXT_SIZE, THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

COLOURS = (PALETTE[1], PALETTE[0], PALETTE[2])
RUNS = (PALETTE[4], PALETTE[3], PALETTE[5])
"""Colours of runs that are drawn one by one."""
_POINTS = 90  # most points of a curve


def draw_budget(view: BudgetView, theme: Theme) -> Figure:
    """Draw a heatmap on the left, fitness and the probability to reach tau on the right."""
    figure = style.blank(9.0, 5.4)
    parts = figure.subplot_mosaic([["map", "fitness"], ["map", "reached"]])
    heat, fitness, reached = (style.prepare(ax, theme) for ax in parts.values())
    _draw_map(heat, view, theme)
    low, high = fitness_limits(view.outlook)
    ends = [float(run.value[-1]) for run in view.runs if run.value[-1] > high]
    high = max([high, *(end + 0.03 * (high - low) for end in ends)])
    for ax in (fitness, reached):
        style.ratios(ax, *cost_limits(view.outlook, view.axis, view.outlook.grid[0]))
    fitness.set_ylim(low, high)
    fitness.tick_params(labelbottom=False)
    reached.set_ylim(-0.02, 1.02)
    for k in (2, 1, 0):  # the choice on top
        if (split := view.splits[k]) is not None:
            _draw_curve(fitness, split.fitness, COLOURS[k])
            _draw_curve(reached, split.reached, COLOURS[k])
    for k, run in enumerate(view.runs):
        at, colour = _thinned(len(run.x)), RUNS[k % len(RUNS)]
        fitness.plot(run.x[at], run.value[at], color=colour, lw=1.2, label=run.run)
    style.label_axes(fitness, theme, x="", y="best fitness")
    cost = UNITS[view.axis] if view.axis == "generation" else f"{UNITS[view.axis]} so far"
    style.label_axes(reached, theme, x=cost, y="share of runs at τ")
    about = f"mean, {view.outlook.interval} over runs; dashed: predicted"
    style.head(fitness, theme, "Best fitness so far", about)
    style.head(reached, theme, "Probability to reach τ", "")
    style.legend_of(reached, theme, list(zip(NAMES, COLOURS, strict=True)), loc="upper left")
    _draw_tau(fitness, view, theme)
    return figure


def _draw_map(ax: Axes, view: BudgetView, theme: Theme) -> None:
    from matplotlib.patheffects import withStroke

    rows, columns, values, logged = view.outlook.grid
    predicted = np.isfinite(values) & ~logged
    draw_heat(
        ax, theme, values, ticks=(rows, columns), label="mean best fitness", predicted=predicted
    )
    about = "dotted: splits of the same budget" + (
        "; round: never run, predicted" if predicted.any() else ""
    )
    style.head(ax, theme, f"{view.outlook.fitness.task}, {view.outlook.fitness.model}", about)
    chosen = view.splits[0]
    assert chosen is not None
    x, y = _budget_cells(view, chosen.generations * chosen.children)
    [line] = ax.plot(x, y, color="white", lw=1.0, ls=":")
    line.set_path_effects([withStroke(linewidth=2.0, foreground="#222222")])
    for k in (2, 1, 0):
        if (split := view.splits[k]) is not None:
            at = place(columns, split.generations), place(rows, split.children)
            ax.add_patch(cell_frame(*at, COLOURS[k], 1.8 if k else 3.2))


def _draw_curve(ax: Axes, curve: BudgetCurve, colour: str) -> None:
    """A curve: logged with a band, predicted dashed between dotted limits."""
    at = _thinned(curve.logged)
    rest = curve.logged + _thinned(len(curve.x) - curve.logged)
    ax.fill_between(curve.x[at], curve.low[at], curve.high[at], color=colour, alpha=0.18, lw=0)
    ax.plot(curve.x[at], curve.value[at], color=colour, lw=2.0)
    ax.plot(curve.x[rest], curve.value[rest], color=colour, lw=1.6, ls=(0, (4, 2)))
    for limit in (curve.low, curve.high):
        ax.plot(curve.x[rest], limit[rest], color=colour, lw=1.0, ls=(0, (1, 1.5)))
    low, high = ax.get_ylim()
    below = curve.value[-1] < low  # the axis is for what is usual: point at it
    ax.plot(
        curve.x[-1:], [low + 0.03 * (high - low) if below else curve.value[-1]], color=colour,
        marker="v" if below else "o", ms=5, ls="", mfc="none" if len(rest) else colour,
    )  # fmt: skip


def _draw_tau(ax: Axes, view: BudgetView, theme: Theme) -> None:
    """The fitness to reach, and what is chosen."""
    ink = THEMES[theme].text
    chosen = view.splits[0]
    assert chosen is not None
    ax.text(
        0.98, 0.08, _label(chosen), transform=ax.transAxes, ha="right", va="center", color=ink,
        fontsize=TEXT_SIZE, fontweight="bold",
    )  # fmt: skip
    low, high = ax.get_ylim()
    if low <= view.tau <= high:
        ax.axhline(view.tau, color=ink, lw=0.8, ls=(0, (1, 2)))
        ax.text(
            0.01, view.tau, f"τ = {view.tau:g}", transform=ax.get_yaxis_transform(), va="bottom",
            color=ink, fontsize=TEXT_SIZE - 0.5,
        )  # fmt: skip


def _thinned(count: int) -> NDArray[np.int64]:
    """Some of `count` indices, evenly spread on a logarithmic scale, the ends among them."""
    if count <= _POINTS:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, _POINTS).astype(np.int64)) - 1


def _label(split: Split) -> str:
    kind = "" if split.logged else " (predicted)"
    return f"T = {split.generations}, N = {split.children}{kind}"


def _budget_cells(view: BudgetView, calls: int) -> tuple[list[float], list[float]]:
    """Frames around the cells of a budget on the heatmap."""
    x, y = [], []
    rows, columns, *_ = view.outlook.grid
    for row, N in enumerate(rows):
        if calls % N == 0 and calls // N in columns:
            column = columns.index(calls // N)
            x += [column + d for d in (-0.43, 0.43, 0.43, -0.43, -0.43, math.nan)]
            y += [row + d for d in (-0.43, -0.43, 0.43, 0.43, -0.43, math.nan)]
    return x, y
