"""The pen for paper: charts as matplotlib draws them; `chart.js` is the pen for the browser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from replay.plots import style
from replay.plots.marks import End, Line, Points, Rule
from replay.plots.medium import dashes_of
from replay.plots.panel import Axis, ColorBar, Panel
from replay.plots.strokes import PENS, SHAPES, ink_of, ramp_of
from replay.plots.style import THEMES, Theme
from replay.plots.ticks import even_steps, even_ticks, ratios, tick_formatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MOST_TICKS = 8
"""Of an axis whose ticks nobody gives."""

HEAD = 1.6
"""Inches of titles, labels and ticks above and below a panel."""


def draw(panels: Sequence[Panel], message: str, ax: Axes | None, theme: Theme) -> Axes:
    """Draws the only panel of a chart, or its message, on axes; None: those of a new figure."""
    if not panels:
        return style.sentence(ax, theme, message)
    if len(panels) > 1:
        raise ValueError(
            f"expected a chart of one panel, got {len(panels)}; its method figure draws all"
        )
    [panel] = panels
    if ax is None:
        ax = style.subplots(width=_width(panel), height=panel.height / 100 + HEAD)[1][0]
    return draw_panel(panel.settled(), ax, theme)


def draw_all(
    panels: Sequence[Panel],
    message: str,
    title: str,
    *,
    columns: int,
    theme: Theme,
    width: float | None,
) -> Figure:
    """Draws all panels of a chart, or its message."""
    if not panels:
        made, [ax] = style.subplots(width=width or 9.0, height=HEAD)
        style.sentence(ax, theme, fill(message, 80))
        return made
    across = min(columns, len(panels))
    places = _places(panels, across)
    heights = [0.0] * max(rows.stop for rows, _ in places)
    for panel, (rows, _) in zip(panels, places, strict=True):
        for row in range(rows.start, rows.stop):
            share = (panel.height / 100 + HEAD) / (rows.stop - rows.start)
            heights[row] = max(heights[row], share)
    usual = max(3.0 + 3.0 * across if across > 1 else 0.0, *map(_width, panels), 0.0)
    made = style.blank(width or usual, sum(heights))
    grid = made.add_gridspec(len(heights), across, height_ratios=heights)
    for panel, place in zip(panels, places, strict=True):
        draw_panel(panel.settled(), made.add_subplot(grid[place]), theme)
    if title:
        made.suptitle(
            title, x=0.01, ha="left", color=THEMES[theme].text,
            fontsize=style.text_size(made.axes[0]) + 2, fontweight="bold",
        )  # fmt: skip
    return made


def _places(panels: Sequence[Panel], columns: int) -> list[tuple[slice, int]]:
    """The rows and the column of each panel: the first that are free, from left to right."""
    free = [0] * columns  # the first free row of each column
    found = []
    for panel in panels:
        row = min(free)
        column = free.index(row)
        rows = 1 if columns == 1 else panel.rows
        found.append((slice(row, row + rows), column))
        free[column] = row + rows
    return found


def _width(panel: Panel) -> float:
    """Inches of a figure of a panel alone."""
    return 5.0 if panel.equal else panel.width / 100


def draw_panel(panel: Panel, ax: Axes, theme: Theme) -> Axes:
    """Draws a panel that is settled on axes."""
    ax = style.prepare(ax, theme)
    _set_axis(ax, panel.x, "x")
    _set_axis(ax, panel.y, "y")
    for number, mark in enumerate(panel.marks):
        for artist in PENS[mark.kind](mark, ax, theme):
            artist.set_gid(f"mark-{number}")
    for mark in panel.marks:
        if isinstance(mark, Rule) and mark.y is not None and mark.text:
            _name_level(mark.text, mark.y, panel, ax, theme)
    if panel.equal:
        ax.set(xlim=panel.x.domain, ylim=panel.y.domain)
        ax.autoscale(tight=None)
        ax.set_aspect("equal", adjustable="datalim")  # the layout counts on an unchanging box
    if panel.bare:
        ax.set_axis_off()
    if panel.x.above:
        ax.spines[:].set_visible(False)
    style.label_axes(ax, theme, x=panel.x.label if panel.x.named else "", y=panel.y.label)
    if panel.bar is not None:
        _draw_bar(panel.bar, ax, theme)
    ends = [each for each in panel.marks if isinstance(each, End)]
    labels = [(each.y, each.text, ink_of(each.color, theme), each.dash) for each in ends]
    notes = style.label_ends(ax, theme, labels)
    vars(ax)["strips"] = notes if panel.y.ticks is not None else []
    empty = [each for each in panel.marks if isinstance(each, Points) and not len(each.x)]
    named = [each for each in panel.marks if getattr(each, "label", "") and each not in empty]
    legend = [_entry(each, theme) for each in named]
    style.draw_heading(ax, theme, panel.title, panel.about, legend=legend if panel.legend else ())
    return ax


def _name_level(text: str, y: float, panel: Panel, ax: Axes, theme: Theme) -> None:
    """Names a level line above or below it, where the fewest points are, the right end first."""
    size, points = style.text_size(ax), style.room_of(ax)
    wide, tall = 0.58 * size * len(text) / points[0], 1.4 * size / points[1]
    share = ax.transData + ax.transAxes.inverted()
    places = [np.column_stack([mark.x, mark.y]) for mark in panel.marks if isinstance(mark, Points)]
    x, height = share.transform(np.concatenate([np.empty((0, 2)), *places])).T
    level = share.transform((0.0, y))[1]

    def hides(spot: tuple[float, bool]) -> int:
        end, above = spot
        low = level if above else level - tall
        return int(((x > end - wide) & (x < end) & (height > low) & (height < low + tall)).sum())

    sides = [above for above in (True, False) if 0 < level + (tall if above else -tall) < 1]
    ends = np.arange(1.0, wide, -0.02).tolist() or [1.0]
    end, above = min([(end, side) for end in ends for side in sides or [True]], key=hides)
    ax.annotate(
        text, (end, y), (-2, 2 if above else -2), xycoords=("axes fraction", "data"), ha="right",
        va="bottom" if above else "top", textcoords="offset points", color=THEMES[theme].text,
        fontsize=size,
    )  # fmt: skip


def _set_axis(ax: Axes, axis: Axis, name: Literal["x", "y"]) -> None:
    """Limits, scale and ticks of an axis."""
    assert axis.domain is not None
    low, high = axis.domain
    own = ax.xaxis if name == "x" else ax.yaxis
    if axis.scale == "log" and axis.ticks is None and name == "x":
        for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)) if high < 300 * low else ((1.0,),):
            if len(ratios(ax, low, high, steps)) <= _most_by_ratios(ax):
                break
    elif axis.scale == "log":
        getattr(ax, f"set_{name}scale")("log")
    getattr(ax, f"set_{name}lim")(low, high)
    if axis.ticks is not None:
        inside = [each for each in axis.ticks if min(low, high) <= each[0] <= max(low, high)]
        inside = _apart(ax, inside, name)
        own.set_ticks([value for value, _ in inside], [text for _, text in inside])
        own.set_tick_params(which="minor", length=0)
        ax.minorticks_off()
        if axis.above:
            ax.xaxis.tick_top()
    else:
        _set_automatic_ticks(ax, axis, name)
    if not axis.named:
        own.set_tick_params(labelbottom=False)
    if not (axis.ticks is None if axis.grid is None else axis.grid):
        ax.grid(visible=False, axis=name)
        own.set_tick_params(length=0)
        if name == "y" and axis.ticks:
            vars(ax)["rows"] = [text for _, text in axis.ticks]


def _set_automatic_ticks(ax: Axes, axis: Axis, name: Literal["x", "y"]) -> None:
    """Ticks of an axis that states none."""
    assert axis.domain is not None
    low, high = axis.domain
    own = ax.xaxis if name == "x" else ax.yaxis
    if axis.whole:
        from matplotlib.ticker import MaxNLocator

        own.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    elif axis.scale == "linear" and name == "x" and low < high:
        for most in range(MOST_TICKS, 1, -1):  # as many as have room for their texts
            ticks = even_ticks(low, high, most)
            if len(_apart(ax, ticks, name)) == len(ticks):
                break
        own.set_major_locator(even_steps(most))
        own.set_major_formatter(tick_formatter())
    if axis.scale == "linear" and _unusual(low, high):
        own.set_major_formatter(tick_formatter())


def _most_by_ratios(ax: Axes) -> int:
    """How many ticks have room on an axis of ratios, even where texts beside it shorten it."""
    wide = ax.get_position().width * style.figure_of(ax).get_size_inches()[0] * 72
    return int(wide / (5.5 * style.text_size(ax)))


def _unusual(low: float, high: float) -> bool:
    """Whether matplotlib would not write the values of an axis in full at its ticks."""
    most = max(abs(low), abs(high))
    return most >= 1e4 or most < 1e-3 or abs(high - low) < 1e-3 * most


def _apart(
    ax: Axes, ticks: list[tuple[float, str]], name: Literal["x", "y"]
) -> list[tuple[float, str]]:
    """Ticks without those whose texts would lie over others; words go in two rows instead."""
    size, room = style.text_size(ax), style.room_of(ax)
    numbers = all(re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?[kM]?", text) for _, text in ticks)
    if name == "y":
        if not numbers:
            return ticks
        need = [1.25 * size] * len(ticks)
    else:
        longest = [max(map(len, text.split("\n"))) for _, text in ticks]
        need = [0.62 * size * (count + 1) for count in longest]
    places = (
        ax.transData.transform(
            [(value, 0.0) if name == "x" else (0.0, value) for value, _ in ticks]
        )[:, "xy".index(name)]
        if ticks
        else np.empty(0)
    )
    share = room["xy".index(name)] / ax.bbox.bounds[2 + "xy".index(name)]
    points = places * share
    kept: list[int] = []
    for k in np.argsort(points).tolist():
        if not kept or points[k] - points[kept[-1]] >= (need[k] + need[kept[-1]]) / 2:
            kept.append(k)
    if numbers:
        return [ticks[k] for k in sorted(kept)]
    if len(kept) == len(ticks):
        return ticks
    return [(value, f"\n{text}" if k % 2 else text) for k, (value, text) in enumerate(ticks)]


def _draw_bar(bar: ColorBar, ax: Axes, theme: Theme) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    ink, size = THEMES[theme].text, style.text_size(ax)
    colours = ScalarMappable(Normalize(bar.least, bar.most), ramp_of(bar.colors))
    made = style.figure_of(ax).colorbar(colours, ax=ax, pad=0.02, aspect=30)
    made.ax.tick_params(colors=ink, labelsize=size)
    made.set_label(bar.label, color=ink, fontsize=size)
    made.ax.spines[:].set_visible(False)


def _entry(mark: Any, theme: Theme) -> tuple[str, Line2D]:
    """A mark in a legend."""
    from matplotlib.lines import Line2D

    colour = mark.color if isinstance(mark.color, str) else mark.color[0]
    look: dict[str, Any] = {"color": ink_of(colour, theme), "lw": 2.0}
    if isinstance(mark, Line):
        look |= {"ls": dashes_of(mark.dash, mark.width)}
    elif isinstance(mark, Points):
        look |= {"marker": SHAPES[mark.shape]}
    else:
        look |= {"lw": 6.0, "solid_capstyle": "butt"}
    return mark.label, Line2D([], [], **look)
