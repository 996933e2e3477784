"""Figures of sweeps: what each field does, all configurations at once, the best for their cost.

Tables of `replay.load_sweep` in, matplotlib Axes out, in the themes of `replay.style`. Intervals
are over seeds, which the configurations of a sweep share; with one seed there are none, and the
figure says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.configurations import (
    COSTS,
    by_configuration,
    completed,
    main_effects,
    pareto_front,
    swept_fields,
)
from replay.style import (
    PALETTE,
    TEXT_SIZE,
    THEMES,
    Theme,
    head,
    label_axes,
    label_ends,
    label_rows,
    look,
    prepare,
    sentence,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_NAMED = 8
"""Configurations of a Pareto front that are named, the fittest."""

FITNESS = "best fitness of a run (1 = best published)"


def effects(
    frame: pd.DataFrame,
    fields: Sequence[str] | None = None,
    *,
    column: str = "fitness",
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw main effects: the mean of all runs with one value of a field, with 95 % intervals.

    Args:
        frame: Of `replay.load_sweep`.
        fields: Which; None: all that vary.
        column: What the mean is of.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    ax = prepare(ax, theme)
    table = main_effects(frame, fields, column=column)
    if table.empty:
        return sentence(ax, theme, "No field of this sweep takes more than one value.")
    rows: list[str] = []
    y = 0.0
    ticks = []
    for order, (field, part) in enumerate(table.groupby("field", sort=False)):
        colour, _ = look(order)
        for row in part.to_dict("records"):
            ax.hlines(y, row["low"], row["high"], color=colour, lw=2, alpha=0.6)
            ax.plot(row["value"], y, marker="o", color=colour, ms=5)
            rows.append(f"{field} = {row['setting']}  (n = {row['runs']})")
            ticks.append(y)
            y += 1
        y += 0.6
    label_rows(ax, rows)
    ax.set_yticks(ticks, rows)
    ax.set_ylim(y - 0.6 - 0.5, -0.5)
    what = FITNESS if column == "fitness" else COSTS.get(column, column)
    label_axes(ax, theme, x=f"mean {what}", y="")
    seeds = sorted(set(table["seeds"]))
    about = f"Mean and {_intervals(max(seeds))}; n counts runs, the rest of a configuration varies"
    head(ax, theme, "Main effects of the swept fields", about + ".")
    return ax


def parallel_coordinates(
    frame: pd.DataFrame, *, ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draw each configuration as a line through its values to its mean fitness.

    The best tenth, at least one and at most six, are in colour.

    Args:
        frame: Of `replay.load_sweep`.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    ax = prepare(ax, theme)
    table = by_configuration(frame, ["fitness"]).dropna(subset=["fitness"])
    fields = swept_fields(frame)
    if table.empty or not fields:
        return sentence(ax, theme, "No completed configurations that differ.")
    table = table.sort_values("fitness", ascending=False, kind="stable")
    ink = THEMES[theme]
    columns = [_positions(ax, k, table[name], name, ink.text) for k, name in enumerate(fields)]
    low, high = table["fitness"].min(), table["fitness"].max()
    for limit in ("fitness_low", "fitness_high"):
        low, high = min(low, table[limit].min()), max(high, table[limit].max())
    span = (high - low) or 1.0
    end = len(fields)
    for value, place in ((low, 0.0), (high, 1.0)):
        _tick(ax, end, place, f"{value:.4g}", ink.text)
    best = max(1, min(len(PALETTE), len(table) // 10))
    for rank, (at, row) in reversed([*enumerate(table.iterrows())]):
        del at
        top = rank < best
        colour = look(rank)[0] if top else ink.faint
        heights = [column[rank] for column in columns]
        mean = (row["fitness"] - low) / span
        ax.plot(
            range(end + 1), [*heights, mean], color=colour, lw=1.8 if top else 0.8,
            alpha=1.0 if top else 0.7, zorder=3 if top else 2,
        )  # fmt: skip
        if top:
            limits = ((row["fitness_low"] - low) / span, (row["fitness_high"] - low) / span)
            ax.vlines(end + 0.04 * (rank + 1), *limits, color=colour, lw=2.2)
    ax.set_xticks(range(end + 1), [*fields, "mean fitness"])
    ax.set_yticks([])
    ax.set_xlim(-0.3, end + 0.45)
    ax.set_ylim(-0.06, 1.06)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=True, axis="x", color=ink.faint)
    shown = "the best one" if best == 1 else f"the best {best}"
    head(
        ax, theme, "Configurations of the sweep",
        f"{len(table)} configurations, {shown} in colour; at the right the mean over seeds and "
        f"{_intervals(int(table['n'].max()))}. The best of many look better than they are.",
    )  # fmt: skip
    return ax


def _positions(ax: Axes, at: int, values: pd.Series[Any], name: str, ink: str) -> list[float]:
    """Heights of a field's values on its axis, whose ticks it writes; few values evenly spaced."""
    import pandas as pd

    numeric = pd.to_numeric(values, errors="coerce")
    missing = values.isna()
    if numeric.notna().eq(~missing).all() and numeric.nunique() > 12:
        logs = bool((numeric.dropna() > 0).all()) and numeric.max() / numeric.min() > 50
        scaled = np.log(numeric) if logs else numeric
        low, span = scaled.min(), (scaled.max() - scaled.min()) or 1.0
        for value, place in ((numeric.min(), 0.0), (numeric.max(), 1.0)):
            _tick(ax, at, place, f"{value:.4g}", ink)
        heights = (scaled - low) / span
        if missing.any():
            _tick(ax, at, 0.5, "not asked", ink)
        return [0.5 if math.isnan(h) else float(h) for h in heights]
    known = values.dropna().unique().tolist()
    order = sorted(known) if not isinstance(known[0], str) else sorted(map(str, known))
    labels = [f"{v:g}" if isinstance(v, int | float) else str(v) for v in order]
    if missing.any():
        order, labels = [*order, None], [*labels, "not asked"]
    step = 1 / max(1, len(order) - 1)
    for k, label in enumerate(labels):
        _tick(ax, at, k * step if len(order) > 1 else 0.5, label, ink)
    places = {value: k * step if len(order) > 1 else 0.5 for k, value in enumerate(order)}
    return [places[None if gone else value] for value, gone in zip(values, missing, strict=True)]


