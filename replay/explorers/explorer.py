"""What every explorer is: settings, a picture of them, a line of words, and buttons that save.

Who computes while somebody moves a control differs: the kernel (`KernelExplorer`) or the page
(`BrowserExplorer`). The settings are the keyword arguments of a plain function that returns the
same picture as a figure.

JupyterLab may run the handlers of widgets on a thread of their own beside a running cell, so all
that computes or draws holds one lock, and nothing uses pyplot.
"""

from __future__ import annotations

import functools
import html
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.logs.types import JsonObject, as_path, writable
from replay.explorers.debounce import Debounce
from replay.explorers.explorer_spec import PictureSpec, Settings
from replay.explorers.paper import png_of
from replay.explorers.stored import show_live
from replay.explorers.widgets import button, close_previous, close_tree, file_stem
from replay.plots.scripts import picture_of, write_page

if TYPE_CHECKING:
    from IPython.display import DisplayHandle
    from ipywidgets import Widget
    from matplotlib.figure import Figure

    from replay.plots.style import Theme

SAVED = {"png": "picture", "svg": "picture", "html": "page", "csv": "numbers"}
"""What the buttons of an explorer save, by suffix."""


class Explorer:
    """A picture that follows its settings.

    The last expression of a cell shows it; where no kernel runs, the notebook shows the picture as
    it was. `close` frees the widgets; running the cell again does that by itself.

    Args:
        spec: What the explorer shows, and how.

    Attributes:
        widget: The whole as one widget.
        controls: By name of the setting; setting a `.value` is the same as moving it by hand.
    """

    widget: Widget
    controls: Mapping[str, Any]
    _spec: PictureSpec

    def __init__(self, spec: PictureSpec) -> None:
        import ipywidgets

        close_previous(self)
        self._spec = spec
        self._lock = threading.RLock()
        self._debounce = Debounce(self._lock, self._at_rest)
        self._stored_as = secrets.token_hex(6)
        self._status = ipywidgets.HTML()
        self._made: list[Widget] = []  # beside the widget
        self._display: DisplayHandle | None = None  # of what a saved notebook shows

    @property
    def settings(self) -> Settings:
        """Values of the controls."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """Describes the picture in sentences."""
        raise NotImplementedError

    @property
    def code(self) -> str:
        """The call that gives the picture as a figure."""
        return self._spec.code(self.settings)

    @property
    def png(self) -> bytes:
        """The picture for paper as a PNG."""
        return png_of(self._paper(), {"Description": self.words, "Source": self.code})

    def figure(self, theme: Theme = "light") -> Figure:
        """Draw the picture in full, for paper.

        Args:
            theme: See `replay.plots.style`.

        Raises:
            ValueError: There is nothing to show for these settings.
        """
        with self._lock:
            self._spec.slow(self.settings)
            return self._spec.draw(self._spec.view(self.settings, False), theme)

    def save(self, path: str | Path) -> Path:
        """Write the picture (.png, .svg, .pdf; .html answers to the mouse) or its numbers (.csv).

        Raises:
            ValueError: The name ends in anything else.
        """
        from replay.plots.output import save

        path = as_path("path", path)
        with self._lock:
            self.settle()
            if path.suffix.lower() == ".csv":
                self._spec.view(self.settings, False).table().to_csv(writable(path), index=False)
            elif path.suffix.lower() == ".html":
                self._write_page(path)
            else:
                save(self._paper(), path)
        return path

    def settle(self) -> None:
        """Show now what is shown by itself once nothing has moved for a while."""
        raise NotImplementedError

    def choose(self, **settings: Any) -> None:
        """Change several settings at once, and draw once.

        Raises:
            ValueError: There is no such setting or value; nothing has changed.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free the widgets, the figure and the numbers; IPython's `Out` may keep the rest."""
        with self._lock:
            self._debounce.cancel()
            for each in (self.widget, *self._made):
                close_tree(each)
            self.__dict__.pop("_spec", None)

    @property
    def _is_open(self) -> bool:
        return "_spec" in self.__dict__

    def _at_rest(self, still: Callable[[], bool]) -> None:
        """Nothing has moved for a while: show what takes longer, as long as this stays so."""
        raise NotImplementedError

    def _paper(self) -> Figure:
        """The figure of what is shown."""
        return self.figure()

    def _small(self) -> bytes:
        """That picture as a PNG in few colours, for pages."""
        return picture_of(self._paper())

    def _still(self) -> str:
        """The picture and its words as the body of a page."""
        raise NotImplementedError

    def _write_page(self, path: Path) -> None:
        """Write the view as a page that answers to the mouse."""
        write_page(path, self._spec.name, self._spec.theme, self._still())

    def _save_buttons(self) -> list[Widget]:
        self._saves = [
            button(
                f"Save {suffix.upper()}", f"Write the {what} into the notebook's folder",
                functools.partial(self._save_clicked, suffix),
            )
            for suffix, what in SAVED.items()
        ]  # fmt: skip
        return self._saves

    def _offer(self, there: bool, *, numbers: bool = True) -> None:
        """Offer files of the view, or none where there is nothing to see for these settings."""
        for suffix, each in zip(SAVED, self._saves, strict=True):
            each.layout.display = None if there and (numbers or suffix != "csv") else "none"

    def _save_clicked(self, suffix: str) -> None:
        try:
            path = self.save(f"{file_stem(self._spec.name, self.settings)}.{suffix}")
        except (OSError, ValueError) as error:  # such as a folder that cannot be written
            self._show_message(f"not saved: {error}")
        else:
            self._show_message(f"saved {path}")

    def _show_message(self, text: str) -> None:
        """Show a message, such as the result of a button."""
        self._status.value = f"<span role='status'>{html.escape(text)}</span>" if text else ""

    def _stored(self) -> JsonObject:
        """What a saved notebook shows, and the live widget hides: the view at rest."""
        raise NotImplementedError

    def _store_again(self) -> None:
        """Replace what a saved notebook shows by the view of now."""
        if self._display is not None:
            self._display.update(self._stored(), raw=True)  # type: ignore[no-untyped-call]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The live widget, and the picture and words for where no kernel runs."""
        live = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        return live | self._stored()

    def _ipython_display_(self) -> None:
        self._display = show_live(self.widget, self._stored)
