"""Two groups of runs compared by exchanging runs: one distribution for p and interval.

If both groups follow one law, every exchange of runs between them is as likely as what was seen. So
the share of exchanges with a statistic at least as large is an exact p-value at any size of the
groups. Runs that belong together (a pair) change sides together, all others freely:

- n pairs alone: signs of the differences are flipped (2^n exchanges);
- no pair: runs are permuted between the groups;
- some pairs: both, each kind among itself. No run is discarded, and pairs stay together.

The statistic is the difference of means over its standard error, in which pairs are clusters. With
pairs alone that is the paired t, without pairs Welch's t. Studentised, the test holds in large
samples even where the groups differ in spread or shape (Janssen 1997; Chung and Romano 2013). The
interval holds every effect that the test does not reject, so verdict and interval always agree.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replay.statistics.resampling import check_size

FloatArray = NDArray[np.float64]

EXCHANGES = 5000
"""All exchanges are enumerated up to this number; beyond, as many are drawn."""


class PermutationResult(NamedTuple):
    """Result of a comparison; an infinite limit means that no effect on that side is rejected.

    Attributes:
        value: Mean of the left group less that of the right.
        low: Lower limit.
        high: Upper limit.
        p_greater: Share of exchanges that do at least as well as what was seen.
        p_less: Share of exchanges that do at most as well.
        error: Standard error of the value.
    """

    value: float
    low: float
    high: float
    p_greater: float
    p_less: float
    error: float


def exchange(
    left: ArrayLike, right: ArrayLike, *, pairs: int = 0, level: float = 0.95, seed: int = 0
) -> PermutationResult:
    """Compares two groups by exchanging runs between them.

    Args:
        left: One number per run, at least 2 of them.
        right: The same of the other group.
        pairs: Number of pairs: run i of `left` and of `right` belong together for i < pairs.
        level: Coverage of the interval, in (0, 1).
        seed: Key of the exchanges where they are drawn.

    Raises:
        ValueError: A group has fewer than two runs, or there are more pairs than runs.
    """
    return Exchanges(left, right, pairs=pairs, seed=seed).found(level)


class Inverted:
    """A test of any assumed effect, and the interval of the effects that it does not reject.

    Attributes:
        value: The effect that was seen.
    """

    value: float
    _scale: float

    def statistic(self, effect: float) -> FloatArray:
        """Studentised effect under each exchange if `effect` is the true one, (exchanges,)."""
        raise NotImplementedError

    def found(self, level: float) -> PermutationResult:
        """The comparison, with an interval of this coverage."""
        alpha, (above, below) = (1 - level) / 2, self.tails(0.0)
        return PermutationResult(
            value=self.value, low=self.limit(alpha, -1), high=self.limit(alpha, 1),
            p_greater=above, p_less=below, error=self.error,
        )  # fmt: skip

    def p(self, effect: float, sign: int) -> float:
        """Share of exchanges, the actual one included, that do as well as it does.

        `sign` 1 counts those at least as large, which tests whether the effect exceeds `effect`;
        -1 those at most as large.
        """
        return self.tails(effect)[0 if sign > 0 else 1]

    def tails(self, effect: float) -> tuple[float, float]:
        """`p` of both signs: the shares at least, and at most, as large as what was seen."""
        drawn = self.statistic(effect)
        tie = 1e-9 * (1 + abs(drawn[0]))
        above, below = drawn >= drawn[0] - tie, drawn <= drawn[0] + tie
        return float(above.mean()), float(below.mean())

    @property
    def error(self) -> float:
        """Standard error of the difference; 0 where neither group has any spread."""
        if self._scale == 0:
            return 0.0
        t = float(self.statistic(0.0)[0])
        equal = abs(self.value) <= 1e-9 * self._scale or t == 0  # up to rounding
        error = self._error_at(self._scale) if equal else abs(self.value / t)
        return error if error > 1e-8 * self._scale else 0.0

    def _error_at(self, effect: float) -> float:
        return abs((self.value - effect) / float(self.statistic(effect)[0]))

    def limit(self, alpha: float, sign: int) -> float:
        """Largest effect below the value that is rejected at `alpha`; for `sign` 1 the least above.

        It lies on the side of zero that agrees with the test of no effect. Infinite if nothing is
        rejected.
        """

        def rejected(effect: float) -> bool:
            return self.p(effect, -sign) <= alpha

        inside, away = self.value, sign * (self.error or 1e-9 * (self._scale or 1.0))
        outside = self.value + 2 * away
        if sign * self.value < 0:  # zero lies beyond the value on this side
            if rejected(0.0):
                outside = 0.0
            else:
                inside, outside = 0.0, 2 * away
        for _ in range(60):
            if rejected(outside):
                break
            inside, outside = outside, outside + 2 * (outside - self.value)
        else:
            return sign * math.inf
        for _ in range(32):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if rejected(middle) else (middle, outside)
        return outside


class Exchanges(Inverted):
    """Exchanges of two groups, and the share of them that does as well for any assumed effect.

    Every sum that the statistic needs is a polynomial of the assumed effect, so its coefficients
    are computed once.
    """

    def __init__(self, left: ArrayLike, right: ArrayLike, *, pairs: int = 0, seed: int = 0) -> None:
        one, other = (np.asarray(side, dtype=np.float64) for side in (left, right))
        if min(len(one), len(other)) < max(2, pairs):
            raise ValueError(
                f"expected at least {max(2, pairs)} runs in each group, "
                f"got {len(one)} and {len(other)}"
            )
        check_size(one)
        check_size(other)
        self.value, self.pairs = float(one.mean() - other.mean()), pairs
        # The larger group, else that of the larger mean, is computed as the left one, so that the
        # same exchanges are drawn whichever group is named first.
        self._sign = -1 if (len(one), one.mean()) < (len(other), other.mean()) else 1
        if self._sign < 0:
            one, other = other, one
        self.sizes = (len(one), len(other))
        centre = np.concatenate([one, other]).mean()
        self._x, self._y = one - centre, other - centre
        self._scale = max(float(np.abs(self._x).max()), float(np.abs(self._y).max()))
        moved = moves(*self.sizes, pairs, seed)
        mine = np.arange(len(one) + len(other) - pairs) < len(one)  # slots of the left group
        paired = np.arange(len(mine)) < pairs
        # A move of slot i adds `gain` to the left sum: of a pair its other run less its own, of
        # a single run its value, taken away from the left or brought there.
        x = np.concatenate([self._x, np.zeros(len(other) - pairs)])
        y = np.concatenate([self._y[:pairs], np.zeros(len(one) - pairs), self._y[pairs:]])
        own = np.where(mine, 1.0, 0.0)
        gains = [y - x, own, y**2 - x**2, 2 * own * x, -own]
        sums = moved @ np.stack(gains, axis=1)
        inside = moved[:, :pairs] @ np.stack([(y - x)[paired], own[paired]], axis=1)
        self._sums, self._inside = sums.T, inside.T

    @property
    def scale(self) -> float:
        """The largest distance of a run from the mean of all."""
        return self._scale

    def statistic(self, effect: float) -> FloatArray:
        """Studentised difference under each exchange if `effect` is the true one, (exchanges,)."""
        difference, variance = self.parts(effect)
        return difference / np.sqrt(variance)

    def parts(self, effect: float) -> tuple[FloatArray, FloatArray]:
        """Difference and its squared standard error under each exchange if `effect` is true."""
        effect *= self._sign
        x, y, m = self._x - effect, self._y, self.pairs
        (a, b), s = self.sizes, self._sums
        left = x.sum() + s[0] + effect * s[1]
        right = x.sum() + y.sum() - left
        squares = (x**2).sum() + s[2] + effect * s[3] + effect**2 * s[4]
        rest = (x**2).sum() + (y**2).sum() - squares
        one, other = left / a, right / b
        variance = (squares - a * one**2) / (a * (a - 1)) + (rest - b * other**2) / (b * (b - 1))
        if m:
            mine = x[:m].sum() + self._inside[0] + effect * self._inside[1]
            theirs = x[:m].sum() + y[:m].sum() - mine
            shared = x[:m] @ y[:m] - one * theirs - other * mine + m * one * other
            variance = variance - 2 * shared / math.sqrt(a * (a - 1) * b * (b - 1))
        least = (1e-9 * (self._scale + abs(effect))) ** 2 / (a + b)
        return self._sign * (one - other), np.maximum(variance, max(least, 1e-300))


@functools.lru_cache(maxsize=16)
def moves(a: int, b: int, pairs: int, seed: int = 0) -> FloatArray:
    """Slots that change sides (1) in each exchange, (exchanges, a + b - pairs).

    Slots are the pairs, then the other runs of the left group, then those of the right. As many
    runs of the left group leave it as come from the right. The first exchange moves none.
    """
    left, right = a - pairs, b - pairs
    rng = np.random.default_rng([seed, a, b, pairs])
    ways = [2**pairs if pairs < 20 else math.inf, math.comb(left + right, left)]
    if ways[0] * ways[1] <= EXCHANGES:
        flips = np.array(list(itertools.product([False, True], repeat=pairs)), dtype=bool)
        kept = list(itertools.combinations(range(left + right), left))
        on_left = np.zeros((len(kept), left + right), dtype=bool)
        on_left[
            np.arange(len(kept))[:, None], np.array(kept, dtype=int).reshape(len(kept), left)
        ] = True
        flips, on_left = (
            np.repeat(flips.reshape(2**pairs, pairs), len(kept), axis=0),
            np.tile(on_left, (len(flips), 1)),
        )
    else:
        flips = rng.random((EXCHANGES, pairs)) < 0.5
        order = rng.random((EXCHANGES, left + right)).argsort(axis=1)
        on_left = order < left
        flips[0], on_left[0] = False, np.arange(left + right) < left
    changed = on_left != (np.arange(left + right) < left)
    made = np.concatenate([flips, changed], axis=1).astype(np.float64)
    made.flags.writeable = False  # it is cached
    return made
