"""The medium of figures: a screen by default, or the paper of `for_print`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, less black and yellow, which vanish on one ground or the other."""

PRINT_PALETTE = ("#0B3C8C", "#D98A1F", "#1E8C6E", "#16161D", "#8CC6EA", "#A8322D")
"""For figures on paper: as far apart in lightness as in hue, so that they survive greyscale."""

LIGHTER = {
    "#0072B2": "#5387FB", "#D55E00": "#DF6E2B", "#009E73": "#2CD78D", "#CC79A7": "#C46F9E",
    "#E69F00": "#EBD016", "#56B4E9": "#B8E1FF",
}  # fmt: skip
"""The colours of the palette on a dark ground; `drawing.js` has the same."""

DASHES = ("", "12 3", "12 3 5 3", "16 3 5 3 5 3")
"""Patterns of the curves of conditions, taken in turn each time the palette is used up."""

PARTIAL = "3.4 3.4"
"""Of a curve where not all of its runs have a value."""

REFERENCE = "1.5 3"
"""Dots, of what no condition reached by itself: an optimum, a baseline, a threshold, a budget."""

PRINT_SIZE, LEAST_SIZE = 7.5, 6.5
"""Points of the texts of a figure on paper, which is printed at its size, and of the smallest."""

captions: ContextVar[bool] = ContextVar("captions", default=True)
"""Whether titles stand over axes."""

palette: ContextVar[tuple[str, ...]] = ContextVar("palette", default=PALETTE)
"""Colours of lines, in order."""

looks: ContextVar[dict[object, int] | None] = ContextVar("looks", default=None)
"""Numbers of the colours of names, so that a name has one colour in all that is made together."""


def dashes_of(dash: str, width: float) -> Any:
    """A pattern of SVG as matplotlib has it, in widths of the line."""
    return (0, tuple(float(each) / max(width, 0.5) for each in dash.split())) if dash else "-"


@contextmanager
def one_look(*names: object) -> Iterator[None]:
    """Has a name wear the same colour in all that is made meanwhile.

    Args:
        *names: Names as the figures write them, which take the first colours, in order, whether or
            not they are drawn; those that are drawn further take the next ones. So figures that are
            made apart, as in several cells of a notebook, agree in the colours of these names.

    Example:
        >>> with replay.plots.one_look("N = 2", "N = 4"):
        ...     chart = replay.plots.charts.trajectories(frame, by="children")
    """
    known = looks.get()
    if names or known is None:
        known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    before = looks.set(known)
    try:
        yield
    finally:
        looks.reset(before)


@contextmanager
def for_print(*, titles: bool) -> Iterator[None]:
    """Has what is drawn meanwhile wear colours for paper, and `titles` only if asked."""
    colours, before = palette.set(PRINT_PALETTE), captions.set(titles)
    try:
        yield
    finally:
        palette.reset(colours)
        captions.reset(before)
