"""Which way to spend is ahead of another by more than luck accounts for.

A plan departs from T = N for such a lead, and for nothing less. What this is worth is measured in
`tests/benchmarks/planner_worlds.py`, where the truth is known, and on runs that were left out in
`tests/benchmarks/planner_backtest.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from replay.planning.grid import FloatArray

CHANCE = 0.05
"""Probability that some split departs from T = N by luck alone."""


def choose_split(by_world: FloatArray, rounds: Mapping[int, int], runs: int) -> int:
    """N of T = N, or of a split that leads it by more than its margin.

    `by_world`, (worlds, splits), is the mean fitness of each split of `rounds`, generations by N.
    No split leads the one that is returned by more than its margin.
    """
    return list(rounds)[follow(by_world, nearest_square(rounds), runs)]


def follow(by_world: FloatArray, base: int, runs: int) -> int:
    """The `base`-th way, or one that leads it clearly and is itself led clearly by none.

    `by_world`, (worlds, ways), is the mean fitness of each way to spend.
    """
    while True:
        ahead, margin = lead_and_margin(by_world, base, runs)
        clear = np.where(ahead > margin, ahead, 0.0)
        if not clear.any():
            return base
        base = int(clear.argmax())


def nearest_square(rounds: Mapping[int, int]) -> int:
    """Which of the splits is nearest to T = N in log, the deeper of two.

    Where generations cost something, several N may have the same T: the largest of them counts.
    """
    broadest = {T: N for N, T in rounds.items()}
    distance = [
        abs(np.log(T / N)) + 1e-9 * N if broadest[T] == N else np.inf for N, T in rounds.items()
    ]
    return int(np.argmin(distance))


def middle_of(initial: float) -> Callable[..., FloatArray]:
    """The mean of outcomes; their median where the initial program has no fitness, as some have."""
    return np.median if np.isnan(initial) else np.mean


def lead_and_spread(by_world: FloatArray, base: int) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation over worlds of how far each split is ahead of the `base`-th, (splits,)."""
    with np.errstate(invalid="ignore"):  # where medians are minus infinity
        difference = by_world - by_world[:, [base]]
        difference = np.where(np.isnan(difference), 0.0, difference)
        ahead = difference.mean(axis=0)
        return ahead, difference.std(axis=0, ddof=min(1, len(by_world) - 1))


def widened(spread: FloatArray, runs: int) -> FloatArray:
    """The standard error of a lead, from its deviation over worlds of so many runs.

    Resampled runs differ less than new runs would, by n / (n - 1) of the variance; infinite for one
    run.
    """
    if runs < 2:
        return np.full_like(spread, np.inf)
    return np.asarray(spread * np.sqrt(runs / (runs - 1)))


def critical(freedom: float, ways: int) -> float:
    """Student's t that one of the rivals of a way exceeds with probability CHANCE by luck alone."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - CHANCE / max(ways - 1, 1)))


def lead_and_margin(by_world: FloatArray, base: int, runs: int) -> tuple[FloatArray, FloatArray]:
    """How far each split is ahead of the `base`-th, and the margin that luck accounts for.

    (splits,) each, of `by_world` as for `choose_split`; the margin is 0 for the base and infinite
    for pilots of one run.
    """
    ahead, spread = lead_and_spread(by_world, base)
    if runs < 2:
        return ahead, np.where(np.arange(len(ahead)) == base, 0.0, np.inf)
    # NaN, which no lead exceeds, where a difference is infinite
    return ahead, critical(runs - 1, by_world.shape[1]) * widened(spread, runs)
