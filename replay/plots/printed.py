"""Figures for a paper: the width of its columns, texts of the size they are printed in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from evo.plugins import MistakenType
from replay.plots import style
from replay.plots.arranging import arrange
from replay.plots.chart import Chart
from replay.plots.medium import PRINT_SIZE, for_print
from replay.plots.output import save

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS = {1: 3.3, 2: 6.9}
"""Inches of one and of two columns of a page."""

HEIGHTS = {1: 2.3, 2: 3.0}


def paper(
    draw: Callable[..., Axes | Chart],
    *tables: Any,
    path: str | Path | None = None,
    columns: Literal[1, 2] = 1,
    height: float | None = None,
    caption: bool = False,
    **options: Any,
) -> Figure:
    """Draws a figure for a paper: as wide as its columns, in colours that suit greyscale.

    Example:
        >>> figure = replay.plots.paper(replay.plots.slices, grid, path=new(".pdf"), columns=1)

    Args:
        draw: A figure that draws on `ax`, such as those of `replay.plots`, or one that makes a
            chart of one panel.
        tables: What it draws.
        path: Where to save it, as `save`; None: nowhere. A PDF has its text as text.
        columns: How many columns of the page it spans: 1 is 3.3 inches wide, 2 are 6.9.
        height: Inches; None: 2.3 for one column, 3.0 for two.
        caption: Whether title and subtitle stand over it; a paper has them in its own caption.
        options: Of `draw`.

    Raises:
        ValueError: There are neither one nor two columns.
        TypeError: `draw` is no function, such as a figure that was drawn already.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not callable(draw):
        raise MistakenType(
            "paper: expected the function of a figure and then what it draws, as in "
            f"paper(replay.plots.trajectories, frame), got a value of type {type(draw).__name__}"
        )
    if columns not in WIDTHS:
        raise ValueError(f"expected columns to be 1 or 2, got {columns!r}")
    figure = style.blank(WIDTHS[columns], height or HEIGHTS[columns])
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03))
    vars(figure)["text_size"] = PRINT_SIZE
    with for_print(titles=caption):
        _draw(draw, tables, figure.subplots(), options)
        arrange(figure)
    if path is not None:
        save(figure, path, dpi=300)
    return figure


def _draw(
    figure: Callable[..., Any], tables: tuple[Any, ...], ax: Axes, options: Mapping[str, Any]
) -> None:
    """Draws what a function draws on axes, or the chart that it makes."""
    known = inspect.signature(figure).parameters
    if "ax" in known or any(each.kind is each.VAR_KEYWORD for each in known.values()):
        figure(*tables, ax=ax, theme="light", **options)
        return
    made = figure(*tables, **options)
    if not isinstance(made, Chart):
        raise MistakenType(
            "paper: expected the function of a figure to make a replay.plots.Chart or to have "
            f"arguments `ax` and `theme` and draw, got a value of type {type(made).__name__}"
        )
    made.draw(ax, "light")
