"""Pools of K logged runs, drawn apart: what policies make of them, and how far they differ.

Reports, `judge`, the ledger and the explorer all ask here, so that one question has one answer.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd

from evo.policies import POLICIES, PolicyClass, PolicyWarning
from evo.policies.base import Floats, Ints
from evo.warning import warn
from replay.logs.frames import ReplayWarning, bounds_of, warn_of_short_runs
from replay.simulation.arms import IDENTICAL, nothing_to_choose, pool_of
from replay.simulation.earlier import Earlier, earlier_runs
from replay.simulation.effects import pool_interval
from replay.simulation.simulate import Replay, final_fitness, label_of, simulate
from replay.simulation.sizes import default_arms, lack_of_runs, needed_runs
from replay.statistics.intervals import (
    NOTHING,
    UNBOUNDED,
    Bounds,
    FloatArray,
    Interval,
    interval,
)
from replay.statistics.resampling import tail_p

REPLICATES = 20_000
"""Replicates of each policy: enough for their Monte Carlo error not to matter."""
WORLDS, POOLS = 50, 40
"""Worlds without better arms that are simulated at once, and pools drawn in each."""
T = TypeVar("T")

ENOUGH, MOST = 20, 2000
"""Worlds that do as well after which no more are drawn, and the most there are."""

TIES_KEY = 9
"""Seed of the order of equal arms, apart from all other draws."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Played:
    """Results of a policy on the pools; intervals are over runs.

    Arms rank within their replicate by what each would reach alone, 0 the best; equal ones in an
    order that is drawn, since some policies prefer the first arm of a pool.

    Attributes:
        replay: Its replay.
        fitness: Best fitness of the runs, (runs, generations + 1).
        lengths: Their last generations, (runs,).
        means: Best fitness by round for means, (replicates, rounds). Of a single run
            it is the mean over the arms of a pool, any of which it may be; moved so that the mean
            over replicates is that over the runs.
        warnings: Of the policy and of the replay.
        bounds: Lowest and highest best fitness that there is.
    """

    replay: Replay
    fitness: Floats
    lengths: Ints
    means: Floats
    warnings: tuple[str, ...]
    bounds: Bounds = UNBOUNDED

    @functools.cached_property
    def curve(self) -> Interval:
        """Mean best fitness by round, (rounds,); of a single run that of the runs themselves."""
        if self.means is not self.replay.best_fitness:
            return interval(_alone(self.fitness, self.means.shape[1]), bounds=self.bounds)
        return pool_interval(self.means, self.replay.arms).within(self.bounds)

    @functools.cached_property
    def end(self) -> PoolEnds:
        """What the policy ends with."""
        return PoolEnds(self.means[:, -1].copy(), self.replay.arms, self.warnings)

    @functools.cached_property
    def place(self) -> Ints:
        """Rank of each pulled arm, (replicates, rounds); -1 where none was pulled."""
        depth = np.minimum(self.lengths, self.replay.pulls.shape[1])
        best = np.fmax.accumulate(self.fitness, axis=1)[np.arange(len(self.fitness)), depth]
        reach, arms = np.where(np.isnan(best), -np.inf, best), self.replay.arms
        drawn = np.random.default_rng(TIES_KEY).random(arms.shape)
        order = np.lexsort((drawn, -reach[arms]), axis=1)
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
        return pool_interval(shares, self.replay.arms).within((0.0, 1.0))

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
    bounds: Bounds = UNBOUNDED,
) -> Played:
    """Replays one policy over pools of runs drawn without replacement; see `replay.simulate`.

    `bounds` are the lowest and highest best fitness that there is, which limits of means keep to.
    """
    with noted() as caught:
        replay = simulate(
            fitness, policy, rounds=rounds, arms=arms, replicates=replicates, seed=seed,
            reward=reward, lengths=lengths, earlier=earlier,
        )  # fmt: skip
    means = replay.best_fitness
    if _counts_all_arms(policy, fitness, lengths, rounds):
        means = _mean_alone(fitness, replay.arms, rounds)
    messages = tuple(dict.fromkeys(str(each.message) for each in caught))
    return Played(
        replay=replay, fitness=fitness, lengths=lengths, means=means, warnings=messages,
        bounds=bounds,
    )  # fmt: skip


