"""Rewards: what a policy is told about a pull, as named pure functions of it.

None of them clips: fitness above 1 keeps its signal. While nothing is ok on an arm its fitness is
not a number but a reward must be one: such a fitness counts as 0 in `best_fitness`, `improvement`
and `scaled`, and as lower than any other in `rank`. This touches rewards alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evo.policies.base import Floats, Ints


@dataclass(frozen=True)
class Pull:
    """What one round revealed, in each replicate.

    Attributes:
        arm: (replicates,), the arm that was pulled.
        before: (replicates,), its fitness until then, NaN where nothing was ok.
        after: (replicates,), its fitness with the new generation.
        known: Gives the fitness of every arm as far as known, (replicates, arms), after the pull.
    """

    arm: Ints
    before: Floats
    after: Floats
    known: Callable[[], Floats]


Reward = Callable[[Pull], Floats]
"""(replicates,) rewards of a pull, none of them NaN."""


def best_fitness(pull: Pull) -> Floats:
    """The arm's fitness after the pull: the paper's reward."""
    return _or_zero(pull.after)


def improvement(pull: Pull) -> Floats:
    """By how much the arm's fitness rose."""
    return _or_zero(pull.after) - _or_zero(pull.before)


def improved(pull: Pull) -> Floats:
    """1 if the arm's fitness rose, or became a number at all, else 0."""
    return (_or_lowest(pull.after) > _or_lowest(pull.before)).astype(np.float64)


def rank(pull: Pull) -> Floats:
    """Share of the other arms whose fitness is lower, ties counting half; 0.5 for a lone arm."""
    known = _or_lowest(pull.known())
    after = _or_lowest(pull.after)[:, None]
    others = known.shape[1] - 1
    if others == 0:
        return np.full(len(known), 0.5)
    ties = (known == after).sum(axis=1) - 1
    share: Floats = ((known < after).sum(axis=1) + ties / 2) / others
    return share


def scaled(pull: Pull) -> Floats:
    """The arm's fitness from 0 at the lowest to 1 at the highest arm so far; 0.5 if all equal."""
    known = _or_zero(pull.known())
    low = known.min(axis=1)
    width = known.max(axis=1) - low
    flat = width == 0.0
    return np.where(flat, 0.5, (_or_zero(pull.after) - low) / np.where(flat, 1.0, width))


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
        raise ValueError(f"expected a reward out of {sorted(REWARDS)}, got {reward!r}")
    return REWARDS[reward]


def _or_zero(fitness: Floats) -> Floats:
    return np.where(np.isnan(fitness), 0.0, fitness)


def _or_lowest(fitness: Floats) -> Floats:
    return np.where(np.isnan(fitness), -np.inf, fitness)
