"""The run browser: every child of a run as a point, and any of them in full."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evo.logs.log import Log, read_log
from evo.logs.records import STATUSES
from evo.logs.types import writable
from replay.explorers import run_text as texts
from replay.explorers.chart_explorer import notice
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import ExplorerSpec, Sentence, Settings, call
from replay.explorers.run_data import Hop, RunData, RunView, look_at, run_words
from replay.explorers.run_explorer import RunExplorer
from replay.explorers.run_file import run_file
from replay.explorers.run_picture import run_figure
from replay.explorers.widgets import button, choice, close_tree, control, counter, row
from replay.importers.anything import find_whole
from replay.logs.others import Source, from_here, origin_of
from replay.plots.style import Theme
from replay.statistics.numbers import amount

if TYPE_CHECKING:
    from ipywidgets import Widget

    from replay.logs.lineage import Place

HELP = (
    "Every child of a run is a point. Click one, or focus the picture: left and right go to the "
    "next child, up and down to the next improvement, f and F to the next and previous failure. "
    "The list shows who descends from whom, or the programs of a status that hold a text."
)
KEPT = 4
"""Logs that are kept in memory."""

LINEAGE, EVERY, FAILURES = "lineage", "every program", "failures by message"
"""What the list shows, beside the programs of one status."""

HOPS: dict[str, tuple[Hop, Literal[-1, 1]]] = {
    "◀ child": ("child", -1),
    "child ▶": ("child", 1),
    "◀ improvement": ("improvement", -1),
    "improvement ▶": ("improvement", 1),
    "◀ failure": ("failure", -1),
    "failure ▶": ("failure", 1),
}
"""Buttons, and where they go; keys on the picture do the same, see `run_view.js`."""

PAGES = {
    "Side by side": texts.side_by_side,
    "Program": texts.program,
    "Error": texts.error,
    "Prompt": texts.prompt,
    "Reply": texts.reply,
    "Requests": texts.attempts,
}


def browse_code(settings: Settings) -> str:
    """The call that shows a program of a log; of another tool's, the place where that wrote it."""
    place = {name: value for name, value in settings.items() if name != "log"}
    log = str(settings["log"])
    origin, shown = origin_of(log), repr(from_here(log))
    if origin is not None:
        shown = repr(from_here(origin.place))
        if number := origin.logs.index(Path(log)):
            shown = f"replay.find_logs({shown})[{number}]"
    return call("browse", shown, place)


def film_parts(view: Callable[[], object]) -> tuple[Widget, Widget]:
    """A button that shows the film of the run in view, or hides it, and where it is shown."""
    import ipywidgets

    from replay.explorers.film import Film

    place = ipywidgets.HTML(layout={"margin": "2px 0"})  # no wider than what stands around it

    def press() -> None:
        seen, shown = view(), place.value
        if shown or not isinstance(seen, RunView):
            place.value = ""
        else:
            place.value = Film(seen.data.log)._repr_html_()

    return button("Film", "Play the lineage of the best program", press), place


