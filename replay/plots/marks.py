"""Marks, in the coordinates of their axes: what a panel of a chart is made of.

Colours are "ink" (that of the text), "faint" or a hex colour, which may end in two digits of
opacity. Numbers that are not finite are not drawn. Lines without tooltips state their numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from replay.plots.columns import OfOneLength

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = Sequence[float] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]

RAMP = (
    "#00224e", "#002e6a", "#1a386f", "#32436d", "#434e6c", "#535a6d", "#61656f", "#6f7073",
    "#7d7c78", "#8c8878", "#9b9476", "#aba072", "#bcae6c", "#cdbb63", "#dec958", "#f0d846",
    "#fee838",
)  # fmt: skip
"""Cividis, from dark to bright: it survives greyscale and colour blindness."""

Texts = Sequence[str]
Shape = Literal[
    "dot", "later", "below", "above", "diamond", "slim", "square", "cross", "plus", "times",
    "hexagon", "ring", "frame",
]  # fmt: skip
Keys = Sequence[Hashable]


@dataclass(frozen=True, kw_only=True, eq=False)
class Line(OfOneLength):
    """A curve, and its band from `low` to `high`.

    Attributes:
        x: Places.
        y: Values; the line is broken where one is not finite.
        low: Lower limits.
        high: Upper limits.
        color: Of the line and its band.
        label: Names it in legends and tooltips.
        dash: Pattern as in SVG; "": solid.
        width: In pixels.
        step: Whether it stays level until the next place.
        texts: Tooltips by place.
        band: Whether the limits are drawn; tooltips state them in any case.
        hover: Whether it has tooltips for the mouse.
        note: What tooltips say behind its numbers, such as "predicted".
        stated: What tables have in the place of its numbers, by name, where these are heights in a
            strip or the like; empty: it is in no table, as another mark holds the same.
    """

    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    color: str = "ink"
    label: str = ""
    dash: str = ""
    width: float = 1.8
    step: bool = False
    texts: Texts | None = None
    band: bool = True
    hover: bool = True
    note: str = ""
    stated: Mapping[str, Numbers] | None = None
    kind: Literal["line"] = "line"
    columns: ClassVar[tuple[str, ...]] = ("x", "y", "low", "high", "texts")


@dataclass(frozen=True, kw_only=True, eq=False)
class Clickable(OfOneLength):
    """A mark whose places (points, bars or lines) have tooltips and can be clicked.

    Attributes:
        texts: Tooltips by place.
        keys: What a click on a place means; None: nothing.
        chosen: The place from which arrow keys go on; None: the first of the chart.
    """

    texts: Texts | None = None
    keys: Keys | None = None
    chosen: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Points(Clickable):
    """Points, with intervals as thin bars.

    Attributes:
        x: Places.
        y: Values.
        x_low: Left ends of horizontal intervals.
        x_high: Right ends.
        y_low: Lower ends of vertical intervals.
        y_high: Upper ends.
        color: One, or one by point.
        size: Radius in pixels: one, or one by point.
        shape: A dot, an arrow to the right (what comes later), down (what lies below) or up, a wide
            or slim diamond, a square, a cross of lines, a thick plus or cross ("times"), a hexagon,
            or a ring or frame around what lies there.
        edge: Colour of a thin line around dots; "": none.
        labels: Texts beside the points.
        label: Names the points in legends.
        stated: As of a line.
    """

    x: Numbers
    y: Numbers
    x_low: Numbers | None = None
    x_high: Numbers | None = None
    y_low: Numbers | None = None
    y_high: Numbers | None = None
    color: str | Sequence[str] = "ink"
    size: float | Numbers = 4.0
    shape: Shape = "dot"
    edge: str = ""
    labels: Texts | None = None
    label: str = ""
    stated: Mapping[str, Numbers] | None = None
    kind: Literal["points"] = "points"
    columns: ClassVar[tuple[str, ...]] = (
        "x", "y", "x_low", "x_high", "y_low", "y_high", "color", "size", "texts", "keys", "labels",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Bars(Clickable):
    """Horizontal bars.

    Attributes:
        x0: One end of each.
        x1: The other.
        y: The row that it is centred on.
        color: One, or one by bar.
        thickness: In units of the rows: one, or one by bar.
        opacity: From 0 to 1.
        label: Names the bars in legends.
    """

    x0: Numbers
    x1: Numbers
    y: Numbers
    color: str | Sequence[str] = "ink"
    thickness: float | Numbers = 0.5
    opacity: float = 1.0
    label: str = ""
    kind: Literal["bars"] = "bars"
    columns: ClassVar[tuple[str, ...]] = ("x0", "x1", "y", "color", "thickness", "texts", "keys")


@dataclass(frozen=True, kw_only=True, eq=False)
class Polylines(Clickable):
    """Parallel coordinates: lines over the same places.

    Attributes:
        x: Places.
        rows: Values by line and place.
        colors: By line.
        widths: By line, in pixels.
    """

    x: Numbers
    rows: Sequence[Numbers] | NDArray[np.floating[Any]]
    colors: Sequence[str]
    widths: Sequence[float]
    kind: Literal["polylines"] = "polylines"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A straight line across a panel, upright at `x` or level at `y`.

    Attributes:
        x: Where it is upright.
        y: Where it is level.
        color: Of the line.
        dash: Pattern as in SVG; "": solid.
        text: Names a level line, where the name hides the fewest points.
        moves: Whether a level line can be dragged in the browser, which tells its view of it.
    """

    x: float | None = None
    y: float | None = None
    color: str = "ink"
    dash: str = ""
    text: str = ""
    moves: bool = False
    kind: Literal["rule"] = "rule"


