"""What a policy is, and the bookkeeping that most policies share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from evo.plugins import MistakenType
from evo.warning import warn

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
Shape = tuple[int, int]
"""(replicates, arms)."""
Size = int | tuple[int, ...]
"""Of draws: (replicates,) or (replicates, width)."""


class PolicyWarning(UserWarning):
    """A policy cannot work as its name says with the given settings, such as too few rounds.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     policy = evo.policies.UCB1((1, 8), rounds=4, rng=evo.policies.Draws(0, 1))
        >>> issubclass(caught[0].category, evo.policies.PolicyWarning)
        True
    """


class Rng(Protocol):
    """The source of a policy's random numbers.

    It is a `Draws`, or a NumPy generator where keyed draws are not needed.

    Example:
        >>> evo.policies.Draws(seed=0, replicates=2).random((2, 3)).shape
        (2, 3)
    """

    def random(self, size: Size, /) -> Floats:
        """Uniform on [0, 1), shape `size`."""

    def standard_normal(self, size: Size, /) -> Floats:
        """Standard normal, shape `size`."""


class Policy(Protocol):
    """Picks arms by ask and tell, for many independent replicates at once.

    Built as `policy(shape, *, rounds, rng)` with shape = (replicates, arms), the number of rounds
    that are planned, and where to draw from. Each draw has shape (replicates,) or (replicates,
    width). What a policy knows is kept in public attributes; replicates never mix.

    Example:
        >>> policy = evo.policies.BestArm((1, 2), rounds=3, rng=evo.policies.Draws(0, 1))
        >>> arm = policy.ask(np.array([[True, True]]))
        >>> policy.tell(arm, np.array([0.5]), np.array([1.0]))
        >>> policy.ask(np.array([[True, True]])).tolist()
        [1]
    """

    def ask(self, open_arms: Bools, /) -> Ints:
        """The arm to pull in each replicate, shape (replicates,).

        Args:
            open_arms: (replicates, arms); at least one arm of each replicate is open, and only an
                open arm may be picked.
        """

    def tell(self, arm: Ints, reward: Floats, cost: Floats, /) -> None:
        """Receives the rewards of the requested pulls, all of shape (replicates,).

        A policy that does not care for costs may leave the third argument out. Once a replicate is
        over, its observations no longer mean anything and its picks are not used.

        With several rounds in flight, rewards come late, maybe in another order than asked, with
        other asks between. An arm has one pull in flight at most (it is closed meanwhile), so what
        `tell` needs from the ask, such as the probability of the pick, is best kept by arm.
        """


class PolicyClass(Protocol):
    """Builds a policy: a policy class, or any callable with the same arguments.

    Example:
        >>> import functools
        >>> build = functools.partial(evo.policies.EpsilonGreedy, epsilon=0.2)
        >>> build((1, 3), rounds=10, rng=evo.policies.Draws(0, 1)).epsilon
        0.2
    """

    def __call__(self, shape: Shape, /, *, rounds: int, rng: Rng) -> Policy:
        """Build the policy for `shape` = (replicates, arms)."""


def built(build: PolicyClass, shape: Shape, *, rounds: int, rng: Rng) -> Policy:
    """Returns a policy; what a user's class raises meanwhile is a ValueError that names it."""
    try:
        return build(shape, rounds=rounds, rng=rng)
    except (ValueError, MistakenType):
        raise
    except Exception as error:  # a stranger's class may raise anything
        kind = getattr(build, "func", build)
        if str(getattr(kind, "__module__", "")).partition(".")[0] == "evo":
            raise  # a bug of this package shows its traceback
        name = getattr(kind, "__name__", type(kind).__name__)
        raise ValueError(
            f"policy {name}: {name}((replicates, arms), rounds=..., rng=...), which makes one, "
            f"raised {type(error).__name__}: {error}; correct it and run again"
        ) from error