def _tick(ax: Axes, x: float, y: float, text: str, ink: str) -> None:
    from matplotlib.patheffects import withStroke

    ground = ax.figure.get_facecolor()
    label = ax.annotate(
        text, (x, y), (-4, 3), textcoords="offset points", ha="right", va="bottom", color=ink,
        fontsize=TEXT_SIZE,
    )  # fmt: skip
    if not isinstance(ground, str) and ground[-1] > 0:
        label.set_path_effects([withStroke(linewidth=3, foreground=ground)])
    label.set_zorder(5)


def depth_breadth_slice(
    frame: pd.DataFrame, *, ax: Axes | None = None, theme: Theme = "light"
) -> Axes:
    """Draw mean fitness by N, a line per T, with 95 % intervals.

    Where other fields vary as well, the means are over all their configurations.

    Args:
        frame: Of `replay.load_sweep`, of a sweep over generations or children or both.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    ax = prepare(ax, theme)
    rows = completed(frame).dropna(subset=["fitness"])
    if rows["generations"].nunique() * rows["children"].nunique() < 2:
        return sentence(ax, theme, "The sweep has one T and one N.")
    every_n = sorted(rows["children"].unique().tolist())
    every_t = sorted(rows["generations"].unique().tolist())
    legend = []
    seeds = 1
    for order, T in enumerate(every_t):
        colour, style = look(order)
        part = rows[rows["generations"] == T]
        part.attrs = {"fields": ["children"]}
        table = main_effects(part, ["children"])
        seeds = max(seeds, int(table["seeds"].max()))
        x = [every_n.index(float(setting)) for setting in table["setting"]]
        shift = 0.05 * (order - (len(every_t) - 1) / 2)
        moved = np.array(x) + shift
        ax.plot(moved, table["value"], color=colour, ls=style, marker="o", ms=4, lw=1.6)
        ax.vlines(moved, table["low"], table["high"], color=colour, lw=2, alpha=0.6)
        legend.append((f"T = {T} (n = {len(part)})", colour))
    ax.set_xticks(range(len(every_n)), [str(value) for value in every_n])
    ax.set_xlim(-0.4, len(every_n) - 0.6)
    label_axes(ax, theme, x="N, children per generation", y=f"mean {FITNESS}")
    others = [name for name in swept_fields(frame) if name not in ("generations", "children")]
    over = f", over all values of {', '.join(others)}" if others else ""
    head(
        ax, theme, "Depth and breadth",
        f"Mean and {_intervals(seeds)}{over}; n counts runs.", legend=legend[: len(PALETTE)],
    )  # fmt: skip
    return ax


def cost_and_fitness(
    frame: pd.DataFrame,
    *,
    cost: str = "tokens",
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw each configuration's cost and fitness, means with 95 % intervals, and the Pareto front.

    Args:
        frame: Of `replay.load_sweep`.
        cost: One of `replay.configurations.COSTS`.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.

    Raises:
        ValueError: An unknown cost, or one that is not known of any run.
    """
    if cost not in COSTS:
        raise ValueError(f"expected a cost among {', '.join(COSTS)}, got {cost!r}")
    table = by_configuration(frame, ["fitness", cost])
    if table[cost].isna().all():
        raise ValueError(f"{cost}: unknown of every run; costs: {', '.join(COSTS)}")
    ax = prepare(ax, theme)
    known = table.dropna(subset=["fitness", cost])
    front = pareto_front(known, cost)
    ink = THEMES[theme]
    for part, colour in ((known.drop(front.index), ink.faint), (front, PALETTE[1])):
        ax.vlines(part[cost], part["fitness_low"], part["fitness_high"], color=colour, lw=1.2)
        ax.hlines(part["fitness"], part[f"{cost}_low"], part[f"{cost}_high"], color=colour, lw=1.2)
        ax.plot(part[cost], part["fitness"], ls="", marker="o", ms=5, color=colour)
    ax.step(front[cost], front["fitness"], where="post", color=PALETTE[1], lw=1.2, ls="--")
    if known[cost].min() > 0 and known[cost].max() / known[cost].min() > 20:
        _logarithmic(ax, known[cost].max() / known[cost].min())
    fields = swept_fields(frame)
    ends = []
    for at, (_, row) in enumerate(front.tail(MOST_NAMED).iterrows(), start=1):
        ax.annotate(
            str(at), (row[cost], row["fitness"]), (-4, 5), textcoords="offset points", ha="right",
            color=ink.text, fontsize=TEXT_SIZE,
        )  # fmt: skip
        values = [_short(row[name]) for name in fields if not _gone(row[name])]
        ends.append((float(row["fitness"]), f"{at}:  {', '.join(values)}", ink.faint))
    label_axes(ax, theme, x=COSTS[cost], y=FITNESS)
    label_ends(ax, theme, ends)
    named = f", named by {', '.join(fields)}" if fields else ""
    head(
        ax, theme, "What fitness costs",
        f"{len(known)} configurations, mean and {_intervals(int(known['n'].max()))} of both; "
        f"dashed: no other is fitter for as little{named}. The front is chosen from all and looks "
        "better than it is.",
    )  # fmt: skip
    return ax


def _logarithmic(ax: Axes, ratio: float) -> None:
    """Spaces the horizontal axis by ratios, with few ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    def written(value: float, _: object) -> str:
        if value >= 1e7:
            return f"{value:.0e}"
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 1e3 else (1.0,)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(written))


def _gone(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _intervals(seeds: int) -> str:
    if seeds < 2:
        return "no interval, as there is one seed"
    return f"95 % interval over {seeds} seeds"
