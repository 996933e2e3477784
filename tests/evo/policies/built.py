"""Policies that are built, and replayed over trajectories of any lengths."""

import numpy as np

from evo.policies import Draws, find_policy
from replay.simulation.simulate import simulate


def build(name, shape, *, rounds=50, seed=0):
    return find_policy(name)(shape, rounds=rounds, rng=Draws(seed, shape[0]))


def pulls_of(name, arms, rounds, *, replicates=1, seed=0):
    """Pulls of each replicate as lists; arms are trajectories of any lengths."""
    width = max(map(len, arms))
    fitness = np.array([[*arm, *[np.nan] * (width - len(arm))] for arm in arms])
    pulls = simulate(fitness, name, rounds=rounds, replicates=replicates, seed=seed).pulls
    return [[k for k in row if k >= 0] for row in pulls.tolist()]
