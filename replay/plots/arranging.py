"""The layout of a figure whose headings are wrapped to the width that the layout leaves them."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING

from evo.warning import warn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_recording = threading.Lock()  # what is warned of is caught for the whole process


def arrange(figure: Figure) -> None:
    """Lay a figure out, its subtitles wrapped to the final width of their axes.

    Only the last layout warns: before headings are wrapped they may leave axes no room.
    """
    warned = _lay_out(figure)
    fits = [fit for ax in figure.axes if (fit := vars(ax).get("fit_head"))]
    for _ in range(2):  # headings that are wrapped leave axes another width
        if not sum(fit() for fit in fits):
            break
        warned = _lay_out(figure)
    for each in warned:
        warn(str(each.message), each.category)


def _lay_out(figure: Figure) -> list[warnings.WarningMessage]:
    """Place the axes, faster than a full draw without pixels; returns what was warned of."""
    from replay.plots.plain import show_plainly

    show_plainly(figure)
    with _recording, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if (engine := figure.get_layout_engine()) is None:
            figure.draw_without_rendering()
        else:
            engine.execute(figure)
    return caught
