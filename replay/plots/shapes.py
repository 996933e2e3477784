"""The shapes that figures are made of: lines with bands or bars, rows with intervals, heatmaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from replay.plots import hits, style
from replay.plots.hits import ranged
from replay.plots.strips import axes_for, name_once, strips_for
from replay.plots.style import THEMES, FloatArray, Theme, number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

MOST_MARKERS = 32
"""Lines through more points are drawn without markers."""


def facets(
    names: Iterable[str],
    draw: Callable[[str, Axes], object],
    *,
    columns: int = 3,
    width: float = 12.0,
    height: float = 4.2,
) -> Figure:
    """Draws the same figure for each name side by side; common texts are written once.

    Example:
        >>> tasks = frame["task"].unique()
        >>> figure = replay.plots.facets(
        ...     tasks, lambda task, ax: replay.plots.heatmap(grid, task=task, ax=ax)
        ... )

    Args:
        names: One for each of the axes, such as tasks.
        draw: Draws what belongs to a name on axes.
        columns: Most axes side by side.
        width: Of the figure, inches; see `subplots`.
        height: Of each row, inches.
    """
    names = list(names)
    across = min(columns, len(names))
    figure, axes = style.subplots(-(-len(names) // across), across, width=width, height=height)
    for ax in axes[len(names) :]:
        ax.remove()
    vars(figure)["looks"] = {}
    for name, ax in zip(names, axes, strict=False):
        draw(name, ax)
    style.say_once(figure, axes[: len(names)], names)
    bars = [each for each in figure.axes if each not in axes]
    for bar in bars[:-1]:
        if bar.get_ylabel() == bars[-1].get_ylabel():
            bar.set_ylabel("")
    rows = [axes[first : first + across] for first in range(0, len(names), across)]
    for left, *others in rows:
        for ax in others:
            if ax.get_ylabel() == left.get_ylabel():
                ax.set_ylabel("")
    name_once(rows)
    return figure


def lines(
    table: pd.DataFrame,
    *,
    title: str,
    about: str,
    x: str,
    y: str,
    by: str | None = None,
    at: str = "x",
    limits: Literal["band", "bars"] = "band",
    scale: Literal["plain", "whole", "doublings"] = "plain",
    apart: float = 0.0,
    together: bool = False,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw lines with their intervals, each named where it ends.

    Where two lines or more have bands, each line is drawn in a strip of its own, one below the
    other over the same range; grey lines show the others.

    Args:
        table: One column per line of exact numbers, drawn against the index; with `by`, one row
            per point: columns `by`, `at`, value, low and high. NaN leaves a gap.
        title: A few words.
        about: What is drawn and from how many runs.
        x: Name of the horizontal axis, with its unit.
        y: Name of the values, with their unit.
        by: Column that names the line of a row; None: the columns are the lines.
        at: Horizontal column.
        limits: How intervals are drawn.
        scale: Of the horizontal axis; doublings have a tick at each power of two.
        apart: By how much lines are moved sideways so that bars do not hide each other, in units of
            the axis or in doublings.
        together: Draw all lines in one panel, though their bands may hide each other.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    if by is None:
        wide = table.rename_axis(index=at, columns=None).reset_index()
        by, table = "line", wide.melt(at, var_name="line").assign(low=math.nan, high=math.nan)
    style.require(table, by, at, "value", "low", "high")
    parts = table.groupby(by, sort=False)
    banded = int((table["high"] > table["low"]).groupby(table[by]).any().sum())
    split = limits == "band" and banded > 1 and not together
    ax = style.prepare(axes_for(parts.ngroups if split else 1, ax), theme)
    if scale == "doublings":
        style.doublings(ax, table[at].max())
    strips = strips_for(ax, parts.ngroups if split else 1, [table[["value", "low", "high"]]])
    fill = 0.25 if split else 0.4 / (1 + parts.ngroups)
    ends = []
    for order, (name, rows) in enumerate(parts):
        colour, dashes = style.look_of(ax, name, order)
        columns = rows.sort_values(at)[[at, "value", "low", "high"]].to_numpy(np.float64).T
        place, *band = columns
        value, below, above = (strips.place(order, each) for each in band)
        move = apart * (order - (parts.ngroups - 1) / 2)
        place = place * 2**move if scale == "doublings" else place + move
        if limits == "bars":
            ax.vlines(place, below, above, color=colour, lw=1.2, alpha=0.6)
        else:
            ax.fill_between(place, below, above, color=colour, alpha=fill, lw=0)
            edges = np.stack([below, above], axis=1)
            ax.plot(place, edges, color=colour, ls=dashes, lw=0.6, alpha=0.5)
        strips.show_elsewhere(ax, theme, order, place, band[0], steps=False)
        marker = "o" if len(place) <= MOST_MARKERS else ""
        ax.plot(place, value, color=colour, ls=dashes, marker=marker, ms=4, lw=1.6)
        ends.append((strips.end(order, float(band[0][-1])), str(name), colour))
        texts = [f"{ranged(*each)} at {number(x)}" for x, *each in columns.T.tolist()]
        hits.curve(ax, place, value, texts, f"{name}: ")
    strips.finish(ax, theme, ends)
    if scale == "whole":
        style.whole_numbers(ax)
    style.label_axes(ax, theme, x=x, y=y)
    about = f"{about.removesuffix('.')}; grey: the others" if split else about
    style.head(ax, theme, title, about)
    return ax


def estimates(
    table: pd.DataFrame,
    *,
    title: str,
    about: str,
    x: str,
    rows: str | None = None,
    groups: str | None = None,
    bound: float | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw estimates as points with their intervals, one row per name, the first on top.

    Args:
        table: Columns value, low and high; what is NaN is not drawn. An interval without an upper
            limit ends in an arrow at the edge, and an infinite value is an arrow there.
        title: A few words.
        about: What is drawn and from how many runs.
        x: Name of the values, with their unit.
        rows: Column that names the rows; None: the index does.
        groups: Column whose values share a row of the chart and differ in colour; None: none.
        bound: Where to draw a line that intervals are to be compared with.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.

    Raises:
        ValueError: If the table lacks a column.
    """
    used = [name for name in (rows, groups) if name]
    style.require(table, "value", "low", "high", *used)
    ax = style.prepare(ax, theme)
    if bound is not None:
        ax.axvline(bound, color=THEMES[theme].text, lw=0.8)
    names = list(dict.fromkeys(table.index if rows is None else table[rows]))
    labels = list(dict.fromkeys(table[groups])) if groups else [None]
    limits = table[["value", "low", "high"]].to_numpy(np.float64)
    endless = np.isposinf(limits[:, [0, 2]]).any()
    edge = 1.08 * np.max(limits, where=np.isfinite(limits), initial=0.0) or 1.0
    if endless:
        ax.set_xlim(0, edge)
    for row, name in zip(table.to_dict("records"), table.index, strict=True):
        order = labels.index(row[groups]) if groups else 0
        colour, _ = style.look_of(ax, row.get(groups), order)
        inside = 0.6 * ((order + 0.5) / len(labels) - 0.5)
        height = names.index(row[rows] if rows else name) + inside
        value, low, high = row["value"], row["low"], row["high"]
        ax.hlines(height, min(low, edge), min(high, edge), color=colour, lw=2, alpha=0.7)
        if math.inf in (value, high):
            ax.plot(edge, height, marker=">", color=colour, ms=7, clip_on=False)
        if math.isfinite(value):
            ax.plot(value, height, marker="o", color=colour, ms=5)
        if not math.isnan(value):
            ends = (min(low, edge), min(value, edge), min(high, edge))
            reach = [each for each in ends if not math.isnan(each)]
            what = str(row[rows] if rows else name)
            what += f", {row[groups]}" if groups else ""
            box = (min(reach), height - 0.3 / len(labels), max(reach), height + 0.3 / len(labels))
            hits.mark(ax, box, f"{what}: {ranged(value, low, high)}")
    style.label_rows(ax, [str(name) for name in names])
    style.label_axes(ax, theme, x=x, y="")
    looks = [style.look_of(ax, label, order) for order, label in enumerate(labels)]
    legend = [(str(each), colour) for each, (colour, _) in zip(labels, looks, strict=True)]
    style.head(ax, theme, title, about, legend=legend if groups else ())
    return ax


