"""One interval, one paired comparison: what a number over whole runs is worth.

A run is the unit: its generations, children and tokens are not independent of each other. Every
interval is closed-form, and is called by the worst coverage that was measured for its kind and
number of runs over normal, lognormal (sigma 1) and Beta(.2, 2) runs (`coverage.csv`, made by
`tests/benchmarks/interval_coverage.py`), not by its nominal level. Intervals of means are stretched
until that coverage is 95 % at every n, so that one level stands in all brackets. Where n is too
small, or all values are equal, there is none, and a note states it.

| kind       | of                                     | how                         | from n |
|------------|----------------------------------------|-----------------------------|--------|
| mean       | runs                                   | Student's t, stretched to   | 5      |
|            |                                        | the side of the longer tail |        |
|            |                                        | (`stretches`: the cost)     |        |
| quantile   | median or another quantile             | order statistics            | 6, ... |
| share      | a share of successes                   | Clopper and Pearson 1934    | 1      |
| difference | two groups of runs, `compare`          | Welch 1947                  | 5 each |
| groups     | two groups of runs, `judge`            | runs exchanged              | 5 each |
| pairs      | pairs of runs, `judge`                 | signs flipped               | 6      |
| betting    | a mean of values in [0, 1], on request | Waudby-Smith, Ramdas 2024   | 5      |
| pool       | what a policy reaches on K of n runs   | jackknife over runs         | 5      |
| effect     | a policy less another on the same runs | jackknife over runs         | 5      |

No label covers rare jumps: what fewer than one run in n / 3 does may be absent from the runs, and
only betting on scores in a known range covers it.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from replay.statistics.levels import check_level
from replay.statistics.numbers import as_numbers, check_sizes, with_limits

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Bounds = tuple[float, float]
"""Lowest and highest value that there is."""

UNBOUNDED: Bounds = (-math.inf, math.inf)

LEAST = 5
"""Runs below which a mean has no interval: its points are shown instead."""

EQUAL = "all values are equal: no spread to judge by"
WITHIN = "all values of a group are equal: no spread to judge by"
NOTHING = "a run in which nothing was ever ok has no mean; ask for a quantile or a share"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its interval.

    Attributes:
        value: The statistic of the data; a float, or one per column, as for the next four.
        low: Lower limit; NaN where there is no interval; `high`, the upper one, likewise.
        n: Number of runs that it rests on.
        coverage: Worst coverage measured for this kind and n; NaN where none was.
        level: Nominal coverage, in (0, 1).
        statistic: Name of the statistic.
        note: Why there is no interval, or none for some columns; else empty.
        least: Of effects of policies, whose level is nominal: the least coverage that was measured
            in any world, those included in which few runs decide; else NaN.
    """

    value: Any
    low: Any
    high: Any
    n: Any
    coverage: Any = np.nan
    level: float = 0.95
    statistic: str = "mean"
    note: str = ""
    least: float = np.nan

    def within(self, bounds: Bounds) -> Interval:
        """Returns the interval without what lies beyond the lowest and the highest possible value.

        It covers as much as before, since no true value lies there.
        """
        low, high = np.clip(self.low, *bounds), np.clip(self.high, *bounds)
        single = np.ndim(self.low) == 0
        limits = {"low": low.item(), "high": high.item()} if single else {"low": low, "high": high}
        return dataclasses.replace(self, **limits)

    @property
    def label(self) -> str:
        """What to call the interval, such as `95 % interval`: see `name_of`."""
        if self.note and not np.isfinite(self.coverage).any():
            return "no interval"
        return name_of(self.coverage, self.level, self.least)

    @property
    def caveat(self) -> str:
        """What the interval cannot cover, for means and what is made of them; else empty."""
        distribution_free = self.statistic.endswith(("share", "median", "quantile"))
        if np.ndim(self.n) or self.note or distribution_free:
            return ""
        return rare_jumps(self.n)

    def __str__(self) -> str:
        """Render as `0.512 [0.480, 0.551] (mean, 95 % interval, n = 10; rarer than 1 run ...)`."""
        if np.ndim(self.value):
            return f"{self.statistic} of {np.size(self.value)} columns, {self.label}"
        if self.note:
            counted = "" if self.note.startswith(f"n = {self.n} ") else f", n = {self.n}"
            return f"{self.value:.4g} ({self.statistic}{counted}; {self.note})"
        estimate = with_limits(self.value, self.low, self.high)
        rare = f"; rarer than 1 run in {_rare(self.n)}: not covered" if self.caveat else ""
        return f"{estimate} ({self.statistic}, {self.label}, n = {self.n}{rare})"


