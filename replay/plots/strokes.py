"""How matplotlib draws each kind of mark; see `pen.py`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from replay.plots import style
from replay.plots.colours import readable
from replay.plots.marks import (
    Area,
    Bars,
    Cells,
    Discs,
    End,
    Label,
    Line,
    Points,
    Polylines,
    Rule,
    Segments,
    Spans,
    intervals_of,
)
from replay.plots.medium import LEAST_SIZE, LIGHTER, dashes_of
from replay.plots.style import THEMES, FloatArray, Theme

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap

PIXEL = 0.72
"""Points of a pixel of the screen."""

ARROW = 4.0
"""Radius in pixels of an arrow at the frame."""

TIPS = {"x": (4, 5), "y": (7, 6)}
"""Matplotlib's arrows with their tips at a place: to the left and right, downwards and upwards."""

SHAPES = {
    "dot": "o", "later": ">", "below": "v", "above": "^", "diamond": "D", "slim": "d",
    "square": "s", "cross": "x", "plus": "P", "times": "X", "hexagon": "h", "ring": "o",
    "frame": "s",
}  # fmt: skip
SCALE = {"diamond": 0.71}
"""What makes a marker of matplotlib as large as the radius says, where it is larger."""

HOLLOW = {"ring": 1.7, "frame": 0.9, "cross": 1.2}
"""Widths of the lines that shapes are made of, in points."""


def ink_of(colour: str, theme: Theme) -> str:
    """A colour in the inks of a theme."""
    ink = THEMES[theme]
    if theme == "dark" and (lighter := LIGHTER.get(colour[:7].upper())):
        return f"{lighter}{colour[7:]}"  # as opaque as it was
    return {"ink": ink.text, "faint": ink.faint}.get(colour, colour)


def _inks(colours: str | Sequence[str], count: int, theme: Theme) -> list[str]:
    """A colour for each place."""
    each = [colours] * count if isinstance(colours, str) else colours
    return [ink_of(colour, theme) for colour in each]


