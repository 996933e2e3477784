"""A figure whose texts are shown as they are: a dollar sign in a name begins no formula."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from evo.logs.escapes import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.artist import Artist

LONGEST = 1000
"""Characters of one text; the layout of a longer one, such as a forged name, takes minutes."""

DPI = 144
"""Dots per inch of what a cell shows."""

_POWER = re.compile(r"\$\\mathdefault\{-?[\d.]+(\^\{-?\d+\})?\}\$")
"""What matplotlib itself writes at the ticks of a logarithmic axis."""


class PlainAxes(Axes):
    """Axes that a cell shows as the picture of their figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        figure = self.get_figure(root=True)
        return figure._repr_png_() if isinstance(figure, PlainFigure) else None


PlainAxes.__name__ = Axes.__name__  # in texts they are axes as any others


class PlainFigure(Figure):
    """A figure that never parses its texts, since most hold names of tasks, models and runs.

    It shows itself in a cell, and so do its axes, which the functions of `replay.plots` return.
    """

    def add_subplot(self, *places: Any, **how: Any) -> Axes:
        """Adds axes, which show the figure in a cell."""
        if not {"axes_class", "projection", "polar"} & how.keys() and not (
            places and isinstance(places[0], Axes)
        ):
            how["axes_class"] = PlainAxes
        made: Axes = super().add_subplot(*places, **how)
        return made

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=DPI)
        return stream.getvalue(), {"width": round(100 * self.get_figwidth())}

    def draw(self, renderer: RendererBase) -> None:
        """Draws the figure."""
        show_plainly(self)
        super().draw(renderer)

    def get_tightbbox(
        self,
        renderer: RendererBase | None = None,
        *,
        bbox_extra_artists: Iterable[Artist] | None = None,
    ) -> Bbox:
        """Returns the box around everything drawn, inches."""
        show_plainly(self)
        return super().get_tightbbox(renderer, bbox_extra_artists=bbox_extra_artists)


def show_plainly(figure: Figure) -> None:
    """Has every text of a figure shown as it is, but for control characters and endless ones."""
    for text in figure.findobj(Text):
        if not isinstance(text, Text) or not (words := text.get_text()):
            continue
        shown = plain_text(words if len(words) <= LONGEST else f"{words[:LONGEST]} ...")
        if shown != words:
            text.set_text(shown)
        if "$" in shown:
            text.set_parse_math(_POWER.fullmatch(shown) is not None)
