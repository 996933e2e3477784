"""Numbers as they are given, and as texts and figures show them."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from evo.plugins import MistakenType

MOST = 1e300
"""The largest size of a value; sums of larger ones may be infinite. Logs hold up to 1e100."""


def number(value: float, _: object = None) -> str:
    """Three digits, thousands as k and millions as M; also a formatter of ticks."""
    size = abs(value)
    if not math.isfinite(value) or size >= 1e9 or 0 < size < 1e-3:
        return re.sub(r"e([+-])0?", lambda e: "e" + e[1].strip("+"), f"{value:.3g}")
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if size >= 0.9995 * unit:
            return f"{float(f'{value / unit:.3g}'):g}{letter}"
    return f"{float(f'{value:.3g}'):g}"


def four_digits(value: float) -> str:
    """A number in four digits."""
    return f"{value:.4g}"


def brackets(low: float, high: float, write: Callable[[float], str] = four_digits) -> str:
    """The limits of an interval; one that is zero up to rounding is written as 0.

    Example:
        >>> from replay.statistics.numbers import brackets
        >>> brackets(-4.5e-11, 0.05)
        '[0, 0.05]'
    """
    return f"[{write(_rounded(low, high - low))}, {write(_rounded(high, high - low))}]"


def with_limits(
    value: float,
    low: float,
    high: float,
    write: Callable[[float], str] = four_digits,
    write_limits: Callable[[float], str] | None = None,
) -> str:
    """A number with the limits of its interval, as `brackets`, written in another way if given.

    Example:
        >>> from replay.statistics.numbers import with_limits
        >>> with_limits(0.02, -4.5e-11, 0.05, "{:+.2f}".format, "{:.2g}".format)
        '+0.02 [0, 0.05]'
    """
    limits = brackets(low, high, write_limits or write)
    return f"{write(_rounded(value, high - low))} {limits}"


def _rounded(value: float, width: float) -> float:
    """Returns 0 for a number that is tiny beside the width of its interval, which rounding left."""
    return 0.0 if abs(value) < 1e-9 * width < math.inf else value


def amount(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun.

    Example:
        >>> from replay.statistics.numbers import amount
        >>> amount(1, "child", "children"), amount(0, "run")
        ('1 child', '0 runs')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def floored(value: float, unit: float) -> float:
    """The largest multiple of a unit that is not above a value, up to rounding errors.

    Example:
        >>> from replay.statistics.numbers import floored
        >>> floored(0.9379, 0.005), floored(0.3, 0.1)
        (0.935, 0.3)
    """
    return float(f"{math.floor(value / unit + 1e-9) * unit:.15g}")


def unit_of(spread: float) -> float:
    """The unit in which a range of values has three digits.

    Example:
        >>> from replay.statistics.numbers import unit_of
        >>> unit_of(0.5), unit_of(20.0)
        (0.001, 0.1)
    """
    return float(10.0 ** (math.floor(math.log10(spread)) - 2))


def as_numbers(name: str, values: object) -> npt.NDArray[np.float64]:
    """Returns what a caller gave as an array of numbers; raises MistakenType if it holds others.

    Args:
        name: Of the argument.
        values: Numbers, lists of them, an array or a column of a frame.
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind in "SU" or any(isinstance(v, str | bytes) for v in _objects(given)):
            raise TypeError  # which numpy reads as numbers if it can
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        what = f"{name}: expected numbers, in lists of equal length or an array"
        raise MistakenType(f"{what}, got {reprlib.repr(values)}") from None


def _objects(values: npt.NDArray[Any]) -> Iterable[object]:
    """The elements of an array that may be anything."""
    return values.flat if values.dtype.kind == "O" else ()


def check_sizes(values: npt.NDArray[np.float64]) -> None:
    """Raises a ValueError if a value is infinite, but for minus infinity, or sums may be."""
    if np.isposinf(values).any():
        raise ValueError("expected finite values, got an infinite one")
    large = np.isfinite(values) & (np.abs(values) > MOST)
    if large.any():
        raise ValueError(f"expected values from -{MOST:g} to {MOST:g}, got {values[large][0]:g}")
