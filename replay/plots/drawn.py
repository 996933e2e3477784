"""Functions that make charts as functions that draw on axes."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from replay.plots.chart import Chart
    from replay.plots.style import Theme

ARGUMENTS = """
    ax: Axes to draw on (default: those of a new figure).
    theme: "light" or "dark".

Returns:
    The axes.
"""


def drawn(make: Callable[..., Chart]) -> Callable[..., Axes]:
    """Returns a function that draws the chart of another on `ax`, in a `theme`."""

    @functools.wraps(make)
    def draw(*args: Any, ax: Axes | None = None, theme: Theme = "light", **how: Any) -> Axes:
        return make(*args, **how).draw(ax, theme)

    own, added = inspect.signature(make), inspect.signature(draw, follow_wrapped=False).parameters
    parameters = [*own.parameters.values(), added["ax"], added["theme"]]
    shown = own.replace(parameters=parameters, return_annotation="Axes")
    draw.__signature__ = shown  # type: ignore[attr-defined]
    documented = f"{inspect.cleandoc(make.__doc__ or '')}\n"  # Python 3.13 takes the indents out
    text, arguments, rest = re.split(r"(Args:\n(?:    .*\n)+)", documented, maxsplit=1)
    draw.__doc__ = f"{text}{arguments.rstrip()}{ARGUMENTS}{rest}"
    return draw
