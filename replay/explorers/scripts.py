"""The scripts of the views that the browser draws, and the widgets and pages that run them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from replay.plots.scripts import CHART, WIDGET, live_page, module

if TYPE_CHECKING:
    from traitlets import TraitType

View = Literal["view", "run_view", "chart"]
"""The budgets of a task and model; a run; charts of any other explorer."""


@functools.cache
def script(name: View) -> str:
    """The module of a view, with what all views share before it."""
    own = WIDGET if name == "chart" else Path(__file__).with_name(f"{name}.js")
    return module(CHART, own)


def screen_class(name: View, **traits: TraitType[Any, Any]) -> Any:
    """Returns the class of widgets in which a view draws; None where anywidget is not installed.

    Args:
        name: The view.
        traits: What its script and Python share.
    """
    try:
        import anywidget
    except ImportError:
        return None
    shared = {each: trait.tag(sync=True) for each, trait in traits.items()}
    body = {"__module__": __name__, "_esm": script(name), **shared}
    return type(f"Screen_{name}", (anywidget.AnyWidget,), body)


def run_page(picture: bytes, words: str, run: Mapping[str, object], state: object) -> str:
    """A run as HTML that needs no server and no network: a picture, which its script replaces."""
    return live_page(script("run_view"), picture, words, [run, state])
