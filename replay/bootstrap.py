"""How bootstrap intervals are made: resampling whole runs, and limits from the resamples.

`replay.statistics` is what to call; here are its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Method = Literal["expanded", "percentile", "bca", "studentised"]
"""Kinds of bootstrap interval.

- `expanded`: percentiles further out than nominal by what Student's t and the factor n / (n - 1) of
  the variance ask for (Hesterberg 2015, "What teachers should know about the bootstrap", 5.3).
- `percentile`: percentiles of the resampled statistic (Efron and Tibshirani 1993, ch. 13).
- `bca`: bias-corrected and accelerated (the same, ch. 14).
- `studentised`: bootstrap-t (the same, ch. 12), with the standard error in closed form for the
  mean, after Maritz and Jarrett (1978) for the median and by the jackknife for any other.
"""
METHODS: tuple[Method, ...] = get_args(Method)

Statistic = Callable[..., Any]
"""A function of (values, axis=...) that reduces that axis, such as `numpy.median`."""

_CHUNK = 4_000_000
"""Most numbers that are resampled at once, to bound memory."""


def resampled_rows(strata: ArrayLike, resamples: int, seed: int) -> IntArray:
    """Rows of `resamples` bootstrap samples, (resamples, n), each keeping the size of each stratum.

    Args:
        strata: Label per run, (n,); all equal for the plain bootstrap.
        resamples: Number of bootstrap samples.
        seed: Key of the generator, at least 0.
    """
    labels = np.asarray(strata)
    if not len(labels):
        raise ValueError("expected at least one run to resample, got none")
    generator = np.random.default_rng([seed, len(labels)])
    rows = np.empty((resamples, len(labels)), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        drawn = generator.integers(0, len(members), size=(resamples, len(members)))
        rows[:, members] = members[drawn]
    return rows


def limits_by_column(
    values: FloatArray,
    labels: NDArray[Any],
    function: Statistic,
    level: float,
    method: Method,
    resamples: int,
    seed: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, low and high of each column of `values` (n, m), all finite."""
    value = np.asarray(function(values, axis=0), dtype=np.float64)
    if len(values) < 2:
        return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
    rows = resampled_rows(labels, resamples, seed)
    samples = _resampled(values, rows, function)
    sizes = np.unique(labels, return_counts=True)[1]
    tail = (1 - level) / 2
    if method == "studentised":
        return value, *_studentised(values, rows, labels, function, value, samples, tail)
    if method == "bca":
        low_share, high_share = _bca_shares(values, labels, function, value, samples, tail)
    else:
        low_share = np.full(
            len(value), tail if method == "percentile" else expanded_tail(level, list(sizes))
        )
        high_share = 1 - low_share
    return value, _quantile(samples, low_share), _quantile(samples, high_share)


