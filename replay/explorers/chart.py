"""Charts as numbers and texts, which the browser draws; see `chart.js`.

A chart holds marks in the coordinates of their axes. The browser lays it out, scales and draws it,
and answers to the mouse and to keys without the kernel. The meaning of a click stays in Python: the
browser sends the numbers of panel, mark and place, which lead to a key in `Chart.keys`.

Colours are "ink" (that of the text), "faint" or a hex colour. Numbers that are not finite are not
drawn. Lines without tooltips state their numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

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
Keys = Sequence[Hashable]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a panel.

    Attributes:
        domain: Values at its beginning (left, below) and at its end.
        label: Its text.
        scale: Linear or logarithmic.
        ticks: Values and texts, of one line or several; None: the browser chooses them.
        whole: Whether the browser chooses only whole numbers.
    """

    domain: tuple[float, float]
    label: str = ""
    scale: Literal["linear", "log"] = "linear"
    ticks: Sequence[tuple[float, str]] | None = None
    whole: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
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
    kind: Literal["line"] = "line"


@dataclass(frozen=True, kw_only=True, eq=False)
class Clickable:
    """A mark whose places (points, bars or lines) have tooltips and can be clicked.

    Attributes:
        texts: Tooltips by place.
        keys: What a click on a place means; None: nothing.
    """

    texts: Texts | None = None
    keys: Keys | None = None


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
        size: Radius in pixels.
        shape: A dot, an arrow to the right (what comes later), or a cross.
        labels: Texts beside the points.
    """

    x: Numbers
    y: Numbers
    x_low: Numbers | None = None
    x_high: Numbers | None = None
    y_low: Numbers | None = None
    y_high: Numbers | None = None
    color: str | Sequence[str] = "ink"
    size: float = 4.0
    shape: Literal["dot", "later", "cross"] = "dot"
    labels: Texts | None = None
    kind: Literal["points"] = "points"


@dataclass(frozen=True, kw_only=True, eq=False)
class Bars(Clickable):
    """Horizontal bars.

    Attributes:
        x0: One end of each.
        x1: The other.
        y: The row that it is centred on.
        color: One, or one by bar.
        thickness: In units of the rows.
        opacity: From 0 to 1.
    """

    x0: Numbers
    x1: Numbers
    y: Numbers
    color: str | Sequence[str] = "ink"
    thickness: float = 0.5
    opacity: float = 1.0
    kind: Literal["bars"] = "bars"


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
    """A straight line across a panel, upright at `x` or level at `y`."""

    x: float | None = None
    y: float | None = None
    color: str = "ink"
    dash: str = ""
    kind: Literal["rule"] = "rule"


@dataclass(frozen=True, kw_only=True)
class Label:
    """A text at a place, moved by `dx` and `dy` pixels."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    color: str = "ink"
    dx: float = 0.0
    dy: float = 0.0
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
        colors: Hex colours from 0 to `most`, between which others are interpolated.
        most: The value from which on cells have the last colour.
        names: Of a column and of a row, in tooltips that state values in per cent; None: there are
            no tooltips.
    """

    values: NDArray[np.floating[Any]]
    x0: float
    x1: float
    y0: float
    y1: float
    colors: Sequence[str]
    most: float = 1.0
    names: tuple[str, str] | None = None
    kind: Literal["cells"] = "cells"


Mark = Line | Points | Bars | Polylines | Rule | Label | Cells


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Marks over a pair of axes.

    Attributes:
        title: What it shows.
        x: The axis below.
        y: The axis on the left.
        marks: In drawing order.
        about: Explains bands and marks, below the title.
        height: Of the plotting area, in pixels.
        zoom: Whether dragging zooms it.
        legend: Whether its lines with a label are listed.
        shares: A name; panels that give the same one are zoomed along x together.
    """

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    about: str = ""
    height: float = 240.0
    zoom: bool = False
    legend: bool = False
    shares: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Panels in rows of `columns`, in one column where the page is narrow.

    Attributes:
        panels: From left to right, row by row.
        columns: Panels beside each other.
        message: A sentence in place of the panels.
    """

    panels: Sequence[Panel] = ()
    columns: int = 1
    message: str = ""

    def keys(self) -> dict[tuple[int, int], Keys]:
        """What clicks mean, by the numbers of panel and mark."""
        return {
            (p, m): mark.keys
            for p, panel in enumerate(self.panels)
            for m, mark in enumerate(panel.marks)
            if isinstance(mark, Clickable) and mark.keys is not None
        }


def pack(chart: Chart) -> bytes:
    """The chart as JSON, in which `opens` says which places have a key."""
    panels = [
        _given(panel) | {"x": _given(panel.x), "y": _given(panel.y)} | _marks(panel)
        for panel in chart.panels
    ]
    content = {"panels": panels, "columns": chart.columns, "message": chart.message}
    return msgspec.json.encode(content, enc_hook=_listed)  # what is not finite becomes null


def _given(part: Panel | Axis | Mark) -> dict[str, object]:
    """The attributes of a part that are not None."""
    return {name: value for name, value in vars(part).items() if value is not None}


def _marks(panel: Panel) -> dict[str, object]:
    """The marks of a panel, without their keys."""
    marks = [_given(mark) for mark in panel.marks]
    for mark in marks:
        keys = mark.pop("keys", None)
        if isinstance(keys, Sequence):
            mark["opens"] = [key is not None for key in keys]
    return {"marks": marks}


def _listed(value: object) -> object:
    """The arrays and numbers of NumPy as those of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a chart holds numbers and texts, got {type(value).__name__}")
