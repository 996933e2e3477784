"""The race of a selection, drawn round by round."""

from __future__ import annotations

from textwrap import shorten, wrap
from typing import TYPE_CHECKING

import numpy as np

from replay.style import (
    PALETTE,
    TEXT_SIZE,
    THEMES,
    Theme,
    head,
    label_axes,
    label_rows,
    prepare,
    subplots,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evo.selectors.race import Selection

__all__ = ["selection_race"]

LABEL, IN_TITLE = 32, 20  # characters of a name
"""Letters in a line of a configuration's name."""


def selection_race(
    selection: Selection,
    *,
    rounds: int | None = None,
    named: int = 12,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw a row per configuration in which its interval narrows from round to round, downwards.

    Args:
        selection: What `replay.select` or `evo.select_best` returns.
        rounds: Draw the first so many; None: all. Rows and axes stay those of the whole race.
        named: Rows at most: those that stay longest, best mean first.
        ax: Axes to draw on.
        theme: See `replay.style`.

    Raises:
        ValueError: There are not so many rounds.
    """
    shown = len(selection.rounds) if rounds is None else rounds
    if not 1 <= shown <= len(selection.rounds):
        raise ValueError(f"rounds: expected from 1 to {len(selection.rounds)}, got {rounds!r}")
    alive = np.array([each.alive[0] for each in selection.rounds])
    mean, lower, upper, count = (
        np.array([getattr(each, name)[0] for each in selection.rounds])
        for name in ("mean", "lower", "upper", "count")
    )
    order = np.lexsort((-np.nan_to_num(mean[-1], nan=-np.inf), -alive.sum(axis=0)))[:named]
    ax = subplots(height=1.6 + 0.42 * len(order))[1][0] if ax is None else ax
    ax = prepare(ax, theme)
    ink = THEMES[theme]
    depth = np.linspace(-0.4, 0.4, len(selection.rounds) + 1)
    names = []
    for row, k in enumerate(order.tolist()):
        retired = not alive[shown - 1, k]
        until = min(shown, int(alive[:, k].sum()) + 1)
        colour = ink.faint if retired else PALETTE[2] if k == selection.winner else PALETTE[0]
        # Each round is as deep as the others and shows what was known after it.
        y = row + depth[: until + 1]
        low, high, middle = (
            np.append(each[:until, k], each[until - 1, k]) for each in (lower, upper, mean)
        )
        ax.fill_betweenx(y, low, high, step="post", color=colour, alpha=0.35, lw=0)
        ax.plot(middle, y, color=colour, lw=1.6, drawstyle="steps-pre")
        if retired:
            ax.plot(middle[-1:], y[-1:], color=ink.text, marker="x", ms=6)
        name = "\n".join(wrap(selection.labels[k], LABEL, max_lines=2, placeholder=" …"))
        names.append(f"{name} (n = {count[shown - 1, k]})")
    label_rows(ax, names)
    margin = 0.03 * (selection.terms.high - selection.terms.low)
    ax.set_xlim(selection.terms.low - margin, selection.terms.high + margin)
    _head(ax, theme, selection, shown, len(order))
    return ax


def _head(ax: Axes, theme: Theme, selection: Selection, shown: int, drawn: int) -> None:
    """Title, and what the picture rests on."""
    terms, total = selection.terms, len(selection.labels)
    left = int(selection.rounds[shown - 1].alive.sum())
    kind = (
        f"intervals together at {1 - terms.delta:.3g} at any time"
        if terms.interval == "anytime"
        else f"mean ± {terms.c:g} SE, which do not hold at each look"
    )
    if shown < len(selection.rounds):
        state = f"round {shown} of {len(selection.rounds)}"
    else:
        who = "none" if selection.winner is None else selection.labels[selection.winner]
        state = f"{selection.end}, winner {shorten(who, IN_TITLE, placeholder=' …')}"
    notes = [
        f"within [{terms.low:g}, {terms.high:g}]",
        *([f"{total - drawn} more configurations not drawn"] if total > drawn else []),
        *([f"failed samples: {selection.failures.sum()}"] if selection.failures.any() else []),
        *([f"clipped samples: {selection.clipped.sum()}"] if selection.clipped.any() else []),
    ]
    label_axes(ax, theme, x=f"mean reward ({', '.join(notes)})", y="")
    text = f"{left} of {total} left, x: retired; rounds go downwards; {kind}"
    head(ax, theme, f"Race by {selection.selector}: {state}", text)
    ax.tick_params(labelsize=TEXT_SIZE)
