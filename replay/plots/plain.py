"""A figure whose texts are shown as they are: a dollar sign in a name begins no formula."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.artist import Artist

_POWER = re.compile(r"\$\\mathdefault\{-?[\d.]+(\^\{-?\d+\})?\}\$")
"""What matplotlib itself writes at the ticks of a logarithmic axis."""


class PlainFigure(Figure):
    """A figure that never parses its texts, since most hold names of tasks, models and runs."""

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
    """Has every text of a figure shown as it is."""
    for text in figure.findobj(Text):
        if isinstance(text, Text) and "$" in text.get_text():
            text.set_parse_math(_POWER.fullmatch(text.get_text()) is not None)
