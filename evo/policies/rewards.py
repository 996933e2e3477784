"""Rewards: the number a policy receives for a pull, as named pure functions of the pull.

None of them clips: fitness of any scale and sign keeps its signal. While nothing is ok on an arm
its fitness is not a number but a reward must be one: such an arm counts as the lowest generation 0
of any arm, or as 0 where none is known. This touches rewards alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from evo.logs.records import TaskRecord
from evo.plugins import meant
from evo.policies.base import Floats, Ints


@dataclass(frozen=True)
class Pull:
    """Holds what one round revealed, for every replicate at once.

    Fitness is the best of the arm so far, and NaN while no program of the arm is `ok`.

    Attributes:
        arm: The arm that was pulled, shape (replicates,).
        before: Its fitness before the pull, shape (replicates,).
        after: Its fitness after the pull, shape (replicates,).
        known: Returns the fitness of every arm after the pull, shape (replicates, arms).
        lowest: The lowest fitness of generation 0 among all arms; NaN if none is known.

    Example:
        >>> pull = evo.rewards.Pull(
        ...     np.array([1]), np.array([0.25]), np.array([0.5]), lambda: np.array([[0, 0.5, 1]])
        ... )
        >>> (pull.after - pull.before).tolist()
        [0.25]
    """

    arm: Ints
    before: Floats
    after: Floats
    known: Callable[[], Floats]
    lowest: Floats | float = math.nan


Reward = Callable[[Pull], Floats]
"""(replicates,) rewards of a pull, none of them NaN."""


def best_fitness(pull: Pull) -> Floats:
    """Returns the arm's best fitness after the pull, which is the paper's reward.

    Args:
        pull: What the round revealed.

    Returns:
        The rewards, shape (replicates,), none of them NaN.

    Example:
        >>> pull = evo.rewards.Pull(
        ...     np.array([1]), np.array([0.25]), np.array([0.5]), lambda: np.array([[0, 0.5, 1]])
        ... )
        >>> evo.rewards.best_fitness(pull).tolist()
        [0.5]
    """
    return _filled(pull.after, pull)


def improvement(pull: Pull) -> Floats:
    """Returns by how much the pull raised the arm's best fitness, 0 or more.

    Args:
        pull: What the round revealed.

    Returns:
        The rewards, shape (replicates,), none of them NaN.

    Example:
        >>> pull = evo.rewards.Pull(
        ...     np.array([1]), np.array([0.25]), np.array([0.5]), lambda: np.array([[0, 0.5, 1]])
        ... )
        >>> evo.rewards.improvement(pull).tolist()
        [0.25]
    """
    return _filled(pull.after, pull) - _filled(pull.before, pull)


def improved(pull: Pull) -> Floats:
    """Returns 1 if the pull raised the arm's best fitness, or gave it its first one, else 0.

    Args:
        pull: What the round revealed.

    Returns:
        The rewards, shape (replicates,), none of them NaN.

    Example:
        >>> pull = evo.rewards.Pull(
        ...     np.array([1]), np.array([0.25]), np.array([0.5]), lambda: np.array([[0, 0.5, 1]])
        ... )
        >>> evo.rewards.improved(pull).tolist()
        [1.0]
    """
    new = np.isnan(pull.before) & ~np.isnan(pull.after)
    return (new | (pull.after > pull.before)).astype(np.float64)


def rank(pull: Pull) -> Floats:
    """Returns the share of the other arms whose fitness is lower, in [0, 1].

    Ties count half, and a single arm has 0.5.

    Args:
        pull: What the round revealed.

    Returns:
        The rewards, shape (replicates,), none of them NaN.

    Example:
        >>> pull = evo.rewards.Pull(
        ...     np.array([1]), np.array([0.25]), np.array([0.5]), lambda: np.array([[0, 0.5, 1]])
        ... )
        >>> evo.rewards.rank(pull).tolist()
        [0.5]
    """
    known = _filled(pull.known(), pull)
    after = _filled(pull.after, pull)[:, None]
    others = known.shape[1] - 1
    if others == 0:
        return np.full(len(known), 0.5)
    ties = (known == after).sum(axis=1) - 1
    share: Floats = ((known < after).sum(axis=1) + ties / 2) / others
    return share


def scaled(pull: Pull) -> Floats:
    """Returns the arm's fitness scaled from 0 at the lowest to 1 at the highest arm so far.

    It is 0.5 if all arms are equal.

    Args:
        pull: What the round revealed.

    Returns:
        The rewards, shape (replicates,), none of them NaN.

    Example:
        >>> pull = evo.rewards.Pull(
        ...     np.array([1]), np.array([0.25]), np.array([0.5]), lambda: np.array([[0, 0.5, 1]])
        ... )
        >>> evo.rewards.scaled(pull).tolist()
        [0.5]
    """
    known = _filled(pull.known(), pull)
    low = known.min(axis=1)
    width = known.max(axis=1) - low
    flat = width == 0.0
    return np.where(flat, 0.5, (_filled(pull.after, pull) - low) / np.where(flat, 1.0, width))


UNIT_SCALE = ("circle_packing", "heilbronn_triangle", "min_max_distance")

REWARDS: dict[str, Reward] = {
    "best_fitness": best_fitness,
    "improvement": improvement,
    "improved": improved,
    "rank": rank,
    "scaled": scaled,
}
"""Every reward by name."""


def find_reward(reward: str | Reward) -> Reward:
    """Returns the reward function of a name.

    Args:
        reward: A name in `evo.rewards.REWARDS`, or a function, which is returned as it is.

    Returns:
        A function of a `Pull` that returns rewards of shape (replicates,).

    Raises:
        ValueError: No reward has that name.

    Example:
        >>> evo.rewards.find_reward("rank") is evo.rewards.rank
        True
    """
    if not isinstance(reward, str):
        return reward
    if reward not in REWARDS:
        hint = meant(reward, REWARDS)
        raise ValueError(f"expected a reward out of {sorted(REWARDS)}, got {reward!r}{hint}")
    return REWARDS[reward]


def default_reward(task: TaskRecord) -> str:
    """Returns the name of the reward that a live allocation uses by default.

    A task has the scale [0, 1] if its task.toml states `scale = "unit"`. The shipped constructions,
    whose fitness is relative to the best published one, and data sets, whose fitness is a mean of
    scores, have it as well.

    Args:
        task: The record of the task, such as `log.header.task`.

    Returns:
        "best_fitness" for a task on the scale [0, 1], "rank" for all others.

    Example:
        >>> evo.rewards.default_reward(log.header.task)
        'best_fitness'
    """
    return "best_fitness" if has_unit_scale(task) or task.name in UNIT_SCALE else "rank"


def has_unit_scale(task: TaskRecord) -> bool:
    """Returns whether fitness lies in [0, 1]: task.toml states it, or it is a mean of scores."""
    config = task.files.get("task.toml", "")
    declared = msgspec.toml.decode(config).get("scale") if config else None
    scored = bool(task.instances_file) and task.scores == "unit"
    return declared == "unit" or scored


def _filled(fitness: Floats, pull: Pull) -> Floats:
    """Fitness, (replicates,) or (replicates, arms), with a number for arms without one."""
    missing = np.isnan(fitness)
    if not missing.any():
        return fitness
    lowest = np.where(np.isnan(pull.lowest), 0.0, pull.lowest)
    return np.where(
        missing, lowest[:, None] if fitness.ndim > 1 and lowest.ndim else lowest, fitness
    )
