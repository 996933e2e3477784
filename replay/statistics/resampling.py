"""Resampling of whole runs, p-values of many draws or claims, and how large numbers may be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replay.statistics.numbers import as_numbers

FloatArray = NDArray[np.float64]

LARGEST = 1e150
"""Numbers up to this magnitude have squares that can be added up."""


def check_size(values: ArrayLike) -> None:
    """Raises ValueError where numbers are so large that their squares are no numbers."""
    largest = float(np.max(np.abs(np.asarray(values, dtype=np.float64)), initial=0.0))
    if largest > LARGEST:
        raise ValueError(
            f"expected fitness of at most {LARGEST:g} in magnitude, because squares are added up, "
            f"got {largest:g}; divide it by a power of ten first"
        )


def resampled(n: int, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Bootstrap samples of n runs: which run stands at each place, (draws, n)."""
    return rng.integers(n, size=(draws, n))


def weights(n: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Bootstrap samples of n runs: the share of each run in each sample, (draws, n)."""
    return rng.multinomial(n, np.full(n, 1 / n), draws) / n


def tail_p(value: float, drawn: ArrayLike, enough: int | None = None) -> float:
    """Probability, under a null, of a draw at least as large as a value that was seen.

    Args:
        value: What was seen.
        drawn: Draws of the null in order, (draws,).
        enough: Number of draws at least as large after which no more were needed (Besag and
            Clifford 1991); None: their number was fixed.

    Returns:
        A valid p-value: the value itself counts as a draw, unless sampling ended with a hit.
    """
    hits = np.asarray(drawn, dtype=np.float64) >= value
    if enough is not None and hits.sum() >= enough:
        return enough / float(1 + np.flatnonzero(hits)[enough - 1])
    return float(1 + hits.sum()) / (1 + len(hits))


def holm(p: ArrayLike, tests: int | None = None) -> FloatArray:
    """Returns p-values adjusted for several tests by Holm's method.

    Args:
        p: The p-values of all tests, shape (tests,). NaN stands for a test that was not made.
        tests: How many tests there are, if these are those of which something is to be said: what
            all others would show counts as less clear. None: those of `p`.

    Returns:
        The adjusted p-values in the same order, at most 1. NaN stays NaN and is not counted.

    Example:
        >>> replay.claims.holm([0.01, 0.04, 0.03]).round(2).tolist()
        [0.03, 0.06, 0.06]
    """
    values = as_numbers("p", p)
    adjusted = np.full(len(values), np.nan)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    scaled = values[order] * (max(len(order), tests or 0) - np.arange(len(order)))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted
