"""Thompson sampling: draw a mean for each arm from its posterior, pull the largest."""

from __future__ import annotations

import numpy as np

from evo.policies.base import Floats, IndexPolicy, Ints, Rng, Shape, positive


class Thompson(IndexPolicy):
    """Gaussian rewards of known spread, Gaussian prior on each arm's mean.

    Thompson 1933; Russo et al., A tutorial on Thompson sampling, 2018. The default prior
    N(0.5, 0.1) is the paper's. It is tied to the scale of the task: where fitness starts far above
    0.5 the first arm pulled locks the policy in, far below it forces every arm to be tried. Set it
    to what an arm is expected to reach, or use reward `scaled` or `rank`.

    Args:
        prior_mean: Expected reward of an arm not yet pulled.
        prior_std: Spread of that expectation.
        noise_std: Spread of an arm's rewards around its mean.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        prior_mean: float = 0.5,
        prior_std: float = 0.1,
        noise_std: float = 0.1,
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.prior_mean = prior_mean
        self.prior_precision = positive("prior_std", prior_std) ** -2
        self.noise_precision = positive("noise_std", noise_std) ** -2
        self.total: Floats = np.zeros(shape)
        self.mean: Floats = np.full(shape, float(prior_mean))
        self.std: Floats = np.full(shape, float(prior_std))

    def index(self) -> Floats:
        """A draw from each arm's posterior."""
        draw: Floats = self._rng.standard_normal((self.replicates, self.arms))
        draw *= self.std
        draw += self.mean
        return draw

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Update the posteriors of the pulled arms."""
        super().tell(arm, reward)
        at = self._at(arm)
        total = self.total.reshape(-1)
        total[at] += reward
        precision = self.prior_precision + self.pulls.reshape(-1)[at] * self.noise_precision
        seen = self.prior_mean * self.prior_precision + total[at] * self.noise_precision
        self.mean.reshape(-1)[at] = seen / precision
        self.std.reshape(-1)[at] = 1.0 / np.sqrt(precision)


class ThompsonNIG(IndexPolicy):
    """Gaussian rewards of unknown mean and spread, normal-inverse-gamma prior.

    The posterior of a mean is a Student t with 2 * shape degrees of freedom (Murphy, Conjugate
    Bayesian analysis of the Gaussian distribution, 2007, section 6), drawn by the polar method
    (Bailey 1994), which takes two uniforms whatever the degrees of freedom.

    Args:
        prior_mean: Expected reward of an arm not yet pulled.
        prior_pulls: How many pulls that expectation is worth.
        prior_shape: Half the number of pulls that the expected spread is worth.
        prior_std: Expected spread of an arm's rewards.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        prior_mean: float = 0.5,
        prior_pulls: float = 1.0,
        prior_shape: float = 1.0,
        prior_std: float = 0.1,
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.prior_pulls = positive("prior_pulls", prior_pulls)
        self.prior_shape = positive("prior_shape", prior_shape)
        self.mean: Floats = np.full(shape, float(prior_mean))
        # The posterior scale of the variance (beta).
        self.scale: Floats = np.full(shape, prior_shape * positive("prior_std", prior_std) ** 2)

    def index(self) -> Floats:
        """A draw from each arm's posterior mean."""
        u, v = np.split(self._rng.random((self.replicates, 2 * self.arms)), 2, axis=1)
        half = self.prior_shape + self.pulls / 2  # half the degrees of freedom
        student = np.cos(2 * np.pi * v) * np.sqrt(2 * half * np.expm1(-np.log1p(-u) / half))
        spread = np.sqrt(self.scale / (half * (self.prior_pulls + self.pulls)))
        draw: Floats = self.mean + student * spread
        return draw

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Update the posteriors of the pulled arms."""
        at = self._at(arm)
        weight = self.prior_pulls + self.pulls.reshape(-1)[at]
        mean, scale = self.mean.reshape(-1), self.scale.reshape(-1)
        error = reward - mean[at]
        mean[at] += error / (weight + 1.0)
        scale[at] += error**2 * weight / (2.0 * (weight + 1.0))
        super().tell(arm, reward)
