"""Bootstrap intervals over whole runs.

A run is the unit that is resampled: its generations, children and tokens are not independent of
each other. Every function draws from a generator keyed by its `seed`, so that equal arguments give
equal bytes, and none touches NumPy's global state.

Four kinds of interval (`METHODS`). Coverage of nominal 95 % intervals with n = 10 runs, 2,000
trials each, made by `tests/benchmarks/interval_coverage.py`:

    runs          statistic   percentile   bca   expanded   studentised
    normal        mean             89.6  88.9       93.7          93.8
    normal        median           93.2  93.0       96.5          89.6
    normal        iqm              93.5  93.2       96.5          95.2
    beta(.6,1.5)  mean             88.8  90.8       93.2          96.4
    beta(.6,1.5)  median           92.8  92.6       96.4          90.5
    beta(.6,1.5)  iqm              92.6  92.0       96.5          95.5
    lognormal     mean             80.8  82.6       85.2          90.5
    lognormal     median           93.0  92.8       96.4          90.4
    lognormal     iqm              92.3  93.0       96.3          95.2
    plateau       mean             90.0  92.2       94.1          98.7
    plateau       median           96.3  89.7       97.8          51.3
    plateau       iqm              91.8  88.9       96.1          90.5

The default is `expanded`: it stays within 93-97 % except for the mean of heavy-tailed runs, where
none suffices, and the median of runs of which half are tied, where it is wider than need be.
`studentised` comes closest on the heavy tail but may be without bound, and fails for the median,
where many runs end at the same fitness, as runs on a plateau do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replay.bootstrap import (
    METHODS,
    FloatArray,
    Method,
    Statistic,
    counted,
    expanded_tail,
    limits_by_column,
    resampled_rows,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "METHODS",
    "STATISTICS",
    "Comparison",
    "Interval",
    "Method",
    "Statistic",
    "compare",
    "curve_band",
    "interquartile_mean",
    "interval",
    "resampled_rows",
]


def interquartile_mean(values: ArrayLike, axis: int = -1) -> FloatArray:
    """Mean of the middle half: a quarter of the values, rounded down, is cut at each end (IQM).

    As in Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice".
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=axis)
    n = ordered.shape[axis]
    cut = n // 4
    middle = ordered.take(range(cut, n - cut), axis=axis)
    return np.asarray(middle.mean(axis=axis))


STATISTICS: dict[str, Statistic] = {
    "mean": np.mean,
    "median": np.median,
    "iqm": interquartile_mean,
}
"""Statistics by name; any callable of (values, axis=...) serves as well."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its interval.

    Attributes:
        value: The statistic of the data; a float, or one per column.
        low: Lower limit; NaN where fewer than two runs have a value.
        high: Upper limit, likewise.
        n: Number of runs that it rests on.
        level: Nominal coverage, in (0, 1).
        method: One of `METHODS`, or `jackknife` (see `replay.effects`).
        statistic: Name of the statistic.
    """

    value: Any
    low: Any
    high: Any
    n: Any
    level: float
    method: str
    statistic: str

    def __str__(self) -> str:
        """Render as `0.512 [0.480, 0.551] (mean, 95 %, n = 10)`."""
        if np.ndim(self.value):
            return f"{self.statistic} of {np.size(self.value)} columns, {self.level:.0%}"
        return (
            f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}] "
            f"({self.statistic}, {100 * self.level:g} %, n = {self.n})"
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How `b` compares with `a`.

    Attributes:
        difference: Statistic of `b` less that of `a`.
        probability: Probability that a run of `b` beats one of `a`, ties counting half.
        paired: Whether run i of both belongs together.
    """

    difference: Interval
    probability: Interval
    paired: bool


def interval(
    values: ArrayLike,
    *,
    statistic: str | Statistic = "mean",
    level: float = 0.95,
    method: Method = "expanded",
    strata: ArrayLike | None = None,
    missing: Literal["raise", "omit"] = "raise",
    resamples: int = 1000,
    seed: int = 0,
    axis: int = 0,
) -> Interval:
    """Bootstrap interval of a statistic over runs.

    Args:
        values: One number per run, (n,), or columns of them, (n, m): whole rows are resampled.
        statistic: Name in `STATISTICS`, or a function of (values, axis=...).
        level: Nominal coverage, in (0, 1).
        method: One of `METHODS`; the module's head says what each covers.
        strata: Label per run, (n,), such as its task: each resample holds as many runs of each
            label as the data. The statistic is that of all runs together.
        missing: What NaN means. `raise`: an error. `omit`: this run has no value in this column,
            and the column's statistic, interval and `n` are those of the runs that have one. Where
            runs are missing because they did badly, that flatters the rest.
        resamples: Number of bootstrap samples.
        seed: Key of the generator.
        axis: Which axis of `values` counts the runs.

    Returns:
        The interval; floats for (n,), arrays of (m,) for columns.

    Raises:
        ValueError: If a setting or the shape is not as above, or a value is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in {1, 2}:
        raise ValueError(f"expected values of shape (n,) or (n, m), got {array.shape!r}")
    columns = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    _check(level, method, resamples)
    function = _statistic(statistic)
    labels = _labels(strata, len(columns))
    _check_finite(columns, missing)
    value, low, high = (np.full(columns.shape[1], np.nan) for _ in range(3))
    present = ~np.isnan(columns)
    patterns, group = np.unique(present.T, axis=0, return_inverse=True)
    for number, rows in enumerate(patterns):
        chosen = np.flatnonzero(group.ravel() == number)
        if rows.any():
            part = columns[np.ix_(rows, chosen)]
            found = limits_by_column(part, labels[rows], function, level, method, resamples, seed)
            value[chosen], low[chosen], high[chosen] = found
    count = present.sum(axis=0)
    single = array.ndim == 1
    return Interval(
        value=float(value[0]) if single else value,
        low=float(low[0]) if single else low,
        high=float(high[0]) if single else high,
        n=int(count[0]) if single else count,
        level=level,
        method=method,
        statistic=_name(statistic),
    )


