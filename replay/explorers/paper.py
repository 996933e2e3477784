"""Figures of explorers for paper; the browser draws for the screen."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from textwrap import fill
from typing import TYPE_CHECKING

from replay.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from replay.plots.style import Theme


def on_axes(draw: Callable[[Axes], object], height: float, theme: Theme) -> Figure:
    """A figure of one pair of axes, so many inches high, in the inks of a theme.

    What is drawn without naming a colour wears them, too.

    Args:
        draw: Draws on the axes; where it raises ValueError, the figure shows the reason.
        height: Inches.
        theme: Inks, see `replay.plots.style`.
    """
    import matplotlib as mpl

    figure, ink = style.blank(), style.THEMES[theme]
    figure.set_size_inches(figure.get_figwidth(), height)
    figure.set_facecolor(ink.ground)
    try:
        with mpl.rc_context(style.defaults(theme)):
            draw(figure.add_subplot())
    except ValueError as error:
        figure.clear()
        style.sentence(figure.add_subplot(), theme, fill(str(error), 80))
    return figure


def png_of(figure: Figure, notes: Mapping[str, str]) -> bytes:
    """The PNG of a figure, with notes about it."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100, metadata=dict(notes))
    return stream.getvalue()
