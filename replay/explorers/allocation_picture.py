"""The figure of the allocation explorer for paper, and the texts that it shares with its chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from replay.explorers.allocation_data import BASELINES, SHARE, AllocationView
from replay.plots import style
from replay.plots.style import PALETTE, THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.typing import LineStyleType

GREY = "#8C8C8C"
FAIR = 3
"""An arm with so many equal shares of the pulls has the brightest colour."""


class Texts(NamedTuple):
    """The texts of a panel: its title, the line below it, and the labels of its axes."""

    title: str
    about: str
    x: str
    y: str = ""


def texts_of(view: AllocationView) -> tuple[Texts, Texts, Texts, Texts]:
    """The texts of curves, pulls, threshold times and effects."""
    return (
        Texts(
            title="Best fitness over the arms",
            about=f"mean; band: {view.interval} of {view.shown}, n = {view.pools.runs} runs",
            x="rounds (pulls)",
            y="best fitness",
        ),
        Texts(
            title=f"Pulls of {view.shown}",
            about=f"dark: none; yellow: {FAIR} equal shares or more",
            x="round",
            y="rank of the arm",
        ),
        Texts(
            title="Rounds to reach τ",
            about=f"{100 * SHARE:g} % of replicates, {view.interval}; arrow: later or never",
            x="rounds",
        ),
        Texts(
            title="Pool and allocation",
            about="pool: random less single; else policy less random",
            x="gain in best fitness after all rounds",
        ),
    )


def allocation_figure(view: AllocationView, theme: Theme) -> Figure:
    """Best fitness and pulls above, threshold times and effects below.

    Of the curves, the one whose pulls are shown has its band.
    """
    figure, axes = style.subplots(2, 2, width=9.0, height=2.8)
    for ax in axes:
        style.prepare(ax, theme)
    names = list(view.played)
    colours = dict(zip(names, colours_of(names), strict=True))
    _draw_curves(axes[0], view, colours, theme)
    _draw_pulls(axes[1], view)
    _draw_times(axes[2], view, colours)
    _draw_effects(axes[3], view, colours, theme)
    for ax, texts in zip(axes, texts_of(view), strict=True):
        style.label_axes(ax, theme, x=texts.x, y=texts.y)
        style.head(ax, theme, texts.title, texts.about)
    return figure


def _draw_curves(ax: Axes, view: AllocationView, colours: dict[str, str], theme: Theme) -> None:
    width = width_of(view)
    ax.set_ylim(*fitness_range(view, width))
    ax.set_xlim(0, width)
    style.whole_numbers(ax)
    at = np.arange(1, view.rounds + 1)
    drawn: list[tuple[str, str | Line2D]] = []
    for name, colour in colours.items():
        dashes: LineStyleType = (
            (0, (1, 1.2)) if name == "single" else "--" if name == "random" else "-"
        )
        curve = view.played[name].curve
        if name == view.shown:  # the bands of all would hide each other
            ax.fill_between(at, curve.low, curve.high, color=colour, alpha=0.2, lw=0)
        [line] = ax.plot(at, curve.value, color=colour, lw=1.8, ls=dashes)
        drawn.append((name, line))
    ax.axhline(view.tau, color=THEMES[theme].text, lw=0.8, ls=(0, (1, 2)))
    style.legend_of(ax, theme, drawn, loc="lower right")


def _draw_pulls(ax: Axes, view: AllocationView) -> None:
    ax.imshow(
        view.played[view.shown].ranks, aspect="auto", cmap="cividis", interpolation="nearest",
        vmin=0, vmax=min(1.0, FAIR / view.arms), extent=(0.5, view.rounds + 0.5, 1.0, 0.0),
    )  # fmt: skip
    ax.set_xlim(0, width_of(view))
    ax.set_ylim(1.0, 0.0)
    ax.set_yticks([0.03, 0.97], ["best", "worst"])
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    style.whole_numbers(ax)


def _draw_times(ax: Axes, view: AllocationView, colours: dict[str, str]) -> None:
    width, found = width_of(view), list(view.times.values())
    every, rows = list(colours.values()), range(len(found))
    style.label_rows(ax, [short_name(name) for name in colours])
    ax.set_xlim(0, 1.03 * width)
    style.whole_numbers(ax)
    limits = [(min(each.low, width), min(each.high, width)) for each in found]
    _spans(ax, limits, every, 2.2, 0.6)
    ax.scatter([each.time for each in found], rows, c=every, s=32, zorder=3)
    late = [math.isinf(each.high) or math.isinf(each.time) for each in found]
    ends = [width if each else math.nan for each in late]
    ax.scatter(ends, rows, c=every, s=32, marker=">", zorder=3)


def _draw_effects(ax: Axes, view: AllocationView, colours: dict[str, str], theme: Theme) -> None:
    from matplotlib.ticker import MaxNLocator

    found, end = list(view.effects.values()), reach(view)
    every = [colours.get(name, GREY) for name in view.effects]
    style.label_rows(ax, [short_name(name) for name in view.effects])
    ax.set_xlim(-end, end)
    ax.axvline(0, color=THEMES[theme].text, lw=0.8)
    ax.xaxis.set_major_locator(MaxNLocator(3))
    _spans(ax, [(0.0, each.value) for each in found], every, 11, 0.4)
    _spans(ax, [(each.low, each.high) for each in found], every, 2.0, 1.0)
    ax.scatter([each.value for each in found], range(len(found)), c=every, s=32, zorder=3)


def width_of(view: AllocationView) -> int:
    """The end of the axis of rounds: the next power of two, so that it seldom changes."""
    return int(2 ** math.ceil(math.log2(max(view.rounds, 2))))


def fitness_range(view: AllocationView, width: int) -> tuple[float, float]:
    """The axis of best fitness."""
    low, high = view.pools.limits(width)
    room = 0.05 * max(high - low, 0.02)
    return low - room, high + room


def reach(view: AllocationView) -> float:
    """Half the width of the axis of effects, the same for all views of much the same size."""
    ends = [end for each in view.effects.values() for end in (each.value, each.low, each.high)]
    widest = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
    reach = 10.0 ** math.ceil(math.log10(max(1.2 * widest, 1e-3)))
    return next(part * reach for part in (0.2, 0.5, 1.0) if part * reach >= 1.2 * widest)


def short_name(name: str) -> str:
    """A policy's name, in two lines if it is long."""
    return name.replace("_", "\n", 1) if len(name) > 12 else name


def colours_of(names: Sequence[str]) -> list[str]:
    """Grey for the baselines, the palette for policies."""
    palette = iter(PALETTE)
    return [GREY if name in BASELINES else next(palette) for name in names]


def _spans(
    ax: Axes,
    limits: Sequence[tuple[float, float]],
    colours: Sequence[str],
    width: float,
    alpha: float,
) -> None:
    """Horizontal bars, one per row."""
    from matplotlib.collections import LineCollection

    ends = [[(low, row), (high, row)] for row, (low, high) in enumerate(limits)]
    spans = LineCollection(ends, colors=colours, linewidths=width, alpha=alpha)
    spans.set_capstyle("butt")
    ax.add_collection(spans, autolim=False)
