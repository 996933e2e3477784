"""Evidence that holds at every sample size at once, for samples within [0, 1].

Two statements are made of it, each right with probability 1 - delta whenever one looks and however
often, as long as each sample's mean given the past is its configuration's mean:

- `ConfidenceSequence`: intervals that hold all configurations' means (Waudby-Smith & Ramdas,
  Estimating means of bounded random variables by betting, JRSS B 2023, theorem 2).
- `log_evidence`: whether one configuration beats another on the samples that both have, by betting
  on their paired differences (the same paper, section 4).
"""

from __future__ import annotations

import math

import numpy as np

from evo.policies.base import Bools, Floats, Ints

MOST = 0.75
"""Largest share of its capital that a bet stakes; 1/2 and 3/4 are the authors' choices."""


class ConfidenceSequence:
    """Predictable plug-in empirical Bernstein confidence sequences, one for each row.

    One of them, at either side, ever fails with probability alpha; `lower` and `upper` (rows,) are
    the intervals' intersection so far, within [0, 1].
    """

    def __init__(self, rows: int, alpha: float) -> None:
        self.lower: Floats = np.zeros(rows)
        self.upper: Floats = np.ones(rows)
        self._cost = math.log(2.0 / alpha)
        # Sums over the samples: x, squared deviations, bets, bets times x, what the bets cost.
        self._sums: Floats = np.zeros((5, rows))
        self._count: Ints = np.zeros(rows, dtype=np.intp)

    def add(self, rows: Ints, x: Floats, taken: Bools) -> None:
        """Take in samples (n, width) of some sequences (n,); a row begins with those taken."""
        total, squares, bets, staked, paid = self._sums[:, rows, None]
        x = np.where(taken, x, 0.0)
        t = self._count[rows, None] + np.arange(1, x.shape[1] + 1)
        sums = total + np.cumsum(x, axis=1)
        mean = (0.5 + sums) / (t + 1)
        before = (0.5 + sums - x) / t
        deviations = np.where(taken, (x - mean) ** 2, 0.0)
        spread = squares + np.cumsum(deviations, axis=1)
        variance = (0.25 + spread - deviations) / t
        bet = np.sqrt(2.0 * self._cost / (variance * t * np.log(t + 1)))
        bet = np.where(taken, np.minimum(bet, MOST), 0.0)
        bets = bets + np.cumsum(bet, axis=1)
        staked = staked + np.cumsum(bet * x, axis=1)
        paid = paid + np.cumsum((x - before) ** 2 * (-np.log1p(-bet) - bet), axis=1)
        half = (self._cost + paid) / bets
        centre = staked / bets
        self.lower[rows] = np.maximum(self.lower[rows], (centre - half).max(axis=1))
        self.upper[rows] = np.minimum(self.upper[rows], (centre + half).min(axis=1))
        for place, sum_ in enumerate((sums, spread, bets, staked, paid)):
            self._sums[place, rows] = sum_[:, -1]
        self._count[rows] += taken.sum(axis=1)


def log_evidence(difference: Floats, count: Ints, *, margin: float = 0.0) -> Floats:
    """Log of the most capital ever won by betting that the mean difference is above -margin.

    If it is not, the capital, 1 at first, ever reaches c with a probability of at most 1 / c. Of
    differences (n, width) within [-1, 1], in the order in which they came, the first `count` (n,)
    of each row are samples. Returns (n,), at least 0.
    """
    width = difference.shape[1]
    t = np.arange(1, width + 1)
    d = np.where(t <= count[:, None], difference + margin, 0.0)
    mean = np.cumsum(d, axis=1) / (t + 1)
    variance = (0.25 + np.cumsum((d - mean) ** 2, axis=1)) / (t + 1)
    bet = np.clip(mean / (variance + mean**2), 0.0, MOST)
    # A bet goes by the samples before it alone, so the first stakes nothing.
    won = np.cumsum(np.log1p(bet[:, :-1] * d[:, 1:]), axis=1)
    most: Floats = won.max(axis=1, initial=0.0)
    return most
