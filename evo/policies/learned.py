"""Policies that learn from earlier runs how a run goes on.

Both are told the best fitness of an arm, never a rank, since they compare it with that of the
earlier runs. These should be runs of the same task, model and N, and none of the arms.

    policy = functools.partial(FreezeThaw, earlier=replay.fitness_matrix(frame))
    replay.simulate(fitness, policy, rounds=24, arms=8)
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evo.policies.base import (
    BasePolicy,
    Bools,
    Floats,
    Ints,
    PolicyClass,
    PolicyWarning,
    Rng,
    Shape,
)
from evo.policies.draws import Draws
from evo.warning import warn

FEWEST_EARLIER = 5
"""Earlier runs that a policy needs to learn anything."""

QUANTILES = (0.25, 0.5, 0.75, 0.9)
"""Quantiles of the earlier runs that `OptimalStopping` tries."""

FENCE = 0.3
"""Standard errors by which leaving arms must gain over the earlier runs before it is done."""

POOLS = 400
"""Pools of earlier runs over which the rule is replayed."""


class LearnedPolicy(BasePolicy):
    """Base class of policies that learn from earlier runs.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers.
        earlier: Best fitness of earlier runs, (runs, generations + 1), generation 0 first, at least
            5 runs; NaN before the first fitness of a run and after its end. Or for each replicate
            its own earlier runs, (replicates, runs, generations + 1). None: nothing is known,
            and the policy pulls one arm as `single` does, with a warning.
        learned: What another policy learned (its attribute `learned`), in place of earlier runs.

    Attributes:
        pulls: (replicates, arms), pulls observed so far.
        last: (replicates, arms), best fitness of the arm; what is expected of it before its first
            pull.

    Example:
        >>> issubclass(evo.policies.FreezeThaw, evo.policies.LearnedPolicy)
        True
    """

    receives: ClassVar[str] = "best_fitness"
    """The reward that this policy is made for, whatever reward others receive."""

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        earlier: npt.ArrayLike | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.pulls: Ints = np.zeros(shape, dtype=np.intp)
        self.last: Floats = np.zeros(shape)
        self._all = np.arange(self.replicates)
        self.learned: dict[str, Any] | None = None if learned is None else dict(learned)
        if learned is None and earlier is not None:
            self.learned = self._learn(_checked(earlier, self.replicates))
        if self.learned is None:
            warn(
                f"{type(self).__name__} was given no earlier runs: it pulls one arm, as `single` "
                "does; give it earlier= in Python, the best fitness of runs of the same task, "
                "model and N",
                PolicyWarning,
            )
        else:
            self._set_up(self.learned)

    @abstractmethod
    def _learn(self, earlier: Floats) -> dict[str, Any]:
        """What is learned from (replicates or 1, runs, generations + 1), as lists and numbers."""

    @abstractmethod
    def _set_up(self, learned: Mapping[str, Any]) -> None:
        """Takes over what was learned."""

    @abstractmethod
    def _pick(self, open_arms: Bools) -> Ints:
        """The arm to pull, of a policy that has learned something."""

    def ask(self, open_arms: Bools) -> Ints:
        """The arm to pull; without earlier runs the first open one."""
        first: Ints = open_arms.argmax(axis=1)
        return first if self.learned is None else self._pick(open_arms)

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Count the pulls and keep the best fitness of each arm."""
        self.pulls[self._all, arm] += 1
        self.last[self._all, arm] = reward


