"""How figures look: themes, colours, titles and labels.

Colours can be distinguished by colour-blind readers too (Okabe and Ito 2008), and lines are
labelled where they end. Nothing here touches pyplot or matplotlib's global settings for longer than
a call, so figures can be made on any thread and without a display.
"""

from __future__ import annotations

import math
import re
import reprlib
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evo.logs.types import JsonObject
from evo.plugins import MistakenType
from replay.plots.medium import DASHES, captions, dashes_of, looks, palette
from replay.plots.medium import PALETTE as PALETTE  # noqa: PLC0414
from replay.statistics.intervals import name_of
from replay.statistics.numbers import with_limits

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

FloatArray = NDArray[np.float64]
Theme = Literal["light", "dark", "neutral"]
"""Inks and ground of a figure.

- `light`: dark ink on white, for paper.
- `dark`: light ink on near-black.
- `neutral`: that of the page in explorers, else `light`.
"""

TITLE_SIZE, TEXT_SIZE = 11.0, 9.0
WIDER, LARGER = 10.0, 11.0
"""A figure wider than so many inches is shown smaller than it is: its texts have so many points."""

FITNESS = "best fitness"


@dataclass(frozen=True)
class Ink:
    """Colours of a theme: text, grid and frame, and the ground."""

    text: str
    faint: str
    ground: str


THEMES: dict[str, Ink] = {
    "light": Ink(text="#222222", faint="#BBBBBB", ground="#FFFFFF"),
    "dark": Ink(text="#E6E6E6", faint="#5A5A5A", ground="#111418"),
    "neutral": Ink(text="#222222", faint="#BBBBBB", ground="#FFFFFF"),
}


def subplots(
    rows: int = 1, columns: int = 1, *, width: float = 9.0, height: float = 4.2
) -> tuple[Figure, list[Axes]]:
    """Make a figure that arranges its own margins.

    Args:
        rows: Rows of axes.
        columns: Columns of axes.
        width: Of the figure, inches; 9 inches are 900 pixels on the screen.
        height: Of each row, inches.

    Returns:
        The figure and its axes, row by row.

    Example:
        >>> figure, axes = replay.plots.subplots(1, 2)
        >>> len(axes)
        2
    """
    figure = blank(width, height * rows)
    return figure, list(figure.subplots(rows, columns, squeeze=False).ravel())


