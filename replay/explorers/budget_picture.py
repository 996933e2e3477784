"""The picture of the budget explorer: a heatmap of splits and the curves of three of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from replay.explorers.budget_data import (
    NAMES,
    UNITS,
    BudgetCurve,
    BudgetView,
    CostAxis,
    Outlook,
    Split,
)
from replay.planning.grid import FloatArray
from replay.plots import style
from replay.plots.hits import Hits, Mark
from replay.plots.shapes import cell_frame, draw_heat, place
from replay.plots.style import PALETTE, TEXT_SIZE, THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from numpy.typing import NDArray

COLOURS = (PALETTE[1], PALETTE[0], PALETTE[2])
_POINTS = 90  # most points of a curve


class BudgetPicture:
    """Heatmap on the left, fitness and the probability to reach tau on the right."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.figure = style.blank(9.0, 5.4)
        parts = self.figure.subplot_mosaic([["map", "fitness"], ["map", "reached"]])
        self._axes = self._map, self._fitness, self._reached = tuple(parts.values())
        self._bar: Colorbar | None = None
        self._shown: tuple[object, ...] = ()
        self.seldom: Sequence[Artist] = ()
        self.moving: Sequence[Artist] = ()

    def fresh(self, view: BudgetView) -> bool:
        """Whether it is of another task, model or cost axis, or now predicted."""
        return (view.outlook, view.axis) != self._shown

    def show(self, view: BudgetView) -> bool:
        """Show a view; for a fresh one the axes are set up anew."""
        fresh = self.fresh(view)
        if fresh:
            self._shown = view.outlook, view.axis
            self._set_up(view)
        chosen = view.splits[0]
        assert chosen is not None
        self._line.set_data(*_budget_cells(view.outlook, chosen.generations * chosen.children))
        for k, (fitness, reached) in enumerate(self._curves):
            split = view.splits[k]
            self._frames[k].set_visible(split is not None)
            if split is not None:
                at = place(self._columns, split.generations), place(self._rows, split.children)
                self._frames[k].set_xy((at[0] - 0.43, at[1] - 0.43))
            fitness.show(split.fitness if split else None)
            reached.show(split.reached if split else None)
        self._label.set_text(_label(chosen))
        self._tau.set_ydata([view.tau, view.tau])
        self._tau_label.set_y(view.tau)
        self._tau_label.set_text(f"τ = {view.tau:g}")
        self._tau_label.set_visible(self._low <= view.tau <= self._high)
        return fresh

    def hits(self, view: BudgetView) -> Hits:
        """Cells that a click chooses, and the curves."""
        found = Hits(zoom=[self._fitness, self._reached])
        for (row, N), (column, T) in itertools.product(
            enumerate(self._rows), enumerate(self._columns)
        ):
            if (cell := view.outlook.cell(T, N)) is not None:
                box = (column - 0.5, row - 0.5, column + 0.5, row + 0.5)
                key = (("generations", T), ("children", N), ("calls", T * N))
                found.marks.append(Mark(self._map, box, cell.words(T, N), key))
        for name, split in zip(NAMES, view.splits, strict=True):
            if split is not None:
                curves = ((self._fitness, split.fitness), (self._reached, split.reached))
                found.curves += [each.hit(ax, f"{name}: ") for ax, each in curves]
        return found

    def _set_up(self, view: BudgetView) -> None:
        from matplotlib.patheffects import withStroke

        ink = THEMES[self.theme]
        for ax in self._axes:
            if self.moving:
                ax.clear()
            style.prepare(ax, self.theme)
        self._rows, self._columns, values, logged = view.outlook.grid
        self._draw_map(view, np.isfinite(values) & ~logged)
        self._low, self._high = _fitness_limits(view.outlook)
        left, right = _cost_limits(view.outlook, view.axis, self._rows)
        for ax in (self._fitness, self._reached):
            style.ratios(ax, left, right)
        self._fitness.set_ylim(self._low, self._high)
        self._fitness.tick_params(labelbottom=False)
        self._reached.set_ylim(-0.02, 1.02)
        style.label_axes(self._fitness, self.theme, x="", y="best fitness")
        cost = UNITS[view.axis] if view.axis == "generation" else f"{UNITS[view.axis]} so far"
        style.label_axes(self._reached, self.theme, x=cost, y="share of runs at τ")
        style.head(
            self._fitness,
            self.theme,
            "Best fitness so far",
            f"mean, {view.outlook.interval} over runs; dashed: predicted",
        )
        style.head(self._reached, self.theme, "Probability to reach τ", "")
        moving: list[Artist] = []
        self._curves: list[tuple[_Drawn, _Drawn]] = []
        for k in (2, 1, 0):  # the choice on top
            pair = (_Drawn(self._fitness, COLOURS[k]), _Drawn(self._reached, COLOURS[k]))
            self._curves.insert(0, pair)
            moving += [artist for drawn in pair for artist in drawn.artists]
        entries = list(zip(NAMES, COLOURS, strict=True))
        style.legend_of(self._reached, self.theme, entries, loc="upper left")
        self._label = self._fitness.text(
            0.98, 0.08, "", transform=self._fitness.transAxes, ha="right", va="center",
            color=ink.text, fontsize=TEXT_SIZE, fontweight="bold", animated=True,
        )  # fmt: skip
        self._tau = self._fitness.axhline(0, color=ink.text, lw=0.8, ls=(0, (1, 2)), animated=True)
        self._tau_label = self._fitness.text(
            0.01, 0, "", transform=self._fitness.get_yaxis_transform(), va="bottom",
            color=ink.text, fontsize=TEXT_SIZE - 0.5, animated=True,
        )  # fmt: skip
        [self._line] = self._map.plot([], [], color="white", lw=1.0, ls=":", animated=True)
        self._line.set_path_effects([withStroke(linewidth=2.0, foreground="#222222")])
        self._frames = [cell_frame(0, 0, colour, 1.8) for colour in COLOURS]
        self._frames[0].set_linewidth(3.2)
        for frame in self._frames:
            frame.set_animated(True)
            self._map.add_patch(frame)
        self.moving = [
            self._line,
            *reversed(self._frames),
            *moving,
            self._tau,
            self._tau_label,
            self._label,
        ]

    def _draw_map(self, view: BudgetView, predicted: NDArray[np.bool_]) -> None:
        if self._bar is not None:
            self._bar.remove()
        self._bar = draw_heat(
            self._map, self.theme, view.outlook.grid[2], ticks=(self._rows, self._columns),
            label="mean best fitness", predicted=predicted,
        )  # fmt: skip
        about = "dotted: splits of the same budget" + (
            "; round: never run, predicted" if predicted.any() else ""
        )
        style.head(
            self._map,
            self.theme,
            f"{view.outlook.fitness.task}, {view.outlook.fitness.model}",
            about,
        )


