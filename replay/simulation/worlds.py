"""Invented runs whose truth is known: in some a bandit can win, in others it cannot.

`tests/benchmarks/worlds.py` holds the same definitions, written apart, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evo.policies.base import Floats

START, CLIMB = 0.3, 0.25
"""Fitness of the initial program, and the share of the gap that a step of length 1 closes."""


def _climbed(steps: Floats) -> Floats:
    """Sums of steps by generation, from 0: (runs, T + 1)."""
    return np.concatenate([np.zeros((len(steps), 1)), steps.cumsum(axis=1)], axis=1)


def _steps(rng: np.random.Generator, n: int, T: int) -> Floats:
    """One generation in four gains, by an exponential step, (runs, T)."""
    return np.asarray(rng.exponential(1, (n, T)) * (rng.random((n, T)) < 0.25))


def null(rng: np.random.Generator, n: int, T: int) -> Floats:
    """Increments are independent of the run: nothing can be chosen."""
    return np.asarray(1 - (1 - START) * np.exp(-CLIMB * _climbed(_steps(rng, n, T))))


def rates(rng: np.random.Generator, n: int, T: int) -> Floats:
    """Each run improves at a rate of its own, for ever."""
    steps = _steps(rng, n, T)
    own = steps * rng.gamma(1, 1, (n, 1))
    return np.asarray(1 - (1 - START) * np.exp(-CLIMB * _climbed(own)))


def ceilings(rng: np.random.Generator, n: int, T: int) -> Floats:
    """Each run climbs quickly to a ceiling of its own."""
    _steps(rng, n, T)  # so that a seed means the same draws in all worlds
    ceiling = rng.beta(2, 2, (n, 1))
    climbed = _climbed((rng.random((n, T)) < 0.6).astype(np.float64))
    return np.asarray(0.2 + 0.75 * ceiling * (1 - np.exp(-0.6 * climbed)))


def jump(rng: np.random.Generator, n: int, T: int) -> Floats:
    """As `null`, and one run in ten jumps once."""
    path = null(rng, n, T)
    jumps = rng.random((n, 1)) < 0.1
    at = rng.integers(4, 20, (n, 1))
    return np.asarray(0.5 * path + 0.4 * jumps * (np.arange(T + 1)[None] >= at))


WORLDS: dict[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "ceilings": ceilings,
    "rates": rates,
    "null": null,
    "jump": jump,
}
"""Best fitness of n runs by generation, (n, T + 1), by world; where a bandit can win come first."""
