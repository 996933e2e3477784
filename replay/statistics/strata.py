"""Two groups of runs on several tasks: these tasks together, further tasks, and a summary.

Values are in standard deviations within tasks, so that tasks of any scale count alike.

- These tasks: the mean of the tasks' differences. Runs are exchanged within tasks, pairs stay
  together, and p is the larger of that and of Welch's t with Satterthwaite's degrees of freedom
  over all tasks (as for one task, `replay.statistics.groups`). The interval is of the effects that
  are not rejected.
- Further tasks: the tasks' differences vary about a mean (random effects). The mean has an interval
  by Hartung and Knapp, Student's t with one degree of freedom less than there are tasks, and each
  task's difference is drawn towards it by as much as its own error asks for (partial pooling).
- Summary (Agarwal 2021): the interquartile mean of normalised values over all runs and tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from replay.statistics.exchange import Exchanges, Inverted
from replay.statistics.groups import LEAST_PAIRS, Groups, freedom_of, less_clear
from replay.statistics.intervals import LEAST, FloatArray, student

DRAWN = 4000
"""Exchanges of several tasks together."""
LEAST_TASKS = 3
"""Tasks below which nothing is said of further ones."""


@dataclass(frozen=True)
class Stratum:
    """The runs of one task on both sides, those of pairs first.

    Attributes:
        left: One value per run, at least 2 runs.
        right: The same of the other side.
        pairs: Run i of both sides belongs together for i < pairs.
    """

    left: FloatArray
    right: FloatArray
    pairs: int = 0

    @property
    def scale(self) -> float:
        """The standard deviation of all runs of both sides, which no exchange of runs alters.

        Within the sides it would depend on the labels that are exchanged: at 5 runs a side and a
        stated 5 %, a difference that is none was then called in 14 % of samples.
        """
        return float(np.std(np.concatenate([self.left, self.right]), ddof=1))

    def over(self, scale: float) -> Stratum:
        """The same in units of a scale."""
        return Stratum(self.left / scale, self.right / scale, self.pairs)


def needed_for(strata: Sequence[Stratum]) -> int:
    """Runs a side, of all tasks together, that an interval needs; more where all are pairs."""
    return LEAST_PAIRS if all_paired(strata) else LEAST


def all_paired(strata: Sequence[Stratum]) -> bool:
    """Whether every run has its partner."""
    return all(0 < each.pairs == len(each.left) == len(each.right) for each in strata)


class Stratified(Inverted):
    """The mean difference over tasks under exchanges within each."""

    def __init__(self, strata: Sequence[Stratum], seed: int) -> None:
        self._strata = strata
        self._tasks = [
            Exchanges(each.left, each.right, pairs=each.pairs, seed=seed) for each in strata
        ]
        self.value = float(np.mean([each.value for each in self._tasks]))
        self._scale = max(each.scale for each in self._tasks)
        rng = np.random.default_rng([seed, len(strata)])
        self._rows = []
        for each in self._tasks:
            count = len(each.statistic(0.0))
            # One task has all its exchanges, so that its p is that of the two groups alone.
            rows = rng.integers(0, count, DRAWN) if len(strata) > 1 else np.arange(count)
            rows[0] = 0  # the first exchange of each task moves no run
            self._rows.append(rows)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the mean difference (Satterthwaite); 1 where nothing varies."""
        squares = [each.error**2 for each in self._tasks]
        freedoms = [freedom_of(each.left, each.right, each.pairs) for each in self._strata]
        shares = sum(v**2 / f for v, f in zip(squares, freedoms, strict=True) if v)
        return sum(squares) ** 2 / shares if shares else 1.0

    def statistic(self, effect: float) -> FloatArray:
        """Studentised mean difference under each exchange, (exchanges,)."""
        total, variance = np.zeros(len(self._rows[0])), np.zeros(len(self._rows[0]))
        for each, rows in zip(self._tasks, self._rows, strict=True):
            difference, squared = each.parts(effect)
            total += difference[rows]
            variance += squared[rows]
        return total / np.sqrt(variance)