def name_of(coverage: ArrayLike, level: float, least: ArrayLike = np.nan) -> str:
    """What to call intervals: by the worst coverage of them, by their level where none is known."""
    if (worst := np.min(least)) < level:  # of effects of policies
        most = f"at least {100 * worst:.0f} % in every world tried"
        return f"interval, {100 * level:g} % nominal, {most}"
    known = np.asarray(coverage, dtype=np.float64)
    known = known[np.isfinite(known)]
    if known.size:
        return f"{100 * min(known.min(), level):.0f} % interval"
    return f"nominal {100 * level:g} % interval"


def interval(
    values: ArrayLike,
    statistic: str | float = "mean",
    level: float = 0.95,
    *,
    method: Literal["betting"] | None = None,
    missing: Literal["raise", "omit"] = "raise",
    bounds: Bounds | None = None,
) -> Interval:
    """Interval of a statistic over whole runs.

    Args:
        values: One number per run, (n,), or columns of them, (n, m). Minus infinity is a run in
            which nothing was ever ok: it has a place among quantiles, but no mean.
        statistic: `mean`, `median`, `share` (of zeros and ones), a number in (0, 1) for
            that quantile.
        level: Nominal coverage, in (0, 1).
        method: None: chosen as the module's docstring describes. `betting`: for a mean of values in
            [0, 1].
        missing: What NaN means. `raise`: an error. `omit`: this run has no value in this column.
            Where runs are missing because they did badly, that flatters the rest.
        bounds: Lowest and highest value that there is, such as (0, 1) of a share of solved
            instances, beyond which no limit lies.

    Returns:
        The interval; floats for (n,), arrays of (m,) for columns.

    Raises:
        ValueError: A setting or shape is not as above, a value is missing or beyond the bounds, or
            a mean was asked of runs where some found nothing.

    Example:
        >>> found = replay.interval([0.2, 0.4, 0.3, 0.5, 0.4, 0.3])
        >>> found.n, round(found.value, 2)
        (6, 0.35)
    """
    array = as_numbers("values", values)
    if array.ndim not in {1, 2}:
        raise ValueError(f"expected values of shape (n,) or (n, m), got {array.shape!r}")
    columns = array[:, None] if array.ndim == 1 else array
    name, find = _finder(statistic, method)
    check_columns(columns, level, missing, ordered=name.endswith(("median", "quantile")))
    if bounds is not None:
        _check_inside(columns[np.isfinite(columns)], bounds)
    value, low, high, coverage = (np.full(columns.shape[1], np.nan) for _ in range(4))
    present, notes = ~np.isnan(columns), []
    patterns, group = np.unique(present.T, axis=0, return_inverse=True)
    for number, rows in enumerate(patterns):
        chosen = np.flatnonzero(group.ravel() == number)
        if not rows.any():
            notes.append("no run has a value")
            continue
        part = columns[np.ix_(rows, chosen)]
        found = find(part, level)
        value[chosen], low[chosen], high[chosen] = found.value, found.low, found.high
        flat = np.all(part == part[0], axis=0) & (name != "share")
        low[chosen[flat]] = high[chosen[flat]] = np.nan
        coverage[chosen] = measured(found.kind, len(part), level)
        notes.append(found.note or (EQUAL if flat.any() else ""))
    coverage[np.isnan(low)] = np.nan
    count = present.sum(axis=0)
    made = {"value": value, "low": low, "high": high, "coverage": coverage, "n": count}
    result = Interval(
        **{key: each[0].item() if array.ndim == 1 else each for key, each in made.items()},
        level=level, statistic=name, note="; ".join(dict.fromkeys(filter(None, notes))),
    )  # fmt: skip
    return result.within(bounds or UNBOUNDED)


