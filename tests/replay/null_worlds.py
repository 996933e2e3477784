"""Sweeps in which no claim of the ledger is true: for `tests/benchmarks/claims_nulls.py`.

Every cell has the same mean, so that no split is best, and (but for `climbing`) nothing rises.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from synthetic_runs import as_frame

SIZES = (1, 2, 4, 8, 16, 32)
BUDGET = 32

Draw = Callable[[np.random.Generator, int, int, int], np.ndarray]
"""Best fitness by generation of runs of one N: (rng, N, runs, generations) -> (runs, T + 1)."""


def flat(scale: Callable[[int], float], law: str = "normal") -> Draw:
    """Runs that never improve: what differs between them is there from the start."""

    def draw(rng: np.random.Generator, N: int, runs: int, generations: int) -> np.ndarray:
        noise = {
            "normal": rng.normal(size=(runs, 1)),
            "lognormal": (rng.lognormal(size=(runs, 1)) - np.exp(0.5)) / 2.16,
            "t": rng.standard_t(3, size=(runs, 1)) / np.sqrt(3),
        }[law]
        return np.repeat(0.5 + 0.05 * scale(N) * noise, generations + 1, axis=1)

    return draw


def plateaus(rng: np.random.Generator, N: int, runs: int, generations: int) -> np.ndarray:
    """Runs stuck on one of three levels, alike at every N."""
    levels = rng.choice([0.4, 0.5, 0.7], p=[0.5, 0.3, 0.2], size=(runs, 1))
    return np.repeat(levels, generations + 1, axis=1)


def climbing(rng: np.random.Generator, N: int, runs: int, generations: int) -> np.ndarray:
    """Runs that climb in leaps to a level of their own, whose law depends on the calls alone."""
    final = rng.choice([0.4, 0.5, 0.7], p=[0.5, 0.3, 0.2], size=(runs, 1))
    calls = N * np.arange(generations + 1)
    leap = rng.choice([4, 8, 16, 32], size=(runs, 1))
    return np.where(calls >= leap, final, 0.2)


def wandering(rng: np.random.Generator, N: int, runs: int, generations: int) -> np.ndarray:
    """Budgets that share runs: a random walk about the same mean, noisier the deeper."""
    steps = rng.normal(size=(runs, generations + 1))
    steps[:, 1:] *= 0.3
    return 0.5 + 0.05 * steps.cumsum(axis=1)


WORLDS: dict[str, Draw] = {
    "equal": flat(lambda N: 1.0),
    "lognormal": flat(lambda N: 1.0, "lognormal"),
    "noisy corners": flat(lambda N: 5.0 if N in (1, BUDGET) else 1.0),
    "noisy corners, lognormal": flat(lambda N: 5.0 if N in (1, BUDGET) else 1.0, "lognormal"),
    "noisy middle": flat(lambda N: 1.0 if N in (1, BUDGET) else 5.0),
    "noisier with breadth": flat(lambda N: float(N) ** 0.5),
    "heavy tails": flat(lambda N: 1.0, "t"),
    "plateaus": plateaus,
    "climbing": climbing,
    "wandering": wandering,
}
"""By name."""

RISING = frozenset({"climbing"})
"""Worlds in which more calls do better, so that only claims about the split are false."""


def sweep(world: Draw, rng: np.random.Generator, runs: int = 5) -> pd.DataFrame:
    """A frame of so many runs at each N of SIZES."""
    parts = [
        as_frame(world(rng, N, runs, BUDGET // N), children=N, seeds=range(runs)) for N in SIZES
    ]
    return pd.concat(parts, ignore_index=True)