def compare_strata(
    strata: Sequence[Stratum], *, level: float = 0.95, margin: float = 0.0, seed: int = 0
) -> Groups:
    """Compares two sides on these tasks, whose values are in units of `Stratum.scale`."""
    test = Stratified(strata, seed)
    return less_clear(test, test.freedom, level, margin, by_t=not all_paired(strata))


class Further(NamedTuple):
    """What the tasks say of further ones: the mean of random effects.

    Attributes:
        value: Mean effect over tasks.
        low: Lower limit; NaN below three tasks, and `high` and `p` likewise.
        high: Upper limit.
        p: Two-sided p.
        spread: Standard deviation of the true effects between tasks.
        pooled: Each task's effect, drawn towards the mean, (tasks,).
    """

    value: float
    low: float
    high: float
    p: float
    spread: float
    pooled: FloatArray


def further_tasks(values: FloatArray, errors: FloatArray, level: float = 0.95) -> Further:
    """Random effects over tasks, from their effects and standard errors, (tasks,) each.

    The variance between tasks is DerSimonian and Laird's, the interval Hartung and Knapp's with a
    factor of at least 1.
    """
    from scipy.special import stdtr

    tasks = len(values)
    fixed = 1 / errors**2
    centre = float((fixed * values).sum() / fixed.sum())
    q = float((fixed * (values - centre) ** 2).sum())
    weight = float(fixed.sum() - (fixed**2).sum() / fixed.sum())
    between = max(0.0, (q - (tasks - 1)) / weight) if weight > 0 else 0.0
    weights = 1 / (errors**2 + between)
    mean = float((weights * values).sum() / weights.sum())
    pooled = mean + between / (between + errors**2) * (values - mean)
    if tasks < LEAST_TASKS:
        return Further(mean, math.nan, math.nan, math.nan, math.sqrt(between), pooled)
    factor = max(1.0, float((weights * (values - mean) ** 2).sum()) / (tasks - 1))
    error = math.sqrt(factor / float(weights.sum()))
    half = float(student(level, tasks - 1)) * error
    p = 2 * float(stdtr(tasks - 1, -abs(mean) / error))
    return Further(mean, mean - half, mean + half, p, math.sqrt(between), pooled)


def interquartile_mean(values: FloatArray) -> FloatArray:
    """Mean of the middle half of the values along the last axis, without a quarter on each side.

    Where a quarter is no whole number, the outermost values that stay count in part.
    """
    n = values.shape[-1]
    edges = np.arange(n + 1) / n
    weights = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return np.asarray((np.sort(values) * weights).sum(axis=-1) / weights.sum())


def stratified(
    tasks: Sequence[FloatArray], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float, float]:
    """The interquartile mean over all runs and tasks, with an interval by the stratified bootstrap.

    Runs are resampled within tasks. The bootstrap's standard deviation is corrected for the size of
    the tasks, and Student's t has the degrees of freedom of all of them together, since percentiles
    of few runs a task are too narrow.

    Args:
        tasks: Normalised values of the runs of each task.
        level: Nominal coverage.
        resamples: Bootstrap samples.
        seed: Key of the draws.

    Returns:
        The value and its limits; these are NaN where a task has a single run, or all tasks together
        have fewer than four runs more than there are tasks.
    """
    value = float(interquartile_mean(np.concatenate(tasks)))
    freedom = sum(len(each) - 1 for each in tasks)
    if min(map(len, tasks)) < 2 or freedom < 4:
        return value, math.nan, math.nan
    rng = np.random.default_rng([seed, len(tasks)])
    drawn = []
    for each in tasks:
        centre, grow = each.mean(), math.sqrt(len(each) / (len(each) - 1))
        rows = rng.integers(0, len(each), (resamples, len(each)))
        drawn.append(centre + grow * (each[rows] - centre))
    spread = float(interquartile_mean(np.concatenate(drawn, axis=1)).std())
    half = float(student(level, freedom)) * spread
    return value, value - half, value + half