class RunBrowser(RunExplorer):
    """The explorer of runs; `browse` makes it."""

    def __init__(self, paths: list[Path], *, theme: Theme, begins: Settings | None = None) -> None:
        import ipywidgets

        self._read = functools.lru_cache(maxsize=KEPT)(lambda path: RunData(read_log(path)))
        self._facts = ipywidgets.HTML(layout={"overflow": "auto"})
        self._pages = {title: ipywidgets.HTML() for title in ("Diff", *PAGES)}
        wide = {"flex": "3 1 420px", "min_width": "0"}
        self._tabs = ipywidgets.Tab([*self._pages.values()], titles=[*self._pages], layout=wide)
        self._tabs.selected_index = 0
        self._page_before: int | None = None  # that was read before a failure
        self._kind = choice("List", [LINEAGE, EVERY, FAILURES, *STATUSES], tip="What it shows")
        self._search = control(
            "Text", "Search", placeholder="in programs and errors", continuous_update=False
        )
        self._list = control("Select", "", tip="Programs", rows=12)
        self._listing = False
        spec = ExplorerSpec(
            name="run",
            figure=run_figure,
            theme=theme,
            view=lambda settings, coarse: self._look(settings),
            code=browse_code,
            adjust=self._adjust,
            fit=self._fit,
        )
        controls, start = self._make_controls(paths)
        super().__init__(spec, controls, help=HELP, begins=start | (begins or {}))
        self._arrange()
        for each in (self._kind, self._search):
            each.observe(lambda _: self._show_message(self._fill()), names="value")
        self._list.observe(lambda change: self._chosen(change["new"]), names="value")

    @property
    def place(self) -> Place:
        """Generation and index of the program that is shown."""
        return self._settings["generation"], self._settings["index"]

    def hop(self, to: Hop, step: Literal[-1, 1] = 1) -> bool:
        """Go to the next (step 1) or previous (-1) child, improvement or failure."""
        with self._lock:
            if not isinstance(self._view, RunView):
                return False
            found = self._view.data.hop(self.place, to, step)
            if found is None:
                self._show_message(f"no further {to}")
            else:
                self.choose(generation=found[0], index=found[1])
            return found is not None

    def _write_page(self, path: Path) -> None:
        """Write the run with every text of every child, above 20 MB without replies."""
        if isinstance(self._view, RunView) and hasattr(self._screen, "run"):
            run, at, words = self._screen.run, self._view.place, run_words(self._view.data)
            page = run_file(self._view.data, run, words=words, picture=self.png, at=at)
            writable(path).write_text(page, encoding="utf-8")
        else:
            super()._write_page(path)

    def close(self) -> None:
        """Free the widgets and the logs."""
        with self._lock:
            super().close()
            self._read.cache_clear()

    def _look(self, settings: Settings) -> RunView | Sentence:
        try:
            data = self._read(settings["log"])
        except ValueError as error:
            return Sentence(str(error))
        return look_at(data, (settings["generation"], settings["index"]))

    def _adjust(self, moved: str, settings: Settings) -> Settings:
        """The nearest program that there is; of another log, the best."""
        try:
            data = self._read(settings["log"])
        except ValueError:
            return settings
        place = settings["generation"], settings["index"]
        place = data.best if moved == "log" else data.places[data.number(place)]
        return {**settings, "generation": place[0], "index": place[1]}

    def _fit(self, controls: Mapping[str, Widget], settings: Settings) -> None:
        try:
            data = self._read(settings["log"])
        except ValueError:
            return
        controls["generation"].max = max(int(data.generation[-1]), 1)
        controls["index"].max = max(data.log.header.children - 1, 1)

    def went(self, generation: int, index: int, *, by: str = "click") -> None:
        """Show the program that was clicked, or reached by keys."""
        self.choose(generation=generation, index=index)

    def _update(self, *, coarse: bool) -> None:
        super()._update(coarse=coarse)
        if not isinstance(view := self._view, RunView):
            self._facts.value = ""
            for page in self._pages.values():
                page.value = ""
            return
        self._facts.value = texts.facts(view)
        text, shown = texts.changes(view)
        self._pages["Diff"].value = shown or texts.note(text)
        for title, write in PAGES.items():
            self._pages[title].value = write(view)
        if coarse:  # else it was shown before
            self._show_message(text)
            self._turn_page(view)
        self._fill()

    def _turn_page(self, view: RunView) -> None:
        """A failure opens on its error; what is ok, on the page that was read before."""
        error = list(self._pages).index("Error")
        failed = view.evaluation.status != "ok"
        if failed and self._tabs.selected_index != error:
            self._page_before, self._tabs.selected_index = self._tabs.selected_index, error
        elif not failed and self._page_before is not None:
            if self._tabs.selected_index == error:
                self._tabs.selected_index = self._page_before
            self._page_before = None

    def _fill(self) -> str:
        """List what was asked for, with the shown program in it, and return how many there are."""
        with self._lock:
            if self._listing or not isinstance(self._view, RunView):
                return ""
            data, kind = self._view.data, self._kind.value
            if kind == LINEAGE and not self._search.value:
                found = data.tree()
            elif kind == FAILURES:
                found = data.failures(self._search.value)
            else:
                status = kind if kind in STATUSES else None
                found = data.find(self._search.value, status)
            options: list[tuple[str, Place | None]] = [*found] or [("none", None)]
            places = [place for _, place in options]
            self._listing = True
            try:
                if tuple(options) != tuple(self._list.options):
                    self._list.options = options
                self._list.value = self.place if self.place in places else None
            finally:
                self._listing = False
            return f"The list shows {amount(len(found), 'program')}."

    def _chosen(self, place: Place | None) -> None:
        """An entry of the list was chosen."""
        if place is not None and not self._listing:
            self.choose(generation=place[0], index=place[1])

    def _make_controls(self, paths: list[Path]) -> tuple[dict[str, Widget], Settings]:
        """The controls, and where they begin: at the best of the first log."""
        names = [path.name for path in paths]
        labels = names if len(set(names)) == len(names) else [str(path) for path in paths]
        options = list(zip(labels, map(str, paths), strict=True))
        controls = {
            "log": choice("Log", options, tip="Which run"),
            "generation": counter("generation", 0, 1, tip="0: the initial program"),
            "index": counter("child", 0, 1, tip="Position within the generation"),
        }
        return controls, self._adjust("log", {"log": str(paths[0]), "generation": 0, "index": 0})

    def _arrange(self) -> None:
        """Put the parts in their places."""
        import ipywidgets

        buttons = [
            button(title, f"The {'next' if step > 0 else 'previous'} {to}",
                   functools.partial(self.hop, to, step))
            for title, (to, step) in HOPS.items()
        ]  # fmt: skip
        beside = ipywidgets.VBox(
            [self._kind, self._search, self._list, self._facts],
            layout={"flex": "1 1 230px", "min_width": "0"},
        )
        guide, controls, picture, words, tools, code, scrubbed = self.widget.children
        close_tree(scrubbed)
        below = row([beside, self._tabs])
        below.layout.width = "100%"
        guide.value += texts.SHEET
        play, film = film_parts(lambda: self._view)
        tools.children = (play, *tools.children)
        parts = guide, controls, row(buttons), picture, words, tools, film, below, code
        self.widget.children = parts
        self.widget.add_class("run-browser")


def browse(
    *logs: Source | Log | Iterable[Source | Log], theme: Theme = "neutral", **begins: int
) -> Explorer:
    """Looks inside runs, child by child; nothing of a log is run.

    Constructions are drawn from what the logs keep of them, that is of children better than their
    parent, and of the best where `evo best --value` kept it beside the log.

    Args:
        logs: Logs, folders, glob patterns, allocation folders, Log values, or what another tool
            wrote.
        theme: Inks; `neutral` suits light and dark pages alike.
        **begins: The program that is shown first: its generation, 0 for the initial one, and its
            index within it; otherwise the best of the first log.

    Raises:
        LogError: There is no log.
        ValueError: There is no such program.

    Example:
        >>> type(replay.browse(log)).__name__
        'RunBrowser'
    """
    paths = find_whole(*logs)
    if not paths:
        return notice("run", "There are no logs to look into.", theme)
    return RunBrowser(paths, theme=theme, begins=begins)
