"""A figure whose texts are shown as they are: a dollar sign in a name begins no formula."""

from __future__ import annotations

import re
from typing import Any

from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_POWER = re.compile(r"\$\\mathdefault\{-?[\d.]+(\^\{-?\d+\})?\}\$")
"""What matplotlib itself writes at the ticks of a logarithmic axis."""


class PlainFigure(Figure):
    """A figure that never parses its texts, most of which hold names of tasks, models and runs."""

    def draw(self, renderer: RendererBase) -> None:
        """Draws the figure."""
        show_plainly(self)
        super().draw(renderer)

    def get_tightbbox(self, *arguments: Any, **options: Any) -> Bbox:
        """Returns the box around everything drawn, inches."""
        show_plainly(self)
        return super().get_tightbbox(*arguments, **options)


def show_plainly(figure: Figure) -> None:
    """Has every text of a figure shown as it is."""
    for text in figure.findobj(Text):
        if isinstance(text, Text) and "$" in text.get_text():
            text.set_parse_math(_POWER.fullmatch(text.get_text()) is not None)
