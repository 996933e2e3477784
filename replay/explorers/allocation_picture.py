"""The picture of the allocation explorer: curves, threshold times, pulls and effects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from replay.explorers.allocation_data import BASELINES, SHARE, AllocationView, when
from replay.plots import style
from replay.plots.hits import Curve, Hits, Mark, ranged
from replay.plots.style import PALETTE, THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import FillBetweenPolyCollection, LineCollection, PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation
    from matplotlib.typing import LineStyleType

GREY = "#8C8C8C"
FAIR = 3


class AllocationPicture:
    """Best fitness and pulls above, threshold times and effects below.

    Of the curves, the one whose pulls are shown has its band; the others state theirs as tooltips.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.figure, axes = style.subplots(2, 2, width=9.0, height=2.8)
        self._curves, self._pulls, self._times, self._effects = axes
        self._ground: tuple[object, object, int, str] | None = None
        self._width, self._reach = 0, 0.0
        self.seldom: Sequence[Artist] = ()
        self.moving: Sequence[Artist] = ()

    def fresh(self, view: AllocationView) -> bool:
        """Whether it is of other policies, runs or scales."""
        return self._ground_of(view) != self._ground

    def _ground_of(self, view: AllocationView) -> tuple[object, object, int, str]:
        """What the axes depend on; while rounds move, their axis stays where they still fit."""
        width = self._width
        if not (view.coarse and width / 8 < view.rounds <= width):
            width = width_of(view)
        return (view.pools, tuple(view.played), width, view.shown)

    def show(self, view: AllocationView) -> bool:
        """Show a view; for a fresh one the axes are set up anew."""
        ground = self._ground_of(view)
        fresh = ground != self._ground
        self._ground, self._width = ground, ground[2]
        self._reach = reach(view)
        if fresh:
            self._set_up(view, self._width)
        if self._effects.get_xlim() != (-self._reach, self._reach):
            self._effects.set_xlim(-self._reach, self._reach)
        for note, text in zip(self._notes, headings(view), strict=True):
            style.retell(note, text)
        at = np.arange(1, view.rounds + 1)
        for (band, line), played in zip(self._lines, view.played.values(), strict=True):
            band.set_data(at, played.curve.low, played.curve.high)
            line.set_data(at, played.curve.value)
        self._tau.set_ydata([view.tau, view.tau])
        self._image.set_data(view.played[view.shown].ranks)
        self._image.set_clim(0, min(1.0, FAIR / view.arms))
        self._image.set_extent((0.5, view.rounds + 0.5, 1.0, 0.0))
        self._show_times(view, self._width)
        self._show_effects(view)
        return fresh

    def hits(self, view: AllocationView) -> Hits:
        """Curves; policies whose pulls a click shows; effects."""
        found = Hits(zoom=[self._curves])
        at = np.arange(1, view.rounds + 1)
        for name, played in view.played.items():
            each = played.curve
            bands = (column.tolist() for column in (each.value, each.low, each.high))
            texts = [
                f"{ranged(*band)} at {k}" for k, band in enumerate(zip(*bands, strict=True), 1)
            ]
            found.curves.append(Curve(self._curves, at, each.value, texts, f"{name}: "))
        for row, (name, time) in enumerate(view.times.items()):
            text = when(name, time, view.arms, view.rounds)
            box = (0.0, row - 0.5, float(self._width), row + 0.5)
            found.marks.append(Mark(self._times, box, text, (("shown", name),)))
        for row, (name, gain) in enumerate(view.effects.items()):
            box = (-self._reach, row - 0.5, self._reach, row + 0.5)
            shown = None if name == "pool" else (("shown", name),)
            text = f"{name} gains {ranged(gain.value, gain.low, gain.high)}"
            found.marks.append(Mark(self._effects, box, text, shown))
        return found

    def _show_times(self, view: AllocationView, width: int) -> None:
        segments, dots, arrows = [], [], []
        for row, time in enumerate(view.times.values()):
            low, high = min(time.low, width), min(time.high, width)
            segments.append([(low, row), (high, row)])
            dots.append((time.time if math.isfinite(time.time) else np.nan, row))
            late = math.isinf(time.high) or math.isinf(time.time)
            arrows.append((width if late else np.nan, row))
        self._spans.set_segments(segments)
        self._dots.set_offsets(np.array(dots, dtype=np.float64))
        self._arrows.set_offsets(np.array(arrows, dtype=np.float64))

    def _show_effects(self, view: AllocationView) -> None:
        found = list(view.effects.values())
        self._bars.set_segments([[(0, row), (each.value, row)] for row, each in enumerate(found)])
        self._limits.set_segments(
            [[(each.low, row), (each.high, row)] for row, each in enumerate(found)]
        )
        self._means.set_offsets([(each.value, row) for row, each in enumerate(found)])

    def _set_up(self, view: AllocationView, width: int) -> None:
        for ax in (self._curves, self._pulls, self._times, self._effects):
            if self.moving:
                ax.clear()
            style.prepare(ax, self.theme)
        names = list(view.played)
        self._notes: list[Annotation] = []  # how far intervals hold depends on K, which moves
        colours = dict(zip(names, colours_of(names), strict=True))
        self.moving = [
            *self._set_up_curves(view, width, colours),
            *self._set_up_pulls(view, width),
            *self._set_up_times(view, width, colours),
            *self._set_up_effects(view, colours),
        ]
        # The limits of effects follow what K and the parameters change much.
        self.seldom = [self._effects.xaxis, *self._notes]
        for artist in self.seldom:
            artist.set_animated(True)

    def _set_up_curves(
        self, view: AllocationView, width: int, colours: dict[str, str]
    ) -> list[Artist]:
        ax = self._curves
        ax.set_ylim(*fitness_range(view, width))
        ax.set_xlim(0, width)
        style.whole_numbers(ax)
        style.label_axes(ax, self.theme, x="rounds (pulls)", y="best fitness")
        self._notes.append(
            style.head(ax, self.theme, "Best fitness over the arms", headings(view)[0])
        )
        self._lines: list[tuple[FillBetweenPolyCollection, Line2D]] = []
        for name, colour in colours.items():
            dashes: LineStyleType = (
                (0, (1, 1.2)) if name == "single" else "--" if name == "random" else "-"
            )
            band = ax.fill_between([], [], [], color=colour, alpha=0.2, lw=0, animated=True)
            band.set_visible(name == view.shown)  # the bands of all would hide each other
            [line] = ax.plot([], [], color=colour, lw=1.8, ls=dashes, animated=True)
            self._lines.append((band, line))
        self._tau = ax.axhline(
            0, color=THEMES[self.theme].text, lw=0.8, ls=(0, (1, 2)), animated=True
        )
        drawn = [(name, line) for name, (_, line) in zip(colours, self._lines, strict=True)]
        style.legend_of(ax, self.theme, drawn, loc="lower right")
        bands = [band for band, _ in self._lines]
        return [*bands, *(line for _, line in self._lines), self._tau]

    def _set_up_pulls(self, view: AllocationView, width: int) -> list[Artist]:
        ax = self._pulls
        self._image = ax.imshow(
            [[0.0]], aspect="auto", cmap="cividis", vmin=0, vmax=1,
            interpolation="nearest", animated=True,
        )  # fmt: skip
        ax.set_xlim(0, width)
        ax.set_ylim(1.0, 0.0)
        ax.set_yticks([0.03, 0.97], ["best", "worst"])
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False)
        style.whole_numbers(ax)
        style.label_axes(ax, self.theme, x="round", y="rank of the arm")
        style.head(
            ax, self.theme, f"Pulls of {view.shown}",
            f"dark: none; yellow: {FAIR} equal shares or more",
        )  # fmt: skip
        return [self._image]

    def _set_up_times(
        self, view: AllocationView, width: int, colours: dict[str, str]
    ) -> list[Artist]:
        ax, every = self._times, list(colours.values())
        style.label_rows(ax, [short_name(name) for name in colours])
        ax.set_xlim(0, 1.03 * width)
        style.whole_numbers(ax)
        style.label_axes(ax, self.theme, x="rounds", y="")
        self._notes.append(style.head(ax, self.theme, "Rounds to reach τ", headings(view)[1]))
        self._spans, self._dots = _spans(ax, every, 2.2, 0.6), _dots(ax, every, "o")
        self._arrows = _dots(ax, every, ">")
        return [self._spans, self._dots, self._arrows]

    def _set_up_effects(self, view: AllocationView, colours: dict[str, str]) -> list[Artist]:
        from matplotlib.ticker import MaxNLocator

        ax = self._effects
        every = [colours.get(name, GREY) for name in view.effects]
        style.label_rows(ax, [short_name(name) for name in view.effects])
        ax.set_xlim(-self._reach, self._reach)
        ax.axvline(0, color=THEMES[self.theme].text, lw=0.8)
        ax.xaxis.set_major_locator(MaxNLocator(3))
        style.label_axes(ax, self.theme, x="gain in best fitness after all rounds", y="")
        style.head(
            ax,
            self.theme,
            "Pool and allocation",
            "pool: random less single; else policy less random",
        )
        self._bars = _spans(ax, every, 11, 0.4)
        self._limits, self._means = _spans(ax, every, 2.0, 1.0), _dots(ax, every, "o")
        return [self._bars, self._limits, self._means]


