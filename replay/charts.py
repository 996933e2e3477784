"""Two plain charts for tables of one's own: lines by column, and estimates with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from replay.style import THEMES, Theme, head, label_axes, label_ends, label_rows, look, prepare

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_MARKERS = 32
"""Lines through more points are drawn without markers."""


def lines(
    table: pd.DataFrame,
    *,
    title: str,
    about: str,
    x: str,
    y: str,
    low: pd.DataFrame | None = None,
    high: pd.DataFrame | None = None,
    doublings: bool = False,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw one line per column of a table against its index.

    Args:
        table: Numbers; NaN leaves a gap.
        title: A few words.
        about: What is drawn and from how many runs.
        x: Name of the index, with its unit.
        y: Name of the values, with their unit.
        low: Lower limits, of the shape of `table`; None: the numbers are exact.
        high: Upper limits, likewise.
        doublings: Whether the index is drawn in doublings, one tick for each of its values.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.
    """
    ax = prepare(ax, theme)
    ends = []
    for order, name in enumerate(table.columns):
        colour, style = look(order)
        values = table[name].to_numpy(np.float64)
        marker = "o" if len(values) <= MOST_MARKERS else ""
        ax.plot(table.index, values, color=colour, ls=style, marker=marker, ms=4, lw=1.6)
        if low is not None and high is not None:
            ax.fill_between(table.index, low[name], high[name], color=colour, alpha=0.2, lw=0)
        ends.append((float(values[-1]), str(name), colour))
    if doublings:
        ax.set_xscale("log", base=2)
        ax.set_xticks(list(table.index), [f"{value:g}" for value in table.index])
        ax.minorticks_off()
    label_ends(ax, theme, ends)
    label_axes(ax, theme, x=x, y=y)
    head(ax, theme, title, about)
    return ax


def estimates(
    table: pd.DataFrame,
    *,
    title: str,
    about: str,
    x: str,
    groups: str | None = None,
    bound: float | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw estimates as points with their intervals, one row per name, the first on top.

    Args:
        table: Columns value, low and high; NaN limits draw no interval. The index names the rows.
        title: A few words.
        about: What is drawn and from how many runs.
        x: Name of the values, with their unit.
        groups: Column whose values share a row of the chart and differ in colour; None: none.
        bound: Where to draw a line that intervals are to be compared with.
        ax: Axes to draw on; None makes a figure.
        theme: Inks.

    Raises:
        ValueError: If the table lacks a column.
    """
    needed = {"value", "low", "high", *([groups] if groups else [])}
    if missing := sorted(needed - set(table.columns)):
        raise ValueError(f"expected the columns {sorted(needed)!r}, but there is no {missing!r}")
    ax = prepare(ax, theme)
    names = list(dict.fromkeys(table.index))
    labels = list(dict.fromkeys(table[groups])) if groups else [None]
    if bound is not None:
        ax.axvline(bound, color=THEMES[theme].text, lw=0.8)
    for row, name in zip(table.to_dict("records"), table.index, strict=True):
        order = labels.index(row[groups]) if groups else 0
        y = names.index(name) + 0.6 * ((order + 0.5) / len(labels) - 0.5)
        colour, _ = look(order)
        ax.hlines(y, row["low"], row["high"], color=colour, lw=2, alpha=0.6)
        ax.plot(row["value"], y, marker="o", color=colour, ms=5)
    label_rows(ax, [str(name) for name in names])
    label_axes(ax, theme, x=x, y="")
    legend = [(str(label), look(k)[0]) for k, label in enumerate(labels)] if groups else []
    head(ax, theme, title, about, legend=legend)
    return ax
