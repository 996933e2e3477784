"""The live view: a run in progress, followed by its log, and buttons that end it resumably."""

from __future__ import annotations

import datetime
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evo.logs.cost import cost_of_calls
from evo.logs.journal import LogError
from evo.logs.locks import is_written
from evo.logs.log import Log, read_log
from evo.runs.progress import duration
from replay.explorers.background import start_thread, wait
from replay.explorers.explorer_spec import ExplorerSpec, Sentence
from replay.explorers.run_browser import browse_code, film_parts
from replay.explorers.run_data import (
    RunData,
    RunView,
    done_words,
    end_words,
    look_at,
    name,
    own_goal,
    run_words,
    status_name,
)
from replay.explorers.run_explorer import RunExplorer
from replay.explorers.run_picture import run_figure
from replay.explorers.widgets import button, choice, row
from replay.logs.others import Source
from replay.plots.style import Theme
from replay.statistics.numbers import amount

if TYPE_CHECKING:
    from evo.logs.shared_requests import Wish
    from evo.runs.handle import Handle
    from replay.logs.lineage import Place

HELP = (
    "The run as its log grows, and the best construction so far. Click on a child to see it, and "
    "again to see the best; or focus the picture and use the arrow keys."
)

TIPS = (
    "No further call begins, and those under way finish",
    "As pause, but calls have five seconds",
)
"""What the buttons do."""

TOGETHER = "all runs of its command end together"

SHARE = 0.2
"""Share of the time that the view may take from what else the kernel does."""


@dataclass(frozen=True, kw_only=True)
class LiveRunView(RunView):
    """The best program of a run in progress."""

    seconds: float | None  # since the session began, up to its end
    written: bool  # whether a process writes the log

    @property
    def words(self) -> str:
        """How far the run is and what it has cost, in sentences."""
        log = self.data.log
        N = log.header.children
        under_way = len(log.outcomes) - N * len(log.generations)
        done = done_words(log)
        if under_way > 0:
            done += f" and {under_way} of {N} children of the next"
        cost = cost_of_calls(log.calls, log.header)
        of = (log.header, log.header.critic)
        is_llm = any(each.model.is_llm for each in of if each is not None)
        tokens = "tokens unknown"
        if cost.prompt_tokens is not None and cost.completion_tokens is not None:
            tokens = f"{cost.prompt_tokens:,.0f} + {cost.completion_tokens:,.0f} tokens"
        dollars = "cost unknown" if cost.dollars is None else f"${cost.dollars:.4f}"
        if not is_llm:
            dollars = "no LLM, no cost"
        elapsed = "" if self.seconds is None else f", {duration(self.seconds)}"
        left = (log.goal - len(log.generations)) / max(len(log.generations), 1)
        if self.seconds and log.generations and left > 0 and self.written:
            elapsed += f"; at this pace {duration(left * self.seconds)} left"
            if cost.dollars and is_llm:
                elapsed += f" and ${left * cost.dollars:.4f}"
        return (
            f"{_state(log, self.written)} after {done}: {tokens}, {dollars}{elapsed}. "
            f"Best so far: {name(self.data.best)}. {self._shown}{run_words(self.data)}"
        )

    @property
    def bar(self) -> str:
        """The children that are complete as a bar, and their number, in HTML."""
        log = self.data.log
        done, T = len(log.outcomes), own_goal(log)
        calls = amount(cost_of_calls(log.calls, log.header).calls, "call")
        if T is None:
            return f"{amount(done, 'child', 'children')}, {calls}"
        goal = T * log.header.children
        words = f"{done:,} of {amount(goal, 'child', 'children')}, {calls}"
        return (
            f"<progress max='{max(goal, 1)}' value='{min(done, goal)}' aria-label='children' "
            f"style='width:min(320px, 60%);vertical-align:middle'></progress> {words}"
        )

    @property
    def _shown(self) -> str:
        """The program that was clicked, where it is not the best."""
        if self.place == self.data.best:
            return ""
        fitness = self.evaluation.fitness
        how = status_name(self.evaluation) if fitness is None else f"fitness {fitness:.6g}"
        return f"Shown: {name(self.place)}, {how}. "


