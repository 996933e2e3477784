"""What an explorer leaves in a saved notebook, and how the live widget takes its place.

An export of a notebook shows the first kind of output that it prefers, which is the widget: without
a network that is an empty cell. So the picture is an output of its own, which the page of a live
widget hides (`page.js`, `view.js`).
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING

from evo.logs.types import JsonObject
from replay.explorers.widgets import page_script
from replay.plots.scripts import WIDE, encoded, spoken

if TYPE_CHECKING:
    from IPython.display import DisplayHandle
    from ipywidgets import Widget


UNLOADED = (
    "<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child [data-replay-still])"
    " .jp-OutputArea-output:not(:has(*)) { display: none }</style>"
)
"""Hides JupyterLab's "Error displaying widget: model not found" above a picture that stands in."""


def stored(mark: str, png: bytes, words: str, *, drawn: bool = False) -> JsonObject:
    """A picture and its words, as an output that a live widget with this mark hides.

    Where nothing can be drawn there are words alone. `drawn` says that the picture bears them.
    """
    image = f'<img style="max-width:100%" src="data:image/png;base64,{encoded(png)}" alt="">'
    shown = (
        f'{UNLOADED}<div data-replay-still="{mark}">{image if png else ""}'
        f"{spoken(words, drawn=drawn)}</div>"
    )
    return {"text/html": shown, "text/plain": words}


def live_help(mark: str, text: str) -> str:
    """The first line of a live explorer as HTML, by which a page knows that it is live."""
    return f"<div style='{WIDE}' data-replay-live='{mark}'>{html.escape(text)}{page_script()}</div>"


def show_live(widget: Widget, picture: Callable[[], JsonObject]) -> DisplayHandle | None:
    """Shows the widget, then makes and stores the picture and words that the widget hides.

    Returns:
        The place of the picture, by which it is replaced.
    """
    from IPython.display import display

    live = dict(widget._repr_mimebundle_()) | {"text/plain": ""}
    display(live, raw=True)  # type: ignore[no-untyped-call]
    shown: DisplayHandle | None = display(picture(), raw=True, display_id=True)  # type: ignore[no-untyped-call]
    return shown