class BasePolicy(ABC):
    """Base class of policies; a subclass defines `ask`, `tell`, its state and its parameters.

    Args:
        shape: (replicates, arms), each at least 1.
        rounds: Number of rounds that are planned, at least 1.
        rng: Source of random numbers, the only one that a policy may use.

    Attributes:
        replicates: Number of independent replicates; a live allocation has one.
        arms: Number of arms.
        rounds: Number of rounds that are planned.

    Raises:
        ValueError: There is no replicate, no arm or no round.

    Example:
        >>> class First(evo.policies.BasePolicy):
        ...     def ask(self, open_arms):
        ...         return open_arms.argmax(axis=1)
        ...     def tell(self, arm, reward, cost):
        ...         pass
        >>> replay.simulate(fitness, First, rounds=3, replicates=1).pulls.tolist()
        [[0, 0, 0]]
    """

    tries_each_arm: ClassVar[int] = 0
    """Pulls of each arm before the policy adapts: fewer rounds than this allows is a warning."""

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng) -> None:
        replicates, arms = shape
        if replicates < 1 or arms < 1 or rounds < 1:
            raise ValueError(
                f"expected at least one replicate, one arm and one round, got shape {shape!r} and "
                f"rounds {rounds!r}"
            )
        needed = self.tries_each_arm * arms
        if arms > 1 and rounds < needed:
            warn(
                f"{type(self).__name__} pulls each of its {arms} arms {self.tries_each_arm} "
                f"time(s) first and has only {rounds} rounds: it never adapts. Give it at least "
                f"{needed + 1} rounds, or fewer arms.",
                PolicyWarning,
            )
        self.replicates = replicates
        self.arms = arms
        self.rounds = rounds
        self._rng = rng
        self._rows = np.arange(replicates, dtype=np.intp) * arms

    @abstractmethod
    def ask(self, open_arms: Bools) -> Ints:
        """The arm to pull in each replicate; see `Policy.ask`."""

    @abstractmethod
    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Learn the rewards of the pulled arms; see `Policy.tell`."""

    def inspect(self) -> Mapping[str, Floats]:
        """Returns what the last `ask` was based on: arrays (replicates, arms) by name."""
        return {}

    def _at(self, arm: Ints) -> Ints:
        """Positions of the pulled arms in a flattened (replicates, arms) array."""
        return self._rows + arm


class IndexPolicy(BasePolicy):
    """Pulls the open arm with the largest index, ties to the lowest arm.

    A policy of your own is a subclass with `index`, for instance one that trusts an arm's last
    reward the more, the more often it was pulled:

        class Hopeful(IndexPolicy):
            tries_each_arm = 1

            def __init__(self, shape, *, rounds, rng, hope=0.1):
                super().__init__(shape, rounds=rounds, rng=rng)
                self.hope = hope
                self.last = np.full(shape, np.inf)

            def index(self):
                return self.last + self.hope / np.maximum(self.pulls, 1)

            def tell(self, arm, reward, cost=None):
                super().tell(arm, reward)
                self.last[np.arange(self.replicates), arm] = reward

        replay.simulate(fitness, Hopeful, rounds=64)
        replay.simulate(fitness, functools.partial(Hopeful, hope=0.3), rounds=64)

    Attributes:
        pulls: (replicates, arms), pulls observed so far, as floats.

    Example:
        >>> class Last(evo.policies.IndexPolicy):
        ...     def index(self):
        ...         return np.arange(float(self.replicates * self.arms)).reshape(-1, self.arms)
        ...     def tell(self, arm, reward, cost):
        ...         pass
        >>> replay.simulate(fitness, Last, rounds=3, replicates=1).pulls.tolist()
        [[5, 5, 5]]
    """

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.pulls: Floats = np.zeros(shape)

    @abstractmethod
    def index(self) -> Floats:
        """(replicates, arms), not NaN; minus infinity is the last resort, not a closed arm."""

    def ask(self, open_arms: Bools) -> Ints:
        """The open arm with the largest index."""
        index = self.index()
        if getattr(index, "shape", None) != open_arms.shape:
            raise MistakenType(
                f"{type(self).__name__}.index: expected an array of shape {open_arms.shape}, a "
                f"number for each replicate and arm, got {described(index)}"
            )
        # a copy, since the array may be the policy's own state
        self._index = index if open_arms.all() else np.where(open_arms, index, -np.inf)
        arm: Ints = self._index.argmax(axis=1)
        largest = self._index.reshape(-1)[self._at(arm)]
        return arm if largest.min() > -np.inf else self._last_resort(arm, largest, open_arms)

    def _last_resort(self, arm: Ints, largest: Floats, open_arms: Bools) -> Ints:
        """Returns the arms where no open one of some replicate has an index above -infinity."""
        if (missing := np.isnan(largest)).any():  # NaN is the largest to argmax
            raise ValueError(
                f"{type(self).__name__}.index: expected numbers, got NaN for arm "
                f"{int(arm[missing][0])}; an arm without pulls, whose mean is 0 / 0, is pulled "
                "first with an index of infinity"
            )
        found: Ints = np.where(largest == -np.inf, open_arms.argmax(axis=1), arm)
        return found

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Count the pulls."""
        self.pulls.reshape(-1)[self._at(arm)] += 1.0

    def inspect(self) -> Mapping[str, Floats]:
        """`index`, as of the last ask; minus infinity where an arm was closed."""
        return {"index": self._index.copy()}


def described(value: object) -> str:
    """Returns in words what a policy returned, of an array its type and shape."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{value!r:.80}"


class MeanPolicy(IndexPolicy):
    """Keeps the mean reward of each arm; a policy adds `index`.

    Attributes:
        told: Rounds observed so far; the digest in journals holds this name.
        total: (replicates, arms), sum of the arm's rewards.
        mean: (replicates, arms), their mean; infinity before the first.

    Example:
        >>> class BestMean(evo.policies.MeanPolicy):
        ...     def index(self):
        ...         return self.mean
        >>> replay.simulate(fitness, BestMean, rounds=8, replicates=1).pulls.tolist()
        [[0, 1, 2, 3, 4, 5, 4, 4]]
    """

    tries_each_arm = 1

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.told: float = 0
        self.total: Floats = np.zeros(shape)
        self.mean: Floats = np.full(shape, np.inf)

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Update the means of the pulled arms."""
        at = self._at(arm)
        pulls, total = self.pulls.reshape(-1), self.total.reshape(-1)
        n, sum_ = pulls[at] + 1.0, total[at] + reward
        pulls[at], total[at] = n, sum_
        self.mean.reshape(-1)[at] = sum_ / n
        self.told += 1


def positive(name: str, value: float) -> float:
    """`value` if it is positive and finite; raises ValueError naming the parameter otherwise."""
    if not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return value


def fraction(name: str, value: float) -> float:
    """`value` if it is within [0, 1]; raises ValueError naming the parameter otherwise."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be within [0, 1], got {value!r}")
    return value


def uniform_choice(open_arms: Bools, uniform: Floats) -> Ints:
    """An open arm of each replicate with equal probability, from one uniform draw each."""
    if open_arms.all():
        any_arm: Ints = (uniform * open_arms.shape[1]).astype(np.intp)
        return any_arm
    rank = np.cumsum(open_arms, axis=1)
    wanted = np.floor(uniform * rank[:, -1])
    open_arm: Ints = (rank > wanted[:, None]).argmax(axis=1)
    return open_arm
