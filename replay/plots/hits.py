"""Where everything lies in a picture, for the mouse: marks and curves in logical pixels.

A plot states in the coordinates of its axes what can be pointed at; `pack` puts it into the pixels
of the figure as it is laid out.
"""

from __future__ import annotations

import base64
import json
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replay.plots.style import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

SCRIPT = Path(__file__).with_name("picture.js")

REACH = 3.0
"""Half the side of a point's mark, logical pixels."""


@dataclass(frozen=True)
class Mark:
    """Something to point at: a cell, a bar, a point.

    Attributes:
        axes: The axes it lies in.
        box: x0, y0, x1, y1 in the coordinates of the axes; equal ends make a point.
        text: The tooltip.
    """

    axes: Axes
    box: tuple[float, float, float, float]
    text: str


@dataclass(frozen=True)
class Curve:
    """A line with a text at each of its places.

    Attributes:
        axes: The axes it lies in.
        x: (places,), in the coordinates of the axes.
        y: (places,).
        texts: The tooltip at each place, after the label.
        label: Begins the text.
    """

    axes: Axes
    x: ArrayLike
    y: ArrayLike
    texts: Sequence[str]
    label: str = ""


@dataclass
class Hits:
    """What can be pointed at in one picture.

    Attributes:
        marks: In drawing order; of marks that overlap the smallest is hit.
        curves: Lines.
    """

    marks: list[Mark] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)


def hits_of(figure: Figure) -> Hits:
    """The places on a figure that have tooltips; drawings may add to them."""
    found: Hits = vars(figure).setdefault("replay_hits", Hits())
    return found


def forget(figure: Figure) -> None:
    """Nothing can be pointed at any more, as the figure was cleared."""
    vars(figure).pop("replay_hits", None)


def mark(ax: Axes, box: tuple[float, float, float, float], text: str) -> None:
    """Say that a box of axes, or a point, can be pointed at; see `Mark`."""
    hits_of(figure_of(ax)).marks.append(Mark(ax, box, text))


def curve(ax: Axes, x: ArrayLike, y: ArrayLike, texts: Sequence[str], label: str = "") -> None:
    """Say that a line can be pointed at; see `Curve`."""
    hits_of(figure_of(ax)).curves.append(Curve(ax, x, y, texts, label))


def ranged(value: float, low: float, high: float) -> str:
    """A value with its interval, where there is one, in four digits."""
    known = np.isfinite(low) or np.isfinite(high)
    return f"{value:.4g} [{low:.4g}, {high:.4g}]" if known else f"{value:.4g}"


def pack(figure: Figure, hits: Hits, *, dpi: float) -> bytes:
    """Returns what the browser needs to know of a picture; see `picture.js`.

    Args:
        figure: As it was drawn.
        hits: What can be pointed at.
        dpi: Pixels per inch of a logical pixel's screen.
    """
    ratio = figure.dpi / dpi
    width, height = (float(side) / ratio for side in figure.canvas.get_width_height())

    def pixels(axes: Axes, points: ArrayLike) -> NDArray[np.float32]:
        with np.errstate(invalid="ignore", divide="ignore"):
            placed = axes.transData.transform(np.asarray(points, dtype=float)) / ratio
        placed[:, 1] = height - placed[:, 1]
        return placed.astype(np.float32)

    axes = [ax for ax in figure.axes if ax.axison]
    number = {ax: k for k, ax in enumerate(axes)}
    floats: list[NDArray[np.float32]] = []
    first = 0
    marks: list[dict[str, object]] = []
    for mark in hits.marks:
        (xa, ya), (xb, yb) = pixels(mark.axes, [mark.box[:2], mark.box[2:]])
        room = REACH if mark.box[0] == mark.box[2] and mark.box[1] == mark.box[3] else 0.0
        corners = [min(xa, xb) - room, min(ya, yb) - room, max(xa, xb) + room, max(ya, yb) + room]
        floats.append(np.array(corners, dtype=np.float32))
        marks.append({"first": first, "text": mark.text})
        first += 4
    curves: list[dict[str, object]] = []
    for curve in hits.curves:
        places = pixels(curve.axes, np.column_stack([curve.x, curve.y]))
        known = np.flatnonzero(np.isfinite(places).all(axis=1))
        texts = [curve.texts[place] for place in known.tolist()]
        floats.append(places[known].ravel())
        curves.append(
            {"axes": number[curve.axes], "first": first, "count": len(texts)}
            | {"label": curve.label, "texts": texts}
        )
        first += 2 * len(texts)
    head = {
        "size": [width, height],
        "axes": [_axes(ax, ratio, height) for ax in axes],
        "marks": marks,
        "curves": curves,
    }
    body = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
    body += b" " * (-len(body) % 4)
    return struct.pack("<I", len(body)) + body + b"".join(part.tobytes() for part in floats)


def _axes(ax: Axes, ratio: float, height: float) -> dict[str, object]:
    """Returns the box, limits and scales of axes."""
    box = ax.bbox
    words = [ax.get_xlabel(), ax.get_ylabel()]
    return {
        "box": [box.x0 / ratio, height - box.y1 / ratio, box.x1 / ratio, height - box.y0 / ratio],
        "x": list(map(float, ax.get_xlim())),
        "y": list(map(float, ax.get_ylim())),
        "log": [ax.get_xscale() == "log", ax.get_yscale() == "log"],
        "words": words if all(words) else None,
    }


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
        "const hits = new DataView(bytes(data.hits).buffer);\n"
        "const label = new TextDecoder().decode(bytes(data.label));\n"
        f'mount(document.getElementById("{name}"), bytes(data.png), hits, label);\n'
        "</script>\n"
    )
