"""Several arms as the pilot's own runs would have served them.

The kernel knows of runs only that they differ in a factor of their probabilities. It cannot see
that each run has a ceiling of its own, which is what makes several arms worth having. So where a
pilot holds at least FEWEST runs of one N that are as deep as the budget allows at that N, policies
are replayed over pools of these runs, and their gain over one run, with its interval over runs, is
that of `replay.policy_effect`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from evo.policies import PolicyWarning
from replay.logs.frames import ReplayWarning
from replay.planning.choices import Choice
from replay.planning.grid import FloatArray, GridSweep
from replay.simulation.effects import policy_effect
from replay.simulation.simulate import Replay, simulate
from replay.simulation.sizes import needed_runs

FEWEST = 8
"""Runs of one N from which on a plan replays policies over them."""

REPLICATES = 1000
"""Pools on which each policy is replayed."""

_COLUMNS = ("generations", "children", "arms", "policy", "gain", "margin", "low", "high")


def replayed_arms(
    pilot: GridSweep,
    rounds: Mapping[int, int],
    *,
    arms: Sequence[int],
    policies: Sequence[str],
    chance: float,
    seed: int = 0,
    paid: Callable[[int, int], int] | None = None,
) -> pd.DataFrame:
    """Gain of policies on several of the pilot's runs over one of them, with its margin.

    Args:
        pilot: The pilot's runs.
        rounds: Generations that the budget pays for, by N.
        arms: Numbers of arms, each tried where the runs suffice for it (`needed_runs`).
        policies: Policies; their reward is the rank.
        chance: Probability that any of them exceeds its margin where none gains (Bonferroni).
        seed: Key of the draws.
        paid: Says for N and K how many generations the budget pays for (default: `rounds`).

    Returns:
        One row per N, K and policy: generations, children, arms, policy, gain, margin, low and high
        (95 % of the outcomes of one search). None where too few runs are deep enough, or one of
        them has no fitness.
    """
    found = [
        (T, N, K, policy, deep)
        for N, most, deep in _deep(pilot, rounds)
        for K in arms if len(deep) >= needed_runs(K)
        if (T := paid(N, K) if paid else most) >= 2 * K
        for policy in policies
    ]  # fmt: skip
    rows = []
    for T, N, K, policy, deep in found:
        single = _played(deep, "single", rounds=rounds[N], arms=K, seed=seed)
        played = _played(deep, policy, rounds=T, arms=K, seed=seed)
        gain = policy_effect(single, played, level=1 - 2 * chance / len(found))
        ends = played.best_fitness[:, -1]
        limits = np.quantile(ends, [0.025, 0.975], method="inverted_cdf")
        rows.append((T, N, K, policy, gain.value, gain.value - gain.low, *limits))
    return pd.DataFrame(rows, columns=list(_COLUMNS)).dropna(subset="margin", ignore_index=True)


def _played(fitness: FloatArray, policy: str, *, rounds: int, arms: int, seed: int) -> Replay:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        warnings.simplefilter("ignore", ReplayWarning)
        return simulate(
            fitness, policy, rounds=rounds, arms=arms, replicates=REPLICATES, seed=seed,
            reward="rank",
        )  # fmt: skip


def replayed_paths(pilot: GridSweep, choice: Choice, *, seed: int = 0) -> FloatArray:
    """Best fitness by round of searches over the pilot's runs, (searches, rounds)."""
    T, N = choice.generations, choice.children
    [deep] = [deep for _, _, deep in _deep(pilot, {N: T})]
    return np.asarray(
        _played(deep, choice.policy, rounds=T, arms=choice.arms, seed=seed).best_fitness
    )


def _deep(pilot: GridSweep, rounds: Mapping[int, int]) -> Iterator[tuple[int, int, FloatArray]]:
    """Each N of which enough runs are T deep, with T and their fitness, (runs, T + 1)."""
    for N, part in pilot.strata():
        T = rounds.get(N, 0)
        if T == 0 or pilot.values.shape[1] <= T:
            continue
        deep = pilot.values[part][pilot.depth[part] >= T, : T + 1]
        if len(deep) >= FEWEST and np.isfinite(deep[:, -1]).all():
            yield N, T, deep
