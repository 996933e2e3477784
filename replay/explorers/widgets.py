"""Controls of one size, sentences that are spoken, and what closes widgets.

Widgets live in the kernel until they are closed. A cell that is run again makes its explorer anew,
and the kernel would keep the widgets, figure and data of the one before: so the new one closes it.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any, Protocol

WIDE = "max-width:810px;line-height:1.4"
"""Style of text as wide as a picture."""


def choice(label: str, options: Sequence[Any], value: Any, *, tip: str) -> Any:
    """A drop-down list."""
    import ipywidgets

    return ipywidgets.Dropdown(
        options=list(options), value=value, description=label, tooltip=tip, **sized(200)
    )


def slider(label: str, options: Sequence[Any], value: Any, *, tip: str) -> Any:
    """A slider over listed values."""
    import ipywidgets

    return ipywidgets.SelectionSlider(
        options=list(options), value=value, description=label, tooltip=tip, **sized()
    )


def counter(label: str, value: int, least: int, most: int, *, tip: str) -> Any:
    """A slider over whole numbers."""
    import ipywidgets

    return ipywidgets.IntSlider(
        value, least, max(most, least), description=label, tooltip=tip, **sized()
    )


def entry(label: str, value: float, bounds: tuple[float, float], step: float, *, tip: str) -> Any:
    """A field for a number."""
    import ipywidgets

    return ipywidgets.BoundedFloatText(
        value=value, min=bounds[0], max=bounds[1], step=step, description=label, tooltip=tip,
        **sized(200),
    )  # fmt: skip


def several(label: str, options: Sequence[Any], rows: int, *, tip: str, width: int = 268) -> Any:
    """A list from which several can be chosen."""
    import ipywidgets

    return ipywidgets.SelectMultiple(
        options=options, rows=rows, description=label, tooltip=tip, **sized(width)
    )


def button(label: str, tip: str, work: Callable[[], object]) -> Any:
    """A button as wide as its words."""
    import ipywidgets

    made = ipywidgets.Button(description=label, tooltip=tip, layout={"width": "auto"})
    made.on_click(lambda _: work())
    return made


def row(widgets: Sequence[Any]) -> Any:
    """Widgets side by side, in further lines where the page is narrow."""
    import ipywidgets

    return ipywidgets.Box(list(widgets), layout={"flex_flow": "row wrap", "max_width": "100%"})


def sized(width: int = 268) -> dict[str, Any]:
    """Width in pixels, 3 or 4 to a row of 810 pixels, and margins of a control."""
    return {
        "style": {"description_width": "initial"},
        "layout": {"width": f"{width}px", "margin": "2px 2px 2px 0"},
    }


def spoken(text: str, role: str = "status") -> str:
    """A paragraph that screen readers announce; its text stays text."""
    return f"<div role='{role}' aria-live='polite' style='{WIDE}'>{html.escape(text)}</div>"


class Closable(Protocol):
    """Something made of widgets."""

    def close(self) -> None:
        """Free the widgets."""


_open: dict[str, tuple[str, list[Closable]]] = {}
"""What was made by cell, with the run of the cell that made them."""


def close_previous(made: Closable) -> None:
    """Close what an earlier run of the current cell has left, and remember this instead."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return
    shell: Any = get_ipython()
    if shell is None or not hasattr(shell, "get_parent"):
        return
    parent = shell.get_parent() or {}
    if parent.get("msg_type") != "execute_request":
        return  # made by a handler: whoever owns that closes it
    cell = parent.get("metadata", {}).get("cellId") or parent.get("content", {}).get("code", "")
    run = parent.get("header", {}).get("msg_id", "")
    before, others = _open.get(cell, ("", []))
    if before != run:
        for each in others:
            each.close()
        others = []
    _open[cell] = (run, [*others, made])


def close_tree(widget: Any) -> None:
    """Close a widget and all that belongs to it: its layout and style are widgets too."""
    for child in getattr(widget, "children", ()):
        close_tree(child)
    for part in ("layout", "style"):
        if (own := getattr(widget, part, None)) is not None and hasattr(own, "close"):
            own.close()
    widget.close()
