"""Small multiples on one pair of axes: a strip for each group, one below the other.

Bands of several groups in one panel hide each other. In strips, which share the horizontal axis
and the range of the vertical one, each band stands alone, and grey lines show the other groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from replay.plots import style
from replay.plots.style import THEMES, FloatArray, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, LEAST = 0.85, 4.2
"""Inches of a strip in a figure of its own, and of the lowest figure."""

MOST_TICKS = 4
"""Of a strip."""


@dataclass(frozen=True)
class Strips:
    """Where the values of each group are drawn, the first group on top.

    Attributes:
        count: Strips; 1: the groups share the axes, and values are drawn as they are.
        low: The least value of all groups.
        high: The greatest value.
        margin: Of a strip, above and below, as a share of its height.
    """

    count: int
    low: float
    high: float
    margin: float

    def place(self, group: int, values: ArrayLike) -> FloatArray:
        """Heights, in the coordinates of the axes, of values of a group."""
        known = np.asarray(values, dtype=np.float64)
        if self.count == 1:
            return known
        share = (known - self.low) / ((self.high - self.low) or 1.0)
        return self.count - 1 - group + self.margin + (1 - 2 * self.margin) * share

    def end(self, group: int, value: float) -> float:
        """Height of the label of a group that ends at a value; at its foot where that is NaN."""
        foot = self.low if self.count > 1 and math.isnan(value) else value
        return float(self.place(group, foot))

    def show_elsewhere(
        self, ax: Axes, theme: Theme, group: int, x: FloatArray, values: ArrayLike, *, steps: bool
    ) -> None:
        """Draw the line of a group in grey in the strips of the others."""
        for other in range(self.count if self.count > 1 else 0):
            if other != group:
                ax.plot(
                    x, self.place(other, values), color=THEMES[theme].faint, lw=0.9, zorder=1,
                    drawstyle="steps-post" if steps else "default",
                )  # fmt: skip

    def finish(self, ax: Axes, theme: Theme, ends: Sequence[tuple[float, str, str]]) -> None:
        """Write the ticks of every strip, separate the strips and name the groups.

        Args:
            ax: The axes.
            theme: Inks.
            ends: As of `label_ends`.
        """
        if self.count == 1 and ax.dataLim.height == 0:
            ax.set_ylim(*around(float(ax.dataLim.y0)))
        if self.count > 1:
            self._set_ticks(ax)
            for height in range(1, self.count):
                ax.axhline(height, color=THEMES[theme].faint, lw=0.8, zorder=0)
        names = style.label_ends(ax, theme, ends)
        vars(ax)["strips"] = names if self.count > 1 else []

    def _set_ticks(self, ax: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        room = (1 - 2 * self.margin) * _points(ax) / self.count
        locator = MaxNLocator(MOST_TICKS, steps=[1, 2, 2.5, 5, 10])
        ticks = np.asarray(locator.tick_values(self.low, self.high))
        ticks = ticks[(ticks >= self.low) & (ticks <= self.high)]
        apart = room * np.diff(ticks[:2]).sum() / (self.high - self.low)
        if len(ticks) > 1 and apart < 1.4 * style.text_size(ax):  # the outer ones, or one
            widely = (len(ticks) - 1) * apart >= 1.4 * style.text_size(ax)
            ticks = ticks[:: len(ticks) - 1] if widely else ticks[-1:]
        digits = max(0, 1 - math.floor(math.log10(self.high - self.low)))
        texts = [f"{round(tick, digits):g}" for tick in ticks.tolist()]
        places = np.concatenate([self.place(group, ticks) for group in range(self.count)])
        ax.set_yticks(places.tolist(), texts * self.count)
        ax.set_ylim(0, self.count)


def strips_for(ax: Axes, count: int, values: Iterable[ArrayLike]) -> Strips:
    """Strips for so many groups on axes, over the range of all values; one for fewer than two.

    Args:
        ax: The axes.
        count: Groups.
        values: Everything that is drawn.
    """
    known = np.concatenate([np.ravel(np.asarray(each, dtype=np.float64)) for each in values])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if low == high:
        low, high = around(low)
    # A tick at an end of a strip keeps clear of the next strip's.
    margin = min(0.25, max(0.08, 0.65 * style.text_size(ax) * count / _points(ax)))
    return Strips(max(1, count), low, high, margin)


def around(level: float) -> tuple[float, float]:
    """Limits of an axis for a single level; a fitness that is not negative needs none below 0."""
    room = 0.05 * (abs(level) or 1.0)
    return max(level - room, 0.0) if level >= 0 else level - room, level + room


def axes_for(count: int, ax: Axes | None) -> Axes:
    """The axes given, else those of a figure that is high enough for so many strips."""
    height = max(LEAST, 1.0 + HEIGHT * count)
    return style.subplots(height=height)[1][0] if ax is None else ax


def name_once(rows: Iterable[Sequence[Axes]]) -> None:
    """Name the strips of axes side by side at the right of the last one only."""
    for row in rows:
        for ax, right in pairwise(row):
            notes, beside = (vars(each).get("strips", []) for each in (ax, right))
            if [note.get_text() for note in notes] == [note.get_text() for note in beside]:
                for note in notes:
                    note.remove()


def _points(ax: Axes) -> float:
    """Height of axes as they lie now; a layout changes it little."""
    return float(ax.get_position().height * style.figure_of(ax).get_figheight() * 72)
