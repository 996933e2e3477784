"""Sweeps: what each field does, all configurations at once, the best for their cost.

Intervals are over seeds, which the configurations of a sweep share; with one seed there are none,
and the figure states it. A click on a configuration leads to its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.logs.frames import possible_in
from replay.logs.given import check_loaded
from replay.markup import middle_cut
from replay.planning.sweeps import COST_LABELS, swept_fields
from replay.plots.chart import Chart
from replay.plots.colours import shades
from replay.plots.limits import ends_of, held, with_room
from replay.plots.marks import Cells, End, Label, Line, Mark, Points, Polylines, Rule
from replay.plots.panel import Axis, Panel
from replay.plots.style import FITNESS, PALETTE, look, ranged, wrapped
from replay.plots.sweep_tables import (
    MOST_NAMED,
    SHADES,
    Coordinates,
    Costs,
    NothingToDrawError,
    coordinates,
    costs,
    depth_breadth,
    effects,
    words_of,
)

if TYPE_CHECKING:
    import pandas as pd

ROW, FRAME = 26.0, 10.0
"""Height of a row, and the room for the frame around all rows, in pixels."""

LONGEST, ALL = 16, 96
"""Characters of a value on an axis of parallel coordinates, and of those of all axes side by side.

Tooltips have the whole value.
"""

NAME = 48
"""Characters of the name of a configuration that stands beside the picture of costs."""


def main_effects(
    frame: pd.DataFrame, fields: Sequence[str] | None = None, *, column: str = "fitness"
) -> Chart:
    """Draws main effects: the mean over all runs with one value of a field, by field.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.
        fields: Names of the fields (default: all that vary).
        column: The column whose mean is drawn.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1, 2], **settings)
        >>> replay.plots.main_effects(replay.load_sweep(made)).get_xlabel()
        'mean best fitness'
    """
    check_loaded("main_effects", frame, "replay.load_sweep")
    try:
        shown = effects(frame, fields, column)
    except NothingToDrawError as why:
        return Chart(message=str(why))
    table = shown.table
    marks: list[Mark] = []
    ticks: list[tuple[float, str]] = []
    places, at = [], 0
    within = possible_in(frame) if column == "fitness" else None
    domain = _room(held(table["value"], table["low"], table["high"], within))
    for field, part in table.groupby("field", sort=False):
        if at:
            marks.append(Rule(y=at - 0.5, color="faint"))
        marks.append(Label(x=domain[0], y=at, text=str(field), dx=6, dy=1))
        for row in part.to_dict("records"):
            at += 1
            places.append(at)
            ticks.append((float(at), f"{row['setting']}  (n = {row['runs']})"))
        at += 1
    texts = [
        f"{row['field']} = {row['setting']}\n{shown.x} "
        f"{ranged(row['value'], row['low'], row['high'])}\n{_counts(row)}"
        for row in table.to_dict("records")
    ]
    points = Points(
        x=_floats(table["value"]), y=places, x_low=_floats(table["low"]),
        x_high=_floats(table["high"]), color=PALETTE[0], size=4.5, texts=texts,
    )  # fmt: skip
    panel = Panel(
        title=shown.title, about=shown.about, x=Axis(label=shown.x, domain=domain),
        y=Axis(domain=(at - 0.5, -0.5), ticks=ticks), marks=[*marks, points],
        height=ROW * at + FRAME,
    )  # fmt: skip
    return Chart(panels=[panel])


def _counts(row: dict[Any, Any]) -> str:
    """The numbers of runs, configurations and seeds behind a mean, for its tooltip."""
    parts = ((row["runs"], "run"), (row["configurations"], "configuration"), (row["seeds"], "seed"))
    return ", ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in parts)


def parallel_coordinates(frame: pd.DataFrame) -> Chart:
    """Draws each configuration as a line through its values to its mean fitness.

    Lines are coloured by fitness; the best tenth, at least one, are thick.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1, 2], **settings)
        >>> type(replay.plots.parallel_coordinates(replay.load_sweep(made))).__name__
        'Axes'
    """
    check_loaded("parallel_coordinates", frame, "replay.load_sweep")
    try:
        shown = coordinates(frame)
    except NothingToDrawError as why:
        return Chart(message=str(why))
    table, end, fitness = shown.table, len(shown.fields), shown.table["fitness"]
    names = [field.name for field in shown.fields]
    heights = np.column_stack([*(f.heights for f in shown.fields), shown.heights["fitness"]])
    colours = shades(fitness, SHADES, float(fitness.min()), float(fitness.max()))
    order = np.arange(len(table))[::-1]  # the fittest on top
    top = order[order < shown.best]
    texts = [words_of(row, names) for row in table.to_dict("records")]
    places = np.arange(end + 1)
    marks: list[Mark] = [Rule(x=float(at)) for at in range(end)]
    marks += _bar(shown, end)
    marks.append(  # the lightest colours would be lost on white
        Polylines(x=places, rows=heights[top], colors=["ink"] * len(top), widths=[4.6] * len(top))
    )
    marks.append(
        Polylines(
            x=places, rows=heights[order], colors=[colours[k] for k in order],
            widths=[3.0 if k < shown.best else 1.3 for k in order],
            texts=[texts[k] for k in order],
            keys=[str(table["configuration"][k]) for k in order],
        )
    )  # fmt: skip
    best = shown.heights[: shown.best]
    marks.append(
        Points(
            x=[end + 0.6 + 0.3 * k / shown.best for k in range(shown.best)],
            y=_floats(best["fitness"]), y_low=_floats(best["fitness_low"]),
            y_high=_floats(best["fitness_high"]), color=colours[: shown.best], size=3.5,
            texts=texts[: shown.best],
            keys=[str(each) for each in table["configuration"][: shown.best]],
        )
    )  # fmt: skip
    marks += _values(shown, end)
    marks += [
        Label(x=end + 2 * BAR, y=height, text=text, dx=6, dy=4) for height, text in shown.ticks
    ]
    titles = [*names, f"mean {FITNESS}"]
    ticks = [(float(at), name) for at, name in enumerate(titles)]
    first = [(height, middle_cut(text, LONGEST)) for height, text in shown.fields[0].ticks]
    panel = Panel(
        title=shown.title, about=shown.about,
        x=Axis(domain=(0, end + 1.0), ticks=ticks), y=Axis(domain=(-0.08, 1.08), ticks=first),
        marks=marks, height=360,
    )  # fmt: skip
    return Chart(panels=[panel])


def _values(shown: Coordinates, end: int) -> list[Mark]:
    """The values of all fields but the first, each on the left of its axis."""
    room = min(LONGEST, ALL // (end + 1))
    return [
        Label(
            x=at, y=height, text=middle_cut(text, room), anchor="end", dx=-6,
            dy=4 + _outward(height),
        )
        for at, field in enumerate(shown.fields[1:], start=1)
        for height, text in field.ticks
    ]  # fmt: skip


def _outward(height: float) -> float:
    """By how many pixels a text at an end of an axis moves away from the lines that meet there."""
    return -12.0 if height == 1 else 12.0 if height == 0 else 0.0


BAR = 0.06
"""Width of the colour bar beside the axis of fitness, in distances between two axes."""


def _bar(shown: Coordinates, end: int) -> list[Mark]:
    """The axis of mean fitness, and its colour bar on the right of it."""
    means = shown.heights["fitness"]
    low, high = float(means.min()), float(means.max())
    if not high > low:
        return [Rule(x=float(end))]
    values = np.linspace(0, 1, 48)[:, None]
    bar = Cells(values=values, x0=end + BAR, x1=end + 2 * BAR, y0=low, y1=high, colors=SHADES)
    return [Rule(x=float(end)), bar]


def depth_breadth_slice(frame: pd.DataFrame) -> Chart:
    """Draws mean fitness against N, with one line per T.

    If other fields vary too, the mean is over all their values.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1, 2], **settings)
        >>> replay.plots.depth_breadth_slice(replay.load_sweep(made)).get_xlabel()
        'N, children per generation'
    """
    check_loaded("depth_breadth_slice", frame, "replay.load_sweep")
    try:
        shown = depth_breadth(frame)
    except NothingToDrawError as why:
        return Chart(message=str(why))
    marks: list[Mark] = []
    groups = list(shown.table.groupby("T", sort=False))
    for order, (name, part) in enumerate(groups):
        colour, dash = look(order)
        x = part["place"].to_numpy(np.float64) + 0.05 * (order - (len(groups) - 1) / 2)
        texts = [
            f"{name}, N = {row['setting']}\nmean {FITNESS} "
            f"{ranged(row['value'], row['low'], row['high'])}\n{_counts(row)}"
            for row in part.to_dict("records")
        ]
        marks.append(
            Line(x=x, y=_floats(part["value"]), color=colour, label=str(name), dash=dash,
                 hover=False)
        )  # fmt: skip
        marks.append(
            Points(
                x=x, y=_floats(part["value"]), y_low=_floats(part["low"]),
                y_high=_floats(part["high"]), color=colour, texts=texts,
            )
        )  # fmt: skip
    table = shown.table
    limits = held(table["value"], table["low"], table["high"], possible_in(frame))
    ticks = [(float(at), str(N)) for at, N in enumerate(shown.children)]
    panel = Panel(
        title=shown.title, about=shown.about,
        x=Axis(label="N, children per generation", ticks=ticks,
               domain=(-0.35, len(ticks) - 0.65)),
        y=Axis(label=f"mean {FITNESS}", domain=_room(limits)),
        marks=marks, height=320, legend=True,
    )  # fmt: skip
    return Chart(panels=[panel])


def cost_and_fitness(frame: pd.DataFrame, *, cost: str = "tokens") -> Chart:
    """Draws the cost and the fitness of each configuration, with intervals, and the Pareto front.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.
        cost: The cost: "tokens", "n_calls", "flops", "dollars" or "seconds".

    Raises:
        ValueError: The cost is not one of these, or is unknown for every run.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1, 2], **settings)
        >>> replay.plots.cost_and_fitness(replay.load_sweep(made)).get_xlabel()
        'prompt and completion tokens of a run'
    """
    check_loaded("cost_and_fitness", frame, "replay.load_sweep")
    shown = costs(frame, cost)
    plane = _plane(frame, shown, cost)
    heights = shown.front.tail(MOST_NAMED)["fitness"].astype(float)
    ends = [
        End(y=y, text=middle_cut(name, NAME), color="faint")
        for y, name in zip(heights, shown.names, strict=True)
    ]
    return Chart(panels=[replace(plane, marks=[*plane.marks, *ends])])


def cost_and_front(frame: pd.DataFrame, *, cost: str = "tokens") -> Chart:
    """The same, with the Pareto front as rows below it."""
    shown = costs(frame, cost)
    fields, named = swept_fields(frame), shown.front.tail(MOST_NAMED)
    texts = _costs_in_words(named, fields, cost)
    front = _front(shown.names, named, fields, texts, possible_in(frame))
    return Chart(panels=[_plane(frame, shown, cost), front])


def _costs_in_words(part: pd.DataFrame, fields: Sequence[str], cost: str) -> list[str]:
    """Tooltips of configurations."""
    return [
        f"{words_of(row, fields)}\n{COST_LABELS[cost]} "
        f"{ranged(row[cost], row[f'{cost}_low'], row[f'{cost}_high'])}"
        for row in part.to_dict("records")
    ]


def _plane(frame: pd.DataFrame, shown: Costs, cost: str) -> Panel:
    """Cost and fitness of each configuration, and the line of the front."""
    known, front, fields = shown.table, shown.front, swept_fields(frame)
    named = front.tail(MOST_NAMED)
    marks: list[Mark] = []

    def points(part: pd.DataFrame, colour: str, labels: list[str] | None = None) -> Points:
        return Points(
            x=_floats(part[cost]), y=_floats(part["fitness"]), x_low=_floats(part[f"{cost}_low"]),
            x_high=_floats(part[f"{cost}_high"]), y_low=_floats(part["fitness_low"]),
            y_high=_floats(part["fitness_high"]), color=colour, labels=labels,
            texts=_costs_in_words(part, fields, cost),
            keys=[str(each) for each in part["configuration"]],
        )  # fmt: skip

    marks.append(points(known.drop(front.index), "faint"))
    marks.append(
        Line(x=_floats(front[cost]), y=_floats(front["fitness"]), color=PALETTE[1], dash="5 3",
             width=1.4, step=True, hover=False)
    )  # fmt: skip
    unnamed = [""] * (len(front) - len(named))
    numbers = [*unnamed, *(str(at) for at in range(1, len(named) + 1))]
    marks.append(points(front, PALETTE[1], numbers))
    limits = held(known[cost], known[f"{cost}_low"], known[f"{cost}_high"])
    heights = held(
        known["fitness"], known["fitness_low"], known["fitness_high"], possible_in(frame)
    )
    across = Axis(
        label=COST_LABELS[cost], scale="log" if shown.ratios else "linear",
        domain=shown.ratios or _room(limits),
    )  # fmt: skip
    return Panel(
        title=shown.title, about=shown.about, x=across, marks=marks, height=300, zoom=True,
        y=Axis(label=FITNESS, domain=_room(heights)),
    )  # fmt: skip


def _front(
    names: Iterable[str],
    front: pd.DataFrame,
    fields: list[str],
    texts: list[str],
    possible: tuple[float, float] | None,
) -> Panel:
    """The named configurations of the Pareto front, one row each."""
    ticks = [(float(at), wrapped(name, 44)) for at, name in enumerate(names)]
    lines = sum(text.count("\n") + 1 for _, text in ticks)
    limits = held(front["fitness"], front["fitness_low"], front["fitness_high"], possible)
    points = Points(
        x=_floats(front["fitness"]), y=np.arange(len(front)), x_low=_floats(front["fitness_low"]),
        x_high=_floats(front["fitness_high"]), color=PALETTE[1], texts=texts,
        keys=[str(each) for each in front["configuration"]],
    )  # fmt: skip
    return Panel(
        title="The front, from the cheapest to the fittest",
        about=f"{', '.join(fields)}." if fields else "",
        x=Axis(label=f"mean {FITNESS}", domain=_room(limits)),
        y=Axis(domain=(len(front) - 0.5, -0.5), ticks=ticks), marks=[points],
        height=max(ROW * len(front), 15.0 * lines + 6 * len(front)) + FRAME,
    )  # fmt: skip


def _floats(values: pd.Series[Any]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return values.to_numpy(np.float64)


def _finite(values: Iterable[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    known = np.asarray(list(values), dtype=np.float64)
    return known[np.isfinite(known)]


def _room(values: Iterable[float]) -> tuple[float, float]:
    """Limits with some room around the values; below zero only if a value is."""
    known = _finite(values)
    low, high = ends_of(known)
    return with_room(low, high, signed=False)
