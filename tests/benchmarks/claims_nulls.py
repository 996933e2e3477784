"""How often the ledger calls a false claim greater: `python tests/benchmarks/claims_nulls.py`.

Each world of `tests/replay/null_worlds.py` is a sweep in which every cell has the same mean: equal
or unequal noise, budgets that share runs, plateaus. `--worlds` data sets are drawn of each, at each
number of runs per N. Printed is the share of data sets whose table calls a claim greater: with
Holm's correction over the family, as the ledger has it, and by the claim's own p alone. The Monte
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

from replay.claims import holm, ledger
from replay.claims.contrasts import ALPHA
from replay.claims.paper import sweep_claims

CHECKED = 3
"""Data sets of each world that are judged by `ledger`, too."""

CLAIMS = {
    "the best split is interior": "interior",
    "the best in sweep rises with the budget": "rises",
    "it follows a smooth curve": "smooth",
}


def judged(world: str, runs: int, number: int) -> Iterator[dict[str, object]]:
    """Claims that the ledger makes of one data set, for each regime that a task may have.

    That the best split is a corner is the opposite of its being interior, so both come from one
    computation; the first data sets are compared with tables of the ledger itself.
    """
    rng = np.random.default_rng([runs, number])
    frame = null_worlds.sweep(null_worlds.WORLDS[world], rng, runs)
    rows = [row for row in sweep_claims(frame, "interior", number) if "why" not in row]
    p = {CLAIMS[row["claim"]]: row["p"] for row in rows}
    tables = {"interior": p, "corner": {**p, "interior": rows[0]["p_opposite"]}}
    for regime, table in tables.items():
        adjusted = holm([*table.values()])
        if number < CHECKED:
            whole = ledger({"world": frame}, regimes={"toy": regime}, policies=(), seed=number)
            np.testing.assert_allclose(whole["p_holm"][: len(adjusted)].dropna(), adjusted)
        for (claim, own), both in zip(table.items(), adjusted, strict=True):
            if world not in null_worlds.RISING or claim == "interior":
                yield {
                    "world": world, "runs": runs, "claim": regime if claim == "interior" else claim,
                    "greater": both <= ALPHA, "alone": own <= ALPHA,
                }  # fmt: skip


def main() -> None:
    """Print a row per world and number of runs, with two columns for each claim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--runs", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--names", nargs="+", default=[*null_worlds.WORLDS], help="worlds")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for runs in options.runs:
        for world in options.names:
            rows = Parallel(n_jobs=options.jobs)(
                delayed(lambda number, w=world, n=runs: [*judged(w, n, number)])(number)
                for number in range(options.worlds)
            )
            found = pd.DataFrame([row for each in rows for row in each])
            shares = found.groupby(["world", "runs", "claim"])[["greater", "alone"]].mean()
            print(shares.unstack().round(3).to_string(header=True), flush=True)


if __name__ == "__main__":
    main()
