"""An explorer whose picture the browser draws from arrays: it moves without the kernel.

The kernel computes every number once and sends it; `view.js` looks numbers up and draws them. What
somebody chooses there comes back as traits that Python may read, set and observe. The notebook
stores a picture beside the live view, which is seen where no kernel runs and on pages without
scripts.
"""

from __future__ import annotations

import functools
import html
import io
import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replay.explorers.debounce import Debounce
from replay.explorers.explorer_spec import Settings, SettingView
from replay.explorers.scripts import screen_class, script
from replay.explorers.stored import show_live
from replay.explorers.widgets import button, close_previous, close_tree, row, short
from replay.plots.scripts import WIDE, encoded, picture_of, spoken, write_page
from replay.plots.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class BrowserDrawing:
    """What the browser draws, as functions of settings.

    Attributes:
        name: Begins the names of saved files.
        options: The values of each setting; None: any number.
        view: From settings to a view, whose words and table are those of the picture. Raises
            ValueError, with a sentence for the user, where there is none.
        pack: From settings to the bytes that `view.js` draws.
        same: Whether the bytes for one choice serve for another.
        figure: From a view and a theme to the figure for paper.
        adjust: From the name of the setting that was changed, and settings, to settings that fit
            together.
        slow: Computes, beside the page, what the bytes lack; returns whether that was anything.
        code: From settings to the call that gives the picture as a figure.
        lists: Settings that hold any number of their values.
        theme: Inks of a saved page.
    """

    name: str
    options: Mapping[str, Sequence[Any] | None]
    view: Callable[[Settings], SettingView]
    pack: Callable[[Settings], bytes]
    same: Callable[[Settings, Settings], bool]
    figure: Callable[[SettingView, Theme], Figure]
    adjust: Callable[[str, Settings], Settings]
    slow: Callable[[Settings], bool]
    code: Callable[[Settings], str]
    lists: Sequence[str] = ()
    theme: Theme = "neutral"


class Setting:
    """One setting of an explorer: its `value` can be read, set and observed."""

    def __init__(self, explorer: Drawn, name: str, options: Sequence[Any] | None) -> None:
        self._explorer, self._name = explorer, name
        self.options = None if options is None else tuple(options)

    @property
    def value(self) -> Any:
        """What is chosen, here or on the page; setting it is the same as moving it by hand."""
        return self._explorer.settings[self._name]

    @value.setter
    def value(self, value: Any) -> None:
        self._explorer.move(self._name, value)

    def observe(self, handler: Callable[[Any], object], names: str = "value") -> None:
        """Calls `handler` with the change, as of a trait, whenever the value changes."""
        if names != "value":
            raise ValueError(f"expected names='value', got {names!r}")
        self._explorer.screen.observe(handler, names=self._name)


@functools.cache
def _screen() -> Any:
    """Returns the class of the widget; it needs anywidget, which is imported here."""
    from traitlets import Bytes, Float, Int, List, Unicode

    made = screen_class(
        "view",
        data=Bytes(),
        still=Unicode(),
        generations=Int(),
        children=Int(),
        calls=Int(),
        tau=Float(),
        axis=Unicode(),
        map=Unicode(),
        task=Unicode(),
        model=Unicode(),
        runs=List(Unicode()),
    )
    if made is None:
        raise ModuleNotFoundError(
            "the budget explorer needs anywidget: pip install 'evo-replay[notebook]'; "
            "replay.plots.heatmap draws a grid without it",
            name="anywidget",
        )
    return made


