"""Widgets live in the kernel until they are closed: what closes them.

A cell that is run again makes its explorer anew. The kernel would keep the widgets, figure and data
of the one before for good, so the new one closes it.
"""

from __future__ import annotations

from typing import Any, Protocol


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
