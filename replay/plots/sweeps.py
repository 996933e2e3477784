"""Sweeps: what each field does, all configurations at once, the best for their cost.

Intervals are over seeds, which the configurations of a sweep share; with one seed there are none,
and the figure states it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from replay.planning.sweeps import COST_LABELS, swept_fields
from replay.plots import hits, style
from replay.plots.shapes import estimates, lines
from replay.plots.style import FITNESS, PALETTE, THEMES, Theme, number
from replay.plots.sweep_tables import (
    MOST_NAMED,
    SHADES,
    NothingToDrawError,
    coordinates,
    costs,
    depth_breadth,
    effects,
    words_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap


def main_effects(
    frame: pd.DataFrame,
    fields: Sequence[str] | None = None,
    *,
    column: str = "fitness",
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws main effects: the mean over all runs with one value of a field, by field.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.
        fields: Names of the fields (default: all that vary).
        column: The column whose mean is drawn.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    try:
        shown = effects(frame, fields, column)
    except NothingToDrawError as why:
        return style.sentence(ax, theme, str(why))
    names = [
        f"{row['field']} = {row['setting']}  (n = {row['runs']})"
        for row in shown.table.to_dict("records")
    ]
    return estimates(
        shown.table.set_axis(names), title=shown.title, about=shown.about, x=shown.x, ax=ax,
        theme=theme,
    )  # fmt: skip


def parallel_coordinates(
    frame: pd.DataFrame, *, ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draws each configuration as a line through its values to its mean fitness.

    Lines are coloured by fitness; the best tenth, at least one, are thick.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    ax = style.prepare(ax, theme)
    try:
        shown = coordinates(frame)
    except NothingToDrawError as why:
        return style.sentence(ax, theme, str(why))
    ink, end, best = THEMES[theme].text, len(shown.fields), shown.best
    for at, field in enumerate(shown.fields):
        for height, text in field.ticks:
            _tick(ax, at, height, text, ink)
    for height, text in shown.ticks:
        _tick(ax, end, height, text, ink, right=True)
    fitness = shown.table["fitness"]
    same = 0.0 if fitness.max() > fitness.min() else 0.01
    colours = ScalarMappable(Normalize(fitness.min() - same, fitness.max() + same), _shades())
    names = [field.name for field in shown.fields]
    rows = shown.table.to_dict("records")
    for rank in reversed(range(len(rows))):
        top, row = rank < best, rows[rank]
        mean, below, above = shown.heights.iloc[rank]
        colour = colours.to_rgba(row["fitness"])
        heights = [*(field.heights[rank] for field in shown.fields), mean]
        if top:  # the lightest colours would be lost on white
            casing = np.column_stack([range(end + 1), heights])
            ax.add_collection(LineCollection([casing], color=ink, lw=3.6, zorder=3))
        ax.plot(
            range(end + 1), heights, color=colour, lw=2.4 if top else 1.0,
            alpha=1.0 if top else 0.8, zorder=3.5 if top else 2,
        )  # fmt: skip
        if top:
            ax.vlines(end + 0.4 + 0.25 * rank / best, below, above, color=colour, lw=2.2)
        hits.mark(ax, (end, mean, end, mean), words_of(row, names))
    _rule(ax, [*names, "mean fitness"], colours, ink)
    style.head(ax, theme, shown.title, shown.about)
    return ax


def _rule(ax: Axes, names: list[str], colours: ScalarMappable, ink: str) -> None:
    """Draw and name the axes of parallel coordinates, and a bar of the colours of fitness."""
    end = len(names) - 1
    for at in range(end + 1):
        ax.axvline(at, 0.06 / 1.12, 1.06 / 1.12, color=ink, lw=1.0, zorder=4)
    room = ax.get_position().width * style.figure_of(ax).get_figwidth() * 72 / (end + 1)
    if max(map(len, names)) * 0.55 * style.text_size(ax) > room:  # in two rows
        names[1::2] = [f"\n{name}" for name in names[1::2]]
    ax.set_xticks(range(end + 1), names)
    ax.set_yticks([])
    ax.set(xlim=(-0.3, end + 0.7), ylim=(-0.06, 1.06))
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.grid(visible=False)
    ax.tick_params(axis="x", length=0)
    bar = style.figure_of(ax).colorbar(colours, ax=ax, pad=0.02, aspect=30)
    bar.ax.tick_params(colors=ink, labelsize=style.text_size(ax))
    bar.set_label(f"mean {FITNESS}", color=ink, fontsize=style.text_size(ax))
    bar.ax.spines[:].set_visible(False)


def _shades() -> Colormap:
    """Colours of fitness that are seen on light and on dark ground."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("fitness", SHADES)


