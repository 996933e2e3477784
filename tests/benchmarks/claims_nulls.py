"""How often the ledger calls a false claim greater: `python tests/benchmarks/claims_nulls.py`.

Each world of `tests/replay/null_worlds.py` is a sweep in which every cell has the same mean: equal
or unequal noise, budgets that share runs, plateaus. `--worlds` data sets are drawn of each, at each
number of runs per N. Printed is the share of data sets whose table calls a claim greater: with
Holm's correction over the table, as the ledger has it, and by the claim's own p alone. The Monte
Carlo error of a share of .05 is .007 at 1,000 data sets.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "replay"))
import null_worlds

from replay.claims import ledger
from replay.claims.contrasts import ALPHA

CLAIMS = {
    "the best split is interior": "interior",
    "the best split is corner": "corner",
    "the best in sweep rises with the budget": "rises",
    "it follows a smooth curve": "smooth",
}


def judged(world: str, runs: int, number: int) -> Iterator[dict[str, object]]:
    """Claims that the ledger makes of one data set, once for each regime that a task may have."""
    rng = np.random.default_rng([runs, number])
    frame = null_worlds.sweep(null_worlds.WORLDS[world], rng, runs)
    for regime in ("interior", "corner"):
        table = ledger({"world": frame}, regimes={"toy": regime}, policies=(), seed=number)
        for row in table[table["why"] == ""].to_dict("records"):
            if world not in null_worlds.RISING or regime in row["claim"]:
                yield {
                    "world": world, "runs": runs, "claim": CLAIMS[row["claim"]],
                    "greater": row["verdict"] == "greater", "alone": row["p"] <= ALPHA,
                }  # fmt: skip


def main() -> None:
    """Print a row per world and number of runs, with two columns for each claim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--runs", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for runs in options.runs:
        for world in null_worlds.WORLDS:
            rows = Parallel(n_jobs=options.jobs)(
                delayed(lambda number, w=world, n=runs: [*judged(w, n, number)])(number)
                for number in range(options.worlds)
            )
            found = pd.DataFrame([row for each in rows for row in each])
            shares = found.groupby(["world", "runs", "claim"])[["greater", "alone"]].mean()
            print(shares.unstack().round(3).to_string(header=True), flush=True)


if __name__ == "__main__":
    main()
