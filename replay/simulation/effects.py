"""Thresholds, pool and allocation effects: what replays of a policy say of runs.

What is estimated. A replicate of `replay.simulate(..., arms=K)` draws K of the n logged runs as
its arms and plays the policy over them; the mean over replicates estimates the expected result of
this policy on K runs drawn anew. The uncertainty is that of the n runs alone, and two replicates
without a common run are independent draws of it: see `pool_interval`. Effects are means of paired
differences: both replays drew the same arms. Pools should be drawn without replacement, since
repeated runs within a pool bias the best of K low.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from replay.logs.frames import distinct_runs, fitness_matrix, independent_runs, one_family
from replay.simulation.simulate import Replay
from replay.statistics.intervals import (
    EQUAL,
    LEAST,
    NOTHING,
    FloatArray,
    IntArray,
    Interval,
    interval,
    measured,
    student,
    too_few,
)

_MOST_POOLS = 2_000
"""Replay that the variance over pools is taken from; memory grows with their square."""


def pool_interval(
    values: ArrayLike, arms: ArrayLike, *, level: float = 0.95, name: str = "mean"
) -> Interval:
    """Interval over runs of the mean of replicates that drew K of n runs as their arms.

    Replay without a common run are independent, so half their mean squared difference is the
    variance of one pool; the n runs are worth n / K of them, and Student's t has n / K - 1 degrees
    of freedom.

    Args:
        values: One number per replicate, (replicates,), or columns of them, (replicates, m).
        arms: Which runs each replicate drew, (replicates, K).
        level: Nominal coverage.
        name: What to call the statistic.

    Returns:
        The interval; `n` counts runs. There is none below five pools, that is where n < 5 K.
    """
    array = np.asarray(values, dtype=np.float64)
    columns, chosen = array.reshape(len(array), -1), np.asarray(arms)
    if chosen.ndim != 2 or len(chosen) != len(columns):
        raise ValueError(
            f"expected arms of shape ({len(columns)}, K), one row per replicate, "
            f"got {chosen.shape!r}"
        )
    n, K = len(np.unique(chosen)), chosen.shape[1]
    mean = columns.mean(axis=0)
    if n < LEAST * K:
        half = np.full_like(mean, np.nan)
        note = f"too few pools: {n} runs make {n / K:.2g} of K = {K}, an interval needs {LEAST}"
    else:
        variance = _pool_variance(columns, chosen) * (K / n)
        half = student(level, n / K - 1) * np.sqrt(variance)
        flat = variance <= 1e-24 * (1 + mean**2)
        half[flat], note = np.nan, EQUAL if flat.any() else NOTHING if np.isnan(mean).any() else ""
    coverage = np.where(np.isnan(half), np.nan, measured("pool", int(n / K + 1e-9), level))
    found = {"value": mean, "low": mean - half, "high": mean + half, "coverage": coverage}
    single = array.ndim == 1
    return Interval(
        **{key: float(each[0]) if single else each for key, each in found.items()},
        n=n if single else np.full(len(mean), n), level=level, statistic=name, note=note,
    )  # fmt: skip


def _pool_variance(columns: FloatArray, arms: IntArray) -> FloatArray:
    """Variance of one replicate over pools without a common run; NaN where no two are."""
    columns, arms = columns[:_MOST_POOLS], arms[:_MOST_POOLS]
    _, place = np.unique(arms, return_inverse=True)
    drawn = np.zeros((len(arms), int(place.max()) + 1))
    drawn[np.arange(len(arms))[:, None], place.reshape(arms.shape)] = 1.0
    pools, group, counts = np.unique(drawn, axis=0, return_inverse=True, return_counts=True)
    apart = (pools @ pools.T == 0).astype(np.float64)
    if not apart.any():
        return np.full(columns.shape[1], np.nan)
    centred, group = columns - columns.mean(axis=0), group.ravel()
    first = np.cumsum(counts) - counts
    sums = np.add.reduceat(centred[np.argsort(group, kind="stable")], first, axis=0)
    others = apart @ counts  # replicates apart from those of each pool
    squares = others[group] @ centred**2 - (sums * (apart @ sums)).sum(axis=0)
    return np.asarray(np.maximum(squares, 0.0) / (counts @ others))


def effect(
    baseline: Replay, treatment: Replay, *, level: float = 0.95, name: str = "mean difference"
) -> Interval:
    """Mean difference in final best fitness, `treatment` less `baseline`, interval over runs.

    Both are replays of the same draws of arms: same seed, arms, rounds and replicates.
    """
    before, after = (np.asarray(side.best_fitness)[:, -1] for side in (baseline, treatment))
    if before.shape != after.shape or not np.array_equal(baseline.arms, treatment.arms):
        raise ValueError(
            "the two replays drew different arms, so they are not paired; simulate both with the "
            "same seed, arms, rounds and replicates"
        )
    return pool_interval(after - before, treatment.arms, level=level, name=name)


def pool_effect(single: Replay, random: Replay, *, level: float = 0.95) -> Interval:
    """What having K runs and keeping the best is worth: `random` less `single`, see `effect`."""
    return effect(single, random, level=level, name="pool effect")


def allocation_effect(random: Replay, policy: Replay, *, level: float = 0.95) -> Interval:
    """What choosing among the K runs is worth beyond that: `policy` less `random`, see `effect`."""
    return effect(random, policy, level=level, name="allocation effect")


@dataclass(frozen=True, kw_only=True)
class ThresholdTime:
    """When runs, or replicates of a replay, reach a fitness.

    Attributes:
        tau: The fitness.
        time: First generation (or number of pulls) that satisfies the rule; infinite if none does.
        low: Lower limit of its interval; may be infinite; NaN where there is none.
        high: Upper limit, likewise.
        share: The share that the rule asks for.
        share_reached: The share attained at the end: what there is to say when `time` is infinite.
        rule: `bootstrap` or `share`, see `time_to_threshold`.
        n: Number of runs that it rests on.
        note: Why there is no interval.
        coverage: Worst coverage measured for the interval that it is read off; NaN: none was.
    """

    tau: float
    time: float
    low: float
    high: float
    share: float
    share_reached: float
    rule: str
    n: int
    note: str = ""
    coverage: float = math.nan

    def __str__(self) -> str:
        """Render as `fitness 0.9 after 12 [9, 15] (share 0.9 of ..., n = 10)`."""
        when = "never" if math.isinf(self.time) else f"after {self.time:g}"
        return (
            f"fitness {self.tau:g} {when} [{self.low:g}, {self.high:g}] "
            f"({self.rule} {self.share:g}, {self.share_reached:.2g} reached it, n = {self.n})"
        )


def time_to_threshold(
    best_fitness: Replay | ArrayLike | pd.DataFrame,
    tau: float,
    *,
    share: float = 0.9,
    rule: Literal["bootstrap", "share"] = "bootstrap",
    resamples: int = 1000,
    seed: int = 0,
) -> ThresholdTime:
    """First generation, or number of pulls, by which fitness `tau` is reached.

    Two rules:

    - `bootstrap`, the paper's: the first at which `share` of the bootstrap samples reach `tau`. For
      runs, a sample is n runs drawn with replacement, which reaches `tau` when its mean
      does; so this is an upper confidence limit of the time that the mean run takes. Of a replay,
      each replicate is a sample: it drew its arms from the runs.
    - `share`, a plain quantile: the first at which `share` of the runs (or replicates) themselves
      have reached `tau`. 0.5 gives the median time.

    Args:
        best_fitness: A replay; or best fitness so far, (runs, columns), NaN while nothing is ok
            and after a run's end, where its best is carried on; or a frame of `replay.load`.
        tau: The fitness to reach.
        share: Share of samples or runs, in (0, 1].
        rule: See above.
        resamples: Number of bootstrap samples.
        seed: Key of the generator.

    Returns:
        The time, pulls counted from 1, with its interval over runs. Of rule `bootstrap`: the times
        at which the limits of the mean's interval reach `tau`; of `share`, order statistics; for a
        replay, the times at which the limits of the share do.
    """
    if not 0 < share <= 1:
        raise ValueError(f"expected a share above 0 and up to 1, got {share!r}")
    if rule not in {"bootstrap", "share"}:
        raise ValueError(f"expected rule 'bootstrap' or 'share', got {rule!r}")
    arms = getattr(best_fitness, "arms", None)
    curves = _carried(best_fitness)
    n, reached, note, coverage = len(curves), curves >= tau, "", math.nan
    shares = reached.mean(axis=0)
    if arms is not None:
        band = pool_interval(reached.astype(np.float64), arms)
        low, high, n = _crossing(band.high, share), _crossing(band.low, share), int(band.n[0])
        coverage = float(np.fmin.reduce(band.coverage))
        if np.isnan(band.low).all():
            low, high, note = np.nan, np.nan, band.note
    elif rule == "bootstrap":
        drawn = np.random.default_rng([seed, n]).multinomial(n, np.full(n, 1 / n), resamples)
        known = np.isfinite(curves)
        means = drawn / n @ np.where(known, curves, 0.0)
        shares = ((drawn @ ~known == 0) & (means >= tau - 1e-12 * abs(tau))).mean(axis=0)
        low, high, coverage, note = _crossing_limits(curves, tau)
    elif share == 1:
        low, high, note = np.nan, np.nan, "all runs are no quantile of the runs to come"
    else:  # a run that never does is last
        early = interval([-_crossing(curve, tau) for curve in curves], 1 - share)
        low, high, coverage, note = -early.high, -early.low, early.coverage, early.note
    start = int(arms is not None)
    return ThresholdTime(
        tau=tau, time=start + _crossing(shares, share), low=start + low, high=start + high,
        share=share, share_reached=float(shares[-1]), rule=rule, n=n, note=note,
        coverage=coverage,
    )  # fmt: skip


def _carried(source: Any) -> FloatArray:
    """Running best, (rows, columns), of a replay, a frame or an array; -inf without a value."""
    if "best_fitness" in getattr(source, "columns", ()):
        source = distinct_runs(independent_runs(source, stacklevel=4))
        one_family(source, "thresholds are taken")
        source = fitness_matrix(source)
    curves = np.asarray(getattr(source, "best_fitness", source), dtype=np.float64)
    if curves.ndim != 2 or not curves.size:
        raise ValueError(f"expected curves of shape (runs, columns), got {curves.shape!r}")
    carried = np.fmax.accumulate(curves, axis=1)
    return np.where(np.isnan(carried), -np.inf, carried)


def _crossing(curve: FloatArray, level: float) -> float:
    """Index of the first value that reaches `level`, up to rounding; infinite if none does."""
    reached = np.flatnonzero(curve >= level - 1e-12)
    return float(reached[0]) if len(reached) else math.inf


def _crossing_limits(curves: FloatArray, tau: float) -> tuple[float, float, float, str]:
    """When the upper and the lower limit of the mean over runs reach `tau`, and how they hold."""
    if len(curves) < LEAST:
        return np.nan, np.nan, np.nan, too_few(len(curves), LEAST)
    coverage = math.nan
    low, high = (np.full(curves.shape[1], -np.inf) for _ in range(2))
    known = np.isfinite(curves).all(axis=0)
    if known.any():
        found = interval(curves[:, known])
        low[known] = np.where(np.isnan(found.low), found.value, found.low)
        high[known] = np.where(np.isnan(found.high), found.value, found.high)
        coverage = float(np.fmin.reduce(found.coverage))
    return _crossing(high, tau), _crossing(low, tau), coverage, ""