def _resampled(values: FloatArray, rows: IntArray, function: Statistic) -> FloatArray:
    """The statistic of each bootstrap sample and column, (resamples, m)."""
    if function is np.mean:
        return counted(rows, len(values)) @ values / len(values)
    step = max(1, _CHUNK // rows.size)
    parts = [
        np.asarray(function(values[:, at : at + step][rows], axis=1), dtype=np.float64)
        for at in range(0, values.shape[1], step)
    ]
    return np.concatenate(parts, axis=1)


def counted(rows: IntArray, n: int) -> FloatArray:
    """How often each of n runs occurs in each bootstrap sample, (resamples, n)."""
    offset = n * np.arange(len(rows))[:, None]
    found = np.bincount((rows + offset).ravel(), minlength=n * len(rows))
    return found.reshape(len(rows), n).astype(np.float64)


def expanded_tail(level: float, sizes: Sequence[int]) -> float:
    """Share in each tail of the expanded percentile interval, for strata of these sizes."""
    from scipy.special import ndtr, stdtrit

    freedom = sum(sizes) - len(sizes)
    if freedom < 1:
        return 0.0
    student = stdtrit(freedom, (1 + level) / 2)
    return float(ndtr(-np.sqrt(sum(sizes) / freedom) * student))


def _left_out(values: FloatArray, function: Statistic) -> FloatArray:
    """The statistic of (..., n, m) without each run in turn, (..., n, m)."""
    n = values.shape[-2]
    others = np.array([[j for j in range(n) if j != i] for i in range(n)], dtype=np.int64)
    return np.asarray(function(values[..., others, :], axis=-2), dtype=np.float64)


def _bca_shares(
    values: FloatArray,
    labels: NDArray[Any],
    function: Statistic,
    value: FloatArray,
    samples: FloatArray,
    tail: float,
) -> tuple[FloatArray, FloatArray]:
    """Shares of the BCa limits per column; ties with the estimate count half."""
    from scipy.special import ndtr, ndtri

    # A resample of every run once ties with the estimate, but for rounding.
    slack = 1e-12 * (1 + np.abs(value))
    below = ((samples < value - slack).mean(axis=0) + (samples <= value + slack).mean(axis=0)) / 2
    bias = ndtri(np.clip(below, 1 / (2 * len(samples)), 1 - 1 / (2 * len(samples))))
    left_out = _left_out(values, function)
    spread = np.ptp(left_out, axis=0)
    # Acceleration has no scale; cubes of small numbers would vanish.
    left_out = left_out / np.where(spread > 0, spread, 1.0)
    cubes, squares = np.zeros(len(value)), np.zeros(len(value))
    for label in np.unique(labels):
        part = left_out[labels == label]
        influence = (len(part) - 1) * (part.mean(axis=0) - part)
        cubes += (influence**3).sum(axis=0) / len(part) ** 3
        squares += (influence**2).sum(axis=0) / len(part) ** 2
    acceleration = np.divide(
        cubes, 6 * squares**1.5, out=np.zeros_like(cubes), where=squares > 1e-24
    )

    def share(quantile: float) -> FloatArray:
        shifted = bias + quantile
        return np.asarray(ndtr(bias + shifted / (1 - acceleration * shifted)))

    return share(float(ndtri(tail))), share(-float(ndtri(tail)))


def _studentised(
    values: FloatArray,
    rows: IntArray,
    labels: NDArray[Any],
    function: Statistic,
    value: FloatArray,
    samples: FloatArray,
    tail: float,
) -> tuple[FloatArray, FloatArray]:
    """Limits of the bootstrap-t interval per column; infinite where too many resamples are tied."""
    error = _standard_error(values, labels, function)
    step = max(1, _CHUNK // (rows.size * (1 if function in (np.mean, np.median) else len(values))))
    parts = [
        _standard_error(values[:, at : at + step][rows], labels, function)
        for at in range(0, values.shape[1], step)
    ]
    errors = np.concatenate(parts, axis=1)
    away = samples - value
    # Ties leave rounding instead of an exact zero.
    flat = errors <= 1e-12 * (1 + np.abs(value))
    ratio = np.where(flat, np.where(np.abs(away) <= 1e-12, 0.0, np.copysign(np.inf, away)), 0.0)
    ratio = np.divide(away, errors, out=ratio, where=~flat)
    ordered = np.sort(ratio, axis=0)
    # Order statistics, not interpolation, since some may be infinite.
    least = ordered[int(np.floor(tail * len(ordered)))]
    most = ordered[int(np.ceil((1 - tail) * len(ordered))) - 1]
    with np.errstate(invalid="ignore"):  # no spread at all: 0 * inf
        return (
            np.where(error > 0, value - most * error, value),
            np.where(error > 0, value - least * error, value),
        )


def _standard_error(values: FloatArray, labels: NDArray[Any], function: Statistic) -> FloatArray:
    """Standard error of the statistic of (..., n, m) over n, strata by position."""
    n = values.shape[-2]
    if function is np.median:
        from scipy.special import betainc

        half = (n + 1) / 2
        weight = np.diff(betainc(half, half, np.arange(n + 1) / n))[:, None]
        ordered = np.sort(values, axis=-2)
        first = (weight * ordered).sum(axis=-2)
        second = (weight * (ordered - first[..., None, :]) ** 2).sum(axis=-2)
        return np.asarray(np.sqrt(second))
    spread = values / n if function is np.mean else _left_out(values, function)
    variance = np.zeros(values.shape[:-2] + values.shape[-1:])
    for label in np.unique(labels):
        part = spread[..., labels == label, :]
        size = part.shape[-2]
        squares = ((part - part.mean(axis=-2, keepdims=True)) ** 2).sum(axis=-2)
        if function is np.mean:
            variance += squares * (size / (size - 1) if size > 1 else np.nan)
        else:
            variance += squares * (size - 1) / size
    return np.asarray(np.sqrt(variance))


def _quantile(samples: FloatArray, share: FloatArray) -> FloatArray:
    """Quantile `share` (m,) of each column of `samples` (B, m), linear between samples."""
    ordered = np.sort(samples, axis=0)
    at = np.clip(share, 0, 1) * (len(ordered) - 1)
    lower = np.floor(at).astype(np.int64)
    upper = np.minimum(lower + 1, len(ordered) - 1)
    columns = np.arange(samples.shape[1])
    left, right = ordered[lower, columns], ordered[upper, columns]
    return np.asarray(left + (at - lower) * (right - left))
