"""The picture of a run on paper: children as points, failures below, one construction beside.

On the screen the browser draws it, see `run_view.js`.
"""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from evo.logs.records import STATUSES
from replay.explorers.explorer_spec import Sentence
from replay.explorers.run_arrays import LOOKS, NO_LOOK
from replay.explorers.run_data import NAMED, UNKNOWN, Drawing, RunData, RunView
from replay.plots import construction, style
from replay.plots.style import PALETTE, TEXT_SIZE, THEMES, FloatArray, Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SPREAD = 0.8
"""Share of a generation's width over which its children are spread."""

FEW = 2_000
"""More points than this are pixels in an SVG."""

LEFT = 0.67
"""Share of the width that the run takes; the construction has the rest."""


def run_figure(view: RunView | Sentence, theme: Theme) -> Figure:
    """A run, or a sentence in its place."""
    picture = RunPicture(theme)
    picture.show(view)
    return picture.figure


class RunPicture:
    """A run on the left, what one of its programs returned on the right."""

    def __init__(self, theme: Theme) -> None:
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        from replay.plots.plain import PlainFigure

        self.theme = theme
        layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, rect=(0, 0, LEFT, 1))
        self.figure: Figure = PlainFigure(figsize=(9.0, 4.2), dpi=100, layout=layout)
        self._fitness, self._failures = self.figure.subplots(
            2,
            1,
            sharex=True,
            gridspec_kw={"height_ratios": [3.2, 1], "left": 0.1, "right": LEFT - 0.02},
        )
        self._drawing = self.figure.add_axes((LEFT + 0.02, 0.22, 0.96 - LEFT, 0.62))
        self._points: FloatArray = np.empty((0, 2))

    def show(self, view: RunView | Sentence) -> None:
        """Draw a view."""
        if isinstance(view, Sentence):
            for ax in (self._fitness, self._failures, self._drawing):
                ax.set_axis_off()
            style.sentence(self._fitness, self.theme, fill(view.words, 80))
            return
        self._set_up(view.data)
        self._mark(view)
        self._draw(view.drawing)

    @staticmethod
    def _failed(data: RunData) -> NDArray[np.bool_]:
        return np.asarray(data.status != STATUSES.index("ok"))

    def _set_up(self, data: RunData) -> None:
        for ax in (self._fitness, self._failures):
            ax.set_axis_on()
            style.prepare(ax, self.theme)
        N = data.log.header.children
        self._points = np.column_stack(
            [
                data.generation + SPREAD * ((data.index + 0.5) / N - 0.5) * (data.generation > 0),
                data.fitness,
            ]
        )
        self._set_up_fitness(data)
        self._set_up_failures(data)

    def _set_up_fitness(self, data: RunData) -> None:
        ax = self._fitness
        style.label_axes(
            ax,
            self.theme,
            x="",
            y=style.fitness_name([data.log.header.task.name]).removeprefix("best "),
        )
        ax.tick_params(labelbottom=False)
        many = len(data.places) > FEW
        size = 4.5 if len(data.places) <= 300 else 3.0 if not many else 2.0
        low, high = style.usual_range(data.fitness)
        np.maximum(self._points[:, 1], low, out=self._points[:, 1])
        plain = ~data.improved & ~self._failed(data)
        below = plain & (data.fitness < low)
        for members, marker, colour, ms in (
            (plain & ~below, "o", PALETTE[0], size),
            (below, "v", PALETTE[0], size + 1.5),
            (data.improved, "D", PALETTE[1], size + 2),
        ):
            ax.plot(
                *self._points[members].T, ls="", marker=marker, ms=ms, color=colour,
                alpha=0.85 if members is not data.improved else 1, mew=0, rasterized=many, zorder=2,
            )  # fmt: skip
        until = np.arange(len(data.trajectory) + 1) + SPREAD / 2
        ax.step(
            until, np.append(data.trajectory, data.trajectory[-1]), where="post", zorder=1,
            color=THEMES[self.theme].text, lw=1.0,
        )  # fmt: skip
        ax.set_ylim(*style.with_room(low, high))
        ax.set_xlim(-0.7, max(len(data.trajectory) - 1, int(data.generation[-1])) + 0.7)
        clipped = "; triangles: below the axis" if below.any() else ""
        keys = "dots: ok; diamonds: next parents; line: best so far; ring: shown; square: parent"
        style.draw_heading(ax, self.theme, data.label, keys + clipped)
        if np.isnan(data.fitness).all():
            ax.text(
                0.5, 0.5, "nothing is ok yet", transform=ax.transAxes, ha="center", va="center",
                color=THEMES[self.theme].text, fontsize=TEXT_SIZE,
            )  # fmt: skip

    def _set_up_failures(self, data: RunData) -> None:
        ax = self._failures
        style.label_axes(ax, self.theme, x="generation", y="")
        style.whole_numbers(ax)
        found = [name for name in (*LOOKS, UNKNOWN) if (data.status == NAMED.index(name)).any()]
        many = len(data.places) > FEW
        for row, name in enumerate(found):
            members = data.status == NAMED.index(name)
            self._points[members, 1] = row
            marker, colour = LOOKS.get(name, NO_LOOK)
            ax.plot(
                *self._points[members].T, ls="", marker=marker, color=colour, mew=0,
                ms=3.0 if many else 6.0, alpha=0.8, rasterized=many,
            )  # fmt: skip
        names = found or ["no failures"]
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)

    def _mark(self, view: RunView) -> None:
        """Ring the program, put a square on its parent, and join them."""
        number = view.data.number(view.place)
        parent = None if view.parent is None else view.data.number(view.parent)
        failed, ink = self._failed(view.data), THEMES[self.theme].text
        for below, ax in ((False, self._fitness), (True, self._failures)):
            ends = [n for n in (parent, number) if n is not None and failed[n] == below]
            if len(ends) == 2:
                ax.plot(*self._points[ends].T, ls=":", lw=1.2, color=ink)
            for n in ends:
                look = {"ms": 13, "mec": PALETTE[1], "mew": 2.2}
                if n != number:
                    look = {"ms": 9, "mec": ink}
                marker = "o" if n == number else "s"
                ax.plot(*self._points[n], ls="", marker=marker, mfc="none", **look)

    def _draw(self, drawing: Drawing) -> None:
        """Draw a construction, or say why there is none."""
        ax = self._drawing
        if drawing.value is None:
            style.sentence(ax, self.theme, fill(drawing.reason, 30, break_on_hyphens=False))
            return
        try:
            construction(drawing.picture, drawing.value, ax=ax, theme=self.theme)
        except ValueError as error:  # a stranger's log may hold anything
            style.sentence(ax, self.theme, fill(str(error)[:300], 30))
