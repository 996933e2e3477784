"""Thresholds, pool and allocation effects: what replays of a policy say of runs.

What is estimated. A replicate of `replay.simulate(..., arms=K)` draws K of the n logged runs as
its arms and plays the policy over them; the mean over replicates estimates the expected result of
this policy on K runs drawn anew. The interval is over the n runs: see `pool_interval`. Effects are
means of paired differences: both replays drew the same arms. Pools are drawn without replacement,
since repeated runs within a pool bias the best of K low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from replay.logs.frames import distinct_runs, fitness_matrix, independent_runs, one_family
from replay.logs.given import check_loaded, check_result
from replay.simulation.shortfall import held_by
from replay.simulation.simulate import Replay
from replay.simulation.sizes import lack_of_runs, needed_runs, pool_kind
from replay.simulation.together import Scaled, effects_together
from replay.simulation.widths import widths
from replay.statistics.intervals import (
    EQUAL,
    LEAST,
    NOTHING,
    UNBOUNDED,
    Bounds,
    FloatArray,
    Interval,
    interval,
    measured,
    stretches,
    student,
    too_few,
)
from replay.statistics.jackknife import Jackknife, jackknife
from replay.statistics.levels import check_level
from replay.statistics.numbers import as_numbers, brackets
from replay.statistics.resampling import weights

PoolKind = Literal["pool", "effect"]

Replays = Replay | Sequence[Replay]
"""A replay, or one for each of several tasks."""


def pool_errors(found: Jackknife, kind: PoolKind) -> tuple[FloatArray, FloatArray]:
    """Standard errors of the mean over pools, below and above it.

    They hold the variance over runs and the Monte Carlo error of a finite number of replicates.
    For what one policy reaches, as for a mean of runs, the error on the side of the longer tail of
    the runs' influence is stretched; for an effect both are the same.
    """
    error = np.sqrt(np.maximum(found.variance, 0.0) + found.noise)
    below, above = stretches(found.influence) if kind == "pool" else (1.0, 1.0)
    return error * below, error * above


_LONG_TAIL = 1.25
"""By how much the logarithm of a shortfall's limit is stretched; see `_lower_of_shortfall`.