def ramp_of(colours: Sequence[str]) -> LinearSegmentedColormap:
    """What mixes the colours between those of a ramp."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ramp", list(colours))


def _numbers(values: object) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _line(mark: Line, ax: Axes, theme: Theme) -> Iterator[Artist]:
    colour = ink_of(mark.color, theme)
    x, y = _numbers(mark.x), _numbers(mark.y)
    if mark.band and mark.low is not None and mark.high is not None:
        low, high = _numbers(mark.low), _numbers(mark.high)
        step: Any = "post" if mark.step else None
        yield ax.fill_between(x, low, high, step=step, color=colour, alpha=0.17, lw=0)
    [line] = ax.plot(
        x, y, color=colour, lw=PIXEL * mark.width, ls=dashes_of(mark.dash, mark.width),
        drawstyle="steps-post" if mark.step else "default", solid_capstyle="round",
    )  # fmt: skip
    yield line


def _points(mark: Points, ax: Axes, theme: Theme) -> Iterator[Artist]:
    x, y = _numbers(mark.x), _numbers(mark.y)
    colours = _inks(mark.color, len(x), theme)
    sides = ((ax.hlines, y, mark.x_low, mark.x_high), (ax.vlines, x, mark.y_low, mark.y_high))
    for lines, place, low, high in sides:
        if low is not None and high is not None and len(place):
            yield lines(place, _numbers(low), _numbers(high), color=colours, lw=1.6, alpha=0.6)
    look: dict[str, Any] = {"linewidths": HOLLOW.get(mark.shape, 0)}
    if mark.shape in ("ring", "frame"):
        look |= {"facecolors": "none", "edgecolors": colours, "clip_on": False}
    else:
        look["c"] = colours
    if mark.edge:
        look |= {"linewidths": 0.6, "edgecolors": ink_of(mark.edge, theme)}
    if mark.shape == "later":
        look["clip_on"] = False
    radius = PIXEL * SCALE.get(mark.shape, 1.0) * _numbers(mark.size)
    yield ax.scatter(
        x, y, s=(2 * radius) ** 2, marker=SHAPES[mark.shape], zorder=3, **look,
    )  # fmt: skip
    yield from _arrows(mark, ax, colours)
    yield from _names(mark, ax, theme)


def _names(mark: Points, ax: Axes, theme: Theme) -> Iterator[Artist]:
    """Texts beside points, at the first of four corners where they lie over nothing.

    A text for which none is free is left out, as in the browser.
    """
    if not mark.labels or not any(mark.labels):
        return
    size, room = style.text_size(ax), np.array(style.room_of(ax))
    places = (ax.transData + ax.transAxes.inverted()).transform(
        np.column_stack([_numbers(mark.x), _numbers(mark.y)])
    ) * room
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in places if np.isfinite((x, y)).all()]
    for at, text in enumerate(mark.labels):
        x, y = places[at]
        if not text or not np.isfinite((x, y)).all():
            continue
        wide = 0.64 * size * len(text)
        corners = [(-4 - wide, 4.0), (4.0, 4.0), (4.0, -4 - size), (-4 - wide, -4 - size)]
        boxes = [(x + dx, y + dy, x + dx + wide, y + dy + size) for dx, dy in corners]
        free = [k for k, each in enumerate(boxes) if not any(_meet(each, it) for it in taken)]
        if free:
            taken.append(boxes[free[0]])
            yield ax.annotate(
                text, (mark.x[at], mark.y[at]), corners[free[0]], textcoords="offset points",
                va="bottom", color=THEMES[theme].text, fontsize=size,
            )  # fmt: skip


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether two boxes (left, below, right, above) share a part."""
    apart = one[2] <= other[0] or one[0] >= other[2] or one[3] <= other[1] or one[1] >= other[3]
    return not apart


