"""Policies made for the end of the allocation: the maximum, elimination."""

from __future__ import annotations

import math

import numpy as np

from evo.policies.base import BasePolicy, Bools, Floats, IndexPolicy, Ints, Rng


class SuccessiveHalving(BasePolicy):
    """Equal pulls for all arms, then the better half goes on, until one is left.

    Karnin, Koren & Somekh, Almost optimal exploration in multi-armed bandits, 2013, with the last
    reward in place of the mean as in Jamieson & Talwalkar, Non-stochastic best arm identification
    and hyperparameter optimization, 2016. Each of the ceil(log2 K) phases gets an equal share of
    the rounds. While no arm that has pulls left is open, the best open one is pulled.

    Attributes:
        last: (replicates, arms), the arm's last reward; the lowest float before its first.
        alive: (replicates, arms), arms still in the race.
        due: (replicates, arms), pulls left to each of them in this phase.
        left: (replicates,), pulls left in this phase.
    """

    tries_each_arm = 1

    def __init__(self, shape: tuple[int, int], *, rounds: int, rng: Rng) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.last: Floats = np.full(shape, np.finfo(np.float64).min)
        self.alive: Bools = np.ones(shape, dtype=bool)
        self.due: Floats = np.empty(shape)
        self.left: Floats = np.empty(self.replicates)
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
        phases = max(1, math.ceil(math.log2(self.arms)))
        share = np.where(alive == 1, self.rounds, np.maximum(1, self.rounds // (alive * phases)))
        self.due[rows] = share[:, None]
        self.left[rows] = share * alive


class ThresholdAscent(IndexPolicy):
    """Pulls the arm most likely to give one of the largest rewards, not the largest mean.

    Streeter & Smith, A simple distribution-free approach to the max k-armed bandit problem, 2006.
    The threshold is the s-th largest reward so far (their ascent in steps, with steps of no
    size); an arm's mean is its share of rewards above. Index: mean + (a + sqrt(2 n mean a + a^2))
    / n with a = ln(2 rounds K / delta).

    Args:
        s: How many rewards may lie at or above the threshold; None: a tenth of the rounds, at
            least 5. The authors used 100 with many thousand rounds.
        delta: Probability with which a bound may fail; the larger, the less exploration.

    Attributes:
        top: (replicates, s), the largest rewards, in no order.
        top_arm: (replicates, s), the arms that gave them.
    """

    tries_each_arm = 1

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        rounds: int,
        rng: Rng,
        s: int | None = None,
        delta: float = 0.01,
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.s = max(5, rounds // 10) if s is None else s
        if self.s < 1:
            raise ValueError(f"s must be 1 or more, got {s!r}")
        if not 0.0 < delta <= 1.0:
            raise ValueError(f"delta must be above 0 and at most 1, got {delta!r}")
        self.exploration = math.log(2 * rounds * self.arms / delta)
        self.top: Floats = np.full((self.replicates, self.s), -np.inf)
        self.top_arm: Ints = np.zeros((self.replicates, self.s), dtype=np.intp)
        self._index = np.full(shape, np.inf)

    def index(self) -> Floats:
        """Bound on the arm's share of large rewards; infinity for an arm without a reward."""
        above = self.top > self.top.min(axis=1, keepdims=True)
        count = np.bincount(
            (self._rows[:, None] + self.top_arm).reshape(-1),
            weights=above.reshape(-1),
            minlength=self.pulls.size,
        ).reshape(self.pulls.shape)
        a = self.exploration
        pulls = np.maximum(self.pulls, 1.0)
        bound = (count + a + np.sqrt(2.0 * a * count + a * a)) / pulls
        return np.where(self.pulls == 0.0, np.inf, bound)

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Take the rewards among the largest where they belong there."""
        super().tell(arm, reward)
        lowest = np.arange(self.replicates) * self.s + self.top.argmin(axis=1)
        top, top_arm = self.top.reshape(-1), self.top_arm.reshape(-1)
        higher = reward > top[lowest]
        top[lowest[higher]] = reward[higher]
        top_arm[lowest[higher]] = arm[higher]
