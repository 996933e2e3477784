"""The live view: a run in progress, followed by its log, and a button that stops it resumably."""

from __future__ import annotations

import dataclasses
import datetime
import html
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.cost import cost_of_children
from evo.journal import LogError
from evo.log import Log, read_log
from replay.explorers.controls import choice
from replay.explorers.run_browser_data import (
    PENDING,
    Drawing,
    Drawings,
    NoRun,
    RunData,
    RunView,
    look_at,
    name,
    run_words,
)
from replay.explorers.run_browser_picture import RunPicture
from replay.explorers.shell import Explorer, Subject, figure_of
from replay.reading import Source
from replay.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evo.handle import Handle

HELP = "The run as its log grows, and the best construction so far."

SHARE = 0.2
"""Share of the time that the view may take from what else the kernel does."""


@dataclass(frozen=True, kw_only=True)
class Progress(RunView):
    """The best program of a run in progress.

    Attributes:
        seconds: Since the session began, up to its end.
        earlier: Whether the construction is that of the best before, the new one not being drawn.
    """

    seconds: float | None
    earlier: bool = False

    @property
    def words(self) -> str:
        """How far the run is and what it has cost, in sentences."""
        log = self.data.log
        N = log.header.children
        under_way = len(log.outcomes) - N * len(log.generations)
        done = f"{len(log.generations)} of {log.goal} generations"
        if under_way > 0:
            done += f" and {under_way} of {N} children of the next"
        cost = cost_of_children(log.calls, log.header.model, log.header.sampling)
        tokens = "tokens unknown"
        if cost.prompt_tokens is not None and cost.completion_tokens is not None:
            tokens = f"{cost.prompt_tokens:,.0f} + {cost.completion_tokens:,.0f} tokens"
        dollars = "cost unknown" if cost.dollars is None else f"${cost.dollars:.4f}"
        elapsed = "" if self.seconds is None else f", {_span(self.seconds)}"
        return " ".join(
            [
                f"{_state(log)} after {done}: {tokens}, {dollars}{elapsed}.",
                f"Best so far: {name(self.place)}.",
                *(["The construction drawn is the one before it."] if self.earlier else []),
                run_words(self.data),
            ]
        )


