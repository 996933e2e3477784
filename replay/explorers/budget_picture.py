"""The budget explorer's charts for paper: a heatmap of splits, and the curves of three."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from replay.explorers.budget_arrays import cost_limits, fitness_limits
from replay.explorers.budget_data import MAPS, NAMES, UNITS, BudgetCurve, Split
from replay.explorers.budget_values import behind_in_cell
from replay.explorers.budget_view import BudgetView
from replay.plots.chart import Chart
from replay.plots.marks import Label, Line, Mark, Points, Rule, Shape, Spans
from replay.plots.medium import REFERENCE
from replay.plots.panel import Axis, Panel
from replay.plots.shapes import heat, place
from replay.plots.style import PALETTE, Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

COLOURS = (PALETTE[1], PALETTE[0], PALETTE[2])
BEHIND = "0: the best of its budget, chosen from the same runs, which favours it"
RUNS = (PALETTE[4], PALETTE[3], PALETTE[5])
"""Colours of runs that are drawn one by one."""
HEIGHT = 110.0
"""Pixels of a panel of curves; two of them stand beside the map."""

_POINTS = 90  # most points of a curve


def draw_budget(view: BudgetView, theme: Theme) -> Figure:
    """Draws a heatmap on the left, fitness and the probability to reach tau on the right."""
    return Chart(panels=[_map(view), *_curves(view)], columns=2).figure(theme, width=9.0)


def _map(view: BudgetView) -> Panel:
    """The mean of each split, with frames around three of them."""
    rows, columns, values, logged = view.outlook.grid
    predicted = np.isfinite(values) & ~logged
    notes = ["dotted: splits of the same budget"] if len(rows) > 1 else []
    notes += ["round: never run, predicted"] if predicted.any() else []
    about = "; ".join(notes)
    known = [[view.outlook.cell(T, N) for T in columns] for N in rows]
    texts = [
        ["" if cell is None else cell.words(T, N) for T, cell in zip(columns, row, strict=True)]
        for N, row in zip(rows, known, strict=True)
    ]
    written: bool | list[list[str]] = True
    if view.map == "behind":
        found = [[view.outlook.behind.get((T, N)) for T in columns] for N in rows]
        values = np.array([[math.nan if b is None else b.value for b in row] for row in found])
        texts = [["" if b is None else b.words() for b in row] for row in found]
        written = [[behind_in_cell(value) for value in row] for row in values.tolist()]
        about = BEHIND
    panel = heat(
        values, ticks=(rows, columns), label=MAPS[view.map], texts=texts, predicted=predicted,
        written=written,
    )  # fmt: skip
    chosen = view.splits[0]
    assert chosen is not None
    x, y = _budget_cells(view, chosen.generations * chosen.children)
    marks: list[Mark] = [
        Line(x=x, y=y, color="#222222", width=2.6, dash="1.5 2", hover=False),
        Line(x=x, y=y, color="#ffffff", width=1.4, dash="1.5 2", hover=False),
    ]
    for k in (2, 1, 0):
        if (split := view.splits[k]) is not None:
            column, row = place(columns, split.generations), place(rows, split.children)
            marks.append(
                Spans(
                    x0=[column - 0.43], x1=[column + 0.43], y0=[row - 0.43], y1=[row + 0.43],
                    color=COLOURS[k], frame=2.5 if k else 4.4,
                )
            )  # fmt: skip
    title = f"{view.outlook.fitness.task}, {view.outlook.model}"
    return replace(panel, title=title, about=about, marks=[*panel.marks, *marks], rows=2)


def _curves(view: BudgetView) -> list[Panel]:
    """Fitness and the probability to reach tau, against cost."""
    low, high = fitness_limits(view.outlook)
    last = [float(run.value[-1]) for run in view.runs if run.value[-1] > high]
    high = max([high, *(end + 0.03 * (high - low) for end in last)])
    cost = UNITS[view.axis] if view.axis == "generation" else f"{UNITS[view.axis]} so far"
    domain = cost_limits(view.outlook, view.axis, view.outlook.grid[0])
    fitness: list[Mark] = []
    reached: list[Mark] = []
    for k in (2, 1, 0):  # the choice on top
        if (split := view.splits[k]) is not None:
            fitness += _marks(split.fitness, COLOURS[k], low + 0.03 * (high - low), "")
            reached += _marks(split.reached, COLOURS[k], -1.0, f"{NAMES[k]}: {_label(split)}")
    for k, run in enumerate(view.runs):
        at = _thinned(len(run.x))
        color = RUNS[k % len(RUNS)]
        fitness.append(Line(x=run.x[at], y=run.value[at], color=color, width=1.7, label=run.run))
    if low <= view.tau <= high:
        fitness.append(Rule(y=view.tau, dash=REFERENCE))
        fitness.append(Label(x=domain[0], y=view.tau, text=f"τ = {view.tau:g}", dx=4, dy=-4))
    return [
        Panel(
            title="Best fitness so far", about=view.outlook.about, marks=fitness, height=HEIGHT,
            x=Axis(domain=domain, scale="log"), y=Axis(domain=(low, high), label="best fitness"),
        ),
        Panel(
            title="Probability to reach τ", marks=reached, legend=True, height=HEIGHT,
            x=Axis(domain=domain, scale="log", label=cost),
            y=Axis(domain=(-0.02, 1.02), label="share of runs at τ"),
        ),
    ]  # fmt: skip


def _marks(curve: BudgetCurve, color: str, foot: float, label: str) -> list[Mark]:
    """A curve: logged with a band, predicted dashed between dotted limits.

    It is thin where only some of the runs go on.
    """
    whole, some = _thinned(curve.whole), curve.whole + _thinned(curve.logged - curve.whole)
    rest = curve.logged + _thinned(len(curve.x) - curve.logged)
    parts = [(whole, 2.8, label)]
    parts += [(np.append(whole[-1:], some), 1.2, "")] if some.size else []
    marks: list[Mark] = [
        Line(
            x=curve.x[at], y=curve.value[at], low=curve.low[at], high=curve.high[at], color=color,
            width=width, label=name,
        )
        for at, width, name in parts
    ]  # fmt: skip
    marks.append(Line(x=curve.x[rest], y=curve.value[rest], color=color, width=2.2, dash="6 3"))
    for limit in (curve.low, curve.high):
        marks.append(
            Line(x=curve.x[rest], y=limit[rest], color=color, width=1.4, dash="1.5 2", hover=False)
        )
    below = curve.value[-1] < foot  # the axis is for what is usual: point at it
    end = foot if below else float(curve.value[-1])
    shape: Shape = "below" if below else "ring" if curve.logged < len(curve.x) else "dot"
    marks.append(Points(x=curve.x[-1:], y=[end], color=color, size=3.5, shape=shape))
    return marks


def _thinned(count: int) -> NDArray[np.int64]:
    """Some of `count` indices, evenly spread on a logarithmic scale, the ends among them."""
    if count <= _POINTS:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, _POINTS).astype(np.int64)) - 1


def _label(split: Split) -> str:
    kind = "" if split.logged else " (predicted)"
    return f"T = {split.generations}, N = {split.children}{kind}"


def _budget_cells(view: BudgetView, calls: int) -> tuple[list[float], list[float]]:
    """Frames around the cells of a budget on the heatmap that have no frame of their own."""
    x, y = [], []
    framed = {(each.generations, each.children) for each in view.splits if each is not None}
    rows, columns, *_ = view.outlook.grid
    for row, N in enumerate(rows):
        if calls % N == 0 and calls // N in columns and (calls // N, N) not in framed:
            column = columns.index(calls // N)
            x += [column + d for d in (-0.43, 0.43, 0.43, -0.43, -0.43, math.nan)]
            y += [row + d for d in (-0.43, -0.43, 0.43, 0.43, -0.43, math.nan)]
    return x, y
