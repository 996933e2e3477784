"""The film of a run: what its best program came from, step by step, beside the fitness.

    replay.film("run.jsonl")                       # in Jupyter, with a play button
    replay.film("run.jsonl").save("run.html")      # one file that needs no network
    replay.film("run.jsonl").save("run.gif")

A step shows what its program returned, where the log holds that, else what it changed of its
parent. Nothing of a log is run.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import html
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.logs.log import Log, read_log
from evo.logs.types import as_path, writable
from replay import markup
from replay.explorers.run_data import RunData, RunView, look_at, name, status_name
from replay.importers.anything import find_whole
from replay.logs.lineage import Place, compare_programs, program_of
from replay.plots import construction, style
from replay.plots.limits import with_room
from replay.plots.marks import Line, Points
from replay.plots.panel import Axis, Panel
from replay.plots.style import PALETTE, THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 60
"""Steps of a film; of a longer lineage as many are shown, evenly spread, its ends among them."""

SECONDS, AT_END = 0.9, 3.0
"""How long a step and the last one are shown."""

CHANGED = {"light": ("#0B7A53", "#B3430A"), "dark": ("#2CD78D", "#F0853F")}
"""Inks of lines that were added and removed."""

LINES, COLUMNS = 21, 56
"""Lines and characters of a difference that fit into a picture."""

INKS = 128
"""Colours of a picture: few, so that a film stays small."""

SCRIPT = Path(__file__).with_name("film.js")


@dataclass(frozen=True, kw_only=True)
class FilmStep:
    """One program of the lineage."""

    view: RunView  # the program
    before: str | None  # text of its parent; None: unknown, or there is none
    gain: float  # over the step before; NaN where one of the two has no fitness

    @property
    def words(self) -> str:
        """The program and what it gained."""
        place, fitness = self.view.place, self.view.evaluation.fitness
        found = status_name(self.view.evaluation) if fitness is None else f"fitness {fitness:.6g}"
        gained = "" if np.isnan(self.gain) else f" ({self.gain:+.3g})"
        return f"{name(place).capitalize()}: {found}{gained}."

    @functools.cached_property
    def changes(self) -> list[str]:
        """Lines of what it changed, each with its sign; those of the program if it has no parent.

        A sentence where the log does not hold the texts.
        """
        after = self.view.program
        if after is None:
            return ["The log does not hold this program."]
        if self.before is None:
            return [f" {line}" for line in after.splitlines()]
        try:
            lines = compare_programs(self.before, after, context=1)
        except ValueError as error:
            return [str(error)]
        return lines or ["The same text as its parent."]

    @functools.cached_property
    def html(self) -> str:
        """What it changed, as HTML in colours."""
        after, language = self.view.program, self.view.data.log.header.task.language
        if after is None or self.before is None:
            return "" if after is None else _folded("The program", markup.program(after, language))
        try:
            shown, added, removed = markup.difference(self.before, after, language=language)
        except ValueError as error:
            return f"<p>{markup.clean(str(error))}</p>"
        return _folded(f"What it changed: {markup.counted(added, removed)}", shown)


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>{inside}</details>"


class Film:
    """The lineage of a run's best program, step by step; `film` makes it.

    The last expression of a cell shows it, with a play button.

    Attributes:
        steps: The programs, from the first that is known to the best.
        title: The run in words.
    """

    def __init__(self, log: Log) -> None:
        self._data = RunData(log)
        self.title = self._data.label
        every = _line_of(self._data)
        wanted = np.linspace(0, len(every) - 1, min(MOST, len(every))).round().astype(int)
        fitness = [self._data.fitness[self._data.number(place)] for place in every]
        gains = np.diff(fitness, prepend=np.nan)
        self.steps = tuple(self._step(every[k], float(gains[k])) for k in wanted.tolist())

    def figure(self, step: int = -1, theme: Theme = "light") -> Figure:
        """Draw one step.

        Args:
            step: Its number, from 0; negative ones count from the best.
            theme: See `replay.plots.style`.
        """
        from replay.plots.pen import draw_panel
        from replay.plots.plain import PlainFigure

        number = range(len(self.steps))[step]
        figure = PlainFigure(figsize=(9.0, 4.2), dpi=100)
        left = style.prepare(figure.add_axes((0.03, 0.05, 0.42, 0.78)), theme)
        right = figure.add_axes((0.55, 0.14, 0.42, 0.69))
        self._draw_program(left, self.steps[number], theme)
        draw_panel(self._fitness_panel(number).settled(), right, theme)
        return figure

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the film: a page that needs no network (.html), or a moving picture (.gif).

        Raises:
            ValueError: The name ends in anything else.
        """
        path = as_path("path", path)
        match path.suffix.lower():
            case ".html":
                writable(path).write_text(self.page(), encoding="utf-8")
            case ".gif":
                first, *others = [self._image(k, "light") for k in range(len(self.steps))]
                shown = [*[round(1000 * SECONDS)] * len(others), round(1000 * AT_END)]
                first.save(
                    writable(path), format="GIF", save_all=True, append_images=others,
                    duration=shown, loop=0, disposal=2,
                )  # fmt: skip
            case _:
                raise ValueError(f"expected a name that ends in .html or .gif, got {path.name!r}")
        return path

    def page(self) -> str:
        """The film as a page of HTML, light or dark as the reader's screen is."""
        frames = "\n".join(self._frame(k) for k in range(len(self.steps)))
        last = len(self.steps) - 1
        body = (
            f"<main class='film'><h1>{markup.clean(self.title)}</h1>\n"
            "<p class='play' hidden><button type='button'>Play</button> "
            f"<input type='range' min='0' max='{last}' value='{last}' step='1' aria-label='step'> "
            "<output></output></p>\n<p class='words' role='status' aria-live='polite'></p>\n"
            f"{frames}</main>"
        )
        script = SCRIPT.read_text(encoding="utf-8").replace("SECONDS", str(SECONDS))
        return markup.page(f"Film of {self.title}", body, script=script)

    def _repr_html_(self) -> str:
        return (
            f"<iframe title='{html.escape(f'Film of {self.title}')}' "
            "style='width:100%;max-width:940px;height:640px;border:0' "
            f'srcdoc="{html.escape(self.page(), quote=True)}"></iframe>'
        )

    def _step(self, place: Place, gain: float) -> FilmStep:
        view = look_at(self._data, place)
        before = None if view.parent is None else program_of(self._data.log, view.parent)
        return FilmStep(view=view, before=before, gain=gain)

    def _frame(self, number: int) -> str:
        """One step as HTML."""
        step, pictures = self.steps[number], []
        for theme in ("light", "dark"):
            stream = io.BytesIO()
            self._image(number, "dark" if theme == "dark" else "light").save(stream, format="PNG")
            pictures.append(base64.b64encode(stream.getvalue()).decode("ascii"))
        light, dark = (f"data:image/png;base64,{each}" for each in pictures)
        words = markup.clean(step.words)
        return (
            "<figure><picture>"
            f"<source media='screen and (prefers-color-scheme: dark)' srcset='{dark}'>"
            f"<img style='width:900px;max-width:100%' src='{light}' alt='{words}'></picture>"
            f"<figcaption>{words}</figcaption>{step.html}</figure>"
        )

    def _image(self, number: int, theme: Theme) -> Any:
        """One step as an image of few colours."""
        from PIL import Image

        stream = io.BytesIO()
        self.figure(number, theme).savefig(stream, format="png")
        return Image.open(stream).convert("RGB").quantize(INKS)

    def _draw_program(self, ax: Axes, step: FilmStep, theme: Theme) -> None:
        """What the program returned, else what it changed."""
        drawing = step.view.drawing
        if drawing.value is not None:
            with contextlib.suppress(ValueError):  # a stranger's log may hold anything
                construction(drawing.picture, drawing.value, ax=ax, theme=theme)
                return
            ax.clear()
        ax.set_axis_off()
        ax.set(xlim=(0, 1), ylim=(LINES + 1, 0))
        title = "What it changed" if step.before is not None else "The program"
        ax.set_title(title, loc="left", color=THEMES[theme].text, fontsize=style.text_size(ax) + 1)
        lines = step.changes
        added, removed = CHANGED["dark" if theme == "dark" else "light"]
        for row, line in enumerate(lines[:LINES]):
            ink = {"+": added, "-": removed}.get(line[:1], THEMES[theme].text)
            shown = line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"
            ax.text(0, row + 0.5, shown, family="monospace", fontsize=8, color=ink, va="center")
        if (left := len(lines) - LINES) > 0:
            text = f"{left} further lines" if left > 1 else "1 further line"
            ax.text(0, LINES + 0.6, text, fontsize=8, color=THEMES[theme].text, va="center")

    def _fitness_panel(self, number: int) -> Panel:
        """Every fitness and the best so far, faint; the lineage up to here."""
        data = self._data
        low, high = style.usual_range(data.fitness)
        task = data.log.header.task.name
        shown = np.maximum(data.fitness, low)
        places = [each.view.place for each in self.steps[: number + 1]]
        x = [place[0] for place in places]
        line = [float(shown[data.number(place)]) for place in places]
        so_far = np.arange(len(data.trajectory))
        return Panel(
            title=f"Fitness, step {number + 1} of {len(self.steps)}",
            about=self.steps[number].words,
            x=Axis(label="generation", domain=(-0.7, int(data.generation[-1]) + 0.7), whole=True),
            y=Axis(
                label=style.fitness_name([task]).removeprefix("best "), domain=with_room(low, high)
            ),
            marks=[
                Points(x=data.generation, y=shown, color="faint", size=2.0),
                Line(x=so_far, y=data.trajectory, color="faint", width=1.4, step=True),
                Line(x=x, y=line, color=PALETTE[0], width=2.8),
                Points(x=x, y=line, color=PALETTE[0], shape="diamond", size=6.0),
                Points(x=x[-1:], y=line[-1:], color=PALETTE[1], shape="ring", size=9.0),
            ],
        )


