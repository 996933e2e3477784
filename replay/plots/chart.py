"""Charts: pictures described once, as numbers and texts, which two pens draw.

`pen.py` draws a chart with matplotlib, on paper and on the axes of a figure; `chart.js` draws it as
SVG in the browser, where it answers to the mouse and to keys without a kernel. The meaning of a
click stays in Python: the browser sends the numbers of panel, mark and place, which lead to a key
in `Chart.keys`.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from replay.plots import pen
from replay.plots.marks import Clickable, Keys, Mark, columns_of
from replay.plots.output import SUFFIXES, save
from replay.plots.panel import Axis, ColorBar, Panel, listed
from replay.plots.scripts import chart_page, picture_of, write_page

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evo.logs.types import JsonObject
    from replay.plots.style import Theme


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Panels in rows of `columns`, in one column where the page is narrow.

    A cell of a notebook shows it: it answers to the mouse there, and without scripts it is a
    picture.

    Attributes:
        panels: From left to right, row by row.
        columns: Panels beside each other.
        message: A sentence in place of the panels.
        title: What all panels are about.
        picture: A PNG in place of the panels.
        dark: The same for dark pages; empty: there is no other.

    Example:
        >>> chart = replay.plots.charts.best_so_far(frame)
        >>> figure = chart.figure(theme="dark")
    """

    panels: Sequence[Panel] = ()
    columns: int = 1
    message: str = ""
    title: str = ""
    picture: bytes = b""
    dark: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "panels", listed("panels", self.panels, Panel))

    @property
    def words(self) -> str:
        """Its titles and what is below them, or its sentence."""
        heads = [f"{each.title}: {each.about}".removesuffix(": ") for each in self.panels]
        return "; ".join([each for each in (self.title, *heads) if each]) or self.message

    def table(self) -> pd.DataFrame:
        """The numbers that it shows, a row for each place of a mark.

        Columns: panel, mark (its kind), label, and what the marks hold (x, y, low, high, ...).
        """
        import pandas as pd

        parts = [
            pd.DataFrame({"panel": panel.title, "mark": mark.kind, **columns})
            for panel in self.panels
            for mark in panel.marks
            if mark.kind not in ("label", "end", "rule") and (columns := columns_of(mark))
        ]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"panel": []})

    def draw(self, ax: Axes | None = None, theme: Theme = "light") -> Axes:
        """Draws its only panel, or its sentence.

        Args:
            ax: Axes to draw on (default: those of a new figure).
            theme: "light" or "dark".

        Returns:
            The axes.

        Raises:
            ValueError: It has several panels, which `figure` draws.
        """
        return pen.draw(self.panels, self.message, ax, theme)

    def figure(self, theme: Theme = "light", width: float | None = None) -> Figure:
        """Draws all its panels.

        Args:
            theme: "light" or "dark".
            width: Of the figure, inches; None: what suits its columns.
        """
        heads = self.message, self.title
        return pen.draw_all(self.panels, *heads, columns=self.columns, theme=theme, width=width)

    def save(self, path: str | Path, theme: Theme = "light") -> Path:
        """Writes it to a file: .png, .svg or .pdf, or .html, which answers to the mouse.

        Raises:
            ValueError: The name ends in anything else.
        """
        if str(path).lower().endswith(".html"):
            return write_page(path, self.words, theme, self.html(theme))
        if Path(path).suffix.lower() not in SUFFIXES:
            raise ValueError(
                f"expected a file name that ends in {', '.join(SUFFIXES)} or .html, got "
                f"{str(path)!r}"
            )
        return save(self.figure(theme), path)

    def html(self, theme: Theme = "neutral") -> str:
        """HTML without a server or a network: it answers to the mouse where scripts are run.

        Elsewhere it is a picture. `neutral` wears the inks of the page that it stands in.
        """
        state = {"label": self.words, "source": "", "serial": 0, "theme": theme}
        return chart_page(picture_of(self.figure(theme)), "", pack(self), state)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The chart as HTML that answers to the mouse, and in words."""
        return {"text/html": self.html(), "text/plain": self.words}

    def keys(self) -> dict[tuple[int, int], Keys]:
        """What clicks mean, by the numbers of panel and mark."""
        return {
            (p, m): mark.keys
            for p, panel in enumerate(self.panels)
            for m, mark in enumerate(panel.marks)
            if isinstance(mark, Clickable) and mark.keys is not None
        }


def pack(chart: Chart) -> bytes:
    """The chart as JSON: `opens` says which places have a key, `means` those of several panels."""
    found = dict.fromkeys((key, p) for (p, _), keys in chart.keys().items() for key in keys)
    counts = Counter(key for key, _ in found if key is not None)
    shared = {key: number for number, key in enumerate(k for k, n in counts.items() if n > 1)}
    panels = [
        _fields_of(panel)
        | {"x": _fields_of(panel.x), "y": _fields_of(panel.y)}
        | ({} if panel.bar is None else {"bar": _fields_of(panel.bar)})
        | _marks(panel, shared)
        for panel in map(Panel.settled, chart.panels)
    ]
    content = {
        "panels": panels,
        "columns": chart.columns,
        "message": chart.message,
        "title": chart.title,
        "picture": base64.b64encode(chart.picture).decode("ascii"),
        "dark": base64.b64encode(chart.dark).decode("ascii"),
    }
    return msgspec.json.encode(content, enc_hook=_listed)  # what is not finite becomes null


def _fields_of(part: Panel | Axis | Mark | ColorBar) -> dict[str, object]:
    """The attributes of a part that are not None."""
    return {name: value for name, value in vars(part).items() if value is not None}


def _marks(panel: Panel, shared: Mapping[Hashable, int]) -> dict[str, object]:
    """The marks of a panel, with numbers in place of the keys that several panels have."""
    marks = [_fields_of(mark) for mark in panel.marks]
    for mark in marks:
        keys = mark.pop("keys", None)
        if isinstance(keys, Sequence):
            mark["opens"] = [key is not None for key in keys]
            if any(key in shared for key in keys):
                mark["means"] = [shared.get(key) for key in keys]
    return {"marks": marks}


def _listed(value: object) -> object:
    """The columns and numbers of NumPy and pandas as those of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if (column := getattr(value, "to_numpy", None)) is not None:
        return column().tolist()
    raise TypeError(f"a chart holds numbers and texts, got {type(value).__name__}")