def blank(width: float = 9.0, height: float = 4.2) -> Figure:
    """A figure without axes, as of `subplots`."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from replay.plots.plain import PlainFigure

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = PlainFigure(figsize=(width, height), dpi=100, layout=layout)
    vars(figure)["text_size"] = LARGER if width > WIDER else TEXT_SIZE
    return figure


def defaults(theme: Theme) -> dict[Any, Any]:
    """The settings of matplotlib by which what names no colour wears the inks of a theme."""
    ink = THEMES[theme]
    written = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
    return {
        **dict.fromkeys(written, ink.text),
        "axes.facecolor": "none",
        "grid.color": ink.faint,
        "legend.facecolor": ink.ground,
        "legend.edgecolor": ink.faint,
    }


def prepare(ax: Axes | None, theme: Theme) -> Axes:
    """Return axes with the inks of a theme."""
    if theme not in THEMES:
        raise ValueError(f"expected a theme among {', '.join(get_args(Theme))}, got {theme!r}")
    ax = subplots()[1][0] if ax is None else ax
    ink = THEMES[theme]
    figure_of(ax).set_facecolor(ink.ground)
    ax.set_facecolor("none")
    ax.tick_params(colors=ink.text, labelsize=text_size(ax))
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_offset_text().set(color=ink.text, fontsize=text_size(ax))
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(ink.faint)
    ax.grid(color=ink.faint, lw=0.5, alpha=0.4)
    ax.set_axisbelow(True)
    ax.margins(x=0.012)
    return ax


def label_axes(ax: Axes, theme: Theme, *, x: str, y: str) -> None:
    """Name both axes; an empty text leaves the axis without a name."""
    for text, put in ((x, ax.set_xlabel), (y, ax.set_ylabel)):
        put(text, color=THEMES[theme].text, fontsize=text_size(ax))


def draw_heading(
    ax: Axes,
    theme: Theme,
    title: str,
    subtitle: str,
    *,
    legend: Sequence[tuple[str, str | Line2D]] = (),
) -> Annotation:
    """Put a title, a smaller line wrapped to the axes' width, and a legend above the axes.

    Args:
        ax: The axes.
        theme: Inks.
        title: A few words.
        subtitle: What is drawn and from how many runs.
        legend: Text and colour, or line, of each entry.

    Returns:
        The smaller line.
    """
    ink, size = THEMES[theme].text, text_size(ax)
    line = 1.3 * size
    base = 5.0
    if legend:
        points = [0.55 * size * len(text) + 5 * size for text, _ in legend]
        room = room_of(ax)[0]
        across = len(legend) if sum(points) <= room else max(1, int(room // max(points)))
        by_rows = [each for column in range(across) for each in legend[column::across]]
        legend_of(ax, theme, by_rows, ncols=across, loc="lower left", bbox_to_anchor=(0, 1))
        base += 1.4 * line * math.ceil(len(legend) / across)
    note = ax.annotate(
        "", (0, 1), (0, base), xycoords="axes fraction", textcoords="offset points",
        ha="left", va="bottom", color=ink, fontsize=size,
    )  # fmt: skip

    shown = (title, subtitle) if captions.get() else ("", "")
    heading: JsonObject = {"title": shown[0], "subtitle": shown[1], "base": base}

    def fit() -> bool:
        """Wrap to the axes' width, and return whether that changed anything."""
        width = room_of(ax)[0]
        lines = broken(heading["subtitle"], max(20, int(width / (size * 0.54))))
        words = "\n".join(_fitting(heading["title"], size + 2, width))
        before = note.get_text(), ax.get_title(loc="left")
        if note not in ax.texts or before == ("\n".join(lines), words):
            return False
        note.set_text("\n".join(lines))
        note.xyann = (0, heading["base"])
        # An explicit y keeps matplotlib from moving the title after the layout.
        ax.set_title(
            words, loc="left", y=1.0, pad=heading["base"] + 3 + line * len(lines),
            color=ink, fontsize=size + 2, fontweight="bold",
        )  # fmt: skip
        return True

    fit()
    vars(ax).update(fit_head=fit, heading=heading)
    return note


def room_of(ax: Axes) -> tuple[float, float]:
    """Width and height of axes, points; their place is a share of the part of a figure they are in.

    Example:
        >>> figure, ax = plt.subplots(figsize=(4, 3))
        >>> ax.set_position((0, 0, 0.5, 1))
        >>> [round(points) for points in room_of(ax)]
        [144, 216]
    """
    part = ax.get_figure()
    assert part is not None
    share, box, scale = ax.get_position(), part.bbox, 72 / figure_of(ax).dpi
    return float(share.width * box.width * scale), float(share.height * box.height * scale)


