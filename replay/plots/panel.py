"""Panels: marks over a pair of axes, which are as long as the marks need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evo.plugins import MistakenType
from replay.plots.limits import ends_of, held, with_room
from replay.plots.marks import Mark, Points, intervals_of, reach_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROOM = (0.02, 0.05)
"""Room on each side of what marks reach along x and y, as a share of it."""

GOES_ON = "Arrows: the interval goes on."


def listed(
    name: Literal["marks", "panels"], given: object, kind: type | UnionType
) -> Sequence[Any]:
    """Returns what a picture is made of, which each pen reads anew, so that no iterator will do.

    Raises:
        TypeError: It is no list, or something else than the kind is in it.
    """
    what = (
        "marks, such as Line(x=[0, 1], y=[0, 1])"
        if name == "marks"
        else "panels, such as replay.plots.panel.Panel(...)"
    )
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise MistakenType(f"{name}: expected a list of {what}, got {given!r:.80}")
    found = given if isinstance(given, Sequence) else tuple(given)
    for each in found:
        if not isinstance(each, kind):
            raise MistakenType(f"{name}: expected a list of {what}, got {each!r:.80} in it")
    return found


def _check_text(name: str, given: object) -> None:
    """Refuses a number as a title, which would be found out only by a pen."""
    if not isinstance(given, str):
        raise MistakenType(f"{name}: expected a text, got {given!r:.80}")


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
        named: Whether a horizontal axis has its values and its label written; if not, the panel
            below has the same one.
        possible: Lowest and highest value that there is, where it is known: intervals that end
            beyond it do not make the axis longer.
    """

    domain: tuple[float, float] | None = None
    label: str = ""
    scale: Literal["linear", "log"] = "linear"
    ticks: Sequence[tuple[float, str]] | None = None
    whole: bool = False
    grid: bool | None = None
    above: bool = False
    named: bool = True
    possible: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check_text("label", self.label)
        for tick in self.ticks or ():
            if not isinstance(tick, Sequence) or len(tick) != 2 or not isinstance(tick[1], str):
                raise MistakenType(
                    f"ticks: expected pairs of a number and a text, such as [(0, 'a'), (1, 'b')], "
                    f"got {tick!r:.80} among them"
                )


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
        shares: A name; panels that give the same one are zoomed along x together, and begin and end
            alike where they stand above each other.
        bar: What the colours of marks mean.
        equal: Whether a unit of both axes is equally long.
        bare: Whether the axes are left out.
        rows: Rows of panels beside which it stands, where a chart has several columns.
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
    rows: int = 1

    def __post_init__(self) -> None:
        _check_text("title", self.title)
        _check_text("about", self.about)
        object.__setattr__(self, "marks", listed("marks", self.marks, Mark))

    def settled(self) -> Panel:
        """The panel with limits of both axes, and words on intervals that go on beyond them."""
        x, y = self._settle(self.x, "x"), self._settle(self.y, "y")
        if self._goes_on(x, "x") or self._goes_on(y, "y"):
            about = f"{self.about.rstrip('.')}. {GOES_ON}".removeprefix(". ")
        else:
            about = self.about
        return replace(self, x=x, y=y, about=about)

    def _settle(self, axis: Axis, side: Literal["x", "y"]) -> Axis:
        """The axis with its limits."""
        if axis.domain is not None:
            return axis
        number = "xy".index(side)
        values = np.concatenate([[], *(reach_of(mark)[number] for mark in self.marks)])
        ends = [intervals_of(mark, side) for mark in self.marks]
        low = np.concatenate([[], *(each for each, _ in ends)])
        high = np.concatenate([[], *(each for _, each in ends)])
        if axis.scale == "log":
            known = np.concatenate([values, low, high])
        else:
            known = held(values, low, high, axis.possible)
        return replace(axis, domain=_limits(known, axis.scale, ROOM[number]))

    def _goes_on(self, axis: Axis, side: Literal["x", "y"]) -> bool:
        """Whether intervals of points end beyond an axis, where pens draw an arrow."""
        assert axis.domain is not None
        least, most = sorted(axis.domain)
        for mark in self.marks:
            if isinstance(mark, Points):
                place = np.asarray(getattr(mark, side), dtype=np.float64)
                low, high = (np.asarray(e, dtype=np.float64) for e in intervals_of(mark, side))
                if (
                    low.size
                    and ((place >= least) & (place <= most) & ((low < least) | (high > most))).any()
                ):
                    return True
        return False


def _limits(values: NDArray[np.float64], scale: str, share: float) -> tuple[float, float]:
    """Limits with a share of room around values; a single one lies in the middle."""
    known = values[np.isfinite(values) & ((values > 0) | (scale != "log"))]
    low, high = ends_of(known)
    if scale == "log":
        room = (high / low) ** share if high > low > 0 else 2.0
        return (low or 0.1) / room, high * room
    return with_room(low, high, share)
