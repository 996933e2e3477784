"""Small multiples in one panel: a strip for each group, one below the other.

Bands of several groups in one panel hide each other. In strips, which share the horizontal axis
and the range of the vertical one, each band stands alone, and grey lines show the other groups.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from replay.plots.limits import ends_of, held, with_room
from replay.plots.marks import Line, Mark, Rule
from replay.plots.panel import Axis
from replay.plots.style import FloatArray
from replay.plots.ticks import even_ticks

HEIGHT, LEAST = 85.0, 260.0
"""Pixels of a strip, and of the lowest panel."""

SCREEN, LOWEST = 600.0, 46.0
"""Pixels of a panel above which strips are lower than `HEIGHT`, and of the lowest strip."""

MOST_TICKS = 4
"""Of a strip."""

TALL = 13.0
"""Pixels of a line of text."""


@dataclass(frozen=True)
class Elsewhere:
    """The line of a group as it is drawn, in grey, in the strips of other groups.

    Attributes:
        x: Places.
        values: Its values.
        kind: It is drawn for groups of the same kind alone; other values mean something else.
    """

    x: FloatArray
    values: ArrayLike
    kind: object = None


@dataclass(frozen=True)
class Strips:
    """Where the values of each group are drawn, the first group on top.

    Attributes:
        count: Strips; 1: the groups share the panel, and values are drawn as they are.
        low: The least value of all groups.
        high: The greatest value.
        margin: Of a strip, above and below, as a share of its height.
        possible: Lowest and highest value that there is, where it is known.
    """

    count: int
    low: float
    high: float
    margin: float
    possible: tuple[float, float] | None = None

    @property
    def height(self) -> float:
        """Pixels of a panel with these strips."""
        return _height(self.count)

    def place(self, group: int, values: ArrayLike) -> FloatArray:
        """Heights, in the coordinates of the panel, of values of a group."""
        known = np.asarray(values, dtype=np.float64)
        if self.count == 1:
            return known
        share = (known - self.low) / ((self.high - self.low) or 1.0)
        return self.count - 1 - group + self.margin + (1 - 2 * self.margin) * share

    def limit(self, group: int, values: ArrayLike) -> FloatArray:
        """Heights of limits of intervals, which are cut off at the edges of the strip."""
        heights = self.place(group, values)
        if self.count == 1:
            return heights
        return np.clip(heights, self.count - 1.0 - group, self.count - group)

    def cuts(self, low: ArrayLike, high: ArrayLike) -> bool:
        """Whether some limits of intervals lie beyond the edges of a strip."""
        edges = self.count - 1.0, float(self.count)
        ends = np.asarray(self.place(0, low)), np.asarray(self.place(0, high))
        return self.count > 1 and bool((ends[0] < edges[0]).any() or (ends[1] > edges[1]).any())

    def end(self, group: int, value: float) -> float:
        """Height of the label of a group that ends at a value; at its foot where that is NaN."""
        foot = self.low if self.count > 1 and math.isnan(value) else value
        return float(self.place(group, foot))

    def elsewhere(self, lines: Sequence[Elsewhere], *, step: bool) -> list[Mark]:
        """The lines of other groups in grey, in each strip as one mark.

        One mark does not get darker where its lines lie over each other.

        Args:
            lines: One of each group, in their order.
            step: Whether they stay level until the next place.
        """
        made: list[Mark] = []
        for group in range(self.count if self.count > 1 else 0):
            own = lines[group].kind
            others = [e for k, e in enumerate(lines) if k != group and e.kind == own and len(e.x)]
            if not others:
                continue
            x = np.concatenate([part for each in others for part in (each.x, each.x[-1:])])
            y = [p for each in others for p in (self.place(group, each.values), [math.nan])]
            made.append(
                Line(
                    x=x, y=np.concatenate(y), color="faint", width=1.2, step=step, hover=False,
                    stated={},
                )
            )  # fmt: skip
        return made

    def rules(self) -> list[Mark]:
        """Lines between the strips."""
        return [Rule(y=float(height), color="faint") for height in range(1, self.count)]

    def axis(self, label: str) -> Axis:
        """The vertical axis, with ticks in every strip."""
        if self.count == 1:
            return Axis(label=label, possible=self.possible)
        places = [
            (float(self.place(group, tick)), text)
            for group in range(self.count)
            for tick, text in self.ticks()
        ]
        return Axis(domain=(0.0, float(self.count)), label=label, ticks=places, grid=True)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values from the least to the greatest, even steps apart, with their texts."""
        room = (1 - 2 * self.margin) * self.height / self.count
        found = [even_ticks(self.low, self.high, most) for most in range(MOST_TICKS, 0, -1)]
        several = list(itertools.takewhile(lambda each: len(each) > 1, found))
        ends = found[0][:1] + found[0][-1:]  # where there is room for two
        for ticks in [*several, ends] if ends else []:
            if room * (ticks[1][0] - ticks[0][0]) >= 1.4 * TALL * (self.high - self.low):
                return ticks
        return ends[-1:]


def _height(count: int) -> float:
    """Pixels of a panel with so many strips."""
    return max(LEAST, count * min(HEIGHT, max(LOWEST, SCREEN / count)))


def strips_for(
    count: int,
    values: Iterable[ArrayLike],
    *,
    limits: tuple[ArrayLike, ArrayLike] = ((), ()),
    possible: tuple[float, float] | None = None,
) -> Strips:
    """Strips for so many groups, over the range of all values; one for fewer than two.

    Args:
        count: Groups.
        values: Everything that is drawn besides intervals.
        limits: Lower and upper limits of intervals, which count within reason.
        possible: Lowest and highest value that there is, where it is known.
    """
    known = np.concatenate([[], *(np.ravel(np.asarray(e, dtype=np.float64)) for e in values)])
    known = held(known, *limits, possible)
    low, high = ends_of(known)
    if low == high:
        low, high = with_room(low, high)
    # A tick at an end of a strip keeps clear of the next strip's.
    count = max(1, count)
    margin = min(0.25, max(0.08, 0.65 * TALL * count / _height(count)))
    return Strips(count, low, high, margin, possible)