def curve_band(
    matrix: ArrayLike,
    *,
    statistic: str | Statistic = "median",
    level: float = 0.95,
    method: Method = "expanded",
    strata: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
    first: int = 0,
) -> pd.DataFrame:
    """Pointwise interval of curves, one curve per run.

    Args:
        matrix: (runs, columns), such as `replay.fitness_matrix`; NaN where a run has no value.
        statistic: See `interval`, as for the next five.
        level: Nominal coverage of each point; the band as a whole covers less.
        method: One of `METHODS`.
        strata: Label per run.
        resamples: Number of bootstrap samples.
        seed: Key of the generator.
        first: Label of the first column in the index: 0 for generations, 1 for pulls.

    Returns:
        One row per column of `matrix`: value, low, high and n, the runs that have a value there.
    """
    import pandas as pd

    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"expected a matrix of shape (runs, columns), got {array.shape!r}")
    found = interval(
        array,
        statistic=statistic,
        level=level,
        method=method,
        strata=strata,
        missing="omit",
        resamples=resamples,
        seed=seed,
    )
    return pd.DataFrame(
        {"value": found.value, "low": found.low, "high": found.high, "n": found.n},
        index=pd.RangeIndex(first, first + array.shape[1]),
    )


def compare(
    a: ArrayLike,
    b: ArrayLike,
    *,
    paired: bool = False,
    statistic: str | Statistic = "mean",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Compare two groups of runs: difference and probability of improvement.

    Args:
        a: One number per run of the baseline, (n,).
        b: One per run of what is compared with it, (m,); higher is better.
        paired: Run i of `a` and of `b` belong together (same seed): they are resampled together.
        statistic: What the difference is taken of, see `interval`.
        level: Nominal coverage.
        resamples: Number of bootstrap samples.
        seed: Key of the generator.

    Returns:
        Both with `expanded` intervals; unpaired, each group is a stratum of its own.
    """
    left, right = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if left.ndim != 1 or right.ndim != 1 or (paired and len(left) != len(right)):
        raise ValueError(
            f"expected two vectors{' of equal length' if paired else ''}, "
            f"got shapes {left.shape!r} and {right.shape!r}"
        )
    for side in (left, right):
        _check_finite(side[:, None], "raise")
    _check(level, "expanded", resamples)
    function = _statistic(statistic)
    rows_a = resampled_rows(np.zeros(len(left)), resamples, seed)
    rows_b = rows_a if paired else resampled_rows(np.zeros(len(right)), resamples, seed + 1)
    wins = np.where(right > left[:, None], 1.0, np.where(right == left[:, None], 0.5, 0.0))
    if paired:
        probability, drawn = np.diag(wins).mean(), np.diag(wins)[rows_a].mean(axis=1)
    else:
        counts_a, counts_b = counted(rows_a, len(left)), counted(rows_b, len(right))
        probability = wins.mean()
        drawn = np.einsum("ri,ij,rj->r", counts_a, wins, counts_b) / wins.size
    difference = function(right, axis=-1) - function(left, axis=-1)
    differences = function(right[rows_b], axis=-1) - function(left[rows_a], axis=-1)
    sizes = [len(left)] if paired else [len(left), len(right)]
    share = expanded_tail(level, sizes)

    def made(value: float, samples: FloatArray, name: str) -> Interval:
        low, high = np.quantile(samples, [share, 1 - share]) if min(sizes) > 1 else (np.nan,) * 2
        return Interval(
            value=float(value),
            low=float(low),
            high=float(high),
            n=sum(sizes),
            level=level,
            method="expanded",
            statistic=name,
        )

    return Comparison(
        difference=made(difference, differences, f"difference of {_name(statistic)}"),
        probability=made(probability, drawn, "probability of improvement"),
        paired=paired,
    )


def _statistic(statistic: str | Statistic) -> Statistic:
    if callable(statistic):
        return statistic
    if statistic not in STATISTICS:
        raise ValueError(f"expected a function or one of {sorted(STATISTICS)}, got {statistic!r}")
    return STATISTICS[statistic]


def _name(statistic: str | Statistic) -> str:
    return statistic if isinstance(statistic, str) else getattr(statistic, "__name__", "statistic")


def _labels(strata: ArrayLike | None, n: int) -> NDArray[Any]:
    labels = np.zeros(n, dtype=np.int64) if strata is None else np.asarray(strata)
    if labels.shape != (n,):
        raise ValueError(f"expected one stratum label for each of {n} runs, got {labels.shape!r}")
    return np.unique(labels, return_inverse=True)[1].ravel()


def _check(level: float, method: str, resamples: int) -> None:
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, such as 0.95, got {level!r}")
    if method not in METHODS:
        raise ValueError(f"expected a method among {METHODS}, got {method!r}")
    if resamples < 1:
        raise ValueError(f"expected at least one resample, got {resamples!r}")


def _check_finite(columns: FloatArray, missing: str) -> None:
    if missing not in {"raise", "omit"}:
        raise ValueError(f"expected missing='raise' or 'omit', got {missing!r}")
    if np.isinf(columns).any():
        raise ValueError("expected finite values, got an infinite one")
    if missing == "raise" and np.isnan(columns).any():
        raise ValueError(
            f"{int(np.isnan(columns).any(axis=1).sum())} of {len(columns)} runs have NaN, that is "
            "no value; drop them or pass missing='omit'"
        )