def _arrows(mark: Points, ax: Axes, colours: Sequence[str]) -> Iterator[Artist]:
    """An arrow at the frame, for each interval that goes on beyond it."""
    from matplotlib.markers import MarkerStyle

    x, y = _numbers(mark.x), _numbers(mark.y)
    frame = (left, right), (foot, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    inside = (x >= left) & (x <= right) & (y >= foot) & (y <= top)
    sides: tuple[Literal["x", "y"], ...] = ("x", "y")
    for number, side in enumerate(sides):
        low, high = (_numbers(each) for each in intervals_of(mark, side))
        flipped = ax.yaxis_inverted() if number else ax.xaxis_inverted()
        least, most = frame[number]
        ends = ((low < least, least, flipped), (high > most, most, not flipped))
        for beyond, edge, outwards in ends if low.size else ():
            for k in np.flatnonzero(inside & beyond).tolist():
                tip = (x[k], edge) if number else (edge, y[k])
                yield ax.scatter(
                    tip[0], tip[1], s=(2 * PIXEL * ARROW) ** 2, color=colours[k], linewidths=0,
                    marker=MarkerStyle(TIPS[side][int(outwards)]), zorder=3,
                )  # fmt: skip


def _rectangles(
    ax: Axes, boxes: Sequence[tuple[float, float, float, float]], colours: Sequence[str],
    opacity: float, frame: object, **look: Any,
) -> Iterator[Artist]:  # fmt: skip
    """Rectangles from x0, y0 to x1, y1."""
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    kept = [k for k, box in enumerate(boxes) if np.isfinite(box).all()]
    widths = np.broadcast_to(_numbers(frame), len(boxes))
    found = [(Rectangle((a, b), c - a, d - b)) for a, b, c, d in (boxes[k] for k in kept)]
    yield ax.add_collection(
        PatchCollection(
            found, facecolors=[to_rgba(colours[k], opacity) if opacity else "none" for k in kept],
            edgecolors=[colours[k] for k in kept], linewidths=PIXEL * widths[kept], **look,
        ),
        autolim=False,
    )  # fmt: skip


def _bars(mark: Bars, ax: Axes, theme: Theme) -> Iterator[Artist]:
    if not mark.opacity:  # they are there for the mouse
        return
    x0, x1, y = (_numbers(each) for each in (mark.x0, mark.x1, mark.y))
    half = np.broadcast_to(0.5 * _numbers(mark.thickness), len(y))
    boxes = list(zip(x0, y - half, x1, y + half, strict=True))
    yield from _rectangles(ax, boxes, _inks(mark.color, len(y), theme), mark.opacity, 0.0)


def _spans(mark: Spans, ax: Axes, theme: Theme) -> Iterator[Artist]:
    sides = [mark.x0, mark.y0, mark.x1, mark.y1]
    count = next(len(each) for each in sides if each is not None)
    ends = (ax.get_xlim()[0], ax.get_ylim()[0], ax.get_xlim()[1], ax.get_ylim()[1])
    columns = [
        np.full(count, end) if each is None else _numbers(each)
        for each, end in zip(sides, ends, strict=True)
    ]
    boxes = list(zip(*columns, strict=True))
    colours = _inks(mark.color, count, theme)
    below = 2.5 if np.any(_numbers(mark.frame)) else 0.5
    yield from _rectangles(ax, boxes, colours, mark.opacity, mark.frame, zorder=below)


def _polylines(mark: Polylines, ax: Axes, theme: Theme) -> Iterator[Artist]:
    from matplotlib.collections import LineCollection

    lines = [np.column_stack([_numbers(mark.x), _numbers(row)]) for row in mark.rows]
    colours = _inks(list(mark.colors), len(lines), theme)
    yield ax.add_collection(
        LineCollection(lines, colors=colours, linewidths=PIXEL * _numbers(mark.widths)),
        autolim=False,
    )


def _segments(mark: Segments, ax: Axes, theme: Theme) -> Iterator[Artist]:
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    ends = [_numbers(each) for each in (mark.x0, mark.y0, mark.x1, mark.y1)]
    turns = itertools.repeat(None) if mark.turn is None else _numbers(mark.turn).tolist()
    paths = []
    for (x0, y0, x1, y1), turn in zip(np.column_stack(ends).tolist(), turns, strict=False):
        if turn is None:
            paths.append(Path([(x0, y0), (x1, y1)]))
            continue
        third = (x1 - turn) / 3
        codes = [Path.MOVETO, Path.LINETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
        bend = [(turn + third, y0), (turn + 2 * third, y1), (x1, y1)]
        paths.append(Path([(x0, y0), (turn, y0), *bend], codes))
    colours = _inks(mark.color, len(paths), theme)
    lines = PathCollection(
        paths, facecolors="none", edgecolors=colours, linewidths=PIXEL * mark.width,
        linestyles=[dashes_of(mark.dash, mark.width)], zorder=1,
    )  # fmt: skip
    yield ax.add_collection(lines, autolim=False)


def _rule(mark: Rule, ax: Axes, theme: Theme) -> Iterator[Artist]:
    look: dict[str, Any] = {"color": ink_of(mark.color, theme), "lw": 0.8, "zorder": 1}
    look["ls"] = dashes_of(mark.dash, 1.0)
    if mark.x is not None:
        yield ax.axvline(mark.x, **look)
    if mark.y is not None:
        yield ax.axhline(mark.y, **look)


def _label(mark: Label, ax: Axes, theme: Theme) -> Iterator[Artist]:
    from matplotlib.patheffects import withStroke

    sides = {"start": "left", "middle": "center", "end": "right"}
    x = ax.get_xlim()[0] if mark.x is None else mark.x
    note = ax.annotate(
        mark.text, (x, mark.y), (PIXEL * mark.dx, -PIXEL * mark.dy), zorder=5,
        textcoords="offset points", ha=sides[mark.anchor], color=ink_of(mark.color, theme),
        fontsize=style.text_size(ax), annotation_clip=False,
    )  # fmt: skip
    if not mark.bare:
        note.set_path_effects([withStroke(linewidth=3, foreground=THEMES[theme].ground)])
    yield note


def _cells(mark: Cells, ax: Axes, theme: Theme) -> Iterator[Artist]:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import Normalize
    from matplotlib.patches import Ellipse, Patch, Rectangle

    values = _numbers(mark.values)
    ramp, scale = ramp_of(mark.colors), Normalize(mark.least, mark.most, clip=True)
    if mark.written is None and mark.round is None:
        limits = ax.get_xlim(), ax.get_ylim()
        yield ax.imshow(
            values, aspect="auto", cmap=ramp, norm=scale, interpolation="nearest", origin="lower",
            extent=(mark.x0, mark.x1, mark.y0, mark.y1),
        )  # fmt: skip
        ax.set(xlim=limits[0], ylim=limits[1])
        return
    wide, high = (mark.x1 - mark.x0) / values.shape[1], (mark.y1 - mark.y0) / values.shape[0]
    shapes: list[Patch] = []
    fills = []
    size = _size_in(ax, values.shape[1])
    for row, column in np.argwhere(np.isfinite(values)).tolist():
        x, y = mark.x0 + wide * (column + 0.5), mark.y0 + high * (row + 0.5)
        fills.append(ramp(scale(values[row, column])))
        if mark.round is not None and mark.round[row, column]:
            shapes.append(Ellipse((x, y), 0.9 * wide, 0.9 * high))
        else:
            shapes.append(Rectangle((x - wide / 2, y - high / 2), wide, high))
        if mark.written is not None and size:
            ax.text(
                x, y, mark.written[row][column], ha="center", va="center", fontsize=size,
                color=readable(fills[-1]), in_layout=False,
            )  # fmt: skip
    yield ax.add_collection(PatchCollection(shapes, facecolor=fills, linewidth=0), autolim=False)


def _size_in(ax: Axes, columns: int) -> float:
    """Points of ".12" in so many cells side by side; 0: it cannot be read there."""
    width = style.room_of(ax)[0] / columns
    size = min(style.text_size(ax), width / 1.9)
    return size if size >= LEAST_SIZE else 0.0


def _discs(mark: Discs, ax: Axes, theme: Theme) -> Iterator[Artist]:
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Circle

    colour = ink_of(mark.color, theme)
    places = zip(*(_numbers(each).tolist() for each in (mark.x, mark.y, mark.r)), strict=True)
    discs = [Circle((x, y), r) for x, y, r in places]
    faces = to_rgba(colour, mark.opacity)
    yield ax.add_collection(
        PatchCollection(discs, facecolor=faces, edgecolor=colour, lw=1.2), autolim=False
    )


def _area(mark: Area, ax: Axes, theme: Theme) -> Iterator[Artist]:
    from matplotlib.colors import to_rgba

    colour = ink_of(mark.color, theme)
    face = to_rgba(colour, mark.opacity)
    yield from ax.fill(_numbers(mark.x), _numbers(mark.y), fc=face, ec=colour, lw=1.2)


def _end(mark: End, ax: Axes, theme: Theme) -> Iterator[Artist]:
    """Names at the ends of lines are put together, once the axes are laid out."""
    yield from ()


PENS: dict[str, Callable[[Any, Axes, Theme], Iterator[Artist]]] = {
    "line": _line,
    "points": _points,
    "bars": _bars,
    "polylines": _polylines,
    "rule": _rule,
    "label": _label,
    "cells": _cells,
    "spans": _spans,
    "segments": _segments,
    "discs": _discs,
    "area": _area,
    "end": _end,
}
"""What draws a mark on axes, by its kind, and yields the artists that it made."""
