"""Sweeps: what each field does, all configurations at once, the best for their cost.

Intervals are over seeds, which the configurations of a sweep share; with one seed there are none,
and the figure states it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.planning import sweeps
from replay.planning.sweeps import (
    COST_LABELS,
    by_configuration,
    completed,
    pareto_front,
    swept_fields,
)
from replay.plots import hits, style
from replay.plots.hits import ranged
from replay.plots.shapes import estimates, lines
from replay.plots.style import FITNESS, PALETTE, THEMES, Theme, number
from replay.statistics.intervals import LEAST, measured

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap

MOST_NAMED = 8
"""Configurations of a Pareto front that are named, the fittest."""

MOST_TICKS = 8
"""Values of a field that are written on its axis of parallel coordinates."""


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
    table = sweeps.main_effects(frame, fields, column=column)
    if table.empty:
        return style.sentence(ax, theme, "No field of this sweep takes more than one value.")
    names = [
        f"{row['field']} = {row['setting']}  (n = {row['runs']})"
        for row in table.to_dict("records")
    ]
    return estimates(
        table.set_axis(names),
        title="Main effects of the swept fields",
        about=f"Mean and {seed_intervals(int(table['seeds'].max()))}; n counts runs.",
        x=f"mean {FITNESS if column == 'fitness' else COST_LABELS.get(column, column)}", ax=ax,
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
    table = by_configuration(frame, ["fitness"]).dropna(subset=["fitness"])
    fields = swept_fields(frame)
    if table.empty or not fields:
        return style.sentence(ax, theme, "No completed configurations that differ.")
    table = table.sort_values("fitness", ascending=False, kind="stable")
    ink, end = THEMES[theme], len(fields)
    columns = [_positions(ax, k, table[name], ink.text) for k, name in enumerate(fields)]
    limits = table[["fitness", "fitness_low", "fitness_high"]]
    best = max(1, len(table) // 10)
    shown = [*limits["fitness"], *limits.iloc[:best].to_numpy().ravel()]
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    scaled = (limits - low) / ((high - low) or 1.0)
    _fitness_ticks(ax, end, low, high, ink.text)
    least, most = limits["fitness"].min(), limits["fitness"].max()
    same = 0.0 if most > least else 0.01
    colours = ScalarMappable(Normalize(least - same, most + same), _shades())
    for rank in reversed(range(len(table))):
        top = rank < best
        mean, below, above = scaled.iloc[rank]
        colour = colours.to_rgba(limits["fitness"].iloc[rank])
        heights = [*(column[rank] for column in columns), mean]
        if top:  # the lightest colours would be lost on white
            casing = np.column_stack([range(end + 1), heights])
            ax.add_collection(LineCollection([casing], color=ink.text, lw=3.6, zorder=3))
        ax.plot(
            range(end + 1), heights, color=colour, lw=2.4 if top else 1.0,
            alpha=1.0 if top else 0.8, zorder=3.5 if top else 2,
        )  # fmt: skip
        row = table.iloc[rank]
        if top:
            ax.vlines(end + 0.4 + 0.25 * rank / best, below, above, color=colour, lw=2.2)
        hits.mark(ax, (end, mean, end, mean), _words(row, fields), row["configuration"])
    _rule(ax, [*fields, "mean fitness"], colours, ink.text)
    thick = "the best one" if best == 1 else f"the best {best}"
    style.head(
        ax, theme, "Configurations of the sweep",
        f"{len(table)} configurations coloured by fitness, {thick} thick; at the right the mean "
        "over seeds and "
        f"{seed_intervals(int(table['n'].max()))}. The best of many look better than they are.",
    )  # fmt: skip
    return ax


def _positions(ax: Axes, at: int, values: pd.Series[float], ink: str) -> list[float]:
    """Heights of a field's values on its axis, whose ticks it writes; few values evenly spaced."""
    import pandas as pd

    numeric = pd.to_numeric(values, errors="coerce")
    missing = values.isna()
    if numeric.notna().eq(~missing).all() and numeric.nunique() > MOST_TICKS:
        logs = bool((numeric.dropna() > 0).all()) and numeric.max() / numeric.min() > 50
        scaled = np.log(numeric) if logs else numeric
        low, span = scaled.min(), (scaled.max() - scaled.min()) or 1.0
        for value, place in ((numeric.min(), 0.0), (numeric.max(), 1.0)):
            _tick(ax, at, place, number(value), ink)
        if missing.any():
            _tick(ax, at, 0.5, "not asked", ink)
        return [0.5 if math.isnan(each) else float(each) for each in (scaled - low) / span]
    known = values.dropna().unique().tolist()
    order = sorted(known) if not isinstance(known[0], str) else sorted(map(str, known))
    labels = [short(each) for each in order]
    if missing.any():
        order, labels = [*order, None], [*labels, "not asked"]
    heights = np.linspace(0, 1, len(order)) if len(order) > 1 else np.array([0.5])
    for label, height in list(zip(labels, heights, strict=True))[:: 1 + len(order) // 16]:
        _tick(ax, at, height, label, ink)
    places = dict(zip(order, heights.tolist(), strict=True))
    return [places[None if gone else value] for value, gone in zip(values, missing, strict=True)]


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
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["cividis"](np.linspace(0.25, 0.95, 256)))


