"""An explorer whose picture the browser draws from arrays: it moves without the kernel.

The kernel computes every number once and sends it; `view.js` looks numbers up and draws them. What
somebody chooses there comes back as traits that Python may read, set and observe. The notebook
stores a picture beside the live view, which is seen where no kernel runs and on pages without
scripts.
"""

from __future__ import annotations

import functools
import html
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evo.logs.types import JsonObject
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import PictureSpec, Settings
from replay.explorers.scripts import screen_class, script
from replay.explorers.stored import UNLOADED
from replay.explorers.widgets import page_script, row
from replay.plots.scripts import WIDE, encoded, spoken


@dataclass(frozen=True, kw_only=True)
class BrowserSpec(PictureSpec):
    """What the browser draws, as functions of settings.

    Attributes:
        options: The values of each setting; None: any number.
        pack: From settings to the bytes that `view.js` draws.
        same: Whether the bytes for one choice serve for another.
        lists: Settings that hold any number of their values.
    """

    options: Mapping[str, Sequence[Any] | None]
    pack: Callable[[Settings], bytes]
    same: Callable[[Settings, Settings], bool]
    lists: Sequence[str] = ()


class Setting:
    """One setting of an explorer: its `value` can be read, set and observed."""

    def __init__(self, explorer: BrowserExplorer, name: str, options: Sequence[Any] | None) -> None:
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


class BrowserExplorer(Explorer):
    """An explorer that the browser draws.

    Args:
        spec: What it is about.
        help: A sentence or two over it.
        begins: Every setting.

    Raises:
        ValueError: There is nothing to show for the settings.

    Attributes:
        screen: The widget of the picture, with a trait for each setting.
    """

    _spec: BrowserSpec

    def __init__(self, spec: BrowserSpec, *, help: str, begins: Settings) -> None:  # noqa: A002
        import ipywidgets

        super().__init__(spec)
        self._taking = False
        self.controls = {name: Setting(self, name, known) for name, known in spec.options.items()}
        for name, value in begins.items():
            self._check(name, value)
        spec.view(begins, False)
        self._names = list(spec.options)
        self._packed_for = dict(begins)
        self.screen = _screen()(data=spec.pack(begins), still=self._stored_as, **begins)
        self.screen.observe(self._changed, names=self._names)
        self.screen.on_msg(lambda widget, content, buffers: self._receive(content))
        self.widget = ipywidgets.VBox(
            [
                ipywidgets.HTML(f"<div style='{WIDE}'>{html.escape(help)}{page_script()}</div>"),
                self.screen,
                row([*self._save_buttons(), self._status]),
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
            return self._spec.view(self.settings, False).words
        except ValueError as error:
            return str(error)

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
            f'<div id="{name}" data-replay-still="{self._stored_as}">'
            f'<img style="max-width:100%" src="data:image/png;base64,{image}" '
            f'alt="">{spoken(self.words)}</div>\n<script type="module">\n'
            "const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));\n"
            f'const still = document.getElementById("{name}");\n'
            f"if (document.querySelector('[data-replay-live=\"{self._stored_as}\"]'))\n"
            '  still.style.display = "none";\n'
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
            if self._spec.slow(self.settings):
                self._send()

    def choose(self, **settings: Any) -> None:
        """Change several settings at once; one alone is moved as by hand.

        Raises:
            ValueError: There is no such setting or value, or they do not fit together; nothing has
                changed.
        """
        with self._lock:
            for name, value in settings.items():
                self._check(name, value)
            alone = next(iter(settings)) if len(settings) == 1 else ""
            now = self._spec.adjust(alone, {**self.settings, **settings})
            other = [name for name, value in settings.items() if now[name] != value]
            if other and not alone:
                given = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
                fits = ", ".join(f"{name} = {now[name]!r}" for name in other)
                raise ValueError(
                    f"expected settings that fit together, such as {fits}, got {given}"
                )
            self._take(now)

    def move(self, name: str, value: Any) -> None:
        """Change one setting, and those that go with it."""
        with self._lock:
            self._check(name, value)
            self._take(self._spec.adjust(name, {**self.settings, name: value}))

    def _check(self, name: str, value: Any) -> None:
        """Refuse a setting or a value that does not exist."""
        if name not in self.controls:
            raise ValueError(f"expected settings among {', '.join(self.controls)}, got {name!r}")
        known = self.controls[name].options
        if name in self._spec.lists:
            if not isinstance(value, list | tuple):
                raise ValueError(f"{name}: expected a list, got {value!r}")
            if missing := [each for each in value if each not in (known or ())]:
                raise ValueError(f"{name}: there is no {missing[0]!r}")
            return
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value not in known if known is not None else not (number and math.isfinite(value)):
            options = "all finite numbers" if known is None else known
            raise ValueError(f"{name}: expected a value out of {options}, got {value!r}")

    def _take(self, settings: Settings) -> None:
        """Show settings that fit together, and the numbers for them, in one message."""
        self._taking = True
        try:
            with self.screen.hold_sync():
                if not self._spec.same(self._packed_for, settings):
                    self._packed_for = dict(settings)
                    self.screen.data = self._spec.pack(settings)
                for name, value in settings.items():
                    setattr(self.screen, name, value)
        finally:
            self._taking = False
        self._debounce.soon()

    def _changed(self, change: Any) -> None:
        """Somebody moved something on the page, whose settings fit together already."""
        with self._lock:
            if self._taking or not self._is_open:
                return
            if self._spec.same(self._packed_for, self.settings):
                self._debounce.soon()
            else:  # another task or model
                self._take(self._spec.adjust(change["name"], self.settings))

    def _receive(self, message: Mapping[str, Any]) -> None:
        """The page shows the picture: what takes longer may begin."""
        with self._lock:
            if message.get("kind") == "mounted" and self._is_open:
                self._debounce.soon()

    def _at_rest(self, still: Callable[[], bool]) -> None:
        """Nothing has moved for a while: compute what the page lacks."""
        with self._lock:
            if not still():
                return
            spec, settings = self._spec, self.settings
        news = spec.slow(settings)
        with self._lock:
            if news and still():
                self._send()

    def _send(self) -> None:
        """Send the numbers again."""
        self._packed_for = self.settings
        self.screen.data = self._spec.pack(self.settings)

    def _still(self) -> str:
        return self.page(alone=True)

    def _stored(self) -> JsonObject:
        return {"text/html": UNLOADED + self.page(), "text/plain": self.words}