@dataclass(frozen=True, kw_only=True)
class Label:
    """A text at a place, moved by `dx` and `dy` pixels; unless `bare`, ground is around it.

    Without `x` it stands at the left edge of the panel.
    """

    x: float | None = None
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    color: str = "ink"
    dx: float = 0.0
    dy: float = 0.0
    bare: bool = False
    kind: Literal["label"] = "label"


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Values as colours over a rectangle.

    Attributes:
        values: (rows, columns), the first row at `y0`.
        x0: Left edge of the first column.
        x1: Right edge of the last one.
        y0: Edge of the first row.
        y1: Edge of the last one.
        colors: Hex colours from `least` to `most`, between which others are interpolated.
        least: The value up to which cells have the first colour.
        most: The value from which on cells have the last colour.
        names: Of a column and of a row, in tooltips that state values in per cent; None: there are
            no such tooltips.
        texts: Tooltips of the cells, (rows, columns); without its value a cell is grey in the
            browser.
        written: What is written in the cells, (rows, columns).
        round: Which cells are round, (rows, columns).
        chosen: The cell from which arrow keys go on, counted row by row.
    """

    values: NDArray[np.floating[Any]]
    x0: float
    x1: float
    y0: float
    y1: float
    colors: Sequence[str]
    least: float = 0.0
    most: float = 1.0
    names: tuple[str, str] | None = None
    texts: Sequence[Texts] | None = None
    written: Sequence[Texts] | None = None
    round: NDArray[np.bool_] | None = None
    chosen: int | None = None
    kind: Literal["cells"] = "cells"


@dataclass(frozen=True, kw_only=True, eq=False)
class Spans(Clickable):
    """Rectangles.

    Attributes:
        x0: Left ends; None: that of the panel.
        x1: Right ends.
        y0: Lower ends; None: that of the panel.
        y1: Upper ends.
        color: One, or one by rectangle.
        opacity: Of what is inside, from 0 to 1.
        frame: Width of the lines around them, in pixels: one, or one by rectangle.
        label: Names them in legends.
    """

    x0: Numbers | None = None
    x1: Numbers | None = None
    y0: Numbers | None = None
    y1: Numbers | None = None
    color: str | Sequence[str] = "ink"
    opacity: float = 0.0
    frame: float | Numbers = 0.0
    label: str = ""
    kind: Literal["spans"] = "spans"


@dataclass(frozen=True, kw_only=True, eq=False)
class Segments(OfOneLength):
    """Lines from one place to another.

    Attributes:
        x0: Where they begin.
        y0: Where they begin.
        x1: Where they end.
        y1: Where they end.
        color: One, or one by segment.
        width: In pixels.
        dash: Pattern as in SVG; "": solid.
        turn: Where each leaves the height of its beginning, in a curve that ends level; None: they
            are straight.
    """

    x0: Numbers
    y0: Numbers
    x1: Numbers
    y1: Numbers
    color: str | Sequence[str] = "ink"
    width: float = 1.6
    dash: str = ""
    turn: Numbers | None = None
    kind: Literal["segments"] = "segments"
    columns: ClassVar[tuple[str, ...]] = ("x0", "y0", "x1", "y1", "color", "turn")


@dataclass(frozen=True, kw_only=True, eq=False)
class Discs(OfOneLength):
    """Circles in the units of the axes, which are equal.

    Attributes:
        x: Centres.
        y: Centres.
        r: Radii.
        color: Of the line around them.
        opacity: Of what is inside.
    """

    x: Numbers
    y: Numbers
    r: Numbers
    color: str = "ink"
    opacity: float = 0.25
    kind: Literal["discs"] = "discs"
    columns: ClassVar[tuple[str, ...]] = ("x", "y", "r")


@dataclass(frozen=True, kw_only=True, eq=False)
class Area(OfOneLength):
    """A polygon.

    Attributes:
        x: Corners.
        y: Corners.
        color: Of its outline.
        opacity: Of what is inside.
    """

    x: Numbers
    y: Numbers
    color: str = "ink"
    opacity: float = 0.0
    kind: Literal["area"] = "area"
    columns: ClassVar[tuple[str, ...]] = ("x", "y")


@dataclass(frozen=True, kw_only=True)
class End:
    """A name on the right of a panel, beside the height where a line ends; NaN: at the foot.

    Attributes:
        y: The height.
        text: The name.
        color: Of the short line from the height to the name.
        dash: Its pattern, that of the line that is named.
    """

    y: float
    text: str
    color: str = "ink"
    dash: str = ""
    kind: Literal["end"] = "end"


Mark = (
    Line | Points | Bars | Polylines | Rule | Label | Cells | Spans | Segments | Discs | Area | End
)


def reach_of(mark: Mark) -> tuple[list[float], list[float]]:
    """Every x and every y that a mark reaches, without its intervals."""
    names: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "line": (("x",), ("y",)),
        "points": (("x",), ("y",)),
        "bars": (("x0", "x1"), ("y",)),
        "polylines": (("x",), ("rows",)),
        "spans": (("x0", "x1"), ("y0", "y1")),
        "cells": (("x0", "x1"), ("y0", "y1")),
        "segments": (("x0", "x1"), ("y0", "y1")),
        "area": (("x",), ("y",)),
        "rule": (("x",), ("y",)),
        "label": (("x",), ("y",)),
        "end": ((), ("y",)),
    }
    if isinstance(mark, Discs):
        x, y, r = (np.asarray(each, dtype=np.float64) for each in (mark.x, mark.y, mark.r))
        return [*(x - r), *(x + r)], [*(y - r), *(y + r)]
    found = []
    for side in names[mark.kind]:
        columns = [getattr(mark, name) for name in side]
        known = [
            np.ravel(np.asarray(each, dtype=np.float64)) for each in columns if each is not None
        ]
        found.append([float(value) for column in known for value in column])
    return found[0], found[1]


def intervals_of(mark: Mark, side: Literal["x", "y"]) -> tuple[Numbers, Numbers]:
    """Lower and upper limits along one axis of the intervals that a mark shows."""
    if isinstance(mark, Points):
        low, high = getattr(mark, f"{side}_low"), getattr(mark, f"{side}_high")
    elif isinstance(mark, Line) and mark.band and side == "y":
        low, high = mark.low, mark.high
    else:
        low = high = None
    return ((), ()) if low is None or high is None else (low, high)


def columns_of(mark: Mark) -> dict[str, object]:
    """What a mark holds of each of its places, by name, and its label; empty: nothing."""
    if isinstance(mark, Cells):
        values = np.asarray(mark.values, dtype=np.float64)
        rows, columns = np.indices(values.shape)
        return {"row": rows.ravel(), "column": columns.ravel(), "value": values.ravel()}
    if isinstance(mark, Polylines):
        heights = np.asarray(mark.rows, dtype=np.float64)
        rows, places = np.indices(heights.shape)
        x = np.asarray(mark.x, dtype=np.float64)[places.ravel()]
        return {"row": rows.ravel(), "x": x, "y": heights.ravel()}
    named = (
        "x", "y", "low", "high", "x_low", "x_high", "y_low", "y_high", "x0", "x1", "y0", "y1", "r",
        "texts",
    )  # fmt: skip
    stated = getattr(mark, "stated", None)
    if stated == {}:
        return {}
    held = {name: getattr(mark, name, None) for name in named} | dict(stated or {})
    known = {name: values for name, values in held.items() if values is not None}
    return {"label": getattr(mark, "label", ""), **{k: list(v) for k, v in known.items()}}
