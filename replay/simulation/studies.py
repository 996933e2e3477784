"""Two policies in many studies at once, whose runs are drawn from those of a pilot.

Each study has its own runs, drawn with replacement, and plays both policies on pools of them as
`Pools` does. Many studies are one call of `replay.simulate`, since the arms of a replicate may be
any rows of one matrix.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evo.policies import PolicyClass
from evo.policies.base import Floats, Ints
from replay.simulation.arms import draw_arms
from replay.simulation.effects import pool_interval
from replay.simulation.pools import Pools, is_single, noted
from replay.simulation.simulate import simulate
from replay.statistics.intervals import Interval

REPLICATES = 250
"""Pools of each study, at least: their noise adds less than a twentieth to its standard error."""

TOGETHER = 64
"""Studies simulated at once."""


def drawn_effects(
    pools: Pools,
    a: str | PolicyClass,
    b: str | PolicyClass,
    n: int,
    *,
    studies: int,
    level: float,
    rng: np.random.Generator,
) -> Iterator[Interval]:
    """Effects of policy a less policy b in studies of n runs drawn with replacement from the pools.

    Args:
        pools: The pilot; K, rounds, reward and seed are its own.
        a: A policy.
        b: The one it is compared with.
        n: Runs of each study, more than K.
        studies: Number of studies.
        level: Nominal level of the intervals.
        rng: Which runs are drawn, and the key of the policies' own draws.

    Yields:
        The effect of each study with its interval over the study's runs.
    """
    apart = n // pools.K  # pools of one shuffle of the runs
    replicates = -(-REPLICATES // apart) * apart
    for first in range(0, studies, TOGETHER):
        count = min(TOGETHER, studies - first)
        rows = rng.integers(0, pools.n, (count, n))
        seed = int(rng.integers(2**31))
        arms = draw_arms(n, pools.K, count * replicates, seed=seed, replace=False)
        gains = np.subtract(*(_ends(pools, policy, rows, arms, seed) for policy in (a, b)))
        own = arms.reshape(count, replicates, pools.K)
        for gain, drawn in zip(gains.reshape(count, replicates), own, strict=True):
            yield pool_interval(gain, drawn, level=level, kind="effect")


def _ends(pools: Pools, policy: str | PolicyClass, rows: Ints, arms: Ints, seed: int) -> Floats:
    """Best fitness of a policy after all pulls, (replicates,), as `Played.means` ends.

    Args:
        pools: The pilot.
        policy: The policy.
        rows: The pilot's runs that are those of each study, (studies, n).
        arms: Which of the n runs each replicate drew, (replicates, K), study by study.
        seed: Key of the policy's draws.
    """
    studies, n = rows.shape
    fitness, lengths = pools.fitness[rows.ravel()], pools.lengths[rows.ravel()]
    where = arms + np.repeat(np.arange(studies) * n, len(arms) // studies)[:, None]
    with noted():
        ends = simulate(
            fitness, policy, rounds=pools.rounds, arms=where, replicates=len(where), seed=seed,
            reward=pools.reward, lengths=lengths,
        ).best_fitness[:, -1]  # fmt: skip
    if not is_single(policy):
        return ends
    reached = np.fmax.accumulate(fitness, axis=1)[:, min(pools.rounds, fitness.shape[1] - 1)]
    known = ~np.isnan(fitness[:, 1 : pools.rounds + 1]).any(axis=1) & (lengths >= pools.rounds)
    whole = np.asarray(known.reshape(studies, n).all(axis=1))
    means = reached[where].mean(axis=1).reshape(studies, -1)
    means += (reached.reshape(studies, n).mean(axis=1) - means.mean(axis=1))[:, None]
    return np.where(whole[:, None], means, ends.reshape(studies, -1)).ravel()
