"""Which way to spend is ahead of another by more than luck accounts for.

`choose_split` is a rule that departs from T = N for such a lead. On runs left out it was not shown
to help (`tests/benchmarks/planner_backtest.py`), so a plan names leads and does not follow them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from replay.planning.grid import FloatArray

CHANCE = 0.05
"""Probability that some split departs from T = N by luck alone."""


def choose_split(by_world: FloatArray, rounds: Mapping[int, int], runs: int) -> int:
    """N of T = N, or of the best of the splits that are ahead of it by their margin.

    `by_world`, (worlds, splits), is the mean fitness of each split of `rounds`, generations by N.
    """
    square = nearest_square(rounds)
    ahead, margin = lead(by_world, square, runs)
    clear = np.where(ahead > margin, ahead, 0.0)
    return list(rounds)[int(clear.argmax()) if clear.any() else square]


def nearest_square(rounds: Mapping[int, int]) -> int:
    """Which of the splits is nearest to T = N in log, the deeper of two.

    Where generations cost something, several N may have the same T: the largest of them counts.
    """
    broadest = {T: N for N, T in rounds.items()}
    distance = [
        abs(np.log(T / N)) + 1e-9 * N if broadest[T] == N else np.inf for N, T in rounds.items()
    ]
    return int(np.argmin(distance))


def lead(by_world: FloatArray, base: int, runs: int) -> tuple[FloatArray, FloatArray]:
    """How far each split is ahead of the `base`-th, and the margin that luck accounts for.

    (splits,) each, of `by_world` as for `choose_split`; the margin is 0 for the base and infinite
    for pilots of one run.
    """
    from scipy.special import stdtrit

    with np.errstate(invalid="ignore"):  # where medians are minus infinity
        difference = by_world - by_world[:, [base]]
        difference = np.where(np.isnan(difference), 0.0, difference)
        ahead = difference.mean(axis=0)
        spread = difference.std(axis=0, ddof=min(1, len(by_world) - 1))
    if runs < 2:
        return ahead, np.where(np.arange(len(ahead)) == base, 0.0, np.inf)
    rivals = max(by_world.shape[1] - 1, 1)
    # Resampled runs differ less than new runs would, by n / (n - 1) of the variance.
    factor = stdtrit(runs - 1, 1 - CHANCE / rivals) * np.sqrt(runs / (runs - 1))
    return ahead, factor * spread  # NaN, which no lead exceeds, where a difference is infinite
