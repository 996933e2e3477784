"""What comparisons found, as charts: a verdict, and configurations compared over tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from replay.logs.given import check_result
from replay.plots import style
from replay.plots.chart import Chart
from replay.plots.marks import Line, Mark, Points, Rule
from replay.plots.panel import Axis, Panel
from replay.plots.shapes import estimates

if TYPE_CHECKING:
    from replay.claims.task_comparison import TaskComparison
    from replay.claims.verdict import Verdict

NAMES = {"final": "best fitness", "area": "area under the curve", "calls": "calls saved"}
"""Measures in words, on an axis."""

LONG = 24
"""Characters of the names of a pair beyond which the panels stand below each other."""

ACROSS = 80
"""Characters of an axis label that have room below a verdict."""

ROW = 38.0
"""Pixels of a row of two lines."""


def verdict(found: Verdict) -> Chart:
    """Draws the effect that `replay.judge` found with its interval, no effect, and the margin.

    Args:
        found: The verdict.

    Example:
        >>> found = replay.judge(frame, {"children": 4}, {"children": 2})
        >>> replay.plots.verdict(found).get_title(loc="left") == found.verdict
        True
    """
    check_result("verdict", found, "Verdict", "replay.judge")
    low, high = found.interval.low, found.interval.high
    marks: list[Mark] = [Rule(x=0.0)]
    about = f"{found.interval.label}, {found.counted}"
    if found.margin:
        marks += [Rule(x=at, dash="6 3") for at in (-found.margin, found.margin)]
        about += f"; dashed: margin {found.margin:.3g}"
    words = f"{found.a} minus {found.b}"
    label = style.wrapped(f"{found.scale}, {words}", ACROSS)
    text = f"{words}: {style.ranged(found.effect, low, high)}"
    marks.append(
        Points(
            x=[found.effect], y=[0.0], x_low=[low], x_high=[high], color=style.look(0)[0],
            texts=[text],
        )
    )  # fmt: skip
    panel = Panel(
        title=found.verdict, about=about, marks=marks, height=80, width=600,
        x=Axis(label=label), y=Axis(domain=(-1.0, 1.0), ticks=[]),
    )  # fmt: skip
    return Chart(panels=[panel])


def comparison(found: TaskComparison) -> Chart:
    """Draws the summary of each configuration, each pair's difference, and profiles of the runs.

    Args:
        found: The comparison, from `replay.compare(frame, by=...)`.

    Example:
        >>> import pandas as pd
        >>> both = pd.concat([frame.assign(rule=name, run=frame["run"] + name) for name in "ab"])
        >>> chart = replay.plots.charts.comparison(replay.compare(both, by="rule"))
        >>> [panel.title for panel in chart.panels]
        ['Interquartile means', 'Differences', 'Profiles of the runs']
    """
    check_result("comparison", found, "TaskComparison", "replay.compare(frame, by=...)")
    pairs = found.verdicts["a"].astype(str) + found.verdicts["b"].astype(str)
    panels = [_summary(found), _differences(found), _profiles(found)]
    return Chart(panels=panels, columns=1 if max(map(len, pairs)) > LONG else 2)


def _summary(found: TaskComparison) -> Panel:
    table = found.table
    names = [f"{row.configuration} (n = {row.runs})" for row in table.itertuples()]
    [panel] = estimates(
        table.assign(name=names), rows="name", title="Interquartile means",
        about=f"{style.intervals(table, 'Interquartile mean')}; n: runs",
        x=f"{NAMES[found.measure]}, normalised",
    ).panels  # fmt: skip
    return panel


def _differences(found: TaskComparison) -> Panel:
    """Each pair; of several tasks with the interval for further ones, and each task."""
    verdicts, several = found.verdicts, len(found.tasks) > 1
    names = [f"{row.a} less {row.b}:\n{row.verdict}" for row in verdicts.itertuples()]
    about = (
        "Difference and its interval by Holm's rule over pairs, in standard deviations"
        if verdicts["low"].notna().any()
        else "Difference, in standard deviations; none has an interval"
    )
    shown = verdicts[["effect", "low", "high"]].set_axis(["value", "low", "high"], axis=1)
    shown = shown.assign(name=names)
    if several:
        import pandas as pd

        further = verdicts[["further", "further_low", "further_high"]]
        further = further.set_axis(["value", "low", "high"], axis=1).assign(name=names)
        parts = {"these tasks": shown, "further tasks": further.dropna(subset=["value"])}
        shown = pd.concat([part.assign(tasks=name) for name, part in parts.items()])
        about += "; grey: single tasks"
    [panel] = estimates(
        shown, rows="name", groups="tasks" if several else None, title="Differences", about=about,
        x="difference in standard deviations", bound=0.0,
    ).panels  # fmt: skip
    marks = [*panel.marks]
    for height, row in enumerate(verdicts.itertuples() if several else ()):
        effects = found.effects
        own = effects[(effects["a"] == row.a) & (effects["b"] == row.b)]
        texts = [
            f"{task}: {effect:.3g}" for task, effect in zip(own["task"], own["effect"], strict=True)
        ]
        at = np.full(len(own), height - 0.4)
        marks.append(
            Points(x=own["effect"].to_numpy(np.float64), y=at, color="faint", size=2.5, texts=texts)
        )
    return replace(panel, marks=marks, height=max(panel.height, ROW * len(verdicts)))


def _profiles(found: TaskComparison) -> Panel:
    parts = found.profiles.groupby("configuration", sort=False)
    marks = []
    for order, (name, part) in enumerate(parts):
        color, dash = style.look_of(name, order)
        texts = [
            f"{name}: {100 * share:.0f} % at {level:.3g} or above"
            for level, share in zip(part["level"], part["share"], strict=True)
        ]
        level, share = (part[each].to_numpy(np.float64) for each in ("level", "share"))
        marks.append(
            Line(
                x=level, y=share, color=color, dash=dash, width=2.2, step=True, texts=texts,
                label=str(name),
            )
        )  # fmt: skip
    counts = ", ".join(f"{n}" for n in dict.fromkeys(found.table["runs"]))
    return Panel(
        title="Profiles of the runs", about=f"Share of runs at or above a value; n = {counts}",
        x=Axis(label=f"{NAMES[found.measure]}, normalised"),
        y=Axis(domain=(0.0, 1.02), label="share of runs"), marks=marks, legend=True,
    )  # fmt: skip
