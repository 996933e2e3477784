"""Pools of K logged runs, drawn apart: what policies make of them, and how far they differ.

Reports, `judge`, the ledger and the explorer all ask here, so that one question has one answer.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from evo.policies import POLICIES, PolicyClass, PolicyWarning
from evo.policies.base import Floats, Ints
from replay.logs.frames import ReplayWarning
from replay.simulation.arms import IDENTICAL, pool_of
from replay.simulation.earlier import Earlier, earlier_runs
from replay.simulation.effects import pool_interval
from replay.simulation.simulate import Replay, label_of, simulate
from replay.simulation.sizes import FEWEST, POOL_RULE, default_arms, more_runs, needed_runs
from replay.statistics.intervals import NOTHING, FloatArray, Interval, interval
from replay.statistics.resampling import tail_p

REPLICATES = 20_000
"""Replicates of each policy: enough for their Monte Carlo error not to matter."""
WORLDS, POOLS = 50, 40
"""Worlds without better arms that are simulated at once, and pools drawn in each."""
ENOUGH, MOST = 20, 2000
"""Worlds that do as well after which no more are drawn, and the most there are."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Played:
    """Results of a policy on the pools; intervals are over runs.

    Arms rank within their replicate by what each would reach alone, 0 the best.

    Attributes:
        replay: Its replay.
        fitness: Best fitness of the runs, (runs, generations + 1).
        lengths: Their last generations, (runs,).
        means: Best fitness by round for means, (replicates, rounds). Of a single run
            it is the mean over the arms of a pool, any of which it may be; moved so that the mean
            over replicates is that over the runs.
        warnings: Of the policy and of the replay.
    """

    replay: Replay
    fitness: Floats
    lengths: Ints
    means: Floats
    warnings: tuple[str, ...]

    @functools.cached_property
    def curve(self) -> Interval:
        """Mean best fitness by round, (rounds,); of a single run that of the runs themselves."""
        if self.means is not self.replay.best_fitness:
            return interval(_alone(self.fitness, self.means.shape[1]))
        return pool_interval(self.means, self.replay.arms)

    def less(
        self, other: Played, *, level: float = 0.95, name: str = "mean difference"
    ) -> Interval:
        """The effect: how far this policy ends above another on the same pools."""
        gain = self.means[:, -1] - other.means[:, -1]
        return pool_interval(gain, self.replay.arms, level=level, name=name, kind="effect")

    @functools.cached_property
    def place(self) -> Ints:
        """Rank of each pulled arm, (replicates, rounds); -1 where none was pulled."""
        depth = np.minimum(self.lengths, self.replay.pulls.shape[1])
        best = np.fmax.accumulate(self.fitness, axis=1)[np.arange(len(self.fitness)), depth]
        reach, arms = np.where(np.isnan(best), -np.inf, best), self.replay.arms
        order = np.argsort(-reach[arms], axis=1, kind="stable")
        table = np.empty((len(arms), len(reach)), dtype=np.int64)
        np.put_along_axis(table, arms, np.argsort(order, axis=1, kind="stable"), axis=1)
        place = np.take_along_axis(table, np.maximum(self.replay.pulls, 0), axis=1)
        return np.where(self.replay.pulls < 0, -1, place)

    @functools.cached_property
    def pulls(self) -> Interval:
        """Share of the pulls by rank, (K,)."""
        made = np.maximum((self.place >= 0).sum(axis=1), 1)
        ranks = range(self.replay.arms.shape[1])
        shares = np.stack([(self.place == rank).sum(axis=1) / made for rank in ranks], axis=1)
        found = pool_interval(shares, self.replay.arms)
        low, high = np.clip(found.low, 0.0, 1.0), np.clip(found.high, 0.0, 1.0)
        return replace(found, low=low, high=high)

    @functools.cached_property
    def ranks(self) -> Floats:
        """Share of replicates that pull the arm of a rank in a round, (K, rounds)."""
        ranks = range(self.replay.arms.shape[1])
        return np.stack([(self.place == rank).mean(axis=0) for rank in ranks])


