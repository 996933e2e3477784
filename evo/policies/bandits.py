"""Policies that pick by an index of each arm, at random, in turn, or by elimination."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from evo.policies.base import (
    BasePolicy,
    Bools,
    Floats,
    IndexPolicy,
    Ints,
    MeanPolicy,
    Rng,
    Shape,
    fraction,
    positive,
    uniform_choice,
)


class Random(BasePolicy):
    """Pulls each open arm with equal probability: the baseline of a pool without a policy.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers.

    Example:
        >>> replay.simulate(fitness, evo.policies.Random, rounds=8, replicates=1).pulls.tolist()
        [[0, 0, 2, 0, 2, 3, 3, 2]]
    """

    def ask(self, open_arms: Bools) -> Ints:
        """An open arm at random."""
        self._open = open_arms.copy()
        return uniform_choice(open_arms, self._rng.random((self.replicates,)))

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Nothing to learn."""

    def inspect(self) -> Mapping[str, Floats]:
        """`probability`: equal over the open arms."""
        return {"probability": self._open / self._open.sum(axis=1, keepdims=True)}


class RoundRobin(IndexPolicy):
    """Pulls the open arm with the fewest pulls, so that all arms advance at the same pace.

    This is a set of islands without exchange.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers.

    Example:
        >>> replay.simulate(fitness, "round_robin", rounds=4, arms=2, replicates=1).pulls.tolist()
        [[2, 5, 2, 5]]
    """

    def index(self) -> Floats:
        """Minus the number of pulls."""
        return -self.pulls


class Single(IndexPolicy):
    """Pulls the first arm until it is closed, then the next: the baseline of one long run.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers.

    Example:
        >>> replay.simulate(fitness, "single", rounds=4, arms=2, replicates=1).pulls.tolist()
        [[2, 2, 2, 2]]
    """

    def index(self) -> Floats:
        """Falls with the arm's number."""
        return np.tile(-np.arange(self.arms, dtype=np.float64), (self.replicates, 1))


class BestArm(IndexPolicy):
    """Pulls each arm once in order, then always the arm whose last reward is largest.

    With the reward `best_fitness` it follows the leading arm, and stays with it on a plateau.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers.

    Example:
        >>> replay.simulate(fitness, evo.policies.BestArm, rounds=8, replicates=1).pulls.tolist()
        [[0, 1, 2, 3, 4, 5, 4, 4]]
    """

    tries_each_arm = 1

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.last: Floats = np.full(shape, np.inf)

    def index(self) -> Floats:
        """The last reward; infinity for an arm without one."""
        return self.last.copy()

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Keep the rewards of the pulled arms."""
        super().tell(arm, reward)
        self.last.reshape(-1)[self._at(arm)] = reward


class EpsilonGreedy(MeanPolicy):
    """The arm with the largest mean reward, or with probability epsilon a random open one.

    Sutton & Barto, Reinforcement Learning, 2nd edition, section 2.2; each arm once in order first,
    where epsilon does not say otherwise.

    Args:
        epsilon: Probability of a random arm.

    Example:
        >>> build = evo.policies.EpsilonGreedy
        >>> replay.simulate(fitness, build, rounds=8, replicates=1).pulls.tolist()
        [[0, 1, 2, 3, 4, 5, 3, 3]]
    """

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng, epsilon: float = 0.1) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.epsilon = fraction("epsilon", epsilon)

    def index(self) -> Floats:
        """The mean reward; infinity for an arm without one."""
        return self.mean.copy()

    def ask(self, open_arms: Bools) -> Ints:
        """The best open arm, or a random one."""
        draw = self._rng.random((self.replicates, 2))
        explore = draw[:, 0] < self.epsilon
        return np.where(explore, uniform_choice(open_arms, draw[:, 1]), super().ask(open_arms))


class UCB1(MeanPolicy):
    """Each open arm once in order, then the largest mean + c * sqrt(ln t / n).

    t is the number of pulls so far, n the arm's; ties go to the lowest arm. Auer, Cesa-Bianchi &
    Fischer, Finite-time analysis of the multiarmed bandit problem, 2002, figure 1, whose constant
    for rewards in [0, 1] is the default. Best fitness as reward differs little between arms: with
    that c the policy is then nearly uniform, and an improvement or rank reward or a smaller c tells
    more.

    Args:
        c: Weight of the confidence term, in units of the reward.

    Example:
        >>> replay.simulate(fitness, evo.policies.UCB1, rounds=8, replicates=1).pulls.tolist()
        [[0, 1, 2, 3, 4, 5, 4, 3]]
    """

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng, c: float = math.sqrt(2)) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        if not 0.0 <= c < math.inf:
            raise ValueError(f"c must be 0 or more and finite, got {c!r}")
        self.c = c
        self._bound = np.empty(shape)

    def index(self) -> Floats:
        """Mean plus confidence term; infinity for an arm without a reward."""
        bound = np.maximum(self.pulls, 1.0, out=self._bound)
        np.divide(math.log(max(self.told, 1)), bound, out=bound)
        np.sqrt(bound, out=bound)
        np.multiply(self.c, bound, out=bound)
        return np.add(self.mean, bound, out=bound)


class DiscountedUCB(UCB1):
    """UCB1 that forgets: every pull weighs `discount` times less with each later round.

    Garivier & Moulines, On upper-confidence bound policies for switching bandit problems, 2011,
    section 2.2, with c = 2 B sqrt(xi); their discount for one change in the whole time is the
    default, 1 - 1 / (4 sqrt(rounds)). With a discount of 1 this is `UCB1`.

    Args:
        c: Weight of the confidence term, in units of the reward.
        discount: Weight of a round relative to the next, above 0, at most 1.

    Example:
        >>> build = evo.policies.DiscountedUCB
        >>> replay.simulate(fitness, build, rounds=8, replicates=1).pulls.tolist()
        [[0, 1, 2, 3, 4, 5, 0, 3]]
    """

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        c: float = math.sqrt(2),
        discount: float | None = None,
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng, c=c)
        self.discount = 1 - 1 / (4 * math.sqrt(rounds)) if discount is None else discount
        if not fraction("discount", self.discount):
            raise ValueError("discount must be above 0, got 0")
        self.weight: Floats = np.zeros(shape)

    def index(self) -> Floats:
        """Discounted mean plus confidence term; infinity for an arm without a reward."""
        weight = np.maximum(self.weight, 1e-300)  # a closed arm's weight falls to 0
        spread = np.sqrt(math.log(max(self.told, 1.0)) / weight)
        return np.add(self.mean, np.multiply(self.c, spread, out=spread), out=spread)

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Discount everything, then add the pull."""
        at = self._at(arm)
        self.pulls.reshape(-1)[at] += 1.0
        self.told = self.told * self.discount + 1.0
        self.weight *= self.discount
        self.total *= self.discount
        self.weight.reshape(-1)[at] += 1.0
        self.total.reshape(-1)[at] += reward
        self.mean.reshape(-1)[at] = self.total.reshape(-1)[at] / self.weight.reshape(-1)[at]


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

    Example:
        >>> replay.simulate(fitness, evo.policies.Thompson, rounds=8, replicates=1).pulls.tolist()
        [[3, 2, 4, 0, 1, 5, 4, 4]]
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

    Example:
        >>> build = evo.policies.ThompsonNIG
        >>> replay.simulate(fitness, build, rounds=8, replicates=1).pulls.tolist()
        [[1, 5, 4, 1, 3, 4, 5, 0]]
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
        with np.errstate(over="ignore"):  # indices stay finite: the largest spread is 1e150
            scale[at] += error**2 * weight / (2.0 * (weight + 1.0))
        np.minimum(scale, 1e300, out=scale)
        super().tell(arm, reward)


