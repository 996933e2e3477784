"""Exponential weights, for rewards that follow no distribution.

Weights are kept as logarithms and recentred when they drift, so no number of rounds overflows.
A reward is mapped to a gain by `reward_range`, (low, high) to (0, 1). Rewards outside are mapped
alike and never clipped: the policies stay well defined, only the proofs of their regret then say
nothing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from evo.policies.base import (
    BasePolicy,
    Bools,
    Floats,
    Ints,
    Rng,
    Shape,
    fraction,
    positive,
    uniform_choice,
)


class ExponentialWeights(BasePolicy):
    """Draws arms from (1 - mix) softmax(eta * gains) + mix / (number of open arms).

    Args:
        eta: Learning rate; None: that of the source, as for gamma.
        gamma: Share of uniform play, or how much is explored without it.
        reward_range: Rewards that count as gains 0 and 1.

    Attributes:
        gains: (replicates, arms), estimated sum of gains, up to a constant of the replicate.
        asked: (replicates, arms), probability of the arm when last asked for: a pull's reward is
            weighted by it however much later the reward arrives.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        eta: float | None = None,
        gamma: float | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        low, high = reward_range
        if not low < high:
            raise ValueError(f"reward_range must be (low, high) with low < high, got {low, high!r}")
        self.eta, self.mix = self._rates(eta, gamma)
        if not 0.0 <= self.eta < math.inf:
            raise ValueError(f"eta must be 0 or more and finite, got {eta!r}")
        if not 0.0 <= self.mix < 1.0:
            raise ValueError(f"gamma must be 0 or more and below 1, got {gamma!r}")
        self.reward_range = (low, high)
        self.gains: Floats = np.zeros(shape)
        self.asked: Floats = np.ones(shape)
        self._p: Floats = np.empty(shape)

    @abstractmethod
    def _rates(self, eta: float | None, gamma: float | None) -> tuple[float, float]:
        """Learning rate and share of uniform play, by default those of the source."""

    def ask(self, open_arms: Bools) -> Ints:
        """An open arm drawn from the probabilities."""
        closed = None if open_arms.all() else ~open_arms
        weight = self._weights(closed)
        reach = np.cumsum(weight, axis=1)
        far = ~((reach[:, -1] > 1e-100) & (reach[:, -1] < 1e100))
        if far.any():  # shift the gains so that the best open arm has weight 1
            best = np.where(open_arms[far], self.gains[far], -np.inf).max(axis=1, keepdims=True)
            self.gains[far] -= best
            weight = self._weights(closed)
            reach = np.cumsum(weight, axis=1)
        uniform = self._rng.random((self.replicates,))
        # Below the total even where the draw rounds up to 1, so that the arm found is an open one.
        limit = (uniform - self.mix) / (1.0 - self.mix) * np.nextafter(reach[:, -1], 0.0)
        arm: Ints = (reach > limit[:, None]).argmax(axis=1)
        weight *= ((1.0 - self.mix) / reach[:, -1])[:, None]
        if self.mix:
            mixed = uniform < self.mix
            arm = np.where(mixed, uniform_choice(open_arms, uniform / self.mix), arm)
            places = self.arms if closed is None else open_arms.sum(axis=1, keepdims=True)
            weight += self.mix * open_arms / places
        at = self._at(arm)
        self.asked.reshape(-1)[at] = weight.reshape(-1)[at]
        return arm

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Add the estimated gain of the pulled arms."""
        low, high = self.reward_range
        at = self._at(arm)
        gain = (reward - low) / (high - low)
        self.gains.reshape(-1)[at] += self._estimate(gain, self.asked.reshape(-1)[at])

    def _weights(self, closed: Bools | None) -> Floats:
        """exp(eta * gains), 0 for closed arms."""
        weight: Floats = np.multiply(self.gains, self.eta, out=self._p)
        with np.errstate(over="ignore"):
            np.exp(weight, out=weight)
        if closed is not None:
            np.copyto(weight, 0.0, where=closed)
        return weight

    def inspect(self) -> Mapping[str, Floats]:
        """`probability` of each arm at the last ask."""
        return {"probability": self._p.copy()}

    @abstractmethod
    def _estimate(self, gain: Floats, p: Floats) -> Floats:
        """Estimated gains of the pulled arms, drawn with probability p; shapes (replicates,)."""


class EXP3P(ExponentialWeights):
    """Exp3.P: mixing, and a confidence bonus beta / p for every arm in every round.

    Bubeck & Cesa-Bianchi, Regret analysis of stochastic and nonstochastic multi-armed bandit
    problems, 2012, figure 3.1; defaults as in theorem 3.2 for no particular confidence:
    eta = 0.95 sqrt(ln K / (n K)), gamma = 1.05 sqrt(K ln K / n), beta = sqrt(ln K / (n K)) for K
    arms and n rounds, with gamma at most 1/2 as the proof requires. With fewer than 4.5 K ln K
    rounds half of the pulls are therefore random.

    Args:
        beta: Weight of the bonus; the others are as in `ExponentialWeights`, gamma above 0.

    Example:
        >>> replay.simulate(fitness, evo.policies.EXP3P, rounds=8, replicates=1).pulls.tolist()
        [[0, 0, 5, 1, 5, 1, 0, 4]]
    """

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        eta: float | None = None,
        gamma: float | None = None,
        beta: float | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(
            shape, rounds=rounds, rng=rng, eta=eta, gamma=gamma, reward_range=reward_range
        )
        self.beta = self._root if beta is None else fraction("beta", beta)

    def _rates(self, eta: float | None, gamma: float | None) -> tuple[float, float]:
        self._root = math.sqrt(math.log(self.arms) / (self.rounds * self.arms))
        mix = min(0.5, 1.05 * self.arms * self._root) if gamma is None else positive("gamma", gamma)
        return 0.95 * self._root if eta is None else eta, mix

    def ask(self, open_arms: Bools) -> Ints:
        """Draw an arm and add the bonus, which does not depend on the reward to come."""
        arm = super().ask(open_arms)
        if open_arms.all():
            self.gains += self.beta / self._p
        else:  # closed arms have probability 0 and no bonus
            self.gains += self.beta / np.where(open_arms, self._p, np.inf)
        return arm

    def _estimate(self, gain: Floats, p: Floats) -> Floats:
        return gain / p


class EXP3IX(ExponentialWeights):
    """EXP3-IX: implicit exploration, losses over (p + gamma), no mixing.

    Neu, Explore no more, 2015, algorithm 1; defaults as in its theorem 1: eta = 2 gamma =
    sqrt(2 ln K / (K n)), and gamma = eta / 2 whatever eta is. The loss is 1 - gain.

    Example:
        >>> replay.simulate(fitness, evo.policies.EXP3IX, rounds=8, replicates=1).pulls.tolist()
        [[0, 1, 3, 1, 3, 4, 4, 2]]
    """

    def _rates(self, eta: float | None, gamma: float | None) -> tuple[float, float]:
        K, n = self.arms, self.rounds
        rate = math.sqrt(2 * math.log(K) / (n * K)) if eta is None else eta
        self.gamma = rate / 2 if gamma is None else gamma
        if not 0.0 <= self.gamma < math.inf:
            raise ValueError(f"gamma must be 0 or more and finite, got {gamma!r}")
        return rate, 0.0

    def _estimate(self, gain: Floats, p: Floats) -> Floats:
        return (gain - 1.0) / (p + self.gamma)


class EXP3Mixed(ExponentialWeights):
    """Exp3: mixing and importance-weighted gains, no bonus.

    Auer, Cesa-Bianchi, Freund & Schapire, The nonstochastic multiarmed bandit problem, 2002,
    figure 1; gamma = min(1/2, sqrt(K ln K / ((e - 1) n))) as in its corollary 3.2 for gains of at
    most 1 a round, eta = gamma / K. Public codes ship it, or variants of it, under the name EXP3.P:
    without the bonus it lacks the guarantee that the P stands for, and here it has its own name.

    Example:
        >>> replay.simulate(fitness, evo.policies.EXP3Mixed, rounds=8, replicates=1).pulls.tolist()
        [[0, 0, 5, 1, 5, 1, 0, 4]]
    """

    def _rates(self, eta: float | None, gamma: float | None) -> tuple[float, float]:
        K, n = self.arms, self.rounds
        if gamma is None:
            gamma = min(0.5, math.sqrt(K * math.log(K) / ((math.e - 1) * n)))
        return gamma / K if eta is None else eta, gamma

    def _estimate(self, gain: Floats, p: Floats) -> Floats:
        return gain / p
