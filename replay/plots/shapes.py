"""The shapes that figures are made of: lines with bands or bars, rows with intervals, heatmaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from replay.logs.columns import groups_in_order
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.limits import ends_of
from replay.plots.marks import RAMP, Cells, End, Line, Mark, Points, Rule
from replay.plots.medium import one_look
from replay.plots.panel import Axis, ColorBar, Panel
from replay.plots.strips import Elsewhere, strips_for
from replay.plots.style import FloatArray, ranged, wrapped
from replay.plots.ticks import doublings
from replay.statistics.numbers import number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_MARKERS = 32
"""Lines through more points are drawn without markers."""

ROW, LINE = 30.0, 17.0
"""Pixels of a row of estimates, and of a line of its name."""

HEADING, STRIP = 2.2, 0.26
"""Inches of what stands above and below strips side by side, and of the lowest strip."""

NAME = 36
"""Characters of a line of a row's name: beyond them it goes on in the next line."""


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
        height: Of each row, inches; it is more where strips would have no room for their names.

    Raises:
        ValueError: There is no name.
    """
    names = list(names)
    if not names:
        raise ValueError("facets: expected one name or more, such as tasks, got none")
    across = min(columns, len(names))
    figure, axes = style.subplots(-(-len(names) // across), across, width=width, height=height)
    for ax in axes[len(names) :]:
        ax.remove()
    with one_look():
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
    most = max(len(vars(ax).get("strips", [])) for ax in axes)
    figure.set_figheight(len(rows) * max(height, HEADING + STRIP * most))
    _name_once(rows)
    return figure


def _name_once(rows: Iterable[Sequence[Axes]]) -> None:
    """Names the strips of axes side by side at the right of the last one only."""
    for row in rows:
        for ax, right in pairwise(row):
            notes, beside = (vars(each).get("strips", []) for each in (ax, right))
            if [note.get_text() for note in notes] == [note.get_text() for note in beside]:
                for note in notes:
                    note.remove()


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
    possible: tuple[float, float] | None = None,
) -> Chart:
    """Draws lines with their intervals, each named where it ends.

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
        possible: Lowest and highest value that there is, such as (0, 1): intervals that end beyond
            it are cut off there.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"greedy": [0.1, 0.3, 0.4], "islands": [0.1, 0.2, 0.5]})
        >>> words = {"title": "Two runs", "about": "n = 2", "x": "generation", "y": "fitness"}
        >>> replay.plots.lines(table, **words).get_xlabel()
        'generation'
    """
    style.require(table)
    if by is None:
        wide = table.rename_axis(index=at, columns=None).reset_index()
        by, table = "line", wide.melt(at, var_name="line").assign(low=math.nan, high=math.nan)
    style.require(table, by, at, "value", "low", "high")
    parts = [(name, rows) for (name,), rows in groups_in_order(table, by)]
    banded = int((table["high"] > table["low"]).groupby(table[by]).any().sum())
    split = limits == "band" and banded > 1 and not together
    strips = strips_for(
        len(parts) if split else 1, [table["value"]], limits=(table["low"], table["high"]),
        possible=possible,
    )  # fmt: skip
    seen: list[Elsewhere] = []
    marks: list[Mark] = []
    ends: list[Mark] = []
    for order, (name, rows) in enumerate(parts):
        color, dash = style.look_of(name, order)
        columns = rows.sort_values(at)[[at, "value", "low", "high"]].to_numpy(np.float64).T
        place, *band = columns
        value = strips.place(order, band[0])
        low, high = (strips.limit(order, each) for each in band[1:])
        move = apart * (order - (len(parts) - 1) / 2)
        place = place * 2**move if scale == "doublings" else place + move
        texts = [f"{name}: {ranged(*row)} at {number(x)}" for x, *row in columns.T.tolist()]
        seen.append(Elsewhere(place, band[0]))
        stated = dict(zip(("x", "y", "low", "high"), columns, strict=True))
        line = Line(
            x=place, y=value, low=low, high=high, color=color, dash=dash, width=2.2,
            label=str(name), texts=texts, stated=stated,
        )  # fmt: skip
        marks += _with_limits(line, limits)
        if name:
            height = strips.end(order, float(band[0][-1]))
            ends.append(End(y=height, text=str(name), color=color, dash=dash))
    ticks = doublings(table[at].max()) if scale == "doublings" else None
    behind = [*strips.rules(), *strips.elsewhere(seen, step=False)]
    about = f"{about.removesuffix('.')}; grey: the others" if split else about
    if strips.cuts(table["low"], table["high"]):
        about = f"{about}. A band at an edge goes on"
    panel = Panel(
        title=title,
        about=about,
        x=Axis(
            label=x, whole=scale == "whole", ticks=ticks, grid=True,
            scale="log" if scale == "doublings" else "linear",
        ),
        y=strips.axis(y), marks=[*behind, *marks, *ends], height=strips.height, zoom=True,
    )  # fmt: skip
    return Chart(panels=[panel])


def _with_limits(line: Line, limits: Literal["band", "bars"]) -> list[Mark]:
    """A line with its intervals as a band or as bars, and with points where there are few."""
    few = len(line.x) <= MOST_MARKERS
    if limits == "band":
        points = Points(x=line.x, y=line.y, color=line.color, size=2.8, stated={})
        return [line, points] if few else [line]
    plain = replace(line, low=None, high=None, texts=None, label="", hover=False, stated={})
    points = Points(
        x=line.x, y=line.y, y_low=line.low, y_high=line.high, color=line.color,
        size=2.8 if few else 1.0, texts=line.texts, label=line.label,
        stated={"x": (line.stated or {})["x"]},
    )  # fmt: skip
    return [plain, points]


def estimates(
    table: pd.DataFrame,
    *,
    title: str,
    about: str,
    x: str,
    rows: str | None = None,
    groups: str | None = None,
    bound: float | None = None,
    possible: tuple[float, float] | None = None,
) -> Chart:
    """Draws estimates as points with their intervals, one row per name, the first on top.

    Args:
        table: Columns value, low and high; what is NaN is not drawn. An interval without an upper
            limit ends in an arrow at the edge, and an infinite value is an arrow there.
        title: A few words.
        about: What is drawn and from how many runs.
        x: Name of the values, with their unit.
        rows: Column that names the rows; None: the index does.
        groups: Column whose values share a row of the chart and differ in colour; None: none.
        bound: Where to draw a line that intervals are to be compared with.
        possible: Lowest and highest value that there is, such as (0, 1): an interval that ends
            beyond it is cut off there and has an arrow.

    Raises:
        ValueError: If the table lacks a column.

    Example:
        >>> import pandas as pd
        >>> columns = {"name": ["a", "b"], "value": [0.1, 0.3]}
        >>> columns |= {"low": [0.0, 0.2], "high": [0.2, 0.4]}
        >>> words = {"title": "Two rules", "about": "n = 6", "x": "fitness", "rows": "name"}
        >>> replay.plots.estimates(pd.DataFrame(columns), **words).get_xlabel()
        'fitness'
    """
    used = [name for name in (rows, groups) if name]
    style.require(table, "value", "low", "high", *used)
    of_row = table.index if rows is None else table[rows]
    names = list(dict.fromkeys(of_row))
    labels = list(dict.fromkeys(table[groups])) if groups else [None]
    values = table[["value", "low", "high"]].to_numpy(np.float64)
    endless = np.isposinf(values[:, [0, 2]]).any()
    edge = 1.08 * np.max(values, where=np.isfinite(values), initial=0.0) or 1.0
    marks: list[Mark] = [] if bound is None else [Rule(x=bound)]
    for order, label in enumerate(labels):
        own = np.ones(len(table), dtype=bool) if groups is None else table[groups] == label
        color, _ = style.look_of(label, order)
        inside = 0.6 * ((order + 0.5) / len(labels) - 0.5)
        heights = [names.index(name) + inside for name in of_row[own]]
        value, low, high = values[own].T
        of = f", {label}" if groups else ""
        texts = [
            "" if math.isnan(row[0]) else f"{name}{of}: {ranged(*row)}"
            for name, row in zip(of_row[own], values[own].tolist(), strict=True)
        ]
        marks.append(
            Points(
                x=value, y=heights, x_low=np.minimum(low, edge), x_high=np.minimum(high, edge),
                color=color, size=3.5, texts=texts, label=str(label) if groups else "",
            )
        )  # fmt: skip
        never = np.isposinf(value) | np.isposinf(high)
        if never.any():
            later = np.where(never, edge, math.nan)
            marks.append(
                Points(x=later, y=heights, color=color, size=4.8, shape="later", texts=texts)
            )
    ticks = [(float(row), wrapped(str(name), NAME)) for row, name in enumerate(names)]
    most = max((text.count("\n") + 1 for _, text in ticks), default=1)
    height = max(120.0, len(names) * max(ROW, 0.6 * ROW * len(labels), LINE * most + 6))
    panel = Panel(
        title=title, about=about, marks=marks, height=height, legend=groups is not None,
        x=Axis(label=x, domain=(0.0, float(edge)) if endless else None, possible=possible),
        y=Axis(domain=(len(names) - 0.5, -0.5), ticks=ticks),
    )  # fmt: skip
    return Chart(panels=[panel])


def heat(
    values: FloatArray,
    *,
    ticks: tuple[Sequence[int], Sequence[int]],
    label: str,
    texts: Sequence[Sequence[str]],
    predicted: NDArray[np.bool_] | None = None,
    written: bool | Sequence[Sequence[str]] = True,
) -> Panel:
    """Returns splits (rows: N, columns: T) as coloured cells with their numbers, and a colour bar.

    NaN leaves a cell empty. `ticks` are each N, from below, and each T; `label` names what colours
    mean; `texts` are tooltips; `predicted` cells are round; `written` is what
    is written in the cells, True for their values.
    """
    known = values[np.isfinite(values)]
    least, most = ends_of(known)
    if written is True:
        written = [[_two_decimals(value) for value in row] for row in values.tolist()]
    rows, columns = values.shape
    cells = Cells(
        values=values, x0=-0.5, x1=columns - 0.5, y0=-0.5, y1=rows - 0.5, colors=RAMP, least=least,
        most=most, texts=texts, written=written or None,
        round=np.zeros(values.shape, dtype=bool) if predicted is None else predicted,
    )  # fmt: skip
    named = [
        [(float(k), number(each) if each > 9999 else str(each)) for k, each in enumerate(names)]
        for names in ticks
    ]
    return Panel(
        title="", x=Axis(domain=(-0.5, columns - 0.5), label="generations T", ticks=named[1]),
        y=Axis(domain=(-0.5, rows - 0.5), label="children per generation N", ticks=named[0]),
        marks=[cells], height=380, bar=ColorBar(RAMP, least, most, label) if known.size else None,
    )  # fmt: skip


def _two_decimals(value: float) -> str:
    """What is written in a cell: ".93"."""
    if not math.isfinite(value):
        return ""
    if 0 <= value < 0.995:
        return f"{value:.2f}".removeprefix("0")
    return f"{value:.2g}"


def place(ticks: Sequence[int], value: float) -> float:
    """Where a value lies on an axis of a heatmap, whose ticks are evenly spaced."""
    return float(np.interp(math.log(value), np.log(ticks), np.arange(len(ticks))))