def _fitting(title: str, size: float, width: float) -> list[str]:
    """Lines of a bold title, at most `width` points wide.

    A word that is longer is broken after its punctuation, and else stays whole.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    bold, lines = FontProperties(weight="bold", size=size), list[str]()

    def fit(lines: list[str]) -> bool:
        sizes = (
            text_to_path.get_text_width_height_descent(text, bold, ismath=False) for text in lines
        )
        return all(long <= width for long, *_ in sizes)

    most = max(20, int(width / (size * 0.6)))
    least = max(12, *(len(word) + 1 for word in re.split(r"[\s-]", title)))
    for characters in range(max(most, least), least - 1, -1):
        lines = [line.rstrip() for line in broken(title, characters)]
        if fit(lines):
            return lines
    for characters in range(most, 11, -1):
        pieces = wrapped(title, characters).split("\n")
        if fit(pieces):
            return pieces
    return lines


def broken(text: str, width: int) -> list[str]:
    """Lines of at most so many characters; "N = 16" and "95 %" are each on one of them."""
    glued = re.sub(r" ([=<>≤≥±]) |(?<=\d) (?=%)", lambda found: found[0].replace(" ", "\xa0"), text)
    return [line.replace("\xa0", " ") for line in textwrap.wrap(glued, width)]


def wrapped(text: str, width: int) -> str:
    """A text whose lines have about a width, broken after blanks and punctuation.

    Example:
        >>> wrapped("a_search_of_a_long_name", 12).split(chr(10))
        ['a_search_of_', 'a_long_name']
    """
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append("")
        for piece in re.findall(r"[^\s_./-]*[\s_./-]+[:,;)]*|[^\s_./-]+", line):
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def say_once(figure: Figure, axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Move the common part of all titles above the figure, and that of all subtitles below it."""
    heading = [vars(ax).get("heading", {"title": "", "subtitle": ""}) for ax in axes]
    parts = [each["title"].replace(": ", ", ", 1).split(", ") for each in heading]
    sentences = [each["subtitle"].removesuffix(".").split(". ") for each in heading]
    title, about = (_shared(each) for each in (parts, sentences))
    for name, each, own, parts_of in zip(names, heading, parts, sentences, strict=True):
        each["title"] = ", ".join(part for part in own if part not in title) or name
        each["subtitle"] = ". ".join(part for part in parts_of if part not in about)
    ink, size = axes[0].xaxis.label.get_color(), text_size(axes[0])
    figure.suptitle(
        ", ".join(title), x=0.01, ha="left", color=ink, fontsize=size + 2, fontweight="bold"
    )
    width = int(figure.get_figwidth() * 72 / (size * 0.55))
    words = "\n".join(broken(". ".join(about), width))
    figure.supxlabel(words, x=0.01, ha="left", color=ink, fontsize=size)
    legends = [ax.get_legend() for ax in axes]
    if legends[0] and len({tuple(_words(each)) for each in legends}) == 1:
        figure.legend(
            cast("Any", legends[0].legend_handles), _words(legends[0]), loc="outside upper right",
            ncols=len(_words(legends[0])), frameon=False, fontsize=size, labelcolor=ink,
        )  # fmt: skip
        for each, legend in zip(heading, legends, strict=True):
            cast("Legend", legend).remove()
            each["base"] = 5.0
    rows = vars(axes[0]).get("rows")
    for ax in axes[1:]:
        if rows and vars(ax).get("rows") == rows:
            ax.tick_params(labelleft=False)
    for ax in axes:
        vars(ax).get("fit_head", bool)()


def _words(legend: Legend | None) -> list[str]:
    return [text.get_text() for text in legend.get_texts()] if legend else []


def _shared(lists: Sequence[Sequence[str]]) -> list[str]:
    """Members of the first list that all lists have."""
    return [each for each in lists[0] if each and all(each in other for other in lists)]


def legend_of(
    ax: Axes, theme: Theme, entries: Sequence[tuple[str, str | Line2D]], **at: Any
) -> None:
    """Put a legend of (text, colour or line) on axes; its words are in ink, to be readable."""
    from matplotlib.lines import Line2D

    ax.legend(
        [
            look if isinstance(look, Line2D) else Line2D([], [], color=look, marker="o", lw=2)
            for _, look in entries
        ],
        [text for text, _ in entries], frameon=False, fontsize=text_size(ax),
        labelcolor=THEMES[theme].text, borderpad=0, borderaxespad=0.5, **at,
    )  # fmt: skip


def label_ends(
    ax: Axes, theme: Theme, ends: Sequence[tuple[float, str, str, str]]
) -> list[Annotation]:
    """Label lines to the right of the axes, near where they end but never overlapping.

    Args:
        ax: Axes whose limits are final.
        theme: Inks.
        ends: (height in data units, text, colour, pattern as in SVG) of each line; NaN puts the
            label at the foot.

    Returns:
        The labels, from below.
    """
    from scipy.optimize import isotonic_regression

    ends = [end for end in ends if end[1]]
    if not ends:
        return []
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)
    height = 0.85 * room_of(ax)[1]
    known = [(low if math.isnan(end[0]) else end[0], *end[1:]) for end in ends]
    ends = sorted(known, key=lambda end: end[0])
    wanted = np.array([height * (end[0] - low) / (high - low) for end in ends])
    size = text_size(ax)
    step = 1.3 * size * np.arange(len(ends))
    # Least squares under a least distance, moved into the axes where there is room.
    room = max(0.0, height - size - step.max(initial=0.0))
    placed = np.clip(isotonic_regression(wanted - step).x, 0, room) + step
    return [
        ax.annotate(
            text, (1, value), (22, place - want), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="left", va="center", color=THEMES[theme].text,
            fontsize=size, annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": colour, "lw": 1.6, "relpos": (0, 0.5),
                "shrinkA": 2, "shrinkB": 3, "linestyle": dashes_of(dash, 1.6),
            },
        )
        for (value, text, colour, dash), want, place in zip(ends, wanted, placed, strict=True)
    ]  # fmt: skip


