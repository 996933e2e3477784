"""Ticks at even steps, and what is written at them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from replay.statistics.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter, MaxNLocator


def even_steps(most: int) -> MaxNLocator:
    """Puts ticks at round values, at most so many and one more."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def tick_texts(values: Iterable[float]) -> list[str]:
    """What is written at the ticks of one axis, all in one notation; `chart.js` has the same rule.

    Round values are written in full, from 10,000 on with k and M. Where one is 1e9 or more, or
    below 1e-4, all are written with powers of ten.

    Example:
        >>> from replay.plots.ticks import tick_texts
        >>> tick_texts([0.0, 0.30000000000000004]), tick_texts([-0.0, 5e3, 1e4])
        (['0', '0.3'], ['0', '5k', '10k'])
        >>> tick_texts([8e8, 1.2e9]), tick_texts([0.0, 2e-13])
        (['8e8', '1.2e9'], ['0', '2e-13'])
    """
    shown = [float(value) for value in values]
    most = max((abs(value) for value in shown), default=0.0)
    shown = [0.0 if abs(value) <= 1e-12 * most else value for value in shown]
    sizes = [abs(value) for value in shown if value]
    if any(size >= 1e9 or size < 1e-4 for size in sizes):
        return [_with_power(value) for value in shown]
    return [_in_full(value, units=most >= 1e4) for value in shown]


def _with_power(value: float) -> str:
    digits, power = f"{value:.9e}".split("e")
    return f"{float(digits):.10g}e{int(power)}" if value else "0"


def _in_full(value: float, *, units: bool) -> str:
    for unit, letter in ((1e6, "M"), (1e3, "k")) if units else ():
        if abs(value) >= unit:
            return f"{value / unit:.10g}{letter}"
    return f"{value:.10g}"


def tick_formatter() -> FuncFormatter:
    """Writes the ticks of an axis of matplotlib by `tick_texts`."""
    from matplotlib.ticker import FuncFormatter

    found = FuncFormatter(lambda value, _: tick_texts([value])[0])
    vars(found)["format_ticks"] = tick_texts  # all ticks of an axis together
    return found


def even_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round values from low to high with their texts.

    Example:
        >>> from replay.plots.ticks import even_ticks
        >>> even_ticks(-0.1, 0.1, 4)
        [(-0.1, '-0.1'), (-0.05, '-0.05'), (0.0, '0'), (0.05, '0.05'), (0.1, '0.1')]
    """
    values = np.asarray(even_steps(most).tick_values(low, high))
    inside = values[(values >= low) & (values <= high)]
    return list(zip(inside.tolist(), tick_texts(inside), strict=True))


def doublings(most: float) -> list[tuple[float, str]]:
    """Ticks at powers of two that keep apart."""
    count = max(1, math.ceil(most)).bit_length()
    ticks = [2**power for power in range(0, count, 1 + count // 9)]
    return [(float(tick), number(tick) if tick > 9999 else str(tick)) for tick in ticks]


def ratios(ax: Axes, low: float, high: float, steps: Sequence[float]) -> list[float]:
    """Spaces the horizontal axis by ratios, with ticks at these multiples of powers of ten.

    Returns:
        The ticks from low to high.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_xscale("log")
    ax.set_xlim(low, high)
    locator = LogLocator(subs=steps, numticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(tick_formatter())
    return [each for each in locator.tick_values(low, high) if low <= each <= high]
