"""The variance over runs of a mean over pools, by the infinitesimal jackknife.

A replicate b draws K of n runs without replacement and plays a policy on them, which gives t_b. The
mean of t estimates the expected result on K fresh runs. How much it would change with other runs
can be read off the membership of the runs that there are: with X_bi = 1 if run i was in pool b,
p = K / n, B replicates, and s^2 the variance of t,

    V = (n - 1) / n (n / (n - K))^2 [sum_i cov(X_i, t)^2 - n p (1 - p) s^2 / B].

The sum is the infinitesimal jackknife (Wager, Hastie and Efron 2014). The factor (n / (n - K))^2
is due to drawing without replacement (Wager and Athey 2018): with it, the sum equals the delete-one
jackknife, since the pools without run i are the pools of the other n - 1 runs. The last term
removes what a finite number of replicates adds to the sum, the policy's own randomness included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replay.statistics.resampling import check_size

FloatArray = NDArray[np.float64]


class Jackknife(NamedTuple):
    """Mean over pools and what makes it uncertain; of shape (columns,) unless stated otherwise.

    Attributes:
        mean: Mean over the replicates.
        variance: V of the module's head, the variance over runs. It is unbiased in the number of
            replicates and can therefore be negative where runs hardly matter.
        noise: Variance of the mean over replicates given the runs, s^2 / B at most. It vanishes as
            replicates are added.
        influence: cov(X_i, t) of each run, (n, columns).
    """

    mean: FloatArray
    variance: FloatArray
    noise: FloatArray
    influence: FloatArray


def jackknife(values: ArrayLike, arms: ArrayLike, n: int) -> Jackknife:
    """Variance over runs of the mean of replicates that drew K of n runs without replacement.

    Args:
        values: One number per replicate and column, (replicates, columns).
        arms: The runs that each replicate drew, (replicates, K), K different ones of 0 ... n - 1.
        n: Number of runs, above K.

    Raises:
        ValueError: The shapes disagree, K is not below n, a replicate drew a run twice,
            or the values are too large to be squared.
    """
    columns, pools = np.asarray(values, dtype=np.float64), np.asarray(arms)
    check_size(columns)
    if columns.ndim != 2 or pools.ndim != 2 or len(pools) != len(columns):
        raise ValueError(
            "expected values of shape (replicates, columns) and arms of shape (replicates, K), "
            f"got {columns.shape!r} and {pools.shape!r}"
        )
    B, K = pools.shape
    if not n > K:
        raise ValueError(f"expected fewer arms than runs, got K={K!r} of n={n!r}")
    ordered = np.sort(pools, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise ValueError(
            "expected K different runs in each replicate, got one that drew some twice"
        )
    mean = columns.mean(axis=0)
    centred = columns - mean
    members = pools.ravel()
    sums = [np.bincount(members, np.repeat(column, K), n) for column in centred.T]
    covariance = np.stack(sums, axis=1) / B  # the mean of X_i times that of `centred` is 0
    noise, p = (centred**2).mean(axis=0) / B, K / n
    bracket = (covariance**2).sum(axis=0) - n * p * (1 - p) * noise
    variance = (n - 1) / n * (n / (n - K)) ** 2 * bracket
    return Jackknife(mean, np.asarray(variance), np.asarray(noise), np.asarray(covariance))