def ranged(value: float, low: float, high: float) -> str:
    """A value with its interval, where there is one, in four digits."""
    known = math.isfinite(low) or math.isfinite(high)
    return with_limits(value, low, high) if known else f"{value:.4g}"


def intervals(table: pd.DataFrame, what: str = "mean", *, level: float = 0.95) -> str:
    """Describe what is drawn: a statistic with its interval, or the reason why there is none.

    Args:
        table: Columns low, high and, where it is known, n; NaN limits are no interval.
        what: The statistic.
        level: Coverage of the interval, in (0, 1).
    """
    if table["low"].notna().any():
        held = table["coverage"].min() if "coverage" in table else math.nan
        least = table["least"].min() if "least" in table else math.nan
        if least < level:
            return f"{what} and {name_of(held, level, least)}, over runs"
        shown = level if math.isnan(held) else min(level, held)  # the worst that was measured
        percent = f"{100 * shown:.3g}" if math.isnan(held) else f"{100 * shown:.0f}"  # as tables do
        return f"{what} and {percent} % interval over runs"
    return f"{what}; too few runs for an interval"


def counted(n: pd.Series[int], of: str = "runs") -> str:
    """The number of runs, or its range."""
    low, high = int(n.min()), int(n.max())
    return f"n = {low} {of}" if low == high else f"n = {low} to {high} {of}"


def fitness_name(tasks: Iterable[str]) -> str:
    """The name of fitness in figures of these tasks."""
    from evo.policies.rewards import UNIT_SCALE

    return f"{FITNESS} (1 = best published)" if set(tasks) <= set(UNIT_SCALE) else FITNESS


def usual_range(fitness: ArrayLike) -> tuple[float, float]:
    """Limits of an axis of fitness: a few very low values do not squeeze the rest."""
    known = np.asarray(fitness, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not known.size:
        return 0.0, 1.0
    high, usual = float(known.max()), float(np.quantile(known, 0.05))
    return max(float(known.min()), usual - 0.5 * (high - usual)), high


def require(table: pd.DataFrame, *columns: str) -> None:
    """Refuse a table that lacks a column, and what is no table."""
    if not hasattr(table, "columns"):
        what = f" with columns {', '.join(columns)}" if columns else ""
        raise MistakenType(f"expected a DataFrame{what}, got {reprlib.repr(table)}")
    if missing := [name for name in columns if name not in table]:
        raise ValueError(f"expected columns {', '.join(columns)}; {', '.join(missing)} missing")


def look_of(name: object, order: int) -> tuple[str, str]:
    """Colour and dashes of a line: of its number, or in facets of its name in all of them."""
    known = looks.get()
    return look(order if known is None else known.setdefault(name, len(known)))


def look(order: int) -> tuple[str, str]:
    """Colour and dashes of the line with this number."""
    colours = palette.get()
    return colours[order % len(colours)], DASHES[order // len(colours) % len(DASHES)]


def sentence(ax: Axes | None, theme: Theme, text: str) -> Axes:
    """Show a sentence where there is nothing to draw."""
    ax = prepare(ax, theme)
    ink = THEMES[theme].text
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=ink)
    ax.set_axis_off()
    return ax


def text_size(ax: Axes) -> float:
    """Points of the texts on axes; titles have two more."""
    return float(vars(figure_of(ax)).get("text_size", TEXT_SIZE))


def figure_of(ax: Axes) -> Figure:
    """The figure that axes belong to."""
    return cast("Figure", ax.get_figure(root=True))
