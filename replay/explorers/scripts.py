"""The scripts of the views that the browser draws, and the widgets and pages that run them.

A script is one module without imports: `drawing.js`, which all views share, and the file of the
view. The same text serves widgets, saved pages and the site; beyond its default export, it knows
nothing of Jupyter.
"""

from __future__ import annotations

import base64
import functools
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from replay.explorers.widgets import spoken
from replay.plots.style import THEMES, Theme

if TYPE_CHECKING:
    from traitlets import TraitType

View = Literal["view", "run_view", "chart"]
"""The budgets of a task and model; a run; charts of any other explorer."""


@functools.cache
def script(name: View) -> str:
    """The module of a view, with what all views share before it."""
    folder = Path(__file__).parent
    return "\n".join(
        (folder / f"{part}.js").read_text(encoding="utf-8") for part in ("drawing", name)
    )


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


def encoded(value: bytes | str) -> str:
    """Text or bytes in base64, which cannot end a script."""
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode("ascii")


def run_page(picture: bytes, words: str, run: Mapping[str, object], state: object) -> str:
    """A run as HTML that needs no server and no network: a picture, which its script replaces."""
    return _live_page("run_view", picture, words, [run, state])


def chart_page(picture: bytes, words: str, chart: bytes, state: Mapping[str, object]) -> str:
    """A packed chart as such HTML; `state` has the other values that `chart.js` reads."""
    return _live_page("chart", picture, words, [{**json.loads(chart), **state}])


def _live_page(view: View, picture: bytes, words: str, arguments: Sequence[object]) -> str:
    """A picture that the script of a view replaces: it calls `mount` with the arguments."""
    name = f"replay-{secrets.token_hex(6)}"
    given = encoded(json.dumps(arguments, allow_nan=False))
    return (
        f'<div id="{name}"><img style="max-width:100%" '
        f'src="data:image/png;base64,{encoded(picture)}" alt="">{spoken(words)}</div>\n'
        '<script type="module">\n'
        "const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));\n"
        f'const code = new Blob([bytes("{encoded(script(view))}")], '
        '{ type: "text/javascript" });\n'
        "const { mount } = await import(URL.createObjectURL(code));\n"
        f'const given = JSON.parse(new TextDecoder().decode(bytes("{given}")));\n'
        f'const still = document.getElementById("{name}");\n'
        'still.querySelector("img").remove();\n'
        'const place = document.createElement("div");\n'
        "still.prepend(place);\nmount(place, ...given);\n</script>\n"
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