class _Drawn:
    """The artists of one curve: logged with a band, predicted dashed between dotted limits."""

    def __init__(self, ax: Axes, colour: str) -> None:
        self._ax = ax
        self.band = ax.fill_between([], [], [], color=colour, alpha=0.18, lw=0, animated=True)
        [self.line] = ax.plot([], [], color=colour, lw=2.0, animated=True)
        [self.dashed] = ax.plot([], [], color=colour, lw=1.6, ls=(0, (4, 2)), animated=True)
        [self.dotted] = ax.plot([], [], color=colour, lw=1.0, ls=(0, (1, 1.5)), animated=True)
        [self.end] = ax.plot([], [], color=colour, marker="o", ms=5, ls="", animated=True)
        self.artists = (self.band, self.line, self.dashed, self.dotted, self.end)

    def show(self, curve: BudgetCurve | None) -> None:
        for artist in self.artists:
            artist.set_visible(curve is not None)
        if curve is None:
            return
        at = _thinned(curve.logged)
        self.band.set_data(curve.x[at], curve.low[at], curve.high[at])
        self.line.set_data(curve.x[at], curve.value[at])
        rest = curve.logged + _thinned(len(curve.x) - curve.logged)
        self.dashed.set_data(curve.x[rest], curve.value[rest])
        gap = np.array([np.nan])
        self.dotted.set_data(
            np.concatenate([curve.x[rest], gap, curve.x[rest]]),
            np.concatenate([curve.low[rest], gap, curve.high[rest]]),
        )
        low, high = self._ax.get_ylim()
        below = curve.value[-1] < low  # the axis is for what most runs reach: point at it
        self.end.set_marker("v" if below else "o")
        self.end.set_data(curve.x[-1:], [low + 0.03 * (high - low) if below else curve.value[-1]])
        self.end.set_markerfacecolor(self.line.get_color() if not len(rest) else "none")


def _thinned(count: int) -> NDArray[np.int64]:
    """Some of `count` indices, evenly spread on a logarithmic scale, the ends among them."""
    if count <= _POINTS:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, _POINTS).astype(np.int64)) - 1


def _label(split: Split) -> str:
    kind = "" if split.logged else " (predicted)"
    return f"T = {split.generations}, N = {split.children}{kind}"


def _budget_cells(outlook: Outlook, calls: int) -> tuple[list[float], list[float]]:
    """Frames around the cells of a budget on the heatmap."""
    x, y = [], []
    rows, columns, *_ = outlook.grid
    for row, N in enumerate(rows):
        if calls % N == 0 and calls // N in columns:
            column = columns.index(calls // N)
            x += [column + d for d in (-0.43, 0.43, 0.43, -0.43, -0.43, math.nan)]
            y += [row + d for d in (-0.43, -0.43, 0.43, 0.43, -0.43, math.nan)]
    return x, y


def _fitness_limits(outlook: Outlook) -> tuple[float, float]:
    """From a low run's first generation to the best."""
    later = outlook.fitness.values[:, 1:]
    known: FloatArray = later[np.isfinite(later)]
    if not known.size:
        return 0.0, 1.0
    low, high = np.quantile(known, 0.02), known.max()
    room = 0.06 * max(high - low, 0.02)
    return float(low - room), float(high + room)


def _cost_limits(outlook: Outlook, axis: CostAxis, rows: Sequence[int]) -> tuple[float, float]:
    """First and last cost of any split that is shown."""
    found = [x for N in rows if (x := outlook.position(N, axis)) is not None]
    low, high = min(x[0] for x in found), max(x[-1] for x in found)
    return float(low) * 0.9, float(max(high, 2 * low)) * 1.1
