"""The figure page of a report: runs, the best construction, policies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evo.logs.log import read_log
from replay import plots
from replay.logs.frames import originals
from replay.plots import charts
from replay.plots.chart import Chart
from replay.plots.pen import HEAD
from replay.plots.registry import HEIGHT, draw, figures
from replay.plots.style import THEMES, TITLE_SIZE, Theme, sentence
from replay.reports.report import Group
from replay.reports.titles import apart, compared_runs, named, settled, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from replay.claims.task_comparison import TaskComparison
    from replay.plots.panel import Panel
    from replay.simulation.contest import Contest

WIDTH, WIDE = 9.0, 14.0  # inches: trajectories alone, and with something beside them
HEADING = 0.35  # inches of a line of text
PICTURE = "best construction"
COLUMN, LOW = 5.6, 4.0  # inches of a column and a row of a page of several groups
MOST_COLUMNS = 5
CONTEST = ("curves", "pulls", "times", "effects")
PER_STRIP = 0.5  # inches that each policy, and each N, beyond the sixth adds to a row


Item = TypeVar("Item")


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
    if best.value is None and best.program is None:
        return None, f"no picture of the best construction: {path} holds neither it nor programs"
    if best.value is None:
        return None, (
            f"no picture of the best construction: {path} keeps none; "
            f"`evo best --value {quote(str(path))}` keeps it beside the log"
        )
    seed = f"seed {log.header.seed}, " if log.header.seed >= 0 else ""
    caption = (
        f"best of {len(group.tables.runs)} runs: {seed}"
        f"generation {best.generation}, fitness {best.evaluation.fitness:.6f}"
    )
    try:
        chart = charts.construction(picture, best.value)
    except ValueError as error:  # a stranger's log may hold anything
        chart = Chart(message=textwrap.fill(str(error)[:300], 40))
    return DrawnConstruction(chart, caption), None


def draw_page(
    panels: Sequence[GroupPanel],
    *,
    comparison: TaskComparison | None = None,
    theme: Theme = "light",
) -> Figure:
    """Draws what compares the groups, then each: rows of its runs, then those of each contest.

    Of several groups each stands in one row where five columns suffice, so that a page of three has
    a height that a screen shows.

    Args:
        panels: What is shown of each group.
        comparison: Of the configurations, if there is one.
        theme: Inks.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from replay.plots.plain import PlainFigure

    parts = [panel.group for panel in panels]
    known, words = settled(figures(), parts), apart(parts)
    named_parts = [_names(own, panel) for own, panel in zip(known, panels, strict=True)]
    columns = _columns([len(names) for names in named_parts])
    first = _first_rows(parts, comparison, columns)
    rows: list[tuple[Sequence[str], float]] = [
        ([name for name, _ in row], max(each.height for _, each in row) / 100 + HEAD)
        for row in first
    ]
    for number, panel in enumerate(panels):
        rows += _rows_of_panel(number, panel, named_parts[number], columns)
    layout = [_spread(names, columns) for names, _ in rows]
    heights = [height for _, height in rows]
    compared = any(panel.contests for panel in panels) or comparison is not None
    wide = compared or any(len(set(row)) > 1 for row in layout)
    even = compared or len(figures()) > 1 or columns > 2
    width = (columns * COLUMN if columns > 2 else WIDE) if wide else WIDTH
    figure = PlainFigure(
        figsize=(width, sum(heights)),
        dpi=100,
        layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12),
    )
    axes = _axes(figure, layout, heights, [1] * columns if even else [2, 1])
    for name, own in (each for row in first for each in row):
        Chart(panels=[own]).draw(axes[name], theme)
    for number, panel in enumerate(panels):
        for name, draws in known[number].items():
            frame = originals(panel.group.tables.generations, quiet=True)
            ax = axes[f"{number} {name}"]
            draw(titled(name, words[number]), draws, frame, ax, theme)
        if panel.construction:
            shown = named(panel.construction.chart, words[number])
            made = panel.construction._replace(chart=shown)
            _draw_construction(made, axes[f"{number} {PICTURE}"], theme)
        for k, (title, contest) in enumerate(panel.contests):
            places = {part: axes[f"{number} contest {k} {part}"] for part in ("heading", *CONTEST)}
            _draw_contest(title, contest, places, theme)
    return figure


def _rows_of_panel(
    number: int, panel: GroupPanel, figures_of: Sequence[str], columns: int
) -> Iterator[tuple[Sequence[str], float]]:
    """Names of the axes and height of each row of a group: its figures, then its contests."""
    height = HEIGHT if columns == 2 else LOW
    names = [f"{number} {name}" for name in figures_of]
    sizes = panel.group.tables.generations["children"].nunique()
    for line in _rows_of(names, columns):
        yield line, height + (PER_STRIP * max(0, sizes - 6) if line[0] == names[0] else 0)
    for k, (_, contest) in enumerate(panel.contests):
        lines = contest.finals["policy"].nunique()
        yield [f"{number} contest {k} heading"], HEADING
        for line in _rows_of(CONTEST, columns):
            parts = [f"{number} contest {k} {part}" for part in line]
            yield parts, height + PER_STRIP * max(0, lines - 6)


def _axes(
    figure: Figure,
    layout: Sequence[Sequence[str]],
    heights: Sequence[float],
    widths: Sequence[float],
) -> dict[str, Axes]:
    """Axes by name, each in a part of the figure of its own.

    In one mosaic the longest labels of a column would take their room from all axes of the page.
    """
    grid = figure.add_gridspec(len(layout), len(widths), height_ratios=heights, width_ratios=widths)
    axes = {}
    for row, names in enumerate(layout):
        for name in dict.fromkeys(names):
            first, count = names.index(name), names.count(name)
            part = figure.add_subfigure(grid[row, first : first + count])
            part.set_facecolor("none")
            # A line of text needs no layout, whose paddings are higher than its row.
            line = name.endswith(" heading")
            axes[name] = part.add_axes((0.009, 0, 0.98, 1)) if line else part.subplots()
    return axes


def _columns(counts: Sequence[int]) -> int:
    """Columns of a page: two for one group; of several each has as few rows as can be read."""
    if len(counts) < 2:
        return 2
    rows = -(-max(counts) // MOST_COLUMNS)
    return max(2, -(-max(counts) // rows))


def _rows_of(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Items by rows of a size."""
    return [items[at : at + size] for at in range(0, len(items), size)]


def _spread(names: Sequence[str], columns: int) -> list[str]:
    """A row of the page: each name in as many columns as others, or in one more, the first ones."""
    each, more = divmod(columns, len(names))
    return [name for k, name in enumerate(names) for _ in range(each + (k < more))]


def _first_rows(
    parts: Sequence[Group], comparison: TaskComparison | None, columns: int
) -> list[list[tuple[str, Panel]]]:
    """What compares the groups, row by row: the groups of each task together, and their summary."""
    together = [panel for chart in compared_runs(parts) for panel in chart.panels]
    summary = charts.comparison(comparison).panels if comparison is not None else []
    if columns == 2:
        rows = [*([panel] for panel in together), *_rows_of(summary, 2)]
    else:
        rows = [*_rows_of([*together, *summary], columns)]
    return [
        [(f"compared {k} {number}", panel) for number, panel in enumerate(row)]
        for k, row in enumerate(rows)
    ]


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
        sentence(axes["effects"], theme, textwrap.fill(contest.notes[0], 50))
    else:
        plots.pool_vs_allocation(contest.effects, ax=axes["effects"], theme=theme)
