"""How far an axis goes: over all values, and over their intervals within reason."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

FAR = 2.0
"""How far beyond all values an interval moves an axis, at most, in lengths of a usual one."""

WORTH = 1.25
"""An axis that would be this many times as long, or less, holds all intervals."""


ROOM = 0.06
"""Share of its length by which an axis goes on beyond the values at either end."""


def with_room(
    low: float, high: float, share: float = ROOM, *, signed: bool = True
) -> tuple[float, float]:
    """Limits of an axis with room around its values; a single one lies in the middle.

    Args:
        low: The lowest value.
        high: The highest one.
        share: Of the length from one to the other, for each end.
        signed: Whether the room may reach below zero where no value does; it never does around a
            single value.

    Example:
        >>> from replay.plots.limits import with_room
        >>> with_room(0.0, 100.0), with_room(0.0, 100.0, signed=False), with_room(2.0, 2.0)
        ((-6.0, 106.0), (0.0, 106.0), (1.9, 2.1))
    """
    is_single = low == high
    room = (0.05 * abs(high) or 0.5) if is_single else share * (high - low)
    least = 0.0 if low >= 0 and (is_single or not signed) else -np.inf
    return max(low - room, least), high + room


def ends_of(known: NDArray[np.float64]) -> tuple[float, float]:
    """The lowest and the highest of some values; 0 and 1 where there is none."""
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def held(
    values: ArrayLike,
    lows: ArrayLike,
    highs: ArrayLike,
    possible: tuple[float, float] | None = None,
) -> NDArray[np.float64]:
    """Values and limits of intervals that an axis has to hold, so that none squeezes the rest.

    Args:
        values: Everything that is drawn besides intervals.
        lows: Lower limits of intervals.
        highs: Upper ones.
        possible: Lowest and highest value that there is; limits beyond it, and beyond all values,
            are cut off there.

    Example:
        >>> from replay.plots.limits import held
        >>> held([0.5, 0.6], [0.4, -3.0], [0.7, 5.0], (0.0, 1.0)).tolist()
        [0.5, 0.6, 0.4, 0.0, 0.7, 1.0]
    """
    known, low, high = (np.ravel(np.asarray(e, dtype=np.float64)) for e in (values, lows, highs))
    known, low, high = (each[np.isfinite(each)] for each in (known, low, high))
    limits = np.concatenate([low, high])
    if not known.size or not limits.size:
        return np.concatenate([known, limits])
    least, most = known.min(), known.max()
    if possible is not None:
        limits = np.clip(limits, min(possible[0], least), max(possible[1], most))
    near = np.clip(limits, *_reach(known, np.ravel(lows), np.ravel(highs)))
    every, some = np.concatenate([known, limits]), np.concatenate([known, near])
    return every if np.ptp(every) <= WORTH * np.ptp(some) else some


def _reach(known: NDArray[np.float64], lows: ArrayLike, highs: ArrayLike) -> tuple[float, float]:
    """How far below and above the values limits may lie, by the length of a usual interval."""
    lengths = np.asarray(highs, dtype=np.float64) - np.asarray(lows, dtype=np.float64)
    lengths = lengths[np.isfinite(lengths) & (lengths > 0)]
    far = FAR * float(np.median(lengths)) if lengths.size else np.inf
    return float(known.min()) - far, float(known.max()) + far
