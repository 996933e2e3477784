"""The run browser: every child of a run as a point, and any of them in full."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evo.log import Log, read_log
from replay.explorers import run_browser_text as texts
from replay.explorers.controls import choice, control_style
from replay.explorers.lifetime import close_tree
from replay.explorers.run_browser_data import (
    PENDING,
    Drawings,
    Hop,
    NoRun,
    RunData,
    RunView,
    look_at,
)
from replay.explorers.run_browser_picture import RunPicture
from replay.explorers.shell import Explorer, Settings, Subject, figure_of, notice
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

HOPS: dict[str, tuple[Hop, Literal[-1, 1]]] = {
    "◀ child": ("child", -1),
    "child ▶": ("child", 1),
    "◀ improvement": ("improvement", -1),
    "improvement ▶": ("improvement", 1),
    "◀ failure": ("failure", -1),
    "failure ▶": ("failure", 1),
}
"""Buttons."""

KEYS = {
    "ArrowLeft": "◀ child",
    "ArrowRight": "child ▶",
    "ArrowUp": "improvement ▶",
    "ArrowDown": "◀ improvement",
    "f": "failure ▶",
    "F": "◀ failure",
}
"""Keys on the picture, as the buttons that they stand for."""

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
    f"if({[*KEYS]}.includes(event.key)&&!event.ctrlKey&&!event.metaKey&&!event.altKey)"
    "{event.preventDefault();event.stopPropagation();send('key '+event.key);}"
)


class RunBrowser(Explorer):
    """The explorer of runs; `browse` makes it.

    Args:
        paths: Logs, at least one.
        theme: Inks, see `replay.style`.
    """

    def __init__(self, paths: list[Path], *, theme: Theme) -> None:
        import ipywidgets

        self._drawings = Drawings()
        self._read = functools.lru_cache(maxsize=KEPT)(lambda path: RunData(read_log(path)))
        self._turn = threading.Lock()  # one program is drawn at a time
        self._job: threading.Thread | None = None
        self._facts = ipywidgets.HTML(layout={"width": "200px", "overflow": "auto"})
        self._pages = {title: ipywidgets.HTML() for title in PAGES}
        self._wire = ipywidgets.Text(layout={"display": "none"}, continuous_update=True)
        self._wire.add_class("run-browser-wire")
        subject = Subject(
            name="run",
            function="run_figure",
            picture=RunPicture(theme),
            view=self._look,
            adjust=self._adjust,
            scrubs={},
            data="",
        )
        super().__init__(subject, self._controls(paths), help=HELP)
        self._arrange()
        self._wire.observe(lambda change: self._told(change["new"]), names="value")

    @property
    def place(self) -> Place:
        """Generation and index of the program that is shown."""
        return self._settings["generation"], self._settings["index"]

    def hop(self, to: Hop, step: Literal[-1, 1] = 1) -> bool:
        """Go to the next or previous child, improvement or failure.

        Args:
            to: Of which sort.
            step: 1: the next, -1: the previous.

        Returns:
            Whether there was one.
        """
        with self._lock:
            if not isinstance(self._view, RunView):
                return False
            found = self._view.data.hop(self.place, to, step)
            if found is None:
                self._status.value = f"<span role='status'>no further {to}</span>"
                return False
            self._status.value = ""
            self.choose(generation=found[0], index=found[1])
            return True

    def finish(self) -> None:
        """Wait until the construction is drawn."""
        self.settle()
        if self._job is not None:
            self._job.join()

    def save(self, path: str | Path) -> Path:
        """Write the picture (.png, .svg, .pdf) or one row per child (.csv)."""
        self.finish()
        return super().save(path)

    def close(self) -> None:
        """Free the widgets; a program under way ends by itself."""
        with self._lock:
            super().close()
            close_tree(self._wire)
            self._read.cache_clear()

    def _look(self, settings: Settings, coarse: bool) -> RunView | NoRun:
        try:
            data = self._read(settings["log"])
        except ValueError as error:
            return NoRun(str(error))
        place = (settings["generation"], settings["index"])
        return look_at(data, place, self._drawings, evaluate=False)

    def _adjust(self, moved: str, settings: Settings) -> Settings:
        """The nearest program that there is; of another log, the best."""
        try:
            data = self._read(settings["log"])
        except ValueError:
            return settings
        place = settings["generation"], settings["index"]
        place = data.best if moved == "log" else data.places[data.number(place)]
        return {**settings, "generation": place[0], "index": place[1]}

    def _fit(self, settings: Settings) -> None:
        try:
            data = self._read(settings["log"])
        except ValueError:
            return
        self.controls["generation"].max = max(int(data.generation[-1]), 1)
        self.controls["index"].max = max(data.log.header.children - 1, 1)

    def _update(self, *, coarse: bool) -> None:
        super()._update(coarse=coarse)
        view = self._view
        if not isinstance(view, RunView):
            for page in (self._facts, *self._pages.values()):
                page.value = ""
            return
        self._facts.value = texts.facts(view)
        for title, write in PAGES.items():
            self._pages[title].value = write(view)
        if not coarse and view.drawing is PENDING:
            self._job = threading.Thread(target=self._draw, args=(view,), daemon=True)
            self._job.start()

    def _draw(self, view: RunView) -> None:
        """Run a program for its construction, unless another one is wanted by now."""
        with self._turn:
            if not self._shows(view) or view.program is None:
                return
            known = self._drawings.known(view.data.log, view.evaluation, view.program)
            if known is PENDING:
                self._drawings.evaluate(view.data.log, view.program)
        with self._lock:
            if self._shows(view):
                self._update(coarse=True)

    def _shows(self, view: RunView) -> bool:
        now = self._view
        return isinstance(now, RunView) and (now.data, now.place) == (view.data, view.place)

    def _told(self, message: str) -> None:
        """A key or a click on the picture."""
        match message.split(" ")[:-1]:
            case ["key", key] if key in KEYS:
                self.hop(*HOPS[KEYS[key]])
            case ["at", across, down]:
                with self._lock:
                    picture = self._canvas.picture
                    assert isinstance(picture, RunPicture)
                    place = picture.nearest(float(across), float(down))
                    if place is not None:
                        self._status.value = ""
                        self.choose(generation=place[0], index=place[1])

    def _controls(self, paths: list[Path]) -> dict[str, Any]:
        import ipywidgets

        first = str(paths[0])
        settings = self._adjust("log", {"log": first, "generation": 0, "index": 0})
        options = list(zip(_labels(paths), map(str, paths), strict=True))
        controls = {
            "log": choice("Log", options, first, tip="Which run"),
            "generation": ipywidgets.IntSlider(
                0, 0, 1, description="generation", tooltip="0: the initial program",
                **control_style(),
            ),
            "index": ipywidgets.IntSlider(
                0, 0, 1, description="child", tooltip="Position within the generation",
                **control_style(),
            ),
        }  # fmt: skip
        self.controls = controls
        self._fit(settings)
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
        buttons = []
        for title, (to, step) in HOPS.items():
            way = "next" if step > 0 else "previous"
            button = ipywidgets.Button(
                description=title, tooltip=f"The {way} {to}", layout={"width": "auto"}
            )
            button.on_click(lambda _, to=to, step=step: self.hop(to, step))
            buttons.append(button)
        pages = ipywidgets.Tab(
            list(self._pages.values()),
            titles=list(self._pages),
            layout={"flex": "1 1 400px", "min_width": "0", "max_width": "610px"},
        )
        guide, controls, _, words, tools, code, scrubbed = self.widget.children
        close_tree(scrubbed)
        self.widget.children = (
            *(guide, controls, ipywidgets.Box(buttons, layout={"flex_flow": "row wrap"})),
            *(stack, words, tools),
            ipywidgets.Box(
                [self._facts, pages], layout={"flex_flow": "row wrap", "max_width": "830px"}
            ),
            *(code, self._wire),
        )
        self.widget.add_class("run-browser")


def _labels(paths: list[Path]) -> list[str]:
    """File names; whole paths where names are not unique."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def browse(*logs: Source | Log | Iterable[Source | Log], theme: Theme = "neutral") -> Explorer:
    """Looks inside runs, child by child.

    Pictures of constructions come from running the child's program again, in the sandbox and on a
    thread of its own, once one rests at it.

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
        return figure_of(picture, NoRun(str(error)))
    place = data.best if generation is None else (generation, index)
    if place not in data.places:
        raise ValueError(
            f"{data.log.path}: expected a program of generations 0 to {data.generation[-1]} with "
            f"an index below {data.log.header.children}, got {place!r}"
        )
    return figure_of(picture, look_at(data, place, Drawings(), evaluate=True))