def play(
    fitness: Floats,
    policy: str | PolicyClass,
    *,
    lengths: Ints,
    rounds: int,
    arms: int,
    replicates: int = 1000,
    seed: int = 0,
    reward: str = "best_fitness",
    earlier: Earlier | None = None,
) -> Played:
    """Replays one policy over pools of runs drawn without replacement; see `replay.simulate`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PolicyWarning)
        warnings.simplefilter("always", ReplayWarning)
        replay = simulate(
            fitness, policy, rounds=rounds, arms=arms, replicates=replicates, seed=seed,
            reward=reward, lengths=lengths, earlier=earlier,
        )  # fmt: skip
    means = replay.best_fitness
    single = getattr(policy, "func", policy) in ("single", POLICIES["single"])
    if single and rounds <= lengths.min() and not np.isnan(fitness[:, 1 : rounds + 1]).any():
        alone = _alone(fitness, rounds)
        drawn = np.zeros((len(means), len(fitness)))
        np.put_along_axis(drawn, replay.arms, 1 / arms, axis=1)
        means = drawn @ alone
        means += alone.mean(axis=0) - means.mean(axis=0)
    messages = tuple(dict.fromkeys(str(each.message) for each in caught))
    return Played(replay=replay, fitness=fitness, lengths=lengths, means=means, warnings=messages)


def _alone(fitness: Floats, rounds: int) -> Floats:
    """Best fitness so far of each run by itself, (runs, rounds)."""
    return np.asarray(np.fmax.accumulate(fitness, axis=1)[:, 1 : rounds + 1])


class Pools:
    """Pools of K logged runs, drawn apart; what a policy makes of them is simulated once.

    `arms` is K, by default a fifth of the runs; `rounds` are by default the generations of the
    shortest run. `earlier` are the runs from which policies learn, as of `replay.simulate`.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        arms: int | None = None,
        rounds: int | None = None,
        reward: str = "best_fitness",
        replicates: int = REPLICATES,
        seed: int = 0,
        earlier: Earlier | None = None,
    ) -> None:
        known = earlier_runs(earlier, frame)
        fitness, lengths = pool_of(frame, "policies are judged")
        K = default_arms(len(fitness)) if arms is None else arms
        rounds = int(lengths.min()) if rounds is None else rounds
        if (n := len(fitness)) < FEWEST * K:
            lack = more_runs(n, needed_runs(K))
            raise ValueError(f"{POOL_RULE}; for pools of {K} arms {lack}")
        if rounds < 1:
            raise ValueError(f"expected runs of a generation or more, got rounds={rounds}")
        self._set(fitness, lengths, K, rounds, reward, replicates, seed, known)

    @classmethod
    def of(
        cls,
        fitness: Floats,
        lengths: Ints,
        *,
        arms: int,
        rounds: int,
        reward: str = "best_fitness",
        replicates: int = REPLICATES,
        seed: int = 0,
        earlier: Floats | str | None = None,
    ) -> Pools:
        """Pools of runs that are a matrix already; K may be any number up to that of the runs."""
        made = cls.__new__(cls)
        made._set(fitness, lengths, arms, rounds, reward, replicates, seed, earlier)
        return made

    def _set(
        self,
        fitness: Floats,
        lengths: Ints,
        arms: int,
        rounds: int,
        reward: str,
        replicates: int,
        seed: int,
        earlier: Floats | str | None,
    ) -> None:
        self.fitness, self.lengths, self.n = fitness, lengths, len(fitness)
        self.K, self.rounds, self.reward = arms, rounds, reward
        self.replicates, self.seed, self.earlier = replicates, seed, earlier
        self._played: dict[str | PolicyClass, Played] = {}
        self._permuted: dict[tuple[str | PolicyClass, int], FloatArray] = {}

    def play(self, policy: str | PolicyClass) -> Played:
        """Replays a policy on the pools."""
        if policy not in self._played:
            self._played[policy] = play(
                self.fitness, policy, lengths=self.lengths, rounds=self.rounds, arms=self.K,
                replicates=self.replicates, seed=self.seed, reward=self.reward,
                earlier=self.earlier,
            )  # fmt: skip
        return self._played[policy]

    @property
    def off_scale(self) -> bool:
        """Whether policies receive raw fitness although it leaves [0, 1]."""
        low, high = np.fmin.reduce(self.fitness, axis=None), np.fmax.reduce(self.fitness, axis=None)
        return self.reward == "best_fitness" and bool(low < 0 or high > 1)

    def nothing(self, policy: str | PolicyClass) -> bool:
        """Whether a policy ends with nothing ok on some pool."""
        return bool(np.isnan(self.play(policy).means[:, -1]).any())

    def ends(self, policy: str | PolicyClass) -> FloatArray:
        """Best fitness after all pulls, (replicates,)."""
        if self.nothing(policy):
            raise ValueError(NOTHING)
        return self.play(policy).means[:, -1]

    def effect(
        self, a: str | PolicyClass, b: str | PolicyClass, *, level: float = 0.95
    ) -> Interval:
        """Returns the final fitness of policy a minus b, with its interval over runs."""
        for each in (a, b):
            self.ends(each)  # refuses pools on which nothing was ever ok
        texts = dict.fromkeys([*self.play(a).warnings, *self.play(b).warnings])
        for text in texts:
            warnings.warn(text, ReplayWarning, stacklevel=2)
        found = self.play(a).less(
            self.play(b), level=level, name=f"{label_of(a)} less {label_of(b)}"
        )
        return replace(found, note=IDENTICAL) if IDENTICAL in texts else found

    def null_p(self, a: str | PolicyClass, b: str | PolicyClass) -> float:
        """Probability of at least the effect of a over b in worlds without better arms.

        Worlds are drawn until ENOUGH of them do as well, or there are MOST.
        """
        value = float(np.mean(self.ends(a) - self.ends(b)))
        return tail_p(value, self.permuted_effects(a, b, value), ENOUGH)

    def permuted_effects(
        self, a: str | PolicyClass, b: str | PolicyClass, value: float
    ) -> FloatArray:
        """Effects in worlds without better arms, until ENOUGH reach `value` or there are MOST."""
        drawn = np.empty(0)
        while len(drawn) < MOST and (drawn >= value).sum() < ENOUGH:
            batch = len(drawn) // WORLDS
            drawn = np.append(drawn, self.permuted(a, batch) - self.permuted(b, batch))
        return drawn

    def permuted(self, policy: str | PolicyClass, batch: int) -> FloatArray:
        """Mean end of a policy in each of WORLDS where increments go to any arm, (worlds,).

        What an arm gained before then does not predict what it gains next, which is all that a
        choice among arms can use. A policy that learns from earlier runs learns from earlier runs
        of such a world.
        """
        if (policy, batch) not in self._permuted:
            rng = np.random.default_rng([self.seed, 7, batch])
            fitness = self.fitness[:, : int(self.lengths.min()) + 1]
            worlds = _exchanged(fitness, WORLDS, rng)
            learned_from = None
            if self.earlier is not None:
                own = self.fitness if isinstance(self.earlier, str) else self.earlier
                learned_from = _exchanged(own, 1, np.random.default_rng([self.seed, 8, batch]))[0]
            apart = self.n // self.K  # pools of one shuffle
            shuffles = rng.random((WORLDS, POOLS // apart + 1, self.n)).argsort(axis=2)
            pools = shuffles[:, :, : apart * self.K].reshape(WORLDS, -1, self.K)
            rows = (pools + self.n * np.arange(WORLDS)[:, None, None]).reshape(-1, self.K)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PolicyWarning)  # `play` has said it
                ends = simulate(
                    worlds.reshape(-1, worlds.shape[2]), policy, arms=rows, replicates=len(rows),
                    rounds=min(self.rounds, fitness.shape[1] - 1), reward=self.reward,
                    seed=int(rng.integers(2**31)), earlier=learned_from,
                ).best_fitness[:, -1]  # fmt: skip
            self._permuted[policy, batch] = ends.reshape(WORLDS, -1).mean(axis=1)
        return self._permuted[policy, batch]


def _exchanged(fitness: Floats, worlds: int, rng: np.random.Generator) -> Floats:
    """Runs whose increments are exchanged, (worlds, runs, generations + 1)."""
    known = np.where(np.isnan(fitness), np.fmin.reduce(fitness, axis=None), fitness)
    steps = np.diff(np.fmax.accumulate(known, axis=1), axis=1, prepend=0.0)
    order = rng.random((worlds, *steps.shape)).argsort(axis=1)
    return np.asarray(np.take_along_axis(steps[None], order, axis=1).cumsum(axis=2))