def _fitness_ticks(ax: Axes, at: int, low: float, high: float, ink: str) -> None:
    """Write round values on the axis of mean fitness."""
    from matplotlib.ticker import MaxNLocator

    ticks = np.asarray(MaxNLocator(5).tick_values(low, high), dtype=np.float64)
    for value in ticks[(ticks >= low) & (ticks <= high)].tolist():
        _tick(ax, at, (value - low) / ((high - low) or 1.0), number(value), ink, right=True)


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
    import pandas as pd

    rows = completed(frame).dropna(subset=["fitness"])
    if rows["generations"].nunique() * rows["children"].nunique() < 2:
        return style.sentence(ax, theme, "The sweep has one T and one N.")
    every_n = sorted(rows["children"].unique().tolist())
    parts = []
    for T, part in rows.groupby("generations"):
        one = part.copy()
        one.attrs = {"fields": ["children"]}
        table = sweeps.main_effects(one, ["children"])
        place = [every_n.index(float(setting)) for setting in table["setting"]]
        parts.append(table.assign(T=f"T = {T} (n = {len(part)})", place=place))
    table = pd.concat(parts)
    others = [name for name in swept_fields(frame) if name not in ("generations", "children")]
    over = f", over all values of {', '.join(others)}" if others else ""
    ax = lines(
        table, title="Depth and breadth",
        about=f"Mean and {seed_intervals(int(table['seeds'].max()))}{over}; n counts runs.",
        x="N, children per generation", y=f"mean {FITNESS}", by="T", at="place", limits="bars",
        apart=0.05, ax=ax, theme=theme,
    )  # fmt: skip
    ax.set_xticks(range(len(every_n)), [str(value) for value in every_n])
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
    if cost not in COST_LABELS:
        raise ValueError(f"expected a cost among {', '.join(COST_LABELS)}, got {cost!r}")
    table = by_configuration(frame, ["fitness", cost])
    if table[cost].isna().all():
        raise ValueError(f"{cost}: unknown of every run; costs: {', '.join(COST_LABELS)}")
    ax = style.prepare(ax, theme)
    known = table.dropna(subset=["fitness", cost])
    front = pareto_front(known, cost)
    ink = THEMES[theme]
    for part, colour in ((known.drop(front.index), ink.faint), (front, PALETTE[1])):
        ax.vlines(part[cost], part["fitness_low"], part["fitness_high"], color=colour, lw=1.2)
        ax.hlines(part["fitness"], part[f"{cost}_low"], part[f"{cost}_high"], color=colour, lw=1.2)
        ax.plot(part[cost], part["fitness"], ls="", marker="o", ms=5, color=colour)
    for _, row in known.iterrows():
        x, y = float(row[cost]), float(row["fitness"])
        text = f"{_words(row, swept_fields(frame))}\n{COST_LABELS[cost]} {number(x)}"
        hits.mark(ax, (x, y, x, y), text, row["configuration"])
    ax.step(front[cost], front["fitness"], where="post", color=PALETTE[1], lw=1.2, ls="--")
    least, most = float(known[cost].min()), float(known[cost].max())
    if least > 0 and most / least > 20:
        style.ratios(ax, 0.8 * least, 1.25 * most)
    fields = swept_fields(frame)
    ends = []
    for at, (_, row) in enumerate(front.tail(MOST_NAMED).iterrows(), start=1):
        ax.annotate(
            str(at), (row[cost], row["fitness"]), (-4, 5), textcoords="offset points", ha="right",
            color=ink.text, fontsize=style.text_size(ax),
        )  # fmt: skip
        asked = [row[name] for name in fields if row[name] is not None and row[name] == row[name]]
        ends.append((float(row["fitness"]), f"{at}:  {', '.join(map(short, asked))}", ink.faint))
    style.label_axes(ax, theme, x=COST_LABELS[cost], y=FITNESS)
    style.label_ends(ax, theme, ends)
    named = f", named by {', '.join(fields)}" if fields else ""
    style.head(
        ax, theme, "What fitness costs",
        f"{len(known)} configurations, mean and {seed_intervals(int(known['n'].max()))} of both; "
        f"dashed: no other is fitter for as little{named}. The front is chosen from all and looks "
        "better than it is.",
    )  # fmt: skip
    return ax


def _words(row: pd.Series[Any], fields: Sequence[str]) -> str:
    """The tooltip of a configuration."""
    asked = [f"{name} = {short(row[name])}" for name in fields if row[name] == row[name]]
    mean = ranged(row["fitness"], row["fitness_low"], row["fitness_high"])
    return "\n".join([*asked, f"mean fitness {mean}, n = {row['n']}"])


def short(value: object) -> str:
    """A value of a field."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def seed_intervals(seeds: int) -> str:
    """What intervals over so many seeds are called."""
    if seeds < LEAST:
        return f"no interval: {seeds} seeds, and they begin at {LEAST}"
    return f"{100 * measured('mean', seeds):.0f} % interval over {seeds} seeds"
