"""A policy that eliminates: made for the end of the allocation."""

from __future__ import annotations

import math

import numpy as np

from evo.policies.base import BasePolicy, Bools, Floats, Ints, Rng, Shape


class SuccessiveHalving(BasePolicy):
    """Equal pulls for all arms, then the better half goes on, until one is left.

    Karnin, Koren & Somekh, Almost optimal exploration in multi-armed bandits, 2013, with the last
    reward in place of the mean as in Jamieson & Talwalkar, Non-stochastic best arm identification
    and hyperparameter optimization, 2016. Each of the ceil(log2 K) phases gets an equal share of
    the rounds. While no arm that has pulls left is open, the best open one is pulled.
    """

    tries_each_arm = 1

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
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
        phases = max(1, math.ceil(math.log2(self.arms)))
        share = np.where(alive == 1, self.rounds, np.maximum(1, self.rounds // (alive * phases)))
        self.due[rows] = share[:, None]
        self.left[rows] = share * alive
