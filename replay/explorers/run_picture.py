"""The picture of a run on paper: its chart, and beside it what one of its programs returned."""

from __future__ import annotations

from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from replay.explorers.explorer_spec import Sentence
from replay.explorers.run_chart import SOME, run_chart
from replay.explorers.run_data import RunView
from replay.plots import construction, style
from replay.plots.chart import Chart
from replay.plots.marks import Points
from replay.plots.pen import draw_panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from replay.plots.style import Theme

LEFT = 0.67
"""Share of the width that the run takes; what a program returned has the rest."""


def run_figure(view: RunView | Sentence, theme: Theme) -> Figure:
    """Draws a run and one of its programs, or a sentence in their place."""
    if isinstance(view, Sentence):
        return Chart(message=view.words).figure(theme)
    chart = run_chart(view.data, view.place)
    fitness, failures = chart.panels
    keys = "dots: ok; diamonds: next parents; line: best so far; ring: shown; frame: its parent"
    if any(isinstance(each, Points) and each.shape == "below" for each in fitness.marks):
        keys += "; triangles: below the axis"
    fitness = replace(fitness, title=chart.title, about=keys, legend=False)
    figure = style.blank()
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0, 0, LEFT, 1))
    heights = fitness.height, failures.height
    grid = figure.add_gridspec(2, 1, left=0.1, right=LEFT - 0.02, height_ratios=heights)
    axes = [figure.add_subplot(grid[k]) for k in (0, 1)]
    for ax, panel in zip(axes, (fitness, failures), strict=True):
        draw_panel(panel, ax, theme)
        for points in ax.collections:
            points.set_rasterized(len(view.data.places) > SOME)  # a file of lines would be large
    ax, drawing = figure.add_axes((LEFT + 0.02, 0.22, 0.96 - LEFT, 0.62)), view.drawing
    if drawing.value is None:
        style.sentence(ax, theme, fill(drawing.reason, 30, break_on_hyphens=False))
        return figure
    try:
        construction(drawing.picture, drawing.value, ax=ax, theme=theme)
    except ValueError as error:  # a stranger's log may hold anything
        style.sentence(ax, theme, fill(str(error)[:300], 30))
    return figure
