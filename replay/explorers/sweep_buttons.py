"""Buttons that pause, continue and stop a sweep, and a line with its progress."""

from __future__ import annotations

import html
import os
import threading
from pathlib import Path
from textwrap import shorten

import evo
from evo.logs.types import JsonObject
from evo.studies.folders import request
from evo.studies.sweep.events import EventLog
from evo.studies.sweep.summary import Summary, summarise
from replay.explorers.background import start_thread, wait
from replay.explorers.widgets import button, close_previous, close_tree, row
from replay.plots.sweep_tables import short

Swept = evo.Handle[evo.Sweep] | evo.Sweep | str | os.PathLike[str]
"""A sweep under way in this process, or one by its folder."""

POLL = 0.5  # seconds between looks at the events


def sweep_progress(folder: str | os.PathLike[str]) -> tuple[Summary, list[str]]:
    """Returns a sweep's progress and latest events in words, newest last.

    Configurations are named by their values.
    """
    log = EventLog(Path(folder))
    known = log.state.configurations
    last = []
    for event in log.events[-5:]:
        values = event.values or known.get(event.configuration or "", {})
        of = [f"{name} = {shorten(short(value), 40)}" for name, value in values.items()]
        of += [] if event.seed is None else [f"seed {event.seed}"]
        last.append(": ".join(filter(None, [event.event.replace("_", " "), ", ".join(of)])))
    return summarise(Path(folder)), last


class SweepControls:
    """Pause, go on, stop; made by `sweep_controls`.

    Attributes:
        widget: The whole as one widget.
        sweep: The handle of the work in this process, or the folder.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1], **settings)
        >>> type(replay.explorers.SweepControls(made)).__name__
        'SweepControls'
    """

    def __init__(self, sweep: Swept) -> None:
        import ipywidgets

        close_previous(self)
        self.sweep = sweep
        self._folder = sweep.paths[0] if isinstance(sweep, evo.Handle) else Path(sweep)
        self._closed = threading.Event()
        self._words = ipywidgets.HTML()
        self.pause = button(
            "Pause", "No further call begins; calls in flight finish and are logged",
            lambda: request(self._folder, "pause"),
        )  # fmt: skip
        self.resume = button("Go on", "Works on what is left, in this process", self._go_on)
        self.stop = button(
            "Stop", "As pause, but calls in flight have five seconds",
            lambda: request(self._folder, "stop"),
        )  # fmt: skip
        self.widget = ipywidgets.VBox([row([self.pause, self.resume, self.stop]), self._words])
        self.refresh()
        start_thread(self._follow)

    def refresh(self) -> None:
        """Shows how the sweep stands now."""
        summary, last = sweep_progress(self._folder)
        running = summary.ended == "running"
        self.pause.disabled = self.stop.disabled = not running
        self.resume.disabled = running or summary.ended == "completed"
        lines = [str(summary), *reversed(last)]
        text = "<br>".join(html.escape(line) for line in lines)
        self._words.value = f"<div role='status' style='line-height:1.4'>{text}</div>"

    def close(self) -> None:
        """Frees the widgets; the sweep goes on."""
        self._closed.set()
        close_tree(self.widget)

    def _go_on(self) -> None:
        self.resume.disabled = True
        self.sweep = evo.start_sweep(self._folder, progress=False)

    def _follow(self) -> None:
        events = EventLog(self._folder)
        while not wait(self._closed, POLL):
            if events.refresh():
                self.refresh()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The live widget, and in words where no kernel runs."""
        bundle = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        bundle["text/plain"] = str(summarise(self._folder))
        return bundle


def sweep_controls(
    sweep: Swept,
) -> SweepControls:
    """Makes buttons that pause, go on with and stop a sweep, wherever it runs.

    Args:
        sweep: What `evo.start_sweep` returned, or the folder of a sweep: then `Go on` works on it
            in this process.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1], **settings)
        >>> type(replay.explorers.sweep_controls(made)).__name__
        'SweepControls'
    """
    return SweepControls(sweep)