def _tick(ax: Axes, x: float, y: float, text: str, ink: str, *, right: bool = False) -> None:
    from matplotlib.patheffects import withStroke

    ground = ax.figure.get_facecolor()
    label = ax.annotate(
        text, (x, y), (6 if right else -6, 0), textcoords="offset points",
        ha="left" if right else "right", va="center", color=ink, zorder=5,
        fontsize=style.text_size(ax),
        arrowprops={"arrowstyle": "-", "color": ink, "lw": 1.0, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    if not isinstance(ground, str) and ground[-1] > 0:
        label.set_path_effects([withStroke(linewidth=3, foreground=ground)])


def depth_breadth_slice(
    frame: pd.DataFrame, *, ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draws mean fitness against N, with one line per T.

    If other fields vary too, the mean is over all their values.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.
    """
    try:
        shown = depth_breadth(frame)
    except NothingToDrawError as why:
        return style.sentence(ax, theme, str(why))
    ax = lines(
        shown.table, title=shown.title, about=shown.about, x="N, children per generation",
        y=f"mean {FITNESS}", by="T", at="place", limits="bars", apart=0.05, ax=ax, theme=theme,
    )  # fmt: skip
    ax.set_xticks(range(len(shown.children)), [str(value) for value in shown.children])
    return ax


def cost_and_fitness(
    frame: pd.DataFrame,
    *,
    cost: str = "tokens",
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draws the cost and the fitness of each configuration, with intervals, and the Pareto front.

    Args:
        frame: The table of a sweep, from `replay.load_sweep`.
        cost: The cost: "tokens", "n_calls", "flops", "dollars" or "seconds".
        ax: Axes to draw on (default: those of a new figure).
        theme: "light" or "dark".

    Returns:
        The axes.

    Raises:
        ValueError: The cost is not one of these, or is unknown for every run.
    """
    shown = costs(frame, cost)
    known, front = shown.table, shown.front
    ax = style.prepare(ax, theme)
    ink = THEMES[theme]
    for part, colour in ((known.drop(front.index), ink.faint), (front, PALETTE[1])):
        ax.vlines(part[cost], part["fitness_low"], part["fitness_high"], color=colour, lw=1.2)
        ax.hlines(part["fitness"], part[f"{cost}_low"], part[f"{cost}_high"], color=colour, lw=1.2)
        ax.plot(part[cost], part["fitness"], ls="", marker="o", ms=5, color=colour)
    fields = swept_fields(frame)
    for row in known.to_dict("records"):
        x, y = float(row[cost]), float(row["fitness"])
        text = f"{words_of(row, fields)}\n{COST_LABELS[cost]} {number(x)}"
        hits.mark(ax, (x, y, x, y), text)
    ax.step(front[cost], front["fitness"], where="post", color=PALETTE[1], lw=1.2, ls="--")
    if shown.ratios:
        style.ratios(ax, *shown.ratios)
    named = front.tail(MOST_NAMED)
    for at, row in enumerate(named.to_dict("records"), start=1):
        ax.annotate(
            str(at), (row[cost], row["fitness"]), (-4, 5), textcoords="offset points", ha="right",
            color=ink.text, fontsize=style.text_size(ax),
        )  # fmt: skip
    heights = named["fitness"].astype(float)
    ends = [(y, name, ink.faint) for y, name in zip(heights, shown.names, strict=True)]
    style.label_axes(ax, theme, x=COST_LABELS[cost], y=FITNESS)
    style.label_ends(ax, theme, ends)
    style.head(ax, theme, shown.title, shown.about)
    return ax
