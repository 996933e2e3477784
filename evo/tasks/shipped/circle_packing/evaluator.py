"""Scores 26 circles in the unit square by the sum of their radii."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

CIRCLES = 26
BEST = 2.635
TOLERANCE = 1e-6
FIRST, SECOND = np.triu_indices(CIRCLES, 1)
MARGIN = 1 - 16 * np.finfo(float).eps
"""More than the relative rounding error of a distance, a sum or a quotient below."""
TINY = 1e-200
"""Smaller radii count as zero in a strict packing, where rounding is not relative any more."""

Array = npt.NDArray[np.float64]


def score(value: Any) -> dict[str, float]:
    """Score a packing (centers, radii) or (centers, radii, sum); the sum is ignored.

    Returns:
        `fitness`: sum of the radii over 2.635, legal within 1e-6 on walls and overlaps.
        `objective`: sum of the radii.
        `strict_fitness`: the same once the radii are shrunk to an exactly legal packing.

    Raises:
        ValueError: The value is no legal packing.
    """
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise ValueError(
            f"expected (centers, radii, sum) or (centers, radii), got {_describe(value)}"
        )
    centers = _numbers(value[0], (CIRCLES, 2), "centers")
    radii = _numbers(value[1], (CIRCLES,), "radii")
    _check(centers, radii)
    objective = math.fsum(radii)
    return {
        "fitness": objective / BEST,
        "objective": objective,
        "strict_fitness": math.fsum(_strict_radii(np.clip(centers, 0.0, 1.0), radii)) / BEST,
    }


def _check(centers: Array, radii: Array) -> None:
    """Raise ValueError unless the packing is legal within the tolerance."""
    if (radii < 0).any():
        circle = int(radii.argmin())
        raise ValueError(f"radius {circle} is negative: {radii[circle]!r}")
    # Not centers - radii, which overflows for huge numbers.
    outside = np.minimum(centers, 1 - centers).min(axis=1) < radii - TOLERANCE
    if outside.any():
        circle = int(outside.argmax())
        x, y = centers[circle].tolist()
        raise ValueError(
            f"circle {circle} leaves the unit square: center ({x!r}, {y!r}), "
            f"radius {float(radii[circle])!r}"
        )
    gap = _distances(centers) - (radii[FIRST] + radii[SECOND])
    if gap.min() < -TOLERANCE:
        pair = int(gap.argmin())
        raise ValueError(f"circles {FIRST[pair]} and {SECOND[pair]} overlap by {-gap[pair]:.3g}")


def _distances(centers: Array) -> Array:
    difference = centers[FIRST] - centers[SECOND]
    return np.hypot(difference[:, 0], difference[:, 1])


def _strict_radii(centers: Array, radii: Array) -> Array:
    """Shrink radii until the packing is legal in exact arithmetic; centers are in the square.

    Two circles that overlap give up half of the overlap each, or all of the smaller one where that
    is less; a circle gives up the most that one of its pairs or walls asks for.
    """
    x, y = ([Fraction(c) for c in column] for column in centers.T.tolist())
    wall = np.minimum(centers, 1 - centers).min(axis=1)
    distance = _distances(centers)
    while True:
        radii = np.where(radii < TINY, 0.0, radii)
        exact = [Fraction(r) for r in radii.tolist()]
        loss = np.zeros(CIRCLES)
        # The other walls and pairs are farther from touching than rounding could hide.
        for i in np.flatnonzero(radii > wall * MARGIN).tolist():
            if exact[i] > min(x[i], y[i], 1 - x[i], 1 - y[i]):
                loss[i] = radii[i] - wall[i] * MARGIN
        overlap = radii[FIRST] + radii[SECOND] - distance * MARGIN
        for pair in np.flatnonzero(overlap > 0).tolist():
            i, j = int(FIRST[pair]), int(SECOND[pair])
            if (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 < (exact[i] + exact[j]) ** 2:
                share = min(max(overlap[pair] / 2, overlap[pair] - radii[j]), radii[i])
                loss[i] = max(loss[i], share)
                loss[j] = max(loss[j], overlap[pair] - share)
        if not loss.any():
            return radii
        radii = np.maximum(radii - loss, 0.0)


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