class OptimalStopping(LearnedPolicy):
    """Looks at each arm once, and leaves it for the next one if it lies below the earlier runs.

    After `at` pulls an arm is compared with the q-quantile of the earlier runs at that depth, and
    is left if it lies below. Where too few pulls remain to judge another arm, or none is left, the
    best arm gets the rest. The idea is that of Weitzman, Optimal search for the best alternative,
    1979: a search goes on while what it may find is worth more than what it costs. His reservation
    values are replaced by one quantile and one depth, which are chosen by replaying the rule over
    pools of the earlier runs. "Never leave" is among the choices and stands unless another gains
    more than `FENCE` standard errors.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers.
        earlier: See `LearnedPolicy`.
        q: Quantile, in [0, 1]; None: chosen. 0 never leaves an arm.
        at: Pulls after which an arm is judged, at least 1; None: chosen among powers of two.
        learned: See `LearnedPolicy`.

    Example:
        >>> made = replay.simulate(
        ...     fitness, evo.policies.OptimalStopping, rounds=8, replicates=1, earlier=fitness
        ... )
        >>> made.pulls.tolist()
        [[0, 0, 0, 0, 0, 0, 0, 0]]
    """

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        earlier: npt.ArrayLike | None = None,
        q: float | None = None,
        at: int | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> None:
        if q is not None and not 0 <= q <= 1:
            raise ValueError(f"expected a quantile q within [0, 1], got {q!r}")
        if at is not None and at < 1:
            raise ValueError(f"expected to judge an arm after at least 1 pull, got at={at!r}")
        self._q, self._at_pull = q, at
        super().__init__(shape, rounds=rounds, rng=rng, earlier=earlier, learned=learned)

    def _learn(self, earlier: Floats) -> dict[str, Any]:
        quantiles = QUANTILES if self._q is None else (self._q,)
        found = [
            _stopping(each, quantiles, self._at_pull, self.arms, self.rounds) for each in earlier
        ]
        return {name: [each[name] for each in found] for name in ("q", "at", "threshold")}

    def _set_up(self, learned: Mapping[str, Any]) -> None:
        self.at: Ints = np.broadcast_to(np.array(learned["at"], dtype=np.intp), self.replicates)
        stated = [-math.inf if each is None else each for each in learned["threshold"]]
        self.threshold: Floats = np.broadcast_to(np.array(stated), self.replicates)
        self.left: Bools = np.zeros(self.pulls.shape, dtype=bool)

    def _pick(self, open_arms: Bools) -> Ints:
        begun = self.pulls > 0
        kept, fresh = open_arms & begun & ~self.left, open_arms & ~begun
        remaining = self.rounds - self.pulls.sum(axis=1)
        enough = (remaining > self.at) | ~begun.any(axis=1)
        best = np.where(open_arms & begun, self.last, -np.inf)
        back = np.where((open_arms & begun).any(axis=1), best.argmax(axis=1), fresh.argmax(axis=1))
        onward = np.where(enough & fresh.any(axis=1), fresh.argmax(axis=1), back)
        arm: Ints = np.where(kept.any(axis=1), kept.argmax(axis=1), onward)
        return arm

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Judge an arm that has had its pulls."""
        super().tell(arm, reward)
        if self.learned is not None:
            judged = self.pulls[self._all, arm] == self.at
            self.left[self._all, arm] |= judged & (reward < self.threshold)


class FreezeThaw(LearnedPolicy):
    """Pulls the arm with the largest expected improvement within the pulls that are left.

    For each arm, the fitness that it would reach with all remaining pulls is forecast from its
    fitness and depth by linear regression over the earlier runs; its errors are taken for normal.
    The arm with the largest expected improvement over the best fitness so far is pulled.

    After Swersky, Snoek & Adams, Freeze-thaw Bayesian optimization, 2014, much simplified: there is
    no Gaussian process over configurations and no prior of exponential decay, the arms are
    exchangeable runs of one configuration, the curves' mean and covariance are those of the earlier
    runs, a forecast rests on an arm's present fitness alone, and expected improvement takes the
    place of entropy search.

    Args:
        shape: (replicates, arms).
        rounds: Number of rounds that are planned.
        rng: Source of random numbers.
        earlier: See `LearnedPolicy`.
        learned: See `LearnedPolicy`.

    Example:
        >>> made = replay.simulate(
        ...     fitness, evo.policies.FreezeThaw, rounds=8, replicates=1, earlier=fitness
        ... )
        >>> made.pulls.tolist()
        [[0, 0, 0, 0, 0, 0, 0, 0]]
    """

    def _learn(self, earlier: Floats) -> dict[str, Any]:
        mean = earlier.mean(axis=1)
        apart = earlier - mean[:, None]
        covariance = apart.transpose(0, 2, 1) @ apart / (earlier.shape[1] - 1)
        if len(earlier) > 1:  # of a replay: too large to be written down, and never written
            return {"mean": mean, "covariance": covariance}
        return {"mean": mean.tolist(), "covariance": covariance.tolist()}

    def _set_up(self, learned: Mapping[str, Any]) -> None:
        self._mean = np.asarray(learned["mean"], dtype=np.float64)
        self._covariance = np.asarray(learned["covariance"], dtype=np.float64)
        self._of = (self._all if len(self._mean) > 1 else np.zeros_like(self._all))[:, None]
        self.last[:] = self._mean[self._of[:, 0], 0][:, None]
        variance = np.diagonal(self._covariance, axis1=1, axis2=2)
        self._least = 1e-12 * variance.max(axis=1)[self._of]
        self._variance = variance

    def forecast(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of what each arm would reach, (replicates, arms) each."""
        deepest, of = self._mean.shape[1] - 1, self._of
        remaining = (self.rounds - self.pulls.sum(axis=1))[:, None]
        now = np.minimum(self.pulls, deepest)
        then = np.minimum(self.pulls + np.maximum(remaining, 0), deepest)
        spread = self._variance[of, now]
        known = spread > self._least
        shared = self._covariance[of, now, then]
        slope = np.where(known, shared / np.where(known, spread, 1.0), 0.0)
        mean = self._mean[of, then] + slope * (self.last - self._mean[of, now])
        rest = np.maximum(self._variance[of, then] - slope * shared, 0.0)
        return np.maximum(mean, self.last), np.sqrt(np.maximum(rest, self._least))

    def _pick(self, open_arms: Bools) -> Ints:
        from scipy.special import ndtr

        mean, deviation = self.forecast()
        gain = mean - self.last.max(axis=1, keepdims=True)
        scale = np.where(deviation > 0, deviation, 1.0)
        z = gain / scale
        density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        improvement = np.where(
            deviation > 0, scale * (z * ndtr(z) + density), np.maximum(gain, 0.0)
        )
        self._index = np.where(open_arms, improvement, -np.inf)
        arm: Ints = self._index.argmax(axis=1)
        return arm

    def inspect(self) -> Mapping[str, Floats]:
        """`improvement` expected of each arm, as of the last ask; minus infinity where closed."""
        known = self.learned is not None and self.pulls.any()
        return {"improvement": self._index.copy()} if known else {}