The least of 1, 1.25 and 1.5 with which intervals of pools of 20 and 40 runs hold in 95 % of worlds
in which a third of the runs get stuck. With 10 runs none does: one sample in ten has at most one
stuck run, and says nothing of pools of them. See tests/benchmarks/effect_coverage.py.
"""


def _lower_of_shortfall(columns: FloatArray, reach: FloatArray) -> FloatArray:
    """Lower limit of a mean over pools whose shortfall has a relative error.

    How far a policy falls short of the best that any pool reached is nearly a power of the share
    of runs that do badly: a pool fails where all of its runs do. Of such a number, which cannot be
    negative, the logarithm has the symmetric interval. No limit lies below the worst pool.
    """
    best, worst = columns.max(axis=0), columns.min(axis=0)
    short = best - columns.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = np.exp(np.minimum(_LONG_TAIL * reach / short, 700.0))
        return np.asarray(np.maximum(best - short * factor, worst))


def pool_interval(
    values: ArrayLike,
    arms: ArrayLike,
    *,
    level: float = 0.95,
    name: str = "mean",
    kind: PoolKind = "pool",
    bounds: Bounds = UNBOUNDED,
) -> Interval:
    """Interval over runs of the mean of replicates that drew K of n runs as their arms.

    The variance over runs is that of the infinitesimal jackknife (`replay.statistics.jackknife`),
    which averages out the policy's own randomness; Student's t has n - 1 degrees of freedom. For
    an effect, the half-width is multiplied by that of `widths`: its tails are longer than t's. The
    lower limit of what a policy reaches leaves room for pools in which all runs are stuck, which
    the runs that there are may show too seldom.

    Args:
        values: One number per replicate, (replicates,), or columns of them, (replicates, m).
        arms: Which runs each replicate drew without replacement, (replicates, K).
        level: Nominal coverage.
        name: What to call the statistic.
        kind: `pool` for what one policy reaches, `effect` for a difference between two policies on
            the same pools: see `pool_errors` and `widths`.
        bounds: Lowest and highest value that there is, such as (0, 1) where the best fitness of a
            task lies, which the limits keep to.

    Returns:
        The interval; `n` counts runs. There is none below five runs, where each replicate drew all
        runs, and where arms were drawn with replacement; of an effect, none below twice as many
        runs as arms, for which no width was measured.

    Example:
        >>> arms = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]])
        >>> replay.pool_interval(fitness[:, -1], arms).n
        6
    """
    check_level(level)
    array = as_numbers("values", values)
    columns, chosen = array.reshape(len(array), -1), np.asarray(arms)
    if chosen.ndim != 2 or len(chosen) != len(columns):
        raise ValueError(
            f"expected arms of shape ({len(columns)}, K), one row per replicate, "
            f"got {chosen.shape!r}"
        )
    known, index = np.unique(chosen, return_inverse=True)
    n, K = len(known), chosen.shape[1]
    ordered = np.sort(chosen, axis=1)
    mean, low, high = columns.mean(axis=0), *np.full((2, columns.shape[1]), np.nan)
    if np.isnan(mean).all():
        note = NOTHING
    elif n < LEAST:
        note = too_few(n, LEAST)
    elif n <= K:
        note = f"every replicate drew all {n} runs: nothing shows what other runs would have done"
    elif (ordered[:, 1:] == ordered[:, :-1]).any():
        note = "arms were drawn with replacement; draw them without it (replace=False)"
    elif kind == "effect" and n < needed_runs(K):
        note = lack_of_runs(n, K)
    else:
        below, above = pool_errors(jackknife(columns, index.reshape(chosen.shape), n), kind)
        factor, flat = student(level, n - 1), below + above <= 1e-12 * (1 + np.abs(mean))
        if kind == "effect":
            factor = factor * widths(n, K).usual
        lowest, highest = mean - factor * below, mean + factor * above
        if kind == "pool" and K > 1:
            lowest = np.fmin(lowest, _lower_of_shortfall(columns, factor * below))
        low, high = (np.where(flat, np.nan, each) for each in (lowest, highest))
        note = EQUAL if flat.any() else NOTHING if np.isnan(mean).any() else ""
    held = level if kind == "effect" else measured(pool_kind(kind, n, K), n, level)
    coverage = np.where(np.isnan(low), np.nan, held)
    found = {"value": mean, "low": low, "high": high, "coverage": coverage}
    single = array.ndim == 1
    return Interval(
        **{key: float(each[0]) if single else each for key, each in found.items()},
        n=n if single else np.full(len(mean), n), level=level, statistic=name, note=note,
        least=widths(n, K).least if kind == "effect" and not note else np.nan,
    ).within(bounds)  # fmt: skip


def effect(
    baseline: Replays, treatment: Replays, *, level: float = 0.95, name: str = "mean difference"
) -> Interval:
    """Returns the difference in final best fitness between two policies, paired by replicate.

    Both replays must rest on the same draws of arms: the same seed, arms, rounds and replicates.

    Args:
        baseline: Replay of the baseline, or a list of one per task.
        treatment: Replay of the policy to compare with it, or a list likewise.
        level: Nominal level of the interval.
        name: What the interval is called.

    Returns:
        The mean of `treatment` minus `baseline` in final best fitness, with its interval over runs.
        Of lists the mean over these tasks, in standard deviations of what the baseline reaches on
        each; what it says of further tasks, `replay.judge` states.

    Raises:
        ValueError: The two replays drew different arms; lists of different lengths; a task without
            an interval.
    """
    check_level(level)
    if not isinstance(baseline, Sequence) and not isinstance(treatment, Sequence):
        return _on_one_task(baseline, treatment, level, name)
    if not (isinstance(baseline, Sequence) and isinstance(treatment, Sequence)):
        raise ValueError("expected a replay of both policies, or a list of replays of both")
    if len(baseline) != len(treatment) or not baseline:
        raise ValueError(
            "expected a replay of both policies for each task, "
            f"got {len(baseline)} and {len(treatment)}"
        )
    parts = [
        Scaled(_on_one_task(before, after, level, name), spread_of(before), before.arms.shape[1])
        for before, after in zip(baseline, treatment, strict=True)
    ]
    return effects_together(parts, level=level, name=name).interval


def spread_of(replay: Replay) -> float:
    """Standard deviation over replicates of the final best fitness."""
    return float(np.std(np.asarray(replay.best_fitness)[:, -1]))


def _on_one_task(baseline: Replay, treatment: Replay, level: float, name: str) -> Interval:
    for side in (baseline, treatment):
        check_result(name, side, "Replay", "replay.simulate")
    before, after = (np.asarray(side.best_fitness)[:, -1] for side in (baseline, treatment))
    if before.shape != after.shape or not np.array_equal(baseline.arms, treatment.arms):
        raise ValueError(
            "the two replays drew different arms, so they are not paired; simulate both with the "
            "same seed, arms, rounds and replicates"
        )
    return pool_interval(after - before, treatment.arms, level=level, name=name, kind="effect")


def pool_effect(single: Replays, random: Replays, *, level: float = 0.95) -> Interval:
    """Returns what starting K runs and keeping the best is worth, compared with one run.

    Both replays must rest on the same draws of arms: the same seed, arms, rounds and replicates.

    Args:
        single: Replay of the policy `single`, or a list of one per task.
        random: Replay of the policy `random`, or a list of one per task.
        level: Nominal level of the interval.

    Returns:
        The mean of `random` minus `single` in final best fitness, with its interval over runs;
        of lists, in standard deviations, as in `effect`.

    Raises:
        ValueError: The two replays drew different arms.

    Example:
        >>> settings = {"rounds": 4, "arms": 2, "replicates": 100}
        >>> single = replay.simulate(fitness, "single", **settings)
        >>> random = replay.simulate(fitness, "random", **settings)
        >>> gain = replay.pool_effect(single, random)
        >>> gain.n
        6
    """
    return effect(single, random, level=level, name="pool effect")


def policy_effect(single: Replays, policy: Replays, *, level: float = 0.95) -> Interval:
    """Returns what using a policy is worth, compared with one run that gets the whole budget.

    It is the sum of the pool effect and the allocation effect. Both replays must rest on the same
    draws of arms: the same seed, arms, rounds and replicates.

    Args:
        single: Replay of the policy `single`, or a list of one per task.
        policy: Replay of the policy in question, or a list likewise.
        level: Nominal level of the interval.

    Returns:
        The mean of `policy` minus `single` in final best fitness, with its interval over runs;
        of lists, in standard deviations, as in `effect`.

    Raises:
        ValueError: The two replays drew different arms.

    Example:
        >>> settings = {"rounds": 4, "arms": 2, "replicates": 100}
        >>> single = replay.simulate(fitness, "single", **settings)
        >>> policy = replay.simulate(fitness, "ucb1", **settings)
        >>> gain = replay.policy_effect(single, policy)
        >>> gain.n
        6
    """
    return effect(single, policy, level=level, name="policy effect")


def allocation_effect(random: Replays, policy: Replays, *, level: float = 0.95) -> Interval:
    """Returns what choosing among K runs is worth, compared with random pulls.

    Both replays must rest on the same draws of arms: the same seed, arms, rounds and replicates.

    Args:
        random: Replay of the policy `random`, or a list of one per task.
        policy: Replay of the policy in question, or a list likewise.
        level: Nominal level of the interval.

    Returns:
        The mean of `policy` minus `random` in final best fitness, with its interval over runs;
        of lists, in standard deviations, as in `effect`.

    Raises:
        ValueError: The two replays drew different arms.

    Example:
        >>> settings = {"rounds": 4, "arms": 2, "replicates": 100}
        >>> random = replay.simulate(fitness, "random", **settings)
        >>> policy = replay.simulate(fitness, "ucb1", **settings)
        >>> gain = replay.allocation_effect(random, policy)
        >>> gain.n
        6
    """
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
        held: Of rule `bootstrap` over runs: how often the time, an upper limit of that of the mean
            run, was enough in the worst world that was tried; NaN: not measured.
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
    held: float = math.nan

    @property
    def caveat(self) -> str:
        """By how much the time falls short of the share that it is called by; else empty."""
        if not self.held < self.share:
            return ""
        return (
            f"an upper limit of the mean run's time in {100 * self.held:.0f} % of samples of "
            f"{self.n} runs in the worst world tried, not in {100 * self.share:g} %"
        )

    def __str__(self) -> str:
        """Render as `fitness 0.9 after 12 [9, 15] (share 0.9 of ..., n = 10)`."""
        rest = f", n = {self.n}" + (f"; {self.caveat}" if self.caveat else "")
        when = "never" if math.isinf(self.time) else f"after {self.time:g}"
        return (
            f"fitness {self.tau:g} {when} {brackets(self.low, self.high, '{:g}'.format)} "
            f"({self.rule} {self.share:g}, {self.share_reached:.2g} reached it{rest})"
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
      does; so this is meant as an upper confidence limit of the time that the mean run takes. Of
      few runs it holds less often than `share` says: see `ThresholdTime.caveat`. Of a replay, each
      replicate is a sample: it drew its arms from the runs.
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

    Example:
        >>> replay.time_to_threshold(fitness, 0.5).time
        4.0
    """
    check_loaded("time_to_threshold", best_fitness, "replay.load", numbers=True)
    if not 0 < share <= 1:
        raise ValueError(f"expected a share above 0 and up to 1, got {share!r}")
    if rule not in {"bootstrap", "share"}:
        raise ValueError(f"expected rule 'bootstrap' or 'share', got {rule!r}")
    if hasattr(best_fitness, "arms"):
        return pool_times(best_fitness, tau, (share,), rule=rule)[0]
    curves = _carried(best_fitness)
    n, reached, note, coverage = len(curves), curves >= tau, "", math.nan
    shares = reached.mean(axis=0)
    if rule == "bootstrap":
        drawn = weights(n, resamples, np.random.default_rng([seed, n]))
        known = np.isfinite(curves)
        means = drawn @ np.where(known, curves, 0.0)
        shares = ((drawn @ ~known == 0) & (means >= tau - 1e-12 * abs(tau))).mean(axis=0)
        low, high, coverage, note = _crossing_limits(curves, tau)
    elif share == 1:
        low, high, note = np.nan, np.nan, "all runs are no quantile of the runs to come"
    else:  # a run that never does is last
        early = interval([-_crossing(curve, tau) for curve in curves], 1 - share)
        low, high, coverage, note = -early.high, -early.low, early.coverage, early.note
    return ThresholdTime(
        tau=tau, time=_crossing(shares, share), low=low, high=high, share=share,
        share_reached=float(shares[-1]), rule=rule, n=n, note=note, coverage=coverage,
        held=held_by(n, share) if rule == "bootstrap" else math.nan,
    )  # fmt: skip


def pool_times(
    played: Any, tau: float, shares: Sequence[float], *, rule: str = "bootstrap"
) -> list[ThresholdTime]:
    """`time_to_threshold` of a replay, for several shares of its replicates."""
    reached = _carried(played) >= tau
    reach = reached.mean(axis=0)
    band = pool_interval(reached.astype(np.float64), played.arms)
    n, coverage = int(band.n[0]), float(np.fmin.reduce(band.coverage))
    known = not np.isnan(band.low).all()

    def when(limit: FloatArray, share: float) -> float:
        return 1 + _crossing(limit, share) if known else math.nan

    return [
        ThresholdTime(
            tau=tau, time=1 + _crossing(reach, share), low=when(band.high, share),
            high=when(band.low, share), share=share, share_reached=float(reach[-1]), rule=rule,
            n=n, note="" if known else band.note, coverage=coverage,
        )
        for share in shares
    ]  # fmt: skip


def _carried(source: object) -> FloatArray:
    """Running best, (rows, columns), of a replay, a frame or an array; -inf without a value."""
    if isinstance(source, pd.DataFrame):
        source = independent_runs(distinct_runs(source))
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