@contextlib.contextmanager
def noted() -> Iterator[list[warnings.WarningMessage]]:
    """Keeps warnings of policies and replays in a list, instead of showing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PolicyWarning)
        warnings.simplefilter("always", ReplayWarning)
        yield caught


def is_single(policy: str | PolicyClass) -> bool:
    """Whether a policy is `single`, one run that gets the whole budget."""
    return getattr(policy, "func", policy) in ("single", POLICIES["single"])


def _counts_all_arms(
    policy: str | PolicyClass, fitness: Floats, lengths: Ints, rounds: int
) -> bool:
    """Whether the mean of a policy is that over all arms of a pool, any of which it may pull."""
    if not is_single(policy) or rounds > lengths.min():
        return False
    return not np.isnan(fitness[:, 1 : rounds + 1]).any()


def _mean_alone(fitness: Floats, arms: Ints, rounds: int) -> Floats:
    """Mean of the arms of each pool, (replicates, rounds), moved so that its mean is the runs'."""
    alone = _alone(fitness, rounds)
    above = alone - alone[0]  # so that of runs that are alike no rounding is left
    drawn = np.zeros((len(arms), len(fitness)))
    np.put_along_axis(drawn, arms, 1 / arms.shape[1], axis=1)
    means: Floats = drawn @ above
    means += above.mean(axis=0) - means.mean(axis=0)
    means += alone[0]
    return means


class PoolEnds(NamedTuple):
    """What a policy ends with on the pools.

    Attributes:
        means: The last column of `Played.means`, (replicates,).
        arms: The runs that each replicate drew, (replicates, K).
        warnings: Of the policy and of the replay.
    """

    means: Floats
    arms: Ints
    warnings: tuple[str, ...]

    def less(
        self, other: PoolEnds, *, level: float = 0.95, name: str = "mean difference"
    ) -> Interval:
        """The effect: how far this policy ends above another on the same pools."""
        gain = self.means - other.means
        return pool_interval(gain, self.arms, level=level, name=name, kind="effect")


MOST_KEPT = 256
"""Ends of policies, and means over worlds, that this process keeps for the same question."""

_kept: OrderedDict[Hashable, Any] = OrderedDict()