def optimal_stopping(
    earlier: npt.ArrayLike, q: float | None = None, at: int | None = None
) -> PolicyClass:
    """Returns `OptimalStopping` that learns from earlier runs.

    Args:
        earlier: Best fitness of earlier runs, (runs, generations + 1).
        q: Quantile below which an arm is left; None: chosen by replay over the earlier runs.
        at: Pulls after which an arm is judged; None: chosen likewise.

    Returns:
        A policy to give to `replay.simulate`, `replay.judge` or `evo.allocate_live`.

    Example:
        >>> policy = evo.policies.optimal_stopping(fitness, q=0.5, at=1)
        >>> replay.simulate(fitness, policy, rounds=4, arms=2, replicates=10).pulls.shape
        (10, 4)
    """
    return functools.partial(OptimalStopping, earlier=earlier, q=q, at=at)


def freeze_thaw(earlier: npt.ArrayLike) -> PolicyClass:
    """Returns `FreezeThaw` that learns from earlier runs.

    Args:
        earlier: Best fitness of earlier runs, (runs, generations + 1).

    Returns:
        A policy to give to `replay.simulate`, `replay.judge` or `evo.allocate_live`.

    Example:
        >>> policy = evo.policies.freeze_thaw(fitness)
        >>> replay.simulate(fitness, policy, rounds=4, arms=2, replicates=10).pulls.shape
        (10, 4)
    """
    return functools.partial(FreezeThaw, earlier=earlier)


