"""What programs returned, as shapes in the plane, and their chart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from replay.plots.chart import Chart
from replay.plots.marks import Area, Discs, Mark, Points, Segments
from replay.plots.panel import Axis, Panel
from replay.plots.style import PALETTE, FloatArray

MOST_DRAWN = 250
"""Points of a construction; a picture of triangles compares all triples."""

SMALLEST = 2e-3
"""Radius of the smallest circle that can be seen."""


def _none() -> FloatArray:
    return np.empty((0, 2))


@dataclass(frozen=True, kw_only=True, eq=False)
class PlottedConstruction:
    """The shapes of a construction.

    Attributes:
        title: Its value in words.
        about: What is drawn.
        outline: Corners of the region that it lies in, (n, 2).
        discs: Centre and radius, (n, 3).
        far: Ends of dashed lines, (n, 2, 2).
        near: Ends of lines that stand out, (n, 2, 2).
        area: Corners of a region that stands out, (n, 2).
        points: Points, (n, 2).
        crosses: Places of what is too small to see, (n, 2).
    """

    title: str
    about: str
    outline: FloatArray = field(default_factory=_none)
    discs: FloatArray = field(default_factory=_none)
    far: FloatArray = field(default_factory=_none)
    near: FloatArray = field(default_factory=_none)
    area: FloatArray = field(default_factory=_none)
    points: FloatArray = field(default_factory=_none)
    crosses: FloatArray = field(default_factory=_none)


def construct(picture: str, value: object) -> PlottedConstruction:
    """Computes the shapes of the value that a program returned.

    Args:
        picture: The kind of picture of the task: "circles", "points" or "triangle".
        value: The value as plain data or arrays: (centers, radii, ...), or points of shape (n, 2).

    Raises:
        ValueError: There is no such picture, or the value does not fit it.
    """
    if not isinstance(picture, str) or picture not in PICTURES:
        raise ValueError(f"expected a picture among {', '.join(PICTURES)}, got {picture!r}")
    try:
        return PICTURES[picture](value)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the value is no picture of {picture}: {error}") from error


def _plane(value: object) -> FloatArray:
    """Points of the plane, (n, 2)."""
    points = np.asarray(value, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not (np.abs(points) < 1e100).all():
        raise ValueError(f"expected finite points (n, 2), got an array of shape {points.shape}")
    if not 2 < len(points) <= MOST_DRAWN:
        raise ValueError(f"expected from 3 to {MOST_DRAWN} points, got {len(points):,}")
    return points


def _circles(value: Any) -> PlottedConstruction:
    centers, radii = _plane(value[0]), np.asarray(value[1], dtype=np.float64)
    if radii.shape != (len(centers),) or not (np.abs(radii) < 1e100).all():
        raise ValueError(f"expected {len(centers)} finite radii, got {radii.shape}")
    small = radii < SMALLEST
    crosses = f"; crosses: {small.sum()} circles too small to see" if small.any() else ""
    return PlottedConstruction(
        title=f"Sum of radii {math.fsum(radii):.6f}",
        about=f"{len(radii)} circles in the unit square{crosses}",
        outline=np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]),
        discs=np.column_stack([centers, radii]),
        crosses=centers[small],
    )


def _points(value: object) -> PlottedConstruction:
    points = _plane(value)
    first, second = np.triu_indices(len(points), 1)
    distance = np.hypot(*(points[first] - points[second]).T)
    least, most = float(distance.min()), float(distance.max())

    def pairs(length: float) -> FloatArray:
        found = np.isclose(distance, length, rtol=1e-4, atol=0)
        return np.stack([points[first[found]], points[second[found]]], axis=1)

    return PlottedConstruction(
        title=f"Distance ratio {f'{least / most:.6f}' if most else 'undefined'}",
        about=f"{len(points)} points; orange: least distances, dashed: greatest",
        far=pairs(most),
        near=pairs(least),
        points=points,
    )


def _triangle(value: object) -> PlottedConstruction:
    points = _plane(value)
    triples = np.array(list(combinations(range(len(points)), 3)))
    u, v = (points[triples[:, k]] - points[triples[:, 0]] for k in (1, 2))
    ratio = np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]) * 2 / math.sqrt(3)
    return PlottedConstruction(
        title=f"Least area ratio {ratio.min():.6f}",
        about=f"{len(points)} points; orange: the smallest of {len(triples)} triangles",
        outline=np.array([[0, 0], [1, 0], [0.5, math.sqrt(3) / 2]]),
        area=points[triples[ratio.argmin()]],
        points=points,
    )


PICTURES: Mapping[str, Callable[[Any], PlottedConstruction]] = {
    "circles": _circles,
    "points": _points,
    "triangle": _triangle,
}
"""The kinds of pictures of tasks."""


def construction(picture: str, value: object) -> Chart:
    """Draws the value that a program returned.

    Args:
        picture: The kind of picture of the task: "circles", "points" or "triangle".
        value: The value as plain data or arrays: (centers, radii, ...), or points of shape (n, 2).

    Raises:
        ValueError: There is no such picture, or the value does not fit it.

    Example:
        >>> points = [[0.0, 0.0], [1.0, 0.0], [0.5, 0.8]]
        >>> ax = replay.plots.construction("points", points)
    """
    made = construct(picture, value)
    panel = Panel(
        title=made.title, about=made.about, x=Axis(), y=Axis(), marks=shapes_of(made), height=380,
        equal=True, bare=True,
    )  # fmt: skip
    return Chart(panels=[panel])


def shapes_of(made: PlottedConstruction) -> list[Mark]:
    """The shapes of a construction as marks."""
    marks: list[Mark] = []
    for ends, color, dash in ((made.far, "faint", "5 3"), (made.near, PALETTE[1], "")):
        if len(ends):
            (x0, y0), (x1, y1) = ends[:, 0].T, ends[:, 1].T
            marks.append(Segments(x0=x0, y0=y0, x1=x1, y1=y1, color=color, dash=dash))
    if len(made.outline):
        marks.append(Area(x=made.outline[:, 0], y=made.outline[:, 1]))
    if len(made.discs):
        x, y, r = made.discs.T
        marks.append(Discs(x=x, y=y, r=r, color=PALETTE[0]))
    if len(made.area):
        marks.append(Area(x=made.area[:, 0], y=made.area[:, 1], color=PALETTE[1], opacity=0.33))
    if len(made.points):
        marks.append(Points(x=made.points[:, 0], y=made.points[:, 1], color=PALETTE[0], size=4.8))
    if len(made.crosses):
        x, y = made.crosses.T
        marks.append(Points(x=x, y=y, color=PALETTE[1], size=3.4, shape="cross"))
    return marks