def _once(key: Hashable, make: Callable[[], T]) -> T:
    """What was made for a key before, else what is made now; the oldest are forgotten."""
    if key not in _kept:
        _kept[key] = make()
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return cast("T", _kept[key])


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
        if rounds is None:
            rounds = int(lengths.min())
            warn_of_short_runs(frame, rounds)
        if (n := len(fitness)) < needed_runs(K):
            raise ValueError(lack_of_runs(n, K))
        if rounds < 1:
            raise ValueError(f"expected runs of a generation or more, got rounds={rounds}")
        self._set(fitness, lengths, K, rounds, reward, replicates, seed, known, bounds_of(frame))

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
        bounds: Bounds = UNBOUNDED,
    ) -> Pools:
        """Pools of runs that are a matrix already; K may be any number up to that of the runs."""
        made = cls.__new__(cls)
        made._set(fitness, lengths, arms, rounds, reward, replicates, seed, earlier, bounds)
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
        bounds: Bounds,
    ) -> None:
        self.bounds = bounds
        self.fitness, self.lengths, self.n = fitness, lengths, len(fitness)
        self.K, self.rounds, self.reward = arms, rounds, reward
        self.replicates, self.seed, self.earlier = replicates, seed, earlier
        self._ended: dict[str | PolicyClass, PoolEnds] = {}
        self._permuted: dict[tuple[str | PolicyClass, int], FloatArray] = {}

    def play(self, policy: str | PolicyClass) -> Played:
        """Replays a policy on the pools, of which what it ends with is kept: the rest is large."""
        played = play(
            self.fitness, policy, lengths=self.lengths, rounds=self.rounds, arms=self.K,
            replicates=self.replicates, seed=self.seed, reward=self.reward,
            earlier=self.earlier, bounds=self.bounds,
        )  # fmt: skip
        self._ended[policy] = played.end
        return played

    def ended(self, policy: str | PolicyClass) -> PoolEnds:
        """What a policy ends with on the pools, without what it did before."""
        if policy not in self._ended:
            self._ended[policy] = self._once("ends", policy, lambda: self._finish(policy))
        return self._ended[policy]

    def _once(self, what: Hashable, policy: str | PolicyClass, make: Callable[[], T]) -> T:
        """What was made in this process for such pools and a policy that has a name."""
        if not isinstance(policy, str) or self.earlier is not None or policy not in POLICIES:
            return make()
        return _once((what, cast("Hashable", POLICIES[policy]), *self._identity), make)

    @functools.cached_property
    def _identity(self) -> tuple[Hashable, ...]:
        """All that decides what a policy does on these pools."""
        content = (np.ascontiguousarray(each) for each in (self.fitness, self.lengths))
        digest = hashlib.sha256(b"".join(each.tobytes() for each in content)).digest()
        setting = (self.K, self.rounds, self.reward, self.replicates, self.seed)
        return (digest, self.fitness.shape, *setting)

    def _finish(self, policy: str | PolicyClass) -> PoolEnds:
        with noted() as caught:
            means, arms = final_fitness(
                self.fitness, policy, lengths=self.lengths, rounds=self.rounds, arms=self.K,
                replicates=self.replicates, seed=self.seed, reward=self.reward,
                earlier=self.earlier,
            )  # fmt: skip
        if _counts_all_arms(policy, self.fitness, self.lengths, self.rounds):
            means = _mean_alone(self.fitness, arms, self.rounds)[:, -1].copy()
        return PoolEnds(means, arms, tuple(dict.fromkeys(str(each.message) for each in caught)))

    @property
    def off_scale(self) -> bool:
        """Whether policies receive raw fitness although it leaves [0, 1]."""
        low, high = np.fmin.reduce(self.fitness, axis=None), np.fmax.reduce(self.fitness, axis=None)
        return self.reward == "best_fitness" and bool(low < 0 or high > 1)

    @property
    def rounding(self) -> float:
        """How far two means over pools that are equal may differ by the rounding of their sums."""
        return 1e-12 * float(np.fmax.reduce(np.abs(self.fitness), axis=None))

    def nothing(self, policy: str | PolicyClass) -> bool:
        """Whether a policy ends with nothing ok on some pool."""
        return bool(np.isnan(self.ended(policy).means).any())

    def ends(self, policy: str | PolicyClass) -> FloatArray:
        """Best fitness after all pulls, (replicates,)."""
        if self.nothing(policy):
            raise ValueError(NOTHING)
        return self.ended(policy).means

    def effect(
        self, a: str | PolicyClass, b: str | PolicyClass, *, level: float = 0.95
    ) -> Interval:
        """Returns the final fitness of policy a minus b, with its interval over runs.

        Raises:
            ValueError: There is one pull or one arm, or nothing was ever ok on some pool.
        """
        if reason := nothing_to_choose(self.K, self.rounds):
            raise ValueError(reason)
        for each in (a, b):
            self.ends(each)  # refuses pools on which nothing was ever ok
        one, other = self.ended(a), self.ended(b)
        texts = dict.fromkeys([*one.warnings, *other.warnings])
        for text in texts:
            warn(text, ReplayWarning)
        found = one.less(other, level=level, name=f"{label_of(a)} less {label_of(b)}")
        return replace(found, note=IDENTICAL) if IDENTICAL in texts else found

    def null_p(self, a: str | PolicyClass, b: str | PolicyClass, *, above: float = 0.0) -> float:
        """Probability of at least the effect of a over b in worlds without better arms.

        Worlds are drawn until ENOUGH of them do as well, or there are MOST.

        Args:
            a: A policy.
            b: The one it is compared with.
            above: A p-value that is known besides: drawing ends once this one cannot exceed it, and
                a value that is not above it is then returned.
        """
        value = float(np.mean(self.ends(a) - self.ends(b))) - self.rounding
        return tail_p(value, self.permuted_effects(a, b, value, above=above), ENOUGH)

    def permuted_effects(
        self, a: str | PolicyClass, b: str | PolicyClass, value: float, *, above: float = 0.0
    ) -> FloatArray:
        """Effects in worlds without better arms, until ENOUGH reach `value` or there are MOST.

        Or until p is sure not to exceed `above`: it is largest if all further draws are hits.
        """
        drawn = np.empty(0)
        while len(drawn) < MOST and (hits := (drawn >= value).sum()) < ENOUGH:
            if above * (1 + len(drawn) + ENOUGH - 1 - hits) >= ENOUGH:
                break
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
            self._permuted[policy, batch] = self._once(
                ("permuted", batch), policy, lambda: self._worlds_of(policy, batch)
            )
        return self._permuted[policy, batch]

    def _worlds_of(self, policy: str | PolicyClass, batch: int) -> FloatArray:
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
        if _counts_all_arms(policy, self.fitness, self.lengths, self.rounds):  # as in `play`
            alone = np.fmax.accumulate(worlds, axis=2)[:, :, self.rounds].reshape(-1)
            return np.asarray(alone[rows].reshape(WORLDS, -1).mean(axis=1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PolicyWarning)  # `play` has said it
            ends, _ = final_fitness(
                worlds.reshape(-1, worlds.shape[2]), policy, lengths=None, arms=rows,
                replicates=len(rows), rounds=min(self.rounds, fitness.shape[1] - 1),
                reward=self.reward, seed=int(rng.integers(2**31)), earlier=learned_from,
            )  # fmt: skip
        return np.asarray(ends.reshape(WORLDS, -1).mean(axis=1))


def _exchanged(fitness: Floats, worlds: int, rng: np.random.Generator) -> Floats:
    """Runs whose increments are exchanged, (worlds, runs, generations + 1)."""
    known = np.where(np.isnan(fitness), np.fmin.reduce(fitness, axis=None), fitness)
    steps = np.diff(np.fmax.accumulate(known, axis=1), axis=1, prepend=0.0)
    order = rng.random((worlds, *steps.shape)).argsort(axis=1)
    return np.asarray(np.take_along_axis(steps[None], order, axis=1).cumsum(axis=2))
