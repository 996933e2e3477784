"""Baselines: random, in turn, one run, greedy with and without chance."""

from __future__ import annotations

from collections.abc import Mapping

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
)


class Random(BasePolicy):
    """Each open arm with equal probability: the pool without an allocation."""

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
    """The open arm with the fewest pulls, so that all advance alike (islands without exchange)."""

    def index(self) -> Floats:
        """Minus the number of pulls."""
        return -self.pulls


class Single(IndexPolicy):
    """The first arm to its end, then the next: the plain greedy protocol, one run."""

    def index(self) -> Floats:
        """Falls with the arm's number."""
        return np.tile(-np.arange(self.arms, dtype=np.float64), (self.replicates, 1))


class BestArm(IndexPolicy):
    """Each arm once in order, then always the arm whose last reward is largest.

    With reward `best_fitness` this follows the leader, and so a plateau for ever.
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


def uniform_choice(open_arms: Bools, uniform: Floats) -> Ints:
    """An open arm of each replicate with equal probability, from one uniform draw each."""
    if open_arms.all():
        any_arm: Ints = (uniform * open_arms.shape[1]).astype(np.intp)
        return any_arm
    rank = np.cumsum(open_arms, axis=1)
    wanted = np.floor(uniform * rank[:, -1])
    open_arm: Ints = (rank > wanted[:, None]).argmax(axis=1)
    return open_arm
