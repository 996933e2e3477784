"""Ticks at even steps, and what is written at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.ticker import MaxNLocator


def even_steps(most: int) -> MaxNLocator:
    """Puts ticks at round values, at most so many and one more."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def tick_text(value: float, _: object = None) -> str:
    """A round value in full; also a formatter of ticks.

    Example:
        >>> from replay.plots.ticks import tick_text
        >>> tick_text(0.30000000000000004), tick_text(-0.0)
        ('0.3', '0')
    """
    return f"{round(value, 12) + 0.0:.12g}"


def even_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round values from low to high with their texts.

    Example:
        >>> from replay.plots.ticks import even_ticks
        >>> even_ticks(-0.1, 0.1, 4)
        [(-0.1, '-0.1'), (-0.05, '-0.05'), (0.0, '0'), (0.05, '0.05'), (0.1, '0.1')]
    """
    values = np.asarray(even_steps(most).tick_values(low, high))
    inside = values[(values >= low) & (values <= high)]
    return [(value, tick_text(value)) for value in inside.tolist()]