def _check_inside(values: FloatArray, bounds: Bounds) -> None:
    """Raises a ValueError if values lie beyond bounds by more than rounding."""
    low, high = values.min(initial=math.inf), values.max(initial=-math.inf)
    slack = 1e-9 * np.abs(values).max(initial=1.0)
    if low < bounds[0] - slack or high > bounds[1] + slack:
        raise ValueError(
            f"expected bounds (lowest, highest) around all values, from {low:g} to {high:g}, "
            f"got {bounds!r}"
        )


class _Found(NamedTuple):
    """Limits of columns, the kind under which their coverage was measured, and why none."""

    value: FloatArray
    low: FloatArray | float
    high: FloatArray | float
    kind: str
    note: str = ""


_Finder = Callable[[FloatArray, float], _Found]


def _finder(statistic: str | float, method: str | None) -> tuple[str, _Finder]:
    """Name of a statistic, and what makes its interval of (n, m) values and level."""
    if method is None and isinstance(statistic, float) and 0 < statistic < 1:
        return f"{statistic:g}-quantile", functools.partial(_quantile, q=statistic)
    if method == "betting" and statistic == "mean":
        return "mean", _betting
    if method is None and isinstance(statistic, str) and statistic in _FINDERS:
        return statistic, _FINDERS[statistic]
    raise ValueError(
        f"expected a statistic among {sorted(_FINDERS)} or a number in (0, 1), betting for the "
        f"mean alone; got {statistic!r} with method {method!r}"
    )


def _mean(values: FloatArray, level: float) -> _Found:
    """Student's t, the half on the longer tail's side stretched: see `stretches`."""
    n, value = len(values), values.mean(axis=0)
    if n < LEAST:
        return _Found(value, np.nan, np.nan, "mean", too_few(n, LEAST))
    (away,), power = scaled(values - value)
    spread = np.sqrt((away**2).sum(axis=0) / (n - 1))
    half = student(level, n - 1) * np.ldexp(spread, power) / np.sqrt(n)
    below, above = stretches(values)
    return _Found(value, value - half * below, value + half * above, "mean")


_SMALL = {5: (4.0, 2.7), 6: (3.0, 2.0), 7: (2.25, 1.7), 8: (2.25, 1.22), 9: (2.25, 1.08)}
"""At fewer than ten runs: weight of the skewness, and factor of both halves."""
_WEIGHTS = {10: 2.25, 15: 1.0, 20: 0.75, 25: 0.55, 30: 0.42, 40: 0.3, 60: 0.2, 100: 0.11}
"""Weight of the skewness from ten runs on; between these it is interpolated."""


