"""An explorer whose view the kernel computes: controls, a picture, a line of text, and buttons.

It is given controls by name, a function from their values to a view, and a picture that shows
views.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evo.logs.types import JsonObject
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import DEFAULT, ExplorerSpec, Sentence, Settings, SettingView
from replay.explorers.paper import png_of
from replay.explorers.stored import live_help, stored
from replay.explorers.widgets import (
    arranged,
    begin,
    button,
    close_tree,
    copyable,
    flip_book,
    page_script,
    row,
)
from replay.plots.scripts import encoded, spoken
from replay.warmup import uncollected

if TYPE_CHECKING:
    from pathlib import Path

    from ipywidgets import Widget
    from matplotlib.figure import Figure

    from replay.plots.style import Theme


MOST_PAST = 64
"""Changes of the settings that can be undone."""


class KernelExplorer(Explorer):
    """Controls and the picture that they move.

    Args:
        spec: What the explorer shows, and how.
        controls: Widgets with a `value`, by name of the setting, in the order of display.
        help: A sentence or two above the controls.
        begins: Initial values of some controls.

    Raises:
        ValueError: There is no such control or value, or nothing to show for it.
    """

    _spec: ExplorerSpec

    def __init__(
        self,
        spec: ExplorerSpec,
        controls: Mapping[str, Widget],
        *,
        help: str,  # noqa: A002
        begins: Settings | None = None,
    ) -> None:
        import ipywidgets

        super().__init__(spec)
        self.controls = dict(controls)
        if begins:
            begin(self.controls, begins, spec.fit)
            spec.view({name: each.value for name, each in self.controls.items()}, True)
        self._theme: Theme = "light" if spec.theme == "neutral" else spec.theme
        self._adjusting = False
        self._view: SettingView | None = None
        self._why = ""  # the settings of now cannot be shown
        self._coarse = True
        self._settings = {name: control.value for name, control in self.controls.items()}
        self._past: list[tuple[str, Settings]] = []  # each control that was moved, and from where
        self._png = b""
        self._screen = self._make_screen()
        self._words, self._code = ipywidgets.HTML(), ipywidgets.HTML()
        self._refusal = ipywidgets.HTML(layout={"display": "none"})
        settings = arranged(self.controls, spec.folded)
        settings.children += (self._refusal,)
        self._scrubbed = ipywidgets.VBox()
        self.widget = ipywidgets.VBox(
            [
                ipywidgets.HTML(live_help(self._stored_as, help)),
                settings,
                self._screen,
                self._words,
                self._tools(),
                self._code,
                self._scrubbed,
            ],
            layout={"max_width": "100%"},
        )
        self.widget.add_class("replay-explorer")
        self._hide()
        # The browser builds the widgets while the picture is drawn, or its library even loaded.
        with uncollected():
            self._update(coarse=True)
        for name, control in self.controls.items():
            control.observe(lambda _, name=name: self._moved(name), names="value")

    def _make_screen(self) -> Widget:
        """The widget that shows the picture."""
        import ipywidgets

        natural = {"width": "auto", "max_width": "100%", "align_self": "flex-start"}
        return ipywidgets.Image(format="png", layout=natural)

    @property
    def settings(self) -> Settings:
        """Values of the controls."""
        return dict(self._settings)

    @property
    def words(self) -> str:
        """Describes the picture in sentences."""
        return self._view.words if self._view else ""

    @property
    def code(self) -> str:
        """The call that gives the picture as a figure."""
        hidden = self._spec.hidden(self._settings)
        matter = {n: v for n, v in self._settings.items() if n not in hidden and v != DEFAULT}
        return self._spec.code(matter)

    @property
    def png(self) -> bytes:
        """The picture as a PNG, as it is on the screen."""
        return self._png

    def _paper(self) -> Figure:
        """The figure of the current view."""
        return self._spec.draw(self._view, self._theme)

    def _image(self, view: SettingView) -> bytes:
        """A view as a PNG."""
        notes = {"Description": view.words, "Source": self.code}
        return png_of(self._spec.draw(view, self._theme), notes)

    def _still(self) -> str:
        """The picture as HTML, and its words."""
        shown = (
            f'<img style="max-width:100%" src="data:image/png;base64,{encoded(self.png)}" alt="">'
        )
        return shown + spoken(self.words)

    def save(self, path: str | Path) -> Path:
        """Write the picture (.png, .svg, .pdf; .html answers to the mouse) or its numbers (.csv).

        Raises:
            ValueError: The name ends in anything else, or these settings cannot be shown.
        """
        with self._lock:
            self.settle()
            if self._why:
                raise ValueError(self._why)
            return super().save(path)

    def settle(self) -> None:
        """Replace a coarse view, as shown first and while a slider moves, by the full one."""
        with self._lock:
            self._debounce.cancel()
            if self._coarse:
                self._spec.slow(self._settings)
                self._update(coarse=False)

    def scrub(self, parameter: str, values: Sequence[object] | None = None) -> Widget:
        """Make a slider over one parameter that needs no kernel.

        All its pictures are drawn now, and moving the slider only selects one of them. It is fast,
        and works without a kernel and in a notebook saved as HTML.

        Args:
            parameter: Name of a setting.
            values: Its values; None takes those of the explorer.

        Returns:
            A widget.
        """
        import ipywidgets

        scrubs = self._spec.scrubs
        if values is None and parameter not in scrubs:
            raise ValueError(
                f"expected values, or a parameter among {[*scrubs]}, got {parameter!r}"
            )
        with self._lock:
            self.settle()
            now = self.settings
            frames: dict[object, tuple[bytes, str]] = {}
            for value in scrubs[parameter](now) if values is None else values:
                asked = self._spec.adjust(parameter, {**now, parameter: value})
                view = self._spec.view(asked, False)
                frames[value] = self._frame(view), view.words
            self._update(coarse=False)
        made = flip_book(parameter, frames, now.get(parameter), self._make_book)
        made.children = (*made.children, ipywidgets.HTML(page_script()))
        self._made.append(made)
        return made

    def _frame(self, view: SettingView) -> bytes:
        """The page for a view in a slider that needs no kernel."""
        return self._image(view)

    def _make_book(self, pages: list[bytes], texts: list[str], at: int) -> Widget | None:
        """The widget that shows pages of `_frame`; None: they are plain images."""
        return None

    def close(self) -> None:
        """Free the widgets, the figure and the numbers; IPython's `Out` may keep the rest."""
        with self._lock:
            super().close()
            self._view = None

    def choose(self, **settings: object) -> None:
        """Set several controls at once, and draw once; others follow as if each was moved by hand.

        Raises:
            ValueError: There is no such setting or value; nothing has changed.
        """
        with self._lock:
            before = {name: control.value for name, control in self.controls.items()}
            with self._untold():
                try:
                    begin(self.controls, settings, self._spec.fit)
                    given = {name: self.controls[name].value for name in settings}
                    chosen = self._settings
                    for name in (each for each in self.controls if each in given):
                        chosen = self._spec.adjust(name, {**chosen, **given})
                except ValueError:
                    begin(self.controls, before, self._spec.fit)
                    raise
            if chosen != self._settings:
                self._remember("")
            self._take(chosen)

    def undo(self) -> None:
        """Go back to the settings before the latest change; a slider's moves in a row are one."""
        with self._lock:
            if self._past:
                self._take(self._past.pop()[1])
                self._undo.disabled = not self._past

    def _remember(self, name: str) -> None:
        """Keep the settings of now, before a control of this name ("": several) changes them."""
        if not (name and self._past and self._past[-1][0] == name):
            self._past = [*self._past[1 - MOST_PAST :], (name, self._settings)]
        self._undo.disabled = False

    def _clicked(self, key: object) -> None:
        """A mark was clicked: its key is a tuple of settings and their values."""
        with contextlib.suppress(ValueError):
            self.choose(**self._spec.clicked(key))

    def _moved(self, name: str) -> None:
        """A control has a new value."""
        with self._lock:
            if self._adjusting:
                return
            values = {name: control.value for name, control in self.controls.items()}
            self._remember(name)
            self._take(self._spec.adjust(name, values))

    def _take(self, settings: Settings) -> None:
        """Replace the settings by ones that fit together, and show them in the controls."""
        self._settings = settings
        with self._untold():
            self._spec.fit(self.controls, settings)
            for name, control in self.controls.items():
                if control.value != settings[name]:
                    control.value = settings[name]
        self._hide()
        self._update(coarse=True)
        self._debounce.soon()

    @contextlib.contextmanager
    def _untold(self) -> Iterator[None]:
        """Has controls change meanwhile without this being a move, and tells the page at once."""
        self._adjusting = True
        with contextlib.ExitStack() as told_at_once:
            told_at_once.callback(setattr, self, "_adjusting", False)
            for control in self.controls.values():  # new options never stand without their choice
                told_at_once.enter_context(control.hold_sync())
            yield

    def _hide(self) -> None:
        """Show only the controls that matter."""
        hidden = self._spec.hidden(self._settings)
        for name, control in self.controls.items():
            control.layout.display = "none" if name in hidden else None

    def _at_rest(self, still: Callable[[], bool]) -> None:
        """Nothing has moved for a while: show the view in full."""
        with self._lock:
            if not still():
                return
            slow, settings = self._spec.slow, self._settings
        slow(settings)
        with self._lock:
            if not still():
                return
            if self._coarse:
                self._update(coarse=False)

    def _update(self, *, coarse: bool) -> None:
        """Show the view of the current settings."""
        try:
            self._view = self._spec.view(self._settings, coarse)
        except ValueError as error:
            self._refuse(str(error))
            self._offer(False)
            return
        self._refuse("")
        self._offer(not isinstance(self._view, Sentence))
        self._draw(coarse=coarse)

    def _refuse(self, why: str) -> None:
        """Say below the controls why their settings cannot be shown; empty: they can."""
        self._why = why
        moved = self._past[-1][0] if why and self._past else None
        for name, control in self.controls.items():
            (control.add_class if name == moved else control.remove_class)("replay-refused")
        if why and self._view is not None:
            why = f"{why.rstrip('.')}. What is shown below is as it was before."
        self._refusal.value = spoken(why, role="alert") if why else ""
        self._refusal.layout.display = None if why else "none"

    def _draw(self, *, coarse: bool) -> None:
        """Draw the view and show it."""
        if self._view is not None:
            self._png, self._coarse = self._image(self._view), coarse
            self._screen.value = self._png
            self._say(self._view.words, code=not coarse)

    def _say(self, words: str, *, code: bool) -> None:
        """Show the words of the view, and the call that gives it as a figure."""
        self._words.value = spoken(words, drawn=self._draws(words))
        if code and self.code:
            self._code.value = copyable(self.code)

    def _draws(self, words: str) -> bool:
        """Whether the picture bears these words."""
        return False

    def _tools(self) -> Widget:
        """Buttons under the picture."""
        scrubs = [
            button(
                f"Scrub {parameter}", "Draw all pictures now, for a slider that needs no kernel",
                functools.partial(self._scrub_clicked, parameter),
            )
            for parameter in self._spec.scrubs
        ]  # fmt: skip
        self._undo = button("Undo", "Back to the settings before (Escape)", self.undo)
        self._undo.add_class("replay-undo")
        self._undo.disabled = True
        back = [self._undo] if self.controls else []
        return row([*back, *self._save_buttons(), *scrubs, self._status])

    def _scrub_clicked(self, parameter: str) -> None:
        old, self._scrubbed.children = self._scrubbed.children, (self.scrub(parameter),)
        for widget in old:
            close_tree(widget)

    def _stored(self) -> JsonObject:
        """What a saved notebook shows, and the live widget hides: the view at rest."""
        self.settle()
        return stored(self._stored_as, self.png, self.words if self._view else self._why)
