"""Panels: marks over a pair of axes, which are as long as the marks need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from replay.plots.marks import Mark, reach_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROOM = (0.02, 0.05)
"""Room on each side of what marks reach along x and y, as a share of it."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a panel.

    Attributes:
        domain: Values at its beginning (left, below) and at its end; None: what the marks reach,
            with some room.
        label: Its text.
        scale: Linear or logarithmic.
        ticks: Values and texts, of one line or several; None: the pen chooses them.
        whole: Whether the pen chooses only whole numbers.
        grid: Whether there are grid lines at the ticks; None: unless ticks are given.
        above: Whether a horizontal axis stands above the panel.
    """

    domain: tuple[float, float] | None = None
    label: str = ""
    scale: Literal["linear", "log"] = "linear"
    ticks: Sequence[tuple[float, str]] | None = None
    whole: bool = False
    grid: bool | None = None
    above: bool = False


@dataclass(frozen=True)
class ColorBar:
    """What colours mean: a bar on the right of a panel.

    Attributes:
        colors: Hex colours from `least` to `most`.
        least: Value of the first colour.
        most: Value of the last one.
        label: What the values are.
    """

    colors: Sequence[str]
    least: float
    most: float
    label: str = ""


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
        width: Of a figure of its own on paper, in pixels; on the screen it fills the page.
        zoom: Whether dragging zooms it.
        legend: Whether its marks with a label are listed.
        shares: A name; panels that give the same one are zoomed along x together.
        bar: What the colours of marks mean.
        equal: Whether a unit of both axes is equally long.
        bare: Whether the axes are left out.
    """

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    about: str = ""
    height: float = 240.0
    width: float = 900.0
    zoom: bool = False
    legend: bool = False
    shares: str = ""
    bar: ColorBar | None = None
    equal: bool = False
    bare: bool = False

    def settled(self) -> Panel:
        """The panel with limits of both axes."""

        def settle(axis: Axis, number: int) -> Axis:
            if axis.domain is not None:
                return axis
            reach = [reach_of(mark)[number] for mark in self.marks]
            values = np.concatenate([[], *reach])
            return replace(axis, domain=_limits(values, axis.scale, ROOM[number]))

        return replace(self, x=settle(self.x, 0), y=settle(self.y, 1))


def _limits(values: NDArray[np.float64], scale: str, share: float) -> tuple[float, float]:
    """Limits with a share of room around values; a single one lies in the middle."""
    known = values[np.isfinite(values) & ((values > 0) | (scale != "log"))]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if scale == "log":
        room = (high / low) ** share if high > low > 0 else 2.0
        return (low or 0.1) / room, high * room
    if low == high:
        room = 0.05 * abs(high) or 0.5
        return (max(low - room, 0.0) if low >= 0 else low - room), high + room
    return low - share * (high - low), high + share * (high - low)
