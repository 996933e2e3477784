"""Welch's t for the difference of two means: half-widths and degrees of freedom."""

from __future__ import annotations

import numpy as np

from replay.statistics.intervals import FloatArray, IntArray, scaled, student


def welch_half(left: FloatArray, right: FloatArray, level: float) -> FloatArray:
    """Half the width of Welch's interval of the difference of two means over the first axis."""
    errors, power = _squared_errors(left, right)
    freedom = _satterthwaite(errors, (len(left), len(right)))
    return np.asarray(student(level, freedom) * np.ldexp(np.sqrt(sum(errors)), power))


def welch_freedom(left: FloatArray, right: FloatArray) -> FloatArray:
    """Degrees of freedom of Welch's t over the first axis; 1 where neither group varies."""
    return _satterthwaite(_squared_errors(left, right)[0], (len(left), len(right)))


def _squared_errors(left: FloatArray, right: FloatArray) -> tuple[list[FloatArray], IntArray]:
    """Squared standard errors of both means, scaled by one power of two, and that power."""
    away, power = scaled(*(side - side.mean(axis=0) for side in (left, right)))
    return [(each**2).sum(axis=0) / (len(each) - 1) / len(each) for each in away], power


def _satterthwaite(errors: list[FloatArray], sizes: tuple[int, int]) -> FloatArray:
    parts = np.asarray(sum(each**2 / (n - 1) for each, n in zip(errors, sizes, strict=True)))
    total = np.asarray(sum(errors)) ** 2
    return np.asarray(np.divide(total, parts, out=np.ones_like(parts), where=parts > 0))
