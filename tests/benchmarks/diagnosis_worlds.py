"""How often a diagnosis says what is true: `python tests/benchmarks/diagnosis_worlds.py`.

Each world of `worlds.PATHS` gives many samples of 48 runs, which are diagnosed against a margin of
.06. In `null` nothing can be chosen; in `ceilings` and `rates` it can. Errors are binomial.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
import worlds

import replay

VERDICTS = ("greater", "within margin", "undetermined", "less")


def frame_of(fitness: worlds.Floats) -> pd.DataFrame:
    """Rows as `replay.load` makes them."""
    n, columns = fitness.shape
    return pd.DataFrame({
        "run": np.repeat([f"r{k}" for k in range(n)], columns), "task": "t", "model": "m",
        "seed": np.repeat(np.arange(n), columns), "children": 8,
        "generation": np.tile(np.arange(columns), n), "best_fitness": fitness.ravel(),
    })  # fmt: skip


def main() -> None:
    """Print the share of each verdict by world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--runs", type=int, default=48)
    parser.add_argument("--margin", type=float, default=0.06)
    options = parser.parse_args()
    for number, world in enumerate(worlds.PATHS):
        said = []
        for sample in range(options.samples):
            rng = np.random.default_rng([20, number, sample])
            frame = frame_of(worlds.paths(world, rng, options.runs))
            said.append(replay.diagnose(frame, margin=options.margin).verdict)
        shares = [said.count(verdict) / len(said) for verdict in VERDICTS]
        words = ", ".join(
            f"{verdict} {share:.2f} +- {(share * (1 - share) / len(said)) ** 0.5:.2f}"
            for verdict, share in zip(VERDICTS, shares, strict=True)
        )
        print(f"{world:9} {words}", flush=True)


if __name__ == "__main__":
    main()