class LiveView(RunExplorer):
    """The explorer of a run in progress; `follow` makes it."""

    def __init__(
        self,
        paths: Sequence[Path],
        ask: Callable[[Path, Wish], None],
        *,
        every: float,
        theme: Theme,
        is_alone: bool = False,
    ) -> None:
        self._ask, self._is_alone = ask, is_alone
        self._asked: Wish | None = None
        self._every = every
        self._logs: dict[str, RunData] = {}
        self._closed = threading.Event()
        self._chosen: Place | None = None
        options = [(path.name, str(path)) for path in paths]
        spec = ExplorerSpec(
            name="live",
            figure=run_figure,
            theme=theme,
            view=lambda settings, coarse: self._look(settings["log"]),
            code=browse_code,
        )
        control = choice("Log", options, tip="Which run")
        super().__init__(spec, {"log": control}, help=HELP)
        import ipywidgets

        self._bar = ipywidgets.HTML()
        pause, stop = (tip if is_alone else f"{tip}; {TOGETHER}" for tip in TIPS)
        self.pause_button = button("Pause", pause, self.pause)
        self.stop_button = button("Stop", stop, self.stop)
        bar = self.widget.children[1]
        play, film = film_parts(lambda: self._view)
        bar.children = (*bar.children, row([self.pause_button, self.stop_button, play]))
        help_line, *rest = self.widget.children
        self.widget.children = (help_line, self._bar, *rest, film)
        self._show_state()
        self._thread = start_thread(self._follow)

    def pause(self) -> None:
        """Ask the session that writes the log to end once the calls under way have finished."""
        self._wish("pause", "calls under way finish")

    def stop(self) -> None:
        """Ask the session that writes the log to stop; what is done stays, and it can go on."""
        self._wish("stop", "children under way get a moment to finish")

    def _wish(self, wish: Wish, then: str) -> None:
        """Ask for an end of the run, and say so until it has come."""
        with self._lock:
            try:
                self._ask(Path(self._settings["log"]), wish)
            except LogError as error:
                self._show_message(str(error))
            else:
                self._asked = wish
                also = "" if self._is_alone else ", with all runs of its command"
                self._show_message(f"asked to {wish}{also}: {then}; `evo resume` goes on")

    def close(self) -> None:
        """Stop looking at the log, not the run, and free the widgets."""
        self._closed.set()
        super().close()

    def went(self, generation: int, index: int, *, by: str = "click") -> None:
        """Show a program that was clicked, and the best again once it is clicked again."""
        place = generation, index
        self._chosen = None if by == "click" and place == self._chosen else place
        self._update(coarse=False)

    def _follow(self) -> None:
        """Look at the log again and again."""
        spent, over = 0.0, self._is_over()
        while not wait(self._closed, max(self._every, spent / SHARE)):
            began = time.thread_time()
            with self._lock:
                if self._closed.is_set():
                    return
                self._update(coarse=False)
                self._show_state()
                if self._is_over() and not over:
                    over = True
                    self._store_again()
            spent = time.thread_time() - began

    def _look(self, path: str) -> RunView | Sentence:
        """What is new in a log, or why there is nothing to see."""
        data = self._logs.pop(path, None)
        written = is_written(Path(path))  # asked first: a run that ends now has said so below
        try:
            if data is None:
                if not Path(path).exists():
                    return Sentence(f"waiting for {Path(path).name}, which does not exist yet")
                data = RunData(read_log(path))
            elif data.log.refresh():
                data = RunData(data.log)
        except ValueError as error:
            return Sentence(str(error))
        self._logs[path] = data
        chosen = self._chosen if self._chosen in data.places else data.best
        written = written and not data.log.ended
        seen = look_at(data, chosen)
        return LiveRunView(**vars(seen), seconds=_seconds(data.log, written), written=written)

    def _is_over(self) -> bool:
        """Whether nothing writes the run that is shown: it has ended, or its process has."""
        return isinstance(self._view, LiveRunView) and not self._view.written

    def _show_state(self) -> None:
        """Show how far the run is; there is nothing to stop once nothing writes it."""
        over = self._is_over()
        self.pause_button.disabled = self.stop_button.disabled = over
        if over and self._asked:
            self._asked = None
            self._show_message("")  # the words say how the run ended
        self._bar.value = self._view.bar if isinstance(self._view, LiveRunView) else ""


def _seconds(log: Log, written: bool) -> float | None:
    """Wall time of the last session, up to its last line if nothing writes it any more."""
    if not log.sessions:
        return None
    began = datetime.datetime.fromisoformat(log.sessions[-1].started).timestamp()
    try:
        now = time.time() if written else os.stat(log.path).st_mtime
    except OSError:
        return None
    return max(0.0, now - began)


def _state(log: Log, written: bool) -> str:
    if written:
        return "Under way"
    if not log.ended:
        return "Interrupted (no process writes the log), can be resumed,"
    end = log.ends[-1]
    if end.reason == "completed":
        return "Completed"
    return f"Ended ({end_words(end)}), can be resumed,"


def follow(
    run: Source | Log | Handle[object], *, every: float = 1.0, theme: Theme = "neutral"
) -> LiveView:
    """Follows a run in progress, here or in another process, until the cell is run again.

    Only what is new in the log is read. The kernel stays free: the view lives on a thread of its
    own and takes a fifth of the time at most.

    Args:
        run: What `evo.start` returned, or the path of a log, which need not exist yet.
        every: Seconds between looks at the log, at least.
        theme: Inks; `neutral` suits light and dark pages alike.

    Example:
        >>> type(replay.follow(log)).__name__
        'LiveView'
    """
    from evo.logs.stopping import stop
    from evo.runs.handle import Handle

    if isinstance(run, Handle):
        asks: dict[Wish, Callable[[], None]] = {"pause": run.pause, "stop": run.stop}
        return LiveView(
            run.paths, lambda _, wish: asks[wish](), every=every, theme=theme,
            is_alone=len(run.paths) == 1,
        )  # fmt: skip
    return LiveView([Path(os.fspath(run))], stop, every=every, theme=theme)