class Drawn:
    """An explorer that the browser draws.

    The last expression of a cell shows it. `close` frees the widgets; running the cell again does
    that by itself.

    Args:
        drawing: What it is about.
        help: A sentence or two over it.
        begins: Every setting.

    Raises:
        ValueError: There is nothing to show for the settings.

    Attributes:
        widget: The whole as one widget.
        screen: The widget of the picture, with a trait for each setting.
        controls: The settings by name.
    """

    def __init__(self, drawing: BrowserDrawing, *, help: str, begins: Settings) -> None:  # noqa: A002
        import ipywidgets

        close_previous(self)
        self._drawing = drawing
        self._lock = threading.RLock()
        self._debounce = Debounce(self._lock, self._at_rest)
        self._taking = False
        self.controls = {
            name: Setting(self, name, known) for name, known in drawing.options.items()
        }
        for name, value in begins.items():
            self._check(name, value)
        drawing.view(begins)
        self._names = list(drawing.options)
        self._packed_for = dict(begins)
        self._still = secrets.token_hex(6)
        self.screen = _screen()(data=drawing.pack(begins), still=self._still, **begins)
        self.screen.observe(self._changed, names=self._names)
        self.screen.on_msg(lambda widget, content, buffers: self._receive(content))
        self._status = ipywidgets.HTML()
        self.widget = ipywidgets.VBox(
            [
                ipywidgets.HTML(f"<div style='{WIDE}'>{html.escape(help)}</div>"),
                self.screen,
                row([*map(self._save_button, ("png", "svg", "html", "csv")), self._status]),
            ],
            layout={"max_width": "100%"},
        )
        self.widget.add_class("replay-explorer")

    @property
    def settings(self) -> Settings:
        """What is chosen, by name."""
        return {name: getattr(self.screen, name) for name in self._names}

    @property
    def words(self) -> str:
        """Describes the picture in sentences."""
        try:
            return self._drawing.view(self.settings).words
        except ValueError as error:
            return str(error)

    @property
    def code(self) -> str:
        """The call that gives the picture as a figure."""
        return self._drawing.code(self.settings)

    @property
    def png(self) -> bytes:
        """The picture for paper, as a PNG."""
        stream = io.BytesIO()
        notes = {"Description": self.words, "Source": self.code}
        self.figure().savefig(stream, format="png", dpi=100, metadata=notes)
        return stream.getvalue()

    def _small(self) -> bytes:
        """The same in few colours, for pages."""
        return picture_of(self.figure())

    def figure(self, theme: Theme = "light") -> Figure:
        """Draw the picture in full, for paper.

        Args:
            theme: See `replay.plots.style`.

        Raises:
            ValueError: There is nothing to show for these settings.
        """
        with self._lock:
            self._drawing.slow(self.settings)
            return self._drawing.figure(self._drawing.view(self.settings), theme)

    def save(self, path: str | Path) -> Path:
        """Write the picture (.png, .svg, .pdf; .html answers to the mouse) or its numbers (.csv).

        Raises:
            ValueError: The name ends in anything else.
        """
        from replay.plots.output import save

        path = Path(path)
        if path.suffix.lower() == ".csv":
            with self._lock:
                self.settle()
                self._drawing.view(self.settings).table().to_csv(path, index=False)
        elif path.suffix.lower() == ".html":
            write_page(path, self._drawing.name, self._drawing.theme, self.page(alone=True))
        else:
            save(self.figure(), path)
        return path

    def page(self, *, alone: bool = False) -> str:
        """The picture as HTML without a server or a network: scripts, where run, make it move.

        Args:
            alone: Whether nothing else is on its page, whose address then holds the choice.
        """
        with self._lock:
            self.settle()
            picture, data, state = self._small(), self.screen.data, self.settings
        image, numbers, code, words = (
            encoded(each) for each in (picture, data, script("view"), json.dumps(state))
        )
        name = f"replay-{secrets.token_hex(6)}"
        mount = "addressed" if alone else "mount"
        return (
            f'<div id="{name}" data-replay-still="{self._still}">'
            f'<img style="max-width:100%" src="data:image/png;base64,{image}" '
            f'alt="">{spoken(self.words)}</div>\n<script type="module">\n'
            "const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));\n"
            f'const still = document.getElementById("{name}");\n'
            f'if (window.replayLive?.has("{self._still}")) still.style.display = "none";\n'
            "else if (still) {\n"
            f'  const code = new Blob([bytes("{code}")], {{ type: "text/javascript" }});\n'
            f"  const {{ {mount}: mount }} = await import(URL.createObjectURL(code));\n"
            f'  const state = JSON.parse(new TextDecoder().decode(bytes("{words}")));\n'
            f'  const numbers = new DataView(bytes("{numbers}").buffer);\n'
            "  still.replaceChildren();\n  mount(still, numbers, state);\n}\n</script>\n"
        )

    def settle(self) -> None:
        """Compute and send now what comes later by itself."""
        with self._lock:
            self._debounce.cancel()
            self._send(self._drawing.slow(self.settings))

    def choose(self, **settings: Any) -> None:
        """Change several settings at once."""
        with self._lock:
            now = {**self.settings, **settings}
            for name, value in settings.items():
                self._check(name, value)
            self._take(now)

    def move(self, name: str, value: Any) -> None:
        """Change one setting, and those that go with it."""
        with self._lock:
            self._check(name, value)
            self._take(self._drawing.adjust(name, {**self.settings, name: value}))

    def close(self) -> None:
        """Free the widgets and the numbers; IPython's `Out` may keep the rest."""
        with self._lock:
            self._debounce.cancel()
            close_tree(self.widget)
            self.__dict__.pop("_drawing", None)

    def _check(self, name: str, value: Any) -> None:
        """Refuse a setting or a value that does not exist."""
        if name not in self.controls:
            raise ValueError(f"expected settings among {', '.join(self.controls)}, got {name!r}")
        known = self.controls[name].options
        if name in self._drawing.lists:
            if not isinstance(value, list | tuple):
                raise ValueError(f"{name}: expected a list, got {value!r}")
            if missing := [each for each in value if each not in (known or ())]:
                raise ValueError(f"{name}: there is no {missing[0]!r}")
            return
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value not in known if known is not None else not (number and abs(value) <= 1e6):
            options = "the numbers from -1e6 to 1e6" if known is None else known
            raise ValueError(f"{name}: expected a value out of {options}, got {value!r}")

    def _take(self, settings: Settings) -> None:
        """Show settings that fit together, and the numbers for them, in one message."""
        self._taking = True
        try:
            with self.screen.hold_sync():
                if not self._drawing.same(self._packed_for, settings):
                    self._packed_for = dict(settings)
                    self.screen.data = self._drawing.pack(settings)
                for name, value in settings.items():
                    setattr(self.screen, name, value)
        finally:
            self._taking = False
        self._debounce.soon()

    def _changed(self, change: Any) -> None:
        """Somebody moved something on the page, whose settings fit together already."""
        with self._lock:
            if self._taking or "_drawing" not in self.__dict__:
                return
            if self._drawing.same(self._packed_for, self.settings):
                self._debounce.soon()
            else:  # another task or model
                self._take(self._drawing.adjust(change["name"], self.settings))

    def _receive(self, message: Mapping[str, Any]) -> None:
        """The page shows the picture: what takes longer may begin."""
        with self._lock:
            if message.get("kind") == "mounted" and "_drawing" in self.__dict__:
                self._debounce.soon()

    def _at_rest(self, still: Callable[[], bool]) -> None:
        """Nothing has moved for a while: compute what the page lacks."""
        with self._lock:
            if not still():
                return
            drawing, settings = self._drawing, self.settings
        news = drawing.slow(settings)
        with self._lock:
            if still():
                self._send(news)

    def _send(self, news: bool) -> None:
        """Send the numbers again if there are new ones."""
        if news:
            self._packed_for = self.settings
            self.screen.data = self._drawing.pack(self.settings)

    def _save_button(self, suffix: str) -> Any:
        what = {"html": "page", "csv": "numbers"}.get(suffix, "picture")
        return button(
            f"Save {suffix.upper()}", f"Write the {what} into the notebook's folder",
            functools.partial(self._save_clicked, suffix),
        )  # fmt: skip

    def _save_clicked(self, suffix: str) -> None:
        stem = "-".join(
            [self._drawing.name, *(short(each) for each in self.settings.values() if each != [])]
        )
        path = self.save(f"{stem.strip('-')[:120]}.{suffix}")
        self._status.value = f"<span role='status'>{html.escape(f'saved {path}')}</span>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The live widget, and the picture for where no kernel runs."""
        live = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        return live | self._stored()

    def _stored(self) -> dict[str, Any]:
        """What a saved notebook shows."""
        return {"text/html": self.page(), "text/plain": self.words}

    def _ipython_display_(self) -> None:
        show_live(self.widget, self._stored)
