"""What policies that learn from earlier runs gain over one run, where the truth is known.

    python tests/benchmarks/learned_policies.py --samples 40

In each sample a policy learns from some runs of a world and is played over many pools of eight
further runs; its gain is over the mean of these runs. Errors are standard errors over samples. The
second table asks how often the interval of a policy that learns from the runs that are not its arms
(`earlier="others"`), of 48 runs, covers that gain.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import worlds

import replay
from replay.simulation.pools import Pools

POLICIES = ("optimal_stopping", "freeze_thaw")
ROUNDS, ARMS, POOLS = 24, 8, 250


def gain(policy: str, world: str, earlier: int, sample: int) -> float:
    """Gain over one run on fresh pools, after learning from so many runs."""
    rng = np.random.default_rng([30, earlier, sample])
    known, fresh = worlds.paths(world, rng, earlier), worlds.paths(world, rng, POOLS * ARMS)
    rows = np.arange(len(fresh)).reshape(-1, ARMS)
    made = replay.simulate(
        fresh, policy, rounds=ROUNDS, arms=rows, replicates=len(rows), earlier=known
    )
    return float(made.best_fitness[:, -1].mean() - fresh[:, ROUNDS].mean())


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40)
    options = parser.parse_args()
    truth = {}
    for policy in POLICIES:
        for world in worlds.PATHS:
            for earlier in (60, 40, 20):
                found = [gain(policy, world, earlier, k) for k in range(options.samples)]
                error = np.std(found, ddof=1) / len(found) ** 0.5
                truth[policy, world, earlier] = float(np.mean(found))
                print(
                    f"{policy:17}{world:9} {earlier} earlier runs: {np.mean(found):+.4f} +- "
                    f"{error:.4f}",
                    flush=True,
                )
    warnings.simplefilter("ignore")
    for world in worlds.PATHS:
        held, greater = 0, 0
        for sample in range(options.samples):
            runs = worlds.paths(world, np.random.default_rng([31, sample]), 48)
            pools = Pools.of(
                runs, np.full(48, ROUNDS), arms=ARMS, rounds=ROUNDS, replicates=3000,
                earlier="others",
            )  # fmt: skip
            found = pools.effect("freeze_thaw", "single")
            held += found.low <= truth["freeze_thaw", world, 40] <= found.high
            greater += found.low > 0
        share = held / options.samples
        error = (share * (1 - share) / options.samples) ** 0.5
        print(
            f"freeze_thaw {world:9} others of 48: covers {share:.2f} +- {error:.2f}, "
            f"greater {greater / options.samples:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
