"""A figure in a page: live where it is a chart, else a picture in the inks of either theme."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from replay.markup import clean
from replay.plots.arranging import arrange
from replay.plots.chart import Chart, pack
from replay.plots.output import in_dark
from replay.plots.registry import GroupFigure, drawn_alone, draws, title_of
from replay.plots.scripts import chart_figure, encoded, picture_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DPI = 100
"""Pixels of an inch on the screen."""

Drawn = dict[str, tuple[object, str]]
"""Pictures by name, each with the state of the logs from which it was drawn."""


def figure_of_group(
    name: str, figure: GroupFigure, frame: pd.DataFrame, drawn: Drawn | None = None
) -> str:
    """A figure of a group: live where it is a chart, else a picture; or why there is none."""
    try:
        if not draws(figure):
            return live(figure(frame))
        logs = () if drawn is None else [(p, os.path.getmtime(p)) for p in frame["source"].unique()]
        if drawn is not None and drawn.get(name, ("", ""))[0] == logs:
            return drawn[name][1]
        picture = f"<figure>{in_both_themes(drawn_alone(name, figure, frame))}</figure>"
        if drawn is not None:
            drawn[name] = logs, picture
        return picture
    except ValueError as error:
        title = f"{name[:1].upper()}{name[1:]}"
        return live(Chart(message=f"{title}: not drawn ({str(error)[:300]})"))


def live(chart: Chart, caption: str = "") -> str:
    """A chart as data in a page, which the page's script draws."""
    return chart_figure(pack(chart), chart.words, caption)


def in_both_themes(figure: Figure) -> str:
    """A figure of the light theme as two pictures, one in the inks of dark pages."""
    label = clean("; ".join(title_of(ax) for ax in figure.axes))
    width = round(DPI * figure.get_figwidth())
    figure.set_dpi(2 * DPI)
    arrange(figure)
    parts = []
    for theme, inks in (("light", contextlib.nullcontext()), ("dark", in_dark(figure))):
        with inks:
            png = encoded(picture_of(figure))
        look = f'class="{theme}" width="{width}" alt="{label}"'
        parts.append(f'<img {look} src="data:image/png;base64,{png}">')
    return "".join(parts)
