"""Scores 16 points in the plane by (least distance / greatest distance)^2."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

POINTS = 16
SCALE = 12.889266112
"""One over the best published objective."""
FIRST, SECOND = np.triu_indices(POINTS, 1)
MARGIN = 1 + 16 * np.finfo(float).eps
"""More than the relative rounding error of a squared distance."""

Array = npt.NDArray[np.float64]


def score(value: Any) -> dict[str, float]:
    """Score 16 points, shape (16, 2); any finite points are legal.

    Returns:
        `fitness`: the objective times 12.889266112.
        `objective`: squared ratio of the least to the greatest distance between two points; 0 if
            two points, or all of them, coincide.
        `strict_fitness`: the fitness, as nothing has to be made legal and the objective is the
            correctly rounded value of an exact ratio.

    Raises:
        ValueError: The value is not 16 finite points.
    """
    objective = _squared_ratio(_numbers(value, (POINTS, 2), "points"))
    fitness = objective * SCALE
    return {"fitness": fitness, "objective": objective, "strict_fitness": fitness}


def _squared_ratio(points: Array) -> float:
    # A power of two changes no ratio, and squares neither overflow nor vanish.
    points = np.ldexp(points, -int(np.frexp(np.abs(points).max())[1]))
    squared = ((points[FIRST] - points[SECOND]) ** 2).sum(axis=1)
    if squared.min() == 0:
        return 0.0
    x, y = ([Fraction(c) for c in column] for column in points.T.tolist())

    def exact(pairs: Array) -> list[Fraction]:
        ends = zip(FIRST[pairs].tolist(), SECOND[pairs].tolist(), strict=True)
        return [(x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 for i, j in ends]

    least = min(exact(squared <= squared.min() * MARGIN))
    greatest = max(exact(squared * MARGIN >= squared.max()))
    return float(least / greatest)


def _numbers(value: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return nested sequences of finite real numbers as an array of the given shape."""
    array = np.array(_flatten(value, shape, name)).reshape(shape)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {float(array[~np.isfinite(array)][0])!r}")
    return array


def _flatten(value: Any, shape: tuple[int, ...], name: str) -> list[float]:
    if not shape:
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or isinstance(value, bool):
            raise ValueError(f"{name} must hold real numbers, got {_describe(value)}")
        try:
            return [float(value)]
        except OverflowError:
            raise ValueError(f"{name} holds an integer too large for a float") from None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, tuple | list) or len(value) != shape[0]:
        raise ValueError(f"{name}: expected {shape[0]} rows or numbers, got {_describe(value)}")
    return [number for row in value for number in _flatten(row, shape[1:], name)]


def _describe(value: Any) -> str:
    """Name the type of a value, and its length where it has one, without printing all of it."""
    kind = type(value).__name__
    return f"{kind} of length {len(value)}" if isinstance(value, tuple | list | str) else kind