def width_of(view: AllocationView) -> int:
    """The end of the axis of rounds, the same for many numbers of them."""
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


def headings(view: AllocationView) -> tuple[str, str]:
    """What curves and threshold times are."""
    return (
        f"mean; band: {view.interval} of {view.shown}, n = {view.pools.runs} runs",
        f"{100 * SHARE:g} % of replicates, {view.interval}; arrow: later or never",
    )


def short_name(name: str) -> str:
    """A policy's name, in two lines if it is long."""
    return name.replace("_", "\n", 1) if len(name) > 12 else name


def colours_of(names: Sequence[str]) -> list[str]:
    """Grey for the baselines, the palette for policies."""
    palette = iter(PALETTE)
    return [GREY if name in BASELINES else next(palette) for name in names]


def _spans(ax: Axes, colours: Sequence[str], width: float, alpha: float) -> LineCollection:
    """Horizontal bars, one per row, whose ends are set later."""
    from matplotlib.collections import LineCollection

    spans = LineCollection([], colors=colours, linewidths=width, alpha=alpha, animated=True)
    spans.set_capstyle("butt")
    ax.add_collection(spans, autolim=False)
    return spans


def _dots(ax: Axes, colours: Sequence[str], marker: str) -> PathCollection:
    """Markers, one per row, whose places are set later."""
    rows = range(len(colours))
    return ax.scatter(
        [0] * len(colours), rows, c=list(colours), s=32, marker=marker, animated=True, zorder=3
    )
