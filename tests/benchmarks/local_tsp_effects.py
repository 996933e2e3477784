"""Half-widths of effects on real runs: `python tests/benchmarks/local_tsp_effects.py`.

On the 24 deep runs of protocol local-tsp (K = 4 arms, 24 pulls) each policy is compared with random
allocation. Printed is the half-width of the effect's interval by the infinitesimal jackknife beside
that of leaving each run out and playing again; both remove the variance that the policies' own
randomness adds to a finite replay.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import replay
from replay.simulation.effects import pool_interval

Floats = NDArray[np.float64]
LOGS = Path(__file__).parents[2] / "logs" / "corpus" / "local-tsp"
ARMS, ROUNDS = 4, 24


class Widths(NamedTuple):
    """An effect with its limits, and how wide it is."""

    policy: str
    effect: float
    low: float
    high: float
    left_out: float  # half-width by leaving each run out

    @property
    def ratio(self) -> float:
        """Half-width of the interval over that by leaving each run out."""
        return (self.high - self.low) / 2 / self.left_out


def widths(policies: Sequence[str], replicates: int) -> Iterator[Widths]:
    """Each policy less random allocation."""
    runs = replay.fitness_matrix(replay.load(LOGS / "deep-s*.jsonl.gz", progress=False))
    n = len(runs)

    def gains(matrix: Floats, seed: int) -> tuple[Floats, NDArray[np.intp]]:
        made = replay.simulate_many(
            matrix, ["random", *policies], rounds=ROUNDS, arms=ARMS, replicates=replicates,
            replace=False, seed=seed,
        )  # fmt: skip
        ends = np.stack([each.best_fitness[:, -1] for each in made.values()], axis=1)
        return ends[:, 1:] - ends[:, :1], made["random"].arms

    gain, arms = gains(runs, 0)
    found = pool_interval(gain, arms, kind="effect")
    without = [gains(np.delete(runs, i, axis=0), 1 + i)[0] for i in range(n)]
    means = np.stack([each.mean(axis=0) for each in without])
    noise = np.stack([each.var(axis=0) / replicates for each in without]).mean(axis=0)
    variance = (n - 1) ** 2 / n * (means.var(axis=0, ddof=1) - noise)
    half = stats.t.ppf(0.975, n - 1) * np.sqrt(variance)
    yield from (
        Widths(*each)
        for each in zip(policies, found.value, found.low, found.high, half, strict=True)
    )


def main() -> None:
    """Print a row per policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=80_000)
    options = parser.parse_args()
    for each in widths(["thompson", "ucb1", "exp3p"], options.replicates):
        print(f"{each}, ratio {each.ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
