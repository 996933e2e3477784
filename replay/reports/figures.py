"""The figure page of a report: runs, the best construction, policies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from evo.logs.log import read_log
from replay import plots
from replay.plots import charts
from replay.plots.chart import Chart
from replay.plots.registry import HEIGHT, draw, figures
from replay.plots.style import THEMES, TITLE_SIZE, Theme, sentence
from replay.reports.report import Group
from replay.simulation.arms import IDENTICAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import HashableList

    from replay.simulation.contest import Contest

WIDTH, WIDE = 9.0, 14.0  # inches: trajectories alone, and with something beside them
HEADING = 0.35  # inches of a line of text
PICTURE = "best construction"
PER_STRIP = 0.5  # inches that each policy, and each N, beyond the sixth adds to a row


class DrawnConstruction(NamedTuple):
    """What a group's best program returned, drawn as the task draws it."""

    chart: Chart
    caption: str


class GroupPanel(NamedTuple):
    """What the page shows of a group: its runs, the best construction, policies by N."""

    group: Group
    construction: DrawnConstruction | None
    contests: Sequence[tuple[str, Contest]] = ()


def best_construction(group: Group) -> tuple[DrawnConstruction | None, str | None]:
    """What the log of the best program keeps of what it returned, else why there is none."""
    path = group.best_log
    if path is None:
        return None, None
    log = read_log(path)
    best, picture = log.best, log.header.task.picture
    if not picture or best.evaluation.fitness is None:
        return None, None
    if best.value is None:
        return None, (
            f"no picture of the best construction: {path} keeps none; "
            f"`evo best --value {quote(str(path))}` keeps it beside the log"
        )
    caption = (
        f"best of {len(group.tables.runs)} runs: seed {log.header.seed}, "
        f"generation {best.generation}, fitness {best.evaluation.fitness:.6f}"
    )
    try:
        chart = charts.construction(picture, best.value)
    except ValueError as error:  # a stranger's log may hold anything
        chart = Chart(message=textwrap.fill(str(error)[:300], 40))
    return DrawnConstruction(chart, caption), None


def draw_page(
    panels: Sequence[GroupPanel], *, theme: Theme = "light", width: float | None = None
) -> Figure:
    """Draws for each panel a row of runs, then two rows for each contest; width in inches."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from replay.plots.plain import PlainFigure

    layout: list[HashableList[str]] = []
    heights: list[float] = []
    known = figures()
    for number, panel in enumerate(panels):
        names = [f"{number} {name}" for name in _names(known, panel)]
        sizes = panel.group.tables.generations["children"].nunique()
        for left, right in zip(names[::2], [*names[1::2], names[-1]], strict=False):
            layout.append([left, right])
            heights.append(HEIGHT + (PER_STRIP * max(0, sizes - 6) if left == names[0] else 0))
        for k, (_, contest) in enumerate(panel.contests):
            lines = contest.finals["policy"].nunique()
            name = f"{number} contest {k}"
            layout.append([f"{name} heading"] * 2)
            heights.append(HEADING)
            for left, right in (("curves", "pulls"), ("times", "effects")):
                layout.append([f"{name} {left}", f"{name} {right}"])
                heights.append(HEIGHT + PER_STRIP * max(0, lines - 6))
    compared = any(panel.contests for panel in panels)
    wide = compared or any(left != right for left, right in layout)
    even = compared or len(known) > 1
    figure = PlainFigure(
        figsize=(width or (WIDE if wide else WIDTH), sum(heights)),
        dpi=100,
        layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12),
    )
    axes: dict[str, Axes] = figure.subplot_mosaic(
        layout, height_ratios=heights, width_ratios=[1, 1] if even else [2, 1]
    )
    for number, panel in enumerate(panels):
        for name, draws in known.items():
            draw(name, draws, panel.group.tables.generations, axes[f"{number} {name}"], theme)
        if panel.construction:
            _draw_construction(panel.construction, axes[f"{number} {PICTURE}"], theme)
        for k, (title, contest) in enumerate(panel.contests):
            parts = {
                part: axes[f"{number} contest {k} {part}"]
                for part in ("heading", "curves", "pulls", "times", "effects")
            }
            _draw_contest(title, contest, parts, theme)
    return figure


def _names(known: Iterable[str], panel: GroupPanel) -> list[str]:
    """What a panel shows, in order: the best construction stands beside the first figure."""
    first, *others = known
    return [first, *([PICTURE] if panel.construction else []), *others]


def _draw_construction(construction: DrawnConstruction, ax: Axes, theme: Theme) -> None:
    construction.chart.draw(ax, theme)
    ax.text(
        0.5, -0.02, construction.caption, transform=ax.transAxes, ha="center", va="top",
        color=THEMES[theme].text, fontsize=TITLE_SIZE - 2,
    )  # fmt: skip


def _draw_contest(title: str, contest: Contest, axes: dict[str, Axes], theme: Theme) -> None:
    heading = axes["heading"]
    heading.set_axis_off()
    heading.text(
        0, 0.5, title, transform=heading.transAxes, ha="left", va="center",
        color=THEMES[theme].text, fontsize=TITLE_SIZE + 1, fontweight="bold",
    )  # fmt: skip
    plots.policy_curves(contest.curves, ax=axes["curves"], theme=theme)
    plots.pulls_per_arm(contest.pulls, ax=axes["pulls"], theme=theme)
    rule = contest.times[contest.times["share"] == 0.9]
    plots.threshold_times(rule, ax=axes["times"], theme=theme)
    if contest.identical:
        sentence(axes["effects"], theme, textwrap.fill(IDENTICAL, 50))
    else:
        plots.pool_vs_allocation(contest.effects, ax=axes["effects"], theme=theme)
