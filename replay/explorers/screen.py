"""The widget that shows pictures: one that answers to the mouse, else a plain image."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evo.logs.types import Fields
from replay.plots.hits import SCRIPT
from replay.plots.style import Theme

if TYPE_CHECKING:
    from ipywidgets import DOMWidget

Callback = Callable[[Fields], None]
"""Receives the browser's messages: kind `click`, `zoom`, `reset` or `mounted`; see picture.js."""


@functools.cache
def _widget() -> DOMWidget:
    """Returns the class of the widget; None where anywidget is not installed."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None

    class Screen(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = SCRIPT
        png = traitlets.Bytes().tag(sync=True)
        hits = traitlets.Bytes().tag(sync=True)
        label = traitlets.Unicode().tag(sync=True)
        neutral = traitlets.Bool(False).tag(sync=True)
        pages = traitlets.List(traitlets.Bytes()).tag(sync=True)
        texts = traitlets.List(traitlets.Unicode()).tag(sync=True)
        at = traitlets.Int().tag(sync=True)
        wide = traitlets.Float().tag(sync=True)

    return Screen


def make_screen(on_message: Callback, theme: Theme) -> DOMWidget:
    """Returns a widget to `show` pictures in; neutral ones always wear the inks of the page."""
    made = _widget()
    if made is None:
        import ipywidgets

        natural = {"width": "auto", "max_width": "100%", "align_self": "flex-start"}
        return ipywidgets.Image(format="png", layout=natural)
    screen = made(neutral=theme == "neutral")
    screen.on_msg(lambda widget, content, buffers: on_message(content))
    return screen


def make_book(pages: Sequence[bytes], texts: Sequence[str], at: int, width: float) -> DOMWidget:
    """Returns a widget that holds pictures and shows that of its number `at`; None: none can."""
    made = _widget()
    return made and made(pages=list(pages), texts=list(texts), at=at, wide=width)


def show(screen: DOMWidget, png: bytes, hits: bytes, label: str) -> None:
    """Shows a picture, and where everything lies in it."""
    if not hasattr(screen, "png"):
        screen.value = png
        return
    with screen.hold_sync():
        screen.hits, screen.label, screen.png = hits, label, png


def page_inks(theme: Theme, *, dark: bool) -> Theme:
    """The theme to draw in on a light or dark page."""
    if theme != "neutral":
        return theme
    return "dark" if dark else "light"