def _line_of(data: RunData) -> list[Place]:
    """From the first known ancestor of the best program to it, or the steps of the run's best.

    A log of another tool may not say who descends from whom.
    """
    line: list[Place] = [data.best]
    while (parent := data.parent(line[-1])) is not None and parent in data.places:
        line.append(parent)
    if len(line) == 1:
        line = [place for place, better in zip(data.places, data.improved, strict=True) if better]
        line = [*line[::-1], *([(0, 0)] if data.places[0] == (0, 0) else [])] or [data.best]
    return line[::-1]


def film(log: Log | str | os.PathLike[str]) -> Film:
    """Makes the film of a run: what its best program came from, step by step, beside the fitness.

    Args:
        log: A log, or the path of one. A step shows the construction that its program returned,
            where the log keeps it, else what the program changed of its parent.

    Returns:
        The film: Jupyter shows it with a play button, `save` writes it as HTML or GIF.

    Raises:
        LogError: There is no such log.
        ValueError: There are several logs, or no program was evaluated yet.

    Example:
        >>> type(replay.film(log)).__name__
        'Film'
    """
    if isinstance(log, Log):
        return Film(log)
    paths: Sequence[Path] = find_whole(log)
    if len(paths) != 1:
        raise ValueError(f"expected one log, got {len(paths)} at {os.fspath(log)}")
    return Film(read_log(paths[0]))