class LiveView(Explorer):
    """The explorer of a run in progress; `follow` makes it.

    Args:
        paths: Logs, which may not exist yet.
        stop: Asks the session that writes a log to stop.
        every: Seconds between looks at the log, at least.
        theme: Inks, see `replay.style`.
    """

    def __init__(
        self, paths: Sequence[Path], stop: Callable[[Path], None], *, every: float, theme: Theme
    ) -> None:
        import ipywidgets

        self._ask_to_stop = stop
        self._every = every
        self._logs: dict[str, RunData | None] = {}
        self._drawings = Drawings()
        self._last: dict[str, Drawing] = {}  # by log, shown until the next is made
        self._closed = threading.Event()
        options = [(path.name, str(path)) for path in paths]
        controls = {"log": choice("Log", options, str(paths[0]), tip="Which run")}
        subject = Subject(
            name="live",
            function="live_figure",
            picture=RunPicture(theme),
            view=lambda settings, coarse: self._look(settings["log"]),
            adjust=lambda moved, settings: settings,
            scrubs={},
            data="",
        )
        super().__init__(subject, controls, help=HELP)
        self.stop_button = ipywidgets.Button(
            description="Stop", icon="stop", tooltip="End the run; `evo resume` goes on with it"
        )
        self.stop_button.on_click(lambda _: self.stop())
        guide, bar, *rest = self.widget.children
        bar.children = (*bar.children, self.stop_button)
        self.widget.children = (guide, bar, *rest)
        self._show_state()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the session that writes the log to stop; what is done stays, and it can go on."""
        with self._lock:
            path = Path(self._settings["log"])
            try:
                self._ask_to_stop(path)
                said = "asked to stop: children under way get a moment to finish"
            except LogError as error:
                said = str(error)
            self._status.value = f"<span role='status'>{html.escape(said)}</span>"

    def close(self) -> None:
        """Stop looking at the log, not the run, and free the widgets."""
        self._closed.set()
        super().close()

    def _follow(self) -> None:
        """Look at the log again and again."""
        spent = 0.0
        job: threading.Thread | None = None  # draws, which may take as long as a program may
        while not self._closed.wait(max(self._every, spent / SHARE)):
            began = time.thread_time()
            with self._lock:
                if self._closed.is_set():
                    return
                self._update(coarse=False)
                self._show_state()
                view = self._view
            spent = time.thread_time() - began
            if job is not None and job.is_alive():
                continue
            if not isinstance(view, RunView) or view.program is None:
                continue
            log = view.data.log
            if self._drawings.known(log, view.evaluation, view.program) is PENDING:
                wanted = log, view.program
                job = threading.Thread(target=self._drawings.evaluate, args=wanted, daemon=True)
                job.start()

    def _look(self, path: str) -> RunView | NoRun:
        """What is new in a log, or why there is nothing to see."""
        data = self._logs.get(path)
        try:
            if data is None:
                if not Path(path).exists():
                    return NoRun(f"waiting for {Path(path).name}, which does not exist yet")
                data = RunData(read_log(path))
            elif data.log.refresh():
                data = RunData(data.log)
        except ValueError as error:
            self._logs.pop(path, None)
            self._last.pop(path, None)
            return NoRun(str(error))
        self._logs[path] = data
        view = progress(data, self._drawings, evaluate=False)
        if view.drawing is not PENDING:
            self._last[path] = view.drawing
        elif path in self._last:
            return dataclasses.replace(view, drawing=self._last[path], earlier=True)
        return view

    def _show_state(self) -> None:
        """There is nothing to stop once the session has ended."""
        view = self._view
        self.stop_button.disabled = isinstance(view, RunView) and view.data.log.ended


def progress(data: RunData, drawings: Drawings, *, evaluate: bool) -> Progress:
    """Looks at the best program of a run.

    Args:
        data: The run.
        drawings: What is known of constructions.
        evaluate: Run the program now if its construction is not known.
    """
    view = look_at(data, data.best, drawings, evaluate=evaluate)
    return Progress(**vars(view), seconds=_seconds(data.log))


def _seconds(log: Log) -> float | None:
    """Wall time of the last session, up to its last line if that is an end."""
    if not log.sessions:
        return None
    began = datetime.datetime.fromisoformat(log.sessions[-1].started).timestamp()
    try:
        now = os.stat(log.path).st_mtime if log.ended else time.time()
    except OSError:
        return None
    return max(0.0, now - began)


def _state(log: Log) -> str:
    if not log.ended:
        return "Under way"
    end = log.ends[-1]
    if end.reason == "completed":
        return "Completed"
    return f"Ended ({end.reason}{': ' + end.message if end.message else ''}), can be resumed,"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def follow(
    run: Source | Log | Handle[Any], *, every: float = 1.0, theme: Theme = "neutral"
) -> LiveView:
    """Follows a run in progress, here or in another process, until the cell is run again.

    Only what is new in the log is read. The kernel stays free: the view lives on a thread of its
    own and takes a fifth of the time at most.

    Args:
        run: What `evo.start` returned, or the path of a log, which need not exist yet.
        every: Seconds between looks at the log, at least.
        theme: Inks; `neutral` suits light and dark pages alike.
    """
    from evo.handle import Handle
    from evo.upkeep import stop

    if isinstance(run, Handle):
        return LiveView(run.paths, lambda _: run.stop(), every=every, theme=theme)
    return LiveView([Path(os.fspath(run))], stop, every=every, theme=theme)


def live_figure(log: Source | Log, *, theme: Theme = "light") -> Figure:
    """Draws what `follow` shows of a log as it is now.

    Args:
        log: A run, in progress or not.
        theme: See `replay.style`.
    """
    picture = RunPicture(theme)
    try:
        data = RunData(log if isinstance(log, Log) else read_log(log))
    except ValueError as error:
        return figure_of(picture, NoRun(str(error)))
    return figure_of(picture, progress(data, Drawings(), evaluate=True))