def stretches(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Factors, at least 1, of the lower and the upper half of an interval of a mean.

    The half on the side of the longer tail is stretched by the skewness of the values over the
    first axis, (n, columns), times a weight that falls with n; below ten runs both halves are
    stretched by a factor, too. Weights and factors are the least with which the worst of eight
    smooth laws is covered in 95 % of samples (normal, uniform, exponential, lognormal, gamma, Beta,
    Student's t with 3 degrees of freedom, and a mixture of two normal ones).

    The cost: for normal runs the interval is 1.09 times as wide as Student's at n = 25, 1.13 at 20,
    1.19 at 15, 1.44 at 10, 1.6 at 9, 1.8 at 8, 2.5 at 7, 3.2 at 6 and 4.7 at 5.
    """
    n = len(values)
    weight, factor = _SMALL.get(n, (0.0, 1.0))
    if n >= 10:
        weight = float(np.interp(n, [*_WEIGHTS], [*_WEIGHTS.values()])) * min(1.0, 100 / n)
    (away,), _ = scaled(values - values.mean(axis=0))
    spread = np.sqrt((away**2).sum(axis=0) / (n - 1))
    cubes = (away**3).mean(axis=0)
    skewness = weight * cubes / np.where(spread > 0, spread, 1.0) ** 3
    return factor * (1 + np.maximum(-skewness, 0.0)), factor * (1 + np.maximum(skewness, 0.0))


def scaled(*deviations: FloatArray) -> tuple[list[FloatArray], IntArray]:
    """Deviations divided by one power of two, so that their powers neither overflow nor vanish.

    Returns them, at most 1 in size, and the power, one per column.
    """
    most = np.max([np.abs(each).max(axis=0) for each in deviations], axis=0)
    power = np.frexp(most)[1]
    return [np.ldexp(each, -power) for each in deviations], power


def _quantile(values: FloatArray, level: float, *, q: float) -> _Found:
    """The fewest order statistics between two of them that hold the quantile; then the middle."""
    from scipy.special import bdtr

    n = len(values)
    ordered = np.sort(values, axis=0)
    value = np.median(values, axis=0) if q == 0.5 else np.asarray(_value_at(ordered, q))
    below = bdtr(np.arange(n), n, q)  # that so many runs or fewer lie under the quantile
    first, last = np.triu_indices(n, 1)
    held = below[last] - below[first]
    enough = np.flatnonzero(held >= level)
    kind = "median" if q == 0.5 else "quantile"
    if not len(enough):
        least = n + 1
        while 1 - q**least - (1 - q) ** least < level:
            least += 1
        return _Found(value, np.nan, np.nan, kind, too_few(n, least))
    balance = np.abs(below[first] - (1 - below[last]))
    best = enough[np.lexsort((balance[enough], (last - first)[enough]))[0]]
    return _Found(value, ordered[first[best]], ordered[last[best]], kind)


def _share(values: FloatArray, level: float) -> _Found:
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("expected zeros and ones for a share, got other values")
    n, hits = len(values), values.sum(axis=0)
    low, high = clopper_pearson(hits, n, level)
    return _Found(hits / n, low, high, "share")


def clopper_pearson(
    hits: FloatArray, n: FloatArray | int, level: float
) -> tuple[FloatArray, FloatArray]:
    """Returns the limits of shares, each of `hits` out of `n`."""
    from scipy.special import betaincinv

    tail, hits = (1 - level) / 2, np.asarray(hits, dtype=np.float64)
    low = betaincinv(np.maximum(hits, 1e-9), n - hits + 1, tail)
    high = betaincinv(hits + 1, np.maximum(n - hits, 1e-9), 1 - tail)
    return np.where(hits == 0, 0.0, low), np.where(hits == n, 1.0, high)


def _betting(values: FloatArray, level: float) -> _Found:
    """Means against which two hedged bets on values in [0, 1] never win 1 / (1 - level) fold."""
    if values.min() < 0 or values.max() > 1:
        raise ValueError(f"expected values in [0, 1], got {values.min():g} to {values.max():g}")
    n, value = len(values), values.mean(axis=0)
    if n < LEAST:
        return _Found(value, np.nan, np.nan, "betting", too_few(n, LEAST))
    seen = np.arange(2.0, n + 2)[:, None]
    drift = (0.5 + values.cumsum(axis=0)) / seen
    variance = (0.25 + ((values - drift) ** 2).cumsum(axis=0)) / seen
    before = np.vstack([np.full((1, values.shape[1]), 0.25), variance[:-1]])
    stake = np.sqrt(2 * np.log(2 / (1 - level)) / (n * before))[..., None]
    means = np.linspace(0, 1, 1001)[1:-1]
    away = values[..., None] - means
    up = np.log1p(np.minimum(stake, 0.5 / means) * away).cumsum(axis=0).max(axis=0)
    down = np.log1p(-np.minimum(stake, 0.5 / (1 - means)) * away).cumsum(axis=0).max(axis=0)
    held = np.maximum(up, down) < np.log(2 / (1 - level))
    low = np.where(held.any(axis=1), means[held.argmax(axis=1)] - 0.001, value)
    high = np.where(held.any(axis=1), means[-1 - held[:, ::-1].argmax(axis=1)] + 0.001, value)
    return _Found(value, np.minimum(low, value), np.maximum(high, value), "betting")


_FINDERS: dict[str, _Finder] = {
    "mean": _mean,
    "median": functools.partial(_quantile, q=0.5),
    "share": _share,
}


def curve_band(
    matrix: ArrayLike,
    *,
    statistic: str | float = "median",
    level: float = 0.95,
    first: int = 0,
    bounds: Bounds | None = None,
) -> pd.DataFrame:
    """Pointwise interval of curves (runs, columns), see `interval`.

    One row per column, from `first` on: value, low, high, n (the runs that have a value there) and
    coverage (of each point; the band as a whole covers less).
    """
    array = as_numbers("matrix", matrix)
    if array.ndim != 2:
        raise ValueError(f"expected a matrix of shape (runs, columns), got {array.shape!r}")
    found = interval(array, statistic, level, missing="omit", bounds=bounds)
    names = ("value", "low", "high", "n", "coverage")
    return pd.DataFrame(
        {name: getattr(found, name) for name in names},
        index=pd.RangeIndex(first, first + array.shape[1]),
    )


def measured(kind: str, n: int, level: float = 0.95) -> float:
    """Worst coverage measured for a kind of interval at the largest n up to this; NaN if none."""
    sizes = _measurements().get((kind, f"{level:g}"), {})
    known = [size for size in sizes if size <= n]
    return min(sizes[max(known)], level) if known else float("nan")


@functools.cache
def _measurements() -> dict[tuple[str, str], dict[int, float]]:
    """Worst coverage over the distributions, by kind and level and then by n."""
    table: dict[tuple[str, str], dict[int, float]] = {}
    with Path(__file__).with_name("coverage.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            worst = min(float(row[name]) for name in ("normal", "lognormal", "beta"))
            table.setdefault((row["kind"], row["level"]), {})[int(row["n"])] = worst
    return table


def _value_at(ordered: FloatArray, q: float) -> FloatArray:
    """The q-quantile of sorted rows, linear between finite neighbours."""
    at = q * (len(ordered) - 1)
    left, right = ordered[int(at)], ordered[min(int(at) + 1, len(ordered) - 1)]
    with np.errstate(invalid="ignore"):
        between = left + (at - int(at)) * (right - left)
    return np.asarray(np.where(np.isneginf(left), left, between))


def student(level: float, freedom: FloatArray | float) -> FloatArray:
    """Returns Student's quantile: standard errors on either side of the mean."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (1 + level) / 2))


def too_few(n: int, least: int) -> str:
    """Returns why there is no interval."""
    return f"n = {n} is too small for an interval (needs {least})"


def _rare(n: int) -> int:
    """One run in so many or fewer may be absent from n runs."""
    return max(1, round(n / 3))


def rare_jumps(n: int) -> str:
    """What no interval covers that rests on n runs alone."""
    return (
        f"What fewer than one run in {_rare(n)} does may be absent from these runs and "
        "is covered by no interval that rests on them alone."
    )


def check_columns(columns: FloatArray, level: float, missing: str, *, ordered: bool) -> None:
    """Raises a ValueError if values or their level cannot have an interval."""
    check_level(level)
    if missing not in {"raise", "omit"}:
        raise ValueError(f"expected missing='raise' or 'omit', got {missing!r}")
    if not len(columns):
        raise ValueError("expected at least one run, got none")
    check_sizes(columns)
    if np.isneginf(columns).any() and not ordered:
        raise ValueError(NOTHING)
    if missing == "raise" and np.isnan(columns).any():
        lost = int(np.isnan(columns).any(axis=1).sum())
        reason = "runs have NaN, that is no value; drop them or pass missing='omit'"
        raise ValueError(f"{lost} of {len(columns)} {reason}")
