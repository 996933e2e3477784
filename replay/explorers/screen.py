"""The widget that shows pictures: one that answers to the mouse, else a plain image."""

from __future__ import annotations

import base64
import functools
import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Told = Callable[[Mapping[str, Any]], None]
"""Is given what the browser says: kind `click`, `zoom`, `reset` or `mounted`; see picture.js."""

SCRIPT = Path(__file__).with_name("picture.js")


@functools.cache
def _widget() -> Any:
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

    return Screen


def make_screen(told: Told) -> Any:
    """Returns a widget to `show` pictures in.

    Args:
        told: Is given what the browser says of it; never called where anywidget is missing.
    """
    made = _widget()
    if made is None:
        import ipywidgets

        return ipywidgets.Image(format="png")
    screen = made()
    screen.on_msg(lambda widget, content, buffers: told(content))
    return screen


def show(screen: Any, png: bytes, hits: bytes, label: str) -> None:
    """Shows a picture, and where everything lies in it.

    Args:
        screen: As `make_screen` made it.
        png: The picture.
        hits: As `replay.explorers.hits.pack` made it; empty while the picture is moving.
        label: What it shows, in words.
    """
    if not hasattr(screen, "png"):
        screen.value = png
        return
    with screen.hold_sync():
        screen.hits, screen.label, screen.png = hits, label, png


def still(png: bytes, hits: bytes, label: str) -> str:
    """Returns a picture as HTML that answers to the mouse without a kernel, a server or a network.

    All of it stands in base64, so whatever a log's texts are, they stay texts.
    """
    name = f"replay-{secrets.token_hex(6)}"
    data = {
        key: base64.b64encode(value).decode("ascii")
        for key, value in (("png", png), ("hits", hits), ("label", label.encode()))
    }
    script = base64.b64encode(SCRIPT.read_bytes()).decode("ascii")
    return (
        f'<div id="{name}"></div>\n<script type="module">\n'
        f"const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));\n"
        f"const data = {json.dumps(data)};\n"
        f'const script = new Blob([bytes("{script}")], {{ type: "text/javascript" }});\n'
        "const { mount } = await import(URL.createObjectURL(script));\n"
        "const given = {\n"
        "  png: bytes(data.png), hits: new DataView(bytes(data.hits).buffer),\n"
        "  label: new TextDecoder().decode(bytes(data.label)),\n"
        "};\n"
        f'mount(document.getElementById("{name}"), (key) => given[key], () => {{}});\n'
        "</script>\n"
    )
