"""What tells the groups of a report apart, in the titles and on the axes of their figures."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.logs.frames import originals
from replay.plots.chart import Chart
from replay.plots.medium import one_look
from replay.plots.registry import GroupFigure, draws
from replay.plots.runs import trajectories

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from replay.plots.panel import Panel
    from replay.reports.report import Group

Words = tuple[str, ...]


def apart(parts: Sequence[Group]) -> list[Words]:
    """For each group what tells it from the others: its task, its model and its setting.

    Args:
        parts: The groups of a page.
    """
    known = [(part.task, part.model, part.setting) for part in parts]
    varied = [len(set(column)) > 1 for column in zip(*known, strict=True)]
    return [
        tuple(text for text, shown in zip(each, varied, strict=True) if shown and text)
        for each in known
    ]


def menu_names(parts: Sequence[Group]) -> list[str]:
    """A name for each group, which no other has; of a single one its task."""
    return [", ".join(words) or part.task for words, part in zip(apart(parts), parts, strict=True)]


def titled(title: str, words: Iterable[str]) -> str:
    """A title that says all the words, those that it lacks last."""
    lacking = [w for w in words if not re.search(rf"(?<![\w.-]){re.escape(w)}(?![\w-])", title)]
    mark = ", " if ": " in title else ": "
    return f"{title}{mark}{', '.join(lacking)}" if lacking else title


def settled(
    figures: dict[str, GroupFigure], parts: Sequence[Group]
) -> list[dict[str, GroupFigure]]:
    """The figures of each group: their titles tell groups apart, and a task has one range.

    Charts of groups of one task and version show the same fitness at the same height.

    Args:
        figures: Name -> figure, from `replay.plots.registry.figures`.
        parts: The groups of a page.

    Returns:
        Name -> figure, which raises what the figure raised, for each group.
    """
    words = apart(parts)
    found: list[dict[str, GroupFigure]] = [{} for _ in parts]
    for name, figure in figures.items():
        if draws(figure):
            for own, said in zip(found, words, strict=True):
                own[name] = _titled_on_axes(figure, said)
            continue
        with one_look():
            made = [_chart_of(figure, part, _reach(part, parts)) for part in parts]
        for own, said, chart in zip(found, words, _level(made, parts), strict=True):
            own[name] = _given(chart, said)
    return found


def compared_runs(parts: Sequence[Group]) -> list[Chart]:
    """Best fitness so far of the groups of each task together; none of a task with one group."""
    shown: dict[object, list[tuple[Group, str]]] = {}
    for part, name in zip(parts, menu_names(parts), strict=True):
        shown.setdefault(_scale(part), []).append((part, name))
    return [_beside(own) for own in shown.values() if len(own) > 1]


def _beside(own: Sequence[tuple[Group, str]]) -> Chart:
    import pandas as pd

    task = own[0][0].task
    frames = [
        part.tables.generations.assign(configuration=name.removeprefix(f"{task}, "))
        for part, name in own
    ]
    frame = originals(pd.concat(frames, ignore_index=True), quiet=True)
    several = frame["children"].nunique() > 1
    by = ["configuration", "children"] if several else ["configuration"]
    return trajectories(frame, x="calls" if several else "generation", by=by)


def _scale(part: Group) -> object:
    """What the fitness of groups is on one scale in."""
    return part.task, tuple(sorted(part.tables.runs["task_version"].fillna("").unique()))


def _reach(part: Group, parts: Sequence[Group]) -> tuple[float, float] | None:
    """The least and the greatest best fitness of all groups of a task; None: there is one."""
    same = [each for each in parts if _scale(each) == _scale(part)]
    known = np.concatenate(
        [each.tables.generations["best_fitness"].to_numpy(float) for each in same]
    )
    known = known[np.isfinite(known)]
    return (float(known.min()), float(known.max())) if len(same) > 1 and known.size else None


def _chart_of(
    figure: GroupFigure, part: Group, reach: tuple[float, float] | None
) -> Chart | ValueError:
    """The chart of a group, or why there is none."""
    takes = "reach" in inspect.signature(figure).parameters
    try:
        frame = originals(part.tables.generations, quiet=True)
        made: Chart = figure(frame, **({"reach": reach} if takes else {}))
    except ValueError as error:
        return error
    return made


def _level(made: Sequence[Chart | ValueError], parts: Sequence[Group]) -> list[Chart | ValueError]:
    """The charts, of which those of one task have one vertical axis."""
    spans: dict[object, list[tuple[float, float]]] = {}
    for chart, part in zip(made, parts, strict=True):
        if isinstance(chart, Chart):
            for panel in chart.panels:
                if (key := _shared(panel)) is not None:
                    domain = panel.settled().y.domain
                    assert domain is not None
                    spans.setdefault((_scale(part), key), []).append(domain)

    def level(chart: Chart | ValueError, part: Group) -> Chart | ValueError:
        if not isinstance(chart, Chart):
            return chart
        panels = []
        for panel in chart.panels:
            own = spans.get((_scale(part), _shared(panel)), [])
            if len(own) > 1:
                domain = (min(low for low, _ in own), max(high for _, high in own))
                panel = replace(panel, y=replace(panel.y, domain=domain))  # noqa: PLW2901
            panels.append(panel)
        return replace(chart, panels=panels)

    return [level(chart, part) for chart, part in zip(made, parts, strict=True)]


def _shared(panel: Panel) -> object:
    """What panels of one vertical axis have in common; None: its limits are its own."""
    free = panel.y.domain is None and panel.y.ticks is None
    return (panel.y.label, panel.y.scale) if free and panel.y.label else None


def _given(chart: Chart | ValueError, words: Words) -> GroupFigure:
    def figure(frame: Any) -> Chart:
        if isinstance(chart, ValueError):
            raise chart
        return named(chart, words)

    return figure


def named(chart: Chart, words: Words) -> Chart:
    """A chart whose titles say these words."""
    panels = [
        replace(each, title=titled(each.title, words)) if each.title else each
        for each in chart.panels
    ]
    return replace(chart, panels=panels)


def _titled_on_axes(figure: Callable[..., Any], words: Words) -> GroupFigure:
    @functools.wraps(figure)
    def drawn(frame: Any, *, ax: Axes, **how: Any) -> Any:
        made = figure(frame, ax=ax, **how)
        _name_axes(ax, words)
        return made

    return drawn


def _name_axes(ax: Axes, words: Words) -> None:
    """Adds the words to the title of axes, whoever drew it."""
    from matplotlib.text import Text

    if heading := vars(ax).get("heading"):
        heading["title"] = titled(heading["title"], words)
        vars(ax)["fit_head"]()
        return
    titles = {ax.get_title(loc="left"), ax.get_title(loc="center"), ax.get_title(loc="right")}
    for text in ax.get_children():
        if isinstance(text, Text) and text.get_text() and text.get_text() in titles:
            text.set_text(titled(text.get_text(), words))
