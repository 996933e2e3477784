"""The run browser: every child of a run as a point, and any of them in full."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evo.log import Log, read_log
from replay.explorers import run_text as texts
from replay.explorers.run_data import Hop, RunData, RunView, look_at
from replay.explorers.run_picture import RunPicture
from replay.explorers.shell import Explorer, Sentence, Settings, Subject, figure_of, notice
from replay.explorers.widgets import button, choice, close_tree, counter, row
from replay.reading import Source, find_logs
from replay.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from replay.ancestry import Place

HELP = (
    "Every child of a run is a point. Click one, or focus the picture: left and right go to the "
    "next child, up and down to the next improvement, f and F to the next and previous failure."
)
KEPT = 4
"""Logs that are kept in memory."""

HOPS: dict[str, tuple[Hop, Literal[-1, 1], str]] = {
    "◀ child": ("child", -1, "ArrowLeft"),
    "child ▶": ("child", 1, "ArrowRight"),
    "◀ improvement": ("improvement", -1, "ArrowDown"),
    "improvement ▶": ("improvement", 1, "ArrowUp"),
    "◀ failure": ("failure", -1, "F"),
    "failure ▶": ("failure", 1, "f"),
}
"""Buttons: where they go, and the key on the picture that does the same."""

PAGES = {
    "Diff": texts.diff,
    "Program": texts.program,
    "Error": texts.error,
    "Reply": texts.reply,
    "Requests": texts.attempts,
}

_SEND = (
    "const wire=this.closest('.run-browser').querySelector('.run-browser-wire input');"
    "const send=(text)=>{wire.value=text+' '+Date.now();"
    "wire.dispatchEvent(new Event('input',{bubbles:true}));};"
)
_CLICK = (
    "const box=this.getBoundingClientRect();this.focus();"
    "send('at '+(event.clientX-box.left)/box.width+' '+(event.clientY-box.top)/box.height);"
)
_KEY = (
    f"if({[key for *_, key in HOPS.values()]}.includes(event.key)&&!event.ctrlKey&&!event.metaKey"
    "&&!event.altKey){event.preventDefault();event.stopPropagation();send('key '+event.key);}"
)


class RunBrowser(Explorer):
    """The explorer of runs; `browse` makes it.

    Args:
        paths: Logs, at least one.
        theme: Inks, see `replay.style`.
    """

    def __init__(self, paths: list[Path], *, theme: Theme) -> None:
        import ipywidgets

        self._read = functools.lru_cache(maxsize=KEPT)(lambda path: RunData(read_log(path)))
        self._facts = ipywidgets.HTML(layout={"width": "200px", "overflow": "auto"})
        self._pages = {title: ipywidgets.HTML() for title in PAGES}
        self._wire = ipywidgets.Text(layout={"display": "none"}, continuous_update=True)
        self._wire.add_class("run-browser-wire")
        subject = Subject(
            name="run",
            function="run_figure",
            picture=RunPicture(theme),
            view=lambda settings, coarse: self._look(settings),
            adjust=self._adjust,
            fit=self._fit,
            data="",
        )
        super().__init__(subject, self._make_controls(paths), help=HELP)
        self._arrange()
        self._wire.observe(lambda change: self._told(change["new"]), names="value")

    @property
    def place(self) -> Place:
        """Generation and index of the program that is shown."""
        return self._settings["generation"], self._settings["index"]

    def hop(self, to: Hop, step: Literal[-1, 1] = 1) -> bool:
        """Go to the next (step 1) or previous (-1) child, improvement or failure.

        Returns:
            Whether there was one.
        """
        with self._lock:
            if not isinstance(self._view, RunView):
                return False
            found = self._view.data.hop(self.place, to, step)
            self._say("" if found else f"no further {to}")
            if found:
                self.choose(generation=found[0], index=found[1])
            return found is not None

    def close(self) -> None:
        """Free the widgets and the logs."""
        with self._lock:
            super().close()
            close_tree(self._wire)
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

    def _fit(self, controls: Any, settings: Settings) -> None:
        try:
            data = self._read(settings["log"])
        except ValueError:
            return
        controls["generation"].max = max(int(data.generation[-1]), 1)
        controls["index"].max = max(data.log.header.children - 1, 1)

    def _update(self, *, coarse: bool) -> None:
        super()._update(coarse=coarse)
        view = self._view
        known = isinstance(view, RunView)
        self._facts.value = texts.facts(view) if isinstance(view, RunView) else ""
        for title, write in PAGES.items():
            self._pages[title].value = write(view) if known else ""  # type: ignore[arg-type]

    def _told(self, message: str) -> None:
        """A key or a click on the picture."""
        match message.split(" ")[:-1]:
            case ["key", key]:
                for to, step, known in HOPS.values():
                    if key == known:
                        self.hop(to, step)
            case ["at", across, down]:
                with self._lock:
                    picture = self._canvas.picture
                    assert isinstance(picture, RunPicture)
                    place = picture.nearest(float(across), float(down))
                    if place is not None:
                        self._say("")
                        self.choose(generation=place[0], index=place[1])

    def _make_controls(self, paths: list[Path]) -> dict[str, Any]:
        names = [path.name for path in paths]
        labels = names if len(set(names)) == len(names) else [str(path) for path in paths]
        first = str(paths[0])
        options = list(zip(labels, map(str, paths), strict=True))
        controls = {
            "log": choice("Log", options, first, tip="Which run"),
            "generation": counter("generation", 0, 0, 1, tip="0: the initial program"),
            "index": counter("child", 0, 0, 1, tip="Position within the generation"),
        }
        settings = self._adjust("log", {"log": first, "generation": 0, "index": 0})
        self._fit(controls, settings)
        for name, value in settings.items():
            controls[name].value = value
        return controls

    def _arrange(self) -> None:
        """Put the parts in their places, and over the picture what hears clicks and keys."""
        import ipywidgets

        width, height = self._canvas.picture.figure.get_size_inches()
        sensor = ipywidgets.HTML(
            f"<div tabindex='0' role='application' data-lm-suppress-shortcuts='true' "
            f"aria-label='Children of the run; arrow keys go to others' "
            f'onclick="{_SEND}{_CLICK}" onkeydown="{_SEND}{_KEY}" '
            f"style='width:100%;aspect-ratio:{width:g}/{height:g};cursor:crosshair'></div>",
            layout={"grid_area": "1 / 1 / 2 / 2", "margin": "0", "width": "100%", "height": "auto"},
        )
        self._image.layout.grid_area = "1 / 1 / 2 / 2"
        stack = ipywidgets.GridBox(
            [self._image, sensor],
            layout={"grid_template_columns": "minmax(0, max-content)", "max_width": "100%"},
        )
        buttons = [
            button(title, f"The {'next' if step > 0 else 'previous'} {to}",
                   functools.partial(self.hop, to, step))
            for title, (to, step, _) in HOPS.items()
        ]  # fmt: skip
        pages = ipywidgets.Tab(
            list(self._pages.values()),
            titles=list(self._pages),
            layout={"flex": "1 1 400px", "min_width": "0", "max_width": "610px"},
        )
        guide, controls, _, words, tools, code, scrubbed = self.widget.children
        close_tree(scrubbed)
        below = row([self._facts, pages])
        below.layout.max_width = "830px"
        self.widget.children = (
            *(guide, controls, row(buttons), stack, words, tools, below, code, self._wire),
        )
        self.widget.add_class("run-browser")


def browse(*logs: Source | Log | Iterable[Source | Log], theme: Theme = "neutral") -> Explorer:
    """Looks inside runs, child by child; nothing of a log is run.

    Constructions are drawn from what the logs keep of them, that is of children better than their
    parent, and of the best where `evo best --value` kept it beside the log.

    Args:
        logs: Logs, folders, glob patterns, allocation folders, or Log values.
        theme: Inks; `neutral` suits light and dark pages alike.

    Raises:
        LogError: There is no log.
    """
    paths = find_logs(*logs)
    if not paths:
        return notice("run", "run_figure", "There are no logs to look into.", theme)
    return RunBrowser(paths, theme=theme)


def run_figure(
    log: Source | Log,
    *,
    generation: int | None = None,
    index: int = 0,
    theme: Theme = "light",
) -> Figure:
    """Draws what `browse` shows of one program: the run around it and its construction.

    Args:
        log: A run.
        generation: Of the program, 0 for the initial one; None: the best program.
        index: Of the program within its generation, from 0.
        theme: See `replay.style`.

    Raises:
        ValueError: There is no such program.
    """
    picture = RunPicture(theme)
    try:
        data = RunData(log if isinstance(log, Log) else read_log(log))
    except ValueError as error:
        return figure_of(picture, Sentence(str(error)))
    place = data.best if generation is None else (generation, index)
    if place not in data.places:
        raise ValueError(
            f"{data.log.path}: expected a program of generations 0 to {data.generation[-1]} with "
            f"an index below {data.log.header.children}, got {place!r}"
        )
    return figure_of(picture, look_at(data, place))
