"""Charts as HTML without a server or a network: a picture, and the script that makes it live.

A script is one module without imports: `drawing.js`, which all views share, and the file of the
view. The same text serves notebooks, saved pages and the site; beyond its default export, it knows
nothing of Jupyter.
"""

from __future__ import annotations

import base64
import functools
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.logs.types import writable
from replay.markup import clean
from replay.plots.output import small_png
from replay.plots.style import THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent
CHART = FOLDER / "chart.js"
"""The pen."""

WIDGET = FOLDER / "chart_widget.js"
"""What mounts charts alone; the pen stands before it."""

CHARTS = """
window.replayCharts = (root) => {
  for (const figure of root.querySelectorAll("[data-chart]")) {
    const bytes = Uint8Array.from(atob(figure.dataset.chart), (c) => c.charCodeAt(0));
    const place = document.createElement("div");
    figure.prepend(place);
    mountChart(place, JSON.parse(new TextDecoder().decode(bytes)));
  }
};
window.replayCharts(document);
"""
"""Draws every chart of a page that `chart_figure` put there; the pen stands before it."""

WIDE = "line-height:1.4"
"""Style of text under a picture."""


@functools.cache
def module(*views: Path) -> str:
    """The module of views, with what all of them share before it."""
    return "\n".join(each.read_text(encoding="utf-8") for each in (FOLDER / "drawing.js", *views))


def charts_script() -> str:
    """HTML that draws every chart of a page that `chart_figure` put there."""
    code = module(CHART) + CHARTS
    return f'<script type="module">\n{code}</script>\n'


def chart_figure(chart: bytes, label: str, caption: str = "") -> str:
    """A packed chart as data in a page, which `charts_script` draws."""
    data = json.loads(chart) | {"label": label, "source": "", "serial": 0}
    below = f"<figcaption>{clean(caption)}</figcaption>" if caption else ""
    return f'<figure data-chart="{encoded(json.dumps(data, allow_nan=False))}">{below}</figure>'


def encoded(value: bytes | str) -> str:
    """Text or bytes in base64, which cannot end a script."""
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode("ascii")


UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
"""Style of text that screen readers alone have."""


def spoken(text: str, role: str = "status", *, drawn: bool = False) -> str:
    """A paragraph that screen readers announce; nobody else needs it if it is `drawn` above."""
    style = UNSEEN if drawn else WIDE
    return f"<div role='{role}' aria-live='polite' style='{style}'>{clean(text)}</div>"


def picture_of(figure: Figure) -> bytes:
    """A figure as a PNG in few colours, for pages."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return small_png(np.asarray(canvas.buffer_rgba()))


def chart_page(
    picture: bytes, words: str, chart: bytes, state: Mapping[str, object], *, drawn: bool = False
) -> str:
    """A packed chart as such HTML; `state` has the other values that `chart.js` reads."""
    return live_page(
        module(CHART, WIDGET), picture, words, [{**json.loads(chart), **state}], drawn=drawn
    )


def book_page(picture: bytes, words: str, book: Mapping[str, object], theme: str) -> str:
    """Charts with the controls that choose among them, as such HTML; see `book` in `chart.js`."""
    given = {**book, "state": {"theme": theme, "source": "", "serial": 0}}
    drawn = bool(book["drawn"])
    return live_page(module(CHART, WIDGET), picture, words, [given], entry="book", drawn=drawn)


def live_page(
    code: str,
    picture: bytes,
    words: str,
    arguments: Sequence[object],
    *,
    entry: str = "mount",
    drawn: bool = False,
) -> str:
    """A picture that the script of a view replaces: it calls `entry` with the arguments.

    `drawn` says that the picture bears the words.
    """
    name = f"replay-{secrets.token_hex(6)}"
    given = encoded(json.dumps(arguments, allow_nan=False))
    return (
        f'<div id="{name}"><img style="max-width:100%" '
        f'src="data:image/png;base64,{encoded(picture)}" alt="">'
        f"{spoken(words, drawn=drawn) if words else ''}</div>\n"
        '<script type="module">\n'
        "const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));\n"
        f'const code = new Blob([bytes("{encoded(code)}")], '
        '{ type: "text/javascript" });\n'
        f"const {{ {entry}: mount }} = await import(URL.createObjectURL(code));\n"
        f'const given = JSON.parse(new TextDecoder().decode(bytes("{given}")));\n'
        f'const still = document.getElementById("{name}");\n'
        'still.querySelector("img").remove();\n'
        'const place = document.createElement("div");\n'
        "still.prepend(place);\nmount(place, ...given);\n</script>\n"
    )


PAGE_STYLE = (
    "@media print { :root { color-scheme: light !important }"
    " body { background: none !important; color: #222 !important } }"
    " [role=status] { font-size: 13px; max-width: 110ch }"
)
"""Style of pages: inks for paper, where nobody could read light ones, and words as in a view."""


def write_page(path: str | Path, title: str, theme: Theme, body: str) -> Path:
    """Writes HTML as a page in the inks of a theme; a neutral one follows the reader's system."""
    ink, scheme = THEMES[theme], "light dark" if theme == "neutral" else theme
    inks = "" if theme == "neutral" else f"background:{ink.ground};color:{ink.text};"
    head = "<!doctype html><html lang='en'><meta charset='utf-8'>"
    head += f"<meta name='color-scheme' content='{scheme}'>"
    head += f"<title>{clean(title)}</title><style>{PAGE_STYLE}</style>"
    head += f"<body style='{inks}font:15px/1.5 system-ui,sans-serif'>"
    page = f"{head}<main><h1 style='{UNSEEN}'>{clean(title)}</h1>{body}</main>"
    file = writable(Path(path))
    file.write_text(page, encoding="utf-8")
    return file