def draw_heat(
    ax: Axes,
    theme: Theme,
    values: FloatArray,
    *,
    ticks: tuple[Sequence[int], Sequence[int]],
    label: str,
    predicted: NDArray[np.bool_] | None = None,
    written: bool = True,
) -> Colorbar | None:
    """Draw splits (rows: N, columns: T) as coloured cells with their numbers, and a colour bar.

    NaN leaves a cell empty. `ticks` are each N, from below, and each T; `label` names what colours
    mean; `predicted` cells are round; narrow ones have the decimals alone. Returns the colour bar;
    None where nothing is known.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import Normalize
    from matplotlib.patches import Ellipse, Rectangle

    known = values[np.isfinite(values)]
    scale = Normalize(*((known.min(), known.max()) if known.size else (0.0, 1.0)))
    colours, size = colormaps["cividis"], style.text_size(ax)
    narrow = cramped(ax, values.shape[1])
    fills = colours(scale(values))
    shapes: list[Patch] = []
    known_at = np.argwhere(~np.isnan(values)).tolist()
    for row, column in known_at:
        shapes.append(Rectangle((column - 0.5, row - 0.5), 1, 1))
        if predicted is not None and predicted[row, column]:
            shapes[-1] = Ellipse((column, row), 0.9, 0.9)
        if written:
            value = values[row, column]
            text = f"{value:.2f}".removeprefix("0.") if 0 <= value < 0.995 else f"{value:.2g}"
            text = f".{text}" if 0 <= value < 0.995 and not narrow else text
            ax.text(
                column, row, text, ha="center", va="center", fontsize=size,
                color=style.readable(fills[row, column]), in_layout=False,
            )  # fmt: skip
    cells = PatchCollection(
        shapes, facecolor=[fills[tuple(each)] for each in known_at], linewidth=0
    )
    ax.add_collection(cells, autolim=False)
    ax.set(xlim=(-0.5, values.shape[1] - 0.5), ylim=(-0.5, values.shape[0] - 0.5))
    for put, names in ((ax.set_yticks, ticks[0]), (ax.set_xticks, ticks[1])):
        labels = [number(each) if each > 9999 else str(each) for each in names]
        places = range(0, len(labels), 2 if narrow and names is ticks[1] else 1)
        put(places, [labels[k] for k in places])
    ax.grid(visible=False)
    style.label_axes(ax, theme, x="generations T", y="children per generation N")
    figure = ax.get_figure(root=True)
    if figure is None or not known.size:
        return None
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=ax, pad=0.02, aspect=30)
    bar.ax.tick_params(colors=THEMES[theme].text, labelsize=size)
    bar.set_label(label, color=THEMES[theme].text, fontsize=size)
    bar.ax.spines[:].set_visible(False)
    return bar


def cramped(ax: Axes, columns: int) -> bool:
    """Whether so many cells side by side are too narrow for ".12" in a frame."""
    width = ax.get_position().width * style.figure_of(ax).get_figwidth() * 72
    return width < 2.1 * style.text_size(ax) * columns


def place(ticks: Sequence[int], value: float) -> float:
    """Where a value lies on an axis of a heatmap, whose ticks are evenly spaced."""
    return float(np.interp(math.log(value), np.log(ticks), np.arange(len(ticks))))


def cell_frame(column: float, row: float, colour: str, width: float) -> Rectangle:
    """A frame around a cell of a heatmap, outside its number."""
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.43, row - 0.43), 0.86, 0.86, fill=False, ec=colour, lw=width)
