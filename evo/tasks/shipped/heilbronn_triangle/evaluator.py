"""Scores 11 points in an equilateral triangle by the least area of three of them."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

POINTS = 11
BEST = 0.036529889880030156
TOLERANCE = 1e-6
ROOT3 = math.sqrt(3)
ROOT3_ABOVE = Fraction(math.nextafter(ROOT3, 2))
"""An upper bound of the square root of 3: its double is below."""
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, ROOT3 / 2]])
A, B, C = np.array(list(combinations(range(POINTS), 3))).T
ROUNDING = 1e-14
"""More than the rounding error of a barycentric coordinate or of twice an area."""

Array = npt.NDArray[np.float64]


def score(value: Any) -> dict[str, float]:
    """Score 11 points, shape (11, 2), in the triangle (0, 0), (1, 0), (1/2, sqrt(3)/2).

    Returns:
        `fitness`: the objective over 0.036529889880030156, legal within 1e-6 of the border.
        `objective`: least area of three points over the area of the triangle.
        `strict_fitness`: lower bound of the fitness in exact arithmetic, once the points are
            moved inside.

    Raises:
        ValueError: The value is not 11 finite points in the triangle.
    """
    points = _numbers(value, (POINTS, 2), "points")
    _check(points)
    objective = float(_double_areas(points).min()) * 2 / ROOT3
    fitness = objective / BEST
    strict = float(_exact_double_area(_move_inside(points)) * 2 / ROOT3_ABOVE / Fraction(BEST))
    return {
        "fitness": fitness,
        "objective": objective,
        "strict_fitness": min(strict, fitness),  # of the two, fitness carries rounding errors
    }


def _check(points: Array) -> None:
    """Raise ValueError unless every point is in the triangle within the tolerance."""
    x, y = np.clip(points, -2.0, 2.0).T  # outside is outside, and nothing overflows
    outside = np.minimum(y, ROOT3 * np.minimum(x, 1 - x) - y) < -TOLERANCE
    if outside.any():
        point = int(outside.argmax())
        a, b = points[point].tolist()
        raise ValueError(f"point {point} is outside the triangle: ({a!r}, {b!r})")


def _double_areas(points: Array) -> Array:
    """Return twice the area of each of the 165 triangles."""
    u, v = points[B] - points[A], points[C] - points[A]
    cross: Array = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    return np.abs(cross)


def _move_inside(points: Array) -> Array:
    """Return points exactly inside the triangle, the same points if they are there already.

    Otherwise the smallest triangle with parallel sides that holds both the points and the
    triangle is mapped to the triangle: all areas shrink by one factor, 1 - O(1e-6).
    """
    while not all(_is_inside(Fraction(x), Fraction(y)) for x, y in points.tolist()):
        top = points[:, 1] * 2 / ROOT3
        right = points[:, 0] - top / 2
        weights = np.stack([1 - right - top, right, top], axis=1)  # barycentric
        least = np.minimum(weights.min(axis=0), 0.0) - ROUNDING
        points = np.matmul((weights - least) / (1 - least.sum()), CORNERS)
    return points


def _is_inside(x: Fraction, y: Fraction) -> bool:
    return 0 <= x <= 1 and y >= 0 and y**2 <= 3 * x**2 and y**2 <= 3 * (1 - x) ** 2


def _exact_double_area(points: Array) -> Fraction:
    """Return twice the least area exactly."""
    rounded = _double_areas(points)
    x, y = ([Fraction(c) for c in column] for column in points.T.tolist())
    least = Fraction(2)
    for triple in np.flatnonzero(rounded <= rounded.min() + ROUNDING).tolist():
        a, b, c = int(A[triple]), int(B[triple]), int(C[triple])
        area = abs((x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]))
        least = min(least, area)
        if not least:
            break
    return least


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
