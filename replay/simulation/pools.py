"""Pools of K logged runs, drawn apart, and worlds in which no arm is better than another."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replay.simulation.arms import default_arms, pool_of
from replay.simulation.simulate import Replay, simulate
from replay.statistics.intervals import NOTHING, FloatArray
from replay.statistics.resampling import tail_p

REPLICATES = 20_000
"""Replicates of each policy: enough for their Monte Carlo error not to matter."""
WORLDS, POOLS = 50, 40
"""Worlds without better arms that are simulated at once, and pools drawn in each."""
ENOUGH, MOST = 20, 2000
"""Worlds that do as well after which no more are drawn, and the most there are."""


class Pools:
    """Pools of K logged runs, drawn apart; what a policy makes of them is simulated once.

    `arms` is K, by default a fifth of the runs; `rounds` are by default the generations of the
    shortest run.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        arms: int | None = None,
        rounds: int | None = None,
        reward: str = "best_fitness",
        seed: int = 0,
    ) -> None:
        self.fitness, self.lengths = pool_of(frame, "policies are judged")
        self.n, self.seed, self.reward = len(self.fitness), seed, reward
        self.rounds = int(self.lengths.min()) if rounds is None else rounds
        self.K = K = default_arms(self.n) if arms is None else arms
        if self.n < 2 * K or self.rounds < 1:
            raise ValueError(
                f"expected at least {2 * K} runs with a generation for pools of {K} arms, got "
                f"{self.n} runs of {self.rounds} or more generations"
            )
        self._played: dict[str, Replay] = {}
        self._permuted: dict[tuple[str, int], FloatArray] = {}

    def played(self, policy: str) -> Replay:
        """What a policy makes of the pools."""
        if policy not in self._played:
            self._played[policy] = simulate(
                self.fitness, policy, arms=self.K, lengths=self.lengths, rounds=self.rounds,
                replicates=REPLICATES, reward=self.reward, seed=self.seed,
            )  # fmt: skip
        return self._played[policy]

    @property
    def off_scale(self) -> bool:
        """Whether policies receive raw fitness although it leaves [0, 1]."""
        low, high = np.fmin.reduce(self.fitness, axis=None), np.fmax.reduce(self.fitness, axis=None)
        return self.reward == "best_fitness" and bool(low < 0 or high > 1)

    def nothing(self, policy: str) -> bool:
        """Whether a policy ends with nothing ok on some pool."""
        return bool(np.isnan(self.played(policy).best_fitness[:, -1]).any())

    def ends(self, policy: str) -> FloatArray:
        """Best fitness after all pulls, (replicates,)."""
        if self.nothing(policy):
            raise ValueError(NOTHING)
        return self.played(policy).best_fitness[:, -1]

    def null_p(self, a: str, b: str) -> float:
        """Probability of at least the effect of a over b in worlds without better arms.

        Worlds are drawn until ENOUGH of them do as well, or there are MOST.
        """
        value = float(np.mean(self.ends(a) - self.ends(b)))
        return tail_p(value, self.permuted_effects(a, b, value), ENOUGH)

    def permuted_effects(self, a: str, b: str, value: float) -> FloatArray:
        """Effects in worlds without better arms, until ENOUGH reach `value` or there are MOST."""
        drawn = np.empty(0)
        while len(drawn) < MOST and (drawn >= value).sum() < ENOUGH:
            batch = len(drawn) // WORLDS
            drawn = np.append(drawn, self.permuted(a, batch) - self.permuted(b, batch))
        return drawn

    def permuted(self, policy: str, batch: int) -> FloatArray:
        """Mean end of a policy in each of WORLDS where increments go to any arm, (worlds,).

        What an arm gained before then does not predict what it gains next, which is all that a
        choice among arms can use.
        """
        if (policy, batch) not in self._permuted:
            rng = np.random.default_rng([self.seed, 7, batch])
            fitness = self.fitness[:, : int(self.lengths.min()) + 1]
            known = np.where(np.isnan(fitness), np.fmin.reduce(fitness, axis=None), fitness)
            steps = np.diff(known, axis=1, prepend=0.0)
            order = rng.random((WORLDS, *steps.shape)).argsort(axis=1)
            worlds = np.take_along_axis(steps[None], order, axis=1).cumsum(axis=2)
            apart = self.n // self.K  # pools of one shuffle
            shuffles = rng.random((WORLDS, POOLS // apart + 1, self.n)).argsort(axis=2)
            pools = shuffles[:, :, : apart * self.K].reshape(WORLDS, -1, self.K)
            rows = (pools + self.n * np.arange(WORLDS)[:, None, None]).reshape(-1, self.K)
            ends = simulate(
                worlds.reshape(-1, worlds.shape[2]), policy, arms=rows, replicates=len(rows),
                rounds=min(self.rounds, known.shape[1] - 1), reward=self.reward,
                seed=int(rng.integers(2**31)),
            ).best_fitness[:, -1]  # fmt: skip
            self._permuted[policy, batch] = ends.reshape(WORLDS, -1).mean(axis=1)
        return self._permuted[policy, batch]
