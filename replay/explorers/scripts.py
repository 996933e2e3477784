"""The views that the browser draws, as text: each is one module without imports.

`drawing.js` holds what all of them share and stands before each. The same text serves widgets,
saved pages and the site, and knows nothing of Jupyter beyond its default export.
"""

from __future__ import annotations

import base64
import functools
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from replay.explorers.widgets import spoken
from replay.plots.style import THEMES, Theme

View = Literal["view", "run_view"]
"""The budgets of a task and model; a run."""


@functools.cache
def script(name: View) -> str:
    """The module of a view, with what all views share before it."""
    folder = Path(__file__).parent
    return "\n".join(
        (folder / f"{part}.js").read_text(encoding="utf-8") for part in ("drawing", name)
    )


def encoded(value: bytes | str) -> str:
    """Text or bytes in base64, which cannot end a script."""
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode("ascii")


def run_page(picture: bytes, words: str, run: Mapping[str, object], state: object) -> str:
    """A run as HTML without a server or a network: its picture, which scripts bring to life."""
    name = f"replay-{secrets.token_hex(6)}"
    given = encoded(json.dumps([run, state], allow_nan=False))
    return (
        f'<div id="{name}"><img style="max-width:100%" '
        f'src="data:image/png;base64,{encoded(picture)}" alt="">{spoken(words)}</div>\n'
        '<script type="module">\n'
        "const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));\n"
        f'const code = new Blob([bytes("{encoded(script("run_view"))}")], '
        '{ type: "text/javascript" });\n'
        "const { mount } = await import(URL.createObjectURL(code));\n"
        f'const [run, state] = JSON.parse(new TextDecoder().decode(bytes("{given}")));\n'
        f'const still = document.getElementById("{name}");\n'
        'still.querySelector("img").remove();\n'
        'const place = document.createElement("div");\n'
        "still.prepend(place);\nmount(place, run, state);\n</script>\n"
    )


def write_page(path: str | Path, title: str, theme: Theme, body: str) -> Path:
    """Writes HTML as a page in the inks of a theme; a neutral one follows the reader's system."""
    ink, scheme = THEMES[theme], "light dark" if theme == "neutral" else theme
    inks = "" if theme == "neutral" else f"background:{ink.ground};color:{ink.text};"
    head = "<!doctype html><html lang='en'><meta charset='utf-8'>"
    head += f"<meta name='color-scheme' content='{scheme}'>"
    head += f"<title>{title}</title><body style='{inks}font:15px/1.5 system-ui,sans-serif'>"
    Path(path).write_text(f"{head}{body}", encoding="utf-8")
    return Path(path)
