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
    """What one round revealed, (replicates,) each; NaN where nothing was ok.

    That is the arm, its fitness before and after; `known` gives that of every arm after the pull,
    (replicates, arms); `lowest` is the lowest generation 0 of any arm, NaN: none is known.
    """

    arm: Ints
    before: Floats
    after: Floats
    known: Callable[[], Floats]
    lowest: Floats | float = math.nan


Reward = Callable[[Pull], Floats]
"""(replicates,) rewards of a pull, none of them NaN."""


def best_fitness(pull: Pull) -> Floats:
    """The arm's fitness after the pull: the paper's reward."""
    return _filled(pull.after, pull)


def improvement(pull: Pull) -> Floats:
    """By how much the arm's fitness rose."""
    return _filled(pull.after, pull) - _filled(pull.before, pull)


def improved(pull: Pull) -> Floats:
    """1 if the arm's fitness rose, or became a number at all, else 0."""
    new = np.isnan(pull.before) & ~np.isnan(pull.after)
    return (new | (pull.after > pull.before)).astype(np.float64)


def rank(pull: Pull) -> Floats:
    """Share of the other arms whose fitness is lower, ties counting half; 0.5 for a lone arm."""
    known = _filled(pull.known(), pull)
    after = _filled(pull.after, pull)[:, None]
    others = known.shape[1] - 1
    if others == 0:
        return np.full(len(known), 0.5)
    ties = (known == after).sum(axis=1) - 1
    share: Floats = ((known < after).sum(axis=1) + ties / 2) / others
    return share


def scaled(pull: Pull) -> Floats:
    """The arm's fitness from 0 at the lowest to 1 at the highest arm so far; 0.5 if all equal."""
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
    """The reward of a name; a function is taken as it is.

    Raises:
        ValueError: No reward has that name.
    """
    if not isinstance(reward, str):
        return reward
    if reward not in REWARDS:
        hint = meant(reward, REWARDS)
        raise ValueError(f"expected a reward out of {sorted(REWARDS)}, got {reward!r}{hint}")
    return REWARDS[reward]


def default_reward(task: TaskRecord) -> str:
    """The reward of a live allocation: best_fitness on the scale from 0 to 1, else the rank.

    A task declares that scale by `scale = "unit"` in its task.toml. The shipped constructions,
    which are measured against the best published, and data sets, whose fitness is a mean of
    scores, have it anyway.
    """
    config = task.files.get("task.toml", "")
    declared = msgspec.toml.decode(config).get("scale") if config else None
    unit = declared == "unit" or bool(task.instances_file) or task.name in UNIT_SCALE
    return "best_fitness" if unit else "rank"


def _filled(fitness: Floats, pull: Pull) -> Floats:
    """Fitness, (replicates,) or (replicates, arms), with a number for arms without one."""
    missing = np.isnan(fitness)
    if not missing.any():
        return fitness
    lowest = np.where(np.isnan(pull.lowest), 0.0, pull.lowest)
    return np.where(
        missing, lowest[:, None] if fitness.ndim > 1 and lowest.ndim else lowest, fitness
    )