def learns(policy: object) -> bool:
    """Whether a policy, or a `functools.partial` of one, learns from earlier runs.

    Example:
        >>> evo.policies.learns(evo.policies.FreezeThaw), evo.policies.learns(evo.policies.UCB1)
        (True, False)
    """
    build = getattr(policy, "func", policy)
    return isinstance(build, type) and issubclass(build, LearnedPolicy)


def reward_of(policy: object, reward: Any) -> Any:
    """The reward that a policy receives: its own if it is made for one, else the one given."""
    return getattr(getattr(policy, "func", policy), "receives", reward)


def _checked(earlier: npt.ArrayLike, replicates: int) -> Floats:
    """Earlier runs as (replicates or 1, runs, generations + 1) without NaN."""
    array = np.asarray(earlier, dtype=np.float64)
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or len(array) not in (1, replicates) or array.shape[2] < 2:
        raise ValueError(
            "expected earlier runs of shape (runs, generations + 1), best fitness by generation, "
            f"got shape {np.shape(earlier)!r}; replay.fitness_matrix makes it of a frame"
        )
    if array.shape[1] < FEWEST_EARLIER:
        raise ValueError(
            f"expected at least {FEWEST_EARLIER} earlier runs to learn from, got {array.shape[1]}"
        )
    if np.isinf(array).any() or np.isnan(array).all(axis=(1, 2)).any():
        raise ValueError("expected earlier runs with finite fitness, got an infinite one or none")
    carried = np.fmax.accumulate(array, axis=2)
    lowest = np.nanmin(carried, axis=(1, 2), keepdims=True)
    return np.where(np.isnan(carried), lowest, carried)


def _stopping(
    earlier: Floats, quantiles: tuple[float, ...], at: int | None, arms: int, rounds: int
) -> dict[str, Any]:
    """The quantile, depth and threshold with the best end over pools of (runs, generations + 1)."""
    runs, deepest = len(earlier), earlier.shape[1] - 1
    arms = min(arms, runs)
    depths = [at] if at else [2**power for power in range(max(1, rounds // 4).bit_length())]
    order = Draws(runs, POOLS).random((POOLS, runs)).argsort(axis=1)
    pools = earlier[order[:, :arms]]
    alone = earlier[:, min(rounds, deepest)]
    stated = at is not None and len(quantiles) == 1
    least = -math.inf if stated else FENCE * float(alone.std(ddof=1)) / math.sqrt(runs)
    found: dict[str, Any] = {"q": 0.0, "at": depths[0], "threshold": None}
    for depth in (depth for depth in depths if depth < max(rounds, 2)):
        for q in quantiles:
            early = earlier[:, min(depth, deepest)]
            threshold = float(np.quantile(early, q)) if q > 0 else -math.inf
            gain = float(_ends(pools, depth, threshold, rounds).mean() - alone.mean())
            if gain > least and q > 0:
                least, found = gain, {"q": q, "at": depth, "threshold": threshold}
    return found


def _ends(pools: Floats, at: int, threshold: float, rounds: int) -> Floats:
    """Best fitness of the stopping rule over pools (pools, arms, generations + 1), (pools,)."""
    deepest = pools.shape[2] - 1
    most = max(1, min(pools.shape[1], (rounds - 1) // at))  # arms that can be begun
    early = pools[:, :most, min(at, deepest)]
    kept = early >= threshold
    stays = kept.any(axis=1)
    chosen = np.where(stays, kept.argmax(axis=1), early.argmax(axis=1))
    begun = np.where(stays, chosen + 1, most)
    depth = np.clip(rounds - (begun - 1) * at, 0, deepest)
    seen = np.where(np.arange(most) < begun[:, None], early, -np.inf).max(axis=1)
    ends: Floats = np.maximum(pools[np.arange(len(pools)), chosen, depth], seen)
    return ends
