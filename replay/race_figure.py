"""The race of a selection, drawn round by round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from replay.style import TEXT_SIZE, THEMES, Theme, head, label_axes, label_ends, look, prepare

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evo.selected import Selection

__all__ = ["selection_race"]


def selection_race(
    selection: Selection,
    *,
    rounds: int | None = None,
    named: int = 8,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> Axes:
    """Draw each configuration's mean and interval after every round; a cross where it is retired.

    Args:
        selection: What `replay.select` or `evo.select_best` returns.
        rounds: Draw the first so many; None: all. The axes stay those of the whole race.
        named: How many configurations have a name and a band, those best at that point.
        ax: Axes to draw on.
        theme: See `replay.style`.
    """
    shown = len(selection.rounds) if rounds is None else rounds
    if not 1 <= shown <= len(selection.rounds):
        raise ValueError(f"rounds: expected from 1 to {len(selection.rounds)}, got {rounds!r}")
    ax = prepare(ax, theme)
    label_axes(ax, theme, x="samples taken in all", y="mean reward")
    past = selection.rounds[:shown]
    position = np.array([each.count.sum() for each in selection.rounds])
    mean, lower, upper = (
        np.array([getattr(each, name)[0] for each in past]) for name in ("mean", "lower", "upper")
    )
    alive = np.array([each.alive[0] for each in past])
    ax.set_xlim(0, 1.02 * position[-1])
    ax.set_ylim(selection.terms.low, selection.terms.high)
    order = np.argsort(-np.nan_to_num(np.where(alive[-1], mean[-1], mean[-1] - 1e9), nan=-np.inf))
    ends = []
    for place, k in enumerate(order.tolist()):
        # A retired one is drawn up to the round in which it was retired.
        until = min(shown, int(alive[:, k].sum()) + 1)
        x, y = position[:until], mean[:until, k]
        if place >= named:
            ax.plot(x, y, color=THEMES[theme].faint, lw=0.8)
            continue
        colour, style = look(place)
        ax.plot(x, y, color=colour, ls=style, lw=1.8, marker="o", ms=3)
        ax.fill_between(x, lower[:until, k], upper[:until, k], color=colour, alpha=0.12, lw=0)
        if not alive[-1, k]:
            ax.plot(x[-1:], y[-1:], color=colour, marker="X", ms=9)
        ends.append((float(y[-1]), f"{selection.labels[k]} (n = {past[-1].count[0, k]})", colour))
    label_ends(ax, theme, ends)
    _head(ax, theme, selection, shown, int(alive[-1].sum()))
    return ax


def _head(ax: Axes, theme: Theme, selection: Selection, shown: int, left: int) -> None:
    """Title, and what the picture rests on."""
    terms, total = selection.terms, len(selection.labels)
    kind = (
        f"intervals that hold together at {1 - terms.delta:.3g} whenever one looks"
        if terms.interval == "anytime"
        else f"mean ± {terms.c:g} SE, which do not hold when looked at again and again"
    )
    if shown < len(selection.rounds):
        state = f"round {shown} of {len(selection.rounds)}"
    else:
        who = "none" if selection.winner is None else selection.labels[selection.winner]
        state = f"winner {who}, {selection.end}"
    counts = [("failed", selection.failures), ("clipped", selection.clipped)]
    notes = "".join(f"; {each.sum()} samples {name}" for name, each in counts if each.any())
    head(
        ax,
        theme,
        f"Race by {selection.selector}: {state}",
        f"{left} of {total} configurations left, X: retired; {kind}; rewards within "
        f"[{terms.low:g}, {terms.high:g}]{notes}",
    )
    ax.tick_params(labelsize=TEXT_SIZE)
