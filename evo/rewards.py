"""Rewards by name, as users import them; they are defined in `evo.policies.rewards`."""

from evo.policies.rewards import (
    REWARDS,
    UNIT_SCALE,
    Pull,
    Reward,
    best_fitness,
    default_reward,
    find_reward,
    improved,
    improvement,
    rank,
    scaled,
)

__all__ = [
    "REWARDS",
    "UNIT_SCALE",
    "Pull",
    "Reward",
    "best_fitness",
    "default_reward",
    "find_reward",
    "improved",
    "improvement",
    "rank",
    "scaled",
]