class SuccessiveHalving(BasePolicy):
    """Pulls all arms equally often, then keeps the better half, until one is left.

    Karnin, Koren & Somekh, Almost optimal exploration in multi-armed bandits, 2013, with the last
    reward in place of the mean as in Jamieson & Talwalkar, Non-stochastic best arm identification
    and hyperparameter optimization, 2016. While no arm that has pulls left is open, the best open
    one is pulled.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers; it draws none.
        share: "phase": each of the ceil(log2 K) phases gets an equal share of the rounds, as in the
            papers and, so that logged allocations go on as they began, by default. Where nothing
            can be chosen this spends most pulls on arms that are given up. "arm": every arm still
            in the race gets the same number of further pulls in each phase, so that early phases
            are short and most of the rounds go to the last arm.

    Example:
        >>> replay.simulate(fitness, "successive_halving", rounds=8, replicates=1).pulls.tolist()
        [[0, 1, 2, 3, 4, 5, 2, 3]]
    """

    tries_each_arm = 1

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        share: Literal["arm", "phase"] = "phase",
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        if share not in ("arm", "phase"):
            raise ValueError(f"expected share to be 'arm' or 'phase', got {share!r}")
        self.share = share
        self.last: Floats = np.full(shape, np.finfo(np.float64).min)  # the arm's last reward
        self.alive: Bools = np.ones(shape, dtype=bool)  # still in the race
        self.due: Floats = np.empty(shape)  # pulls left to each of them in this phase
        self.left: Floats = np.empty(self.replicates)  # and to all of them
        self._begin_phase(np.arange(self.replicates))

    def ask(self, open_arms: Bools) -> Ints:
        """The arm to which most pulls are left."""
        ended = np.flatnonzero(self.left <= 0)
        if ended.size:
            kept = -(-self.alive[ended].sum(axis=1, keepdims=True) // 2)
            standing = np.where(self.alive[ended], self.last[ended], -np.inf)
            best_first = np.argsort(-standing, axis=1, kind="stable")
            self.alive[ended] = np.argsort(best_first, axis=1) < kept
            self._begin_phase(ended)
        due = np.where(open_arms & self.alive, self.due, 0.0)
        arm: Ints = due.argmax(axis=1)
        idle = np.flatnonzero(due.max(axis=1) <= 0)
        if idle.size:
            arm[idle] = np.where(open_arms[idle], self.last[idle], -np.inf).argmax(axis=1)
        return arm

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Count the pulls and keep the rewards."""
        at = self._at(arm)
        self.last.reshape(-1)[at] = reward
        self.due.reshape(-1)[at] -= 1
        self.left -= 1

    def _begin_phase(self, rows: Ints) -> None:
        """Share the phase's pulls among the arms that are alive; a lone one gets all the rest."""
        alive = self.alive[rows].sum(axis=1)
        if self.share == "phase":
            each = self.rounds // (alive * max(1, math.ceil(math.log2(self.arms))))
        else:
            standing = [self.arms]  # arms in each phase
            while standing[-1] > 1:
                standing.append(-(-standing[-1] // 2))
            each = np.full(len(alive), self.rounds // sum(standing))
        share = np.where(alive == 1, self.rounds, np.maximum(1, each))
        self.due[rows] = share[:, None]
        self.left[rows] = share * alive
