"""Figures of explorers for paper; the browser draws for the screen."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Protocol

from replay.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from replay.plots.style import Theme


class Worded(Protocol):
    """A view that can be put in words."""

    @property
    def words(self) -> str:
        """What it shows, in sentences."""


def on_axes(draw: Callable[[Axes], object], height: float, theme: Theme) -> Figure:
    """A figure of one pair of axes, so many inches high.

    Args:
        draw: Draws on the axes; where it raises ValueError, the figure shows the reason.
        height: Inches.
        theme: Inks, see `replay.plots.style`.
    """
    figure = style.blank()
    figure.set_size_inches(figure.get_figwidth(), height)
    try:
        draw(figure.add_subplot())
    except ValueError as error:
        figure.clear()
        style.sentence(figure.add_subplot(), theme, fill(str(error), 80))
    return figure


def sentence_figure(view: Worded, theme: Theme) -> Figure:
    """A figure that shows the words of its view."""
    return on_axes(lambda ax: style.sentence(ax, theme, fill(view.words, 80)), 1.6, theme)


def png_of(figure: Figure, notes: Mapping[str, str]) -> bytes:
    """The PNG of a figure, with notes about it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100, metadata=dict(notes))
    return stream.getvalue()
