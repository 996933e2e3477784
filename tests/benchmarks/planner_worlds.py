"""Plans in worlds whose truth is known: `python tests/benchmarks/planner_worlds.py --pilots 20`.

In each of many pilots the planner chooses how to spend 64 calls; what it chose is worth what such
searches reach on average in that world, which is simulated without the planner's code. Available is
what the best split gains over T = N; errors are standard errors over pilots. `--children 4`
makes pilots of runs of four children alone, over which policies are replayed.

`--regret FILE.csv` writes the regret of the plan and of fixed rules against the best way to spend
the budget, several arms included, for small pilots, large ones and large ones of N = 4 alone:
`logs/corpus/planner/worlds.csv`, which a notebook shows.
"""

import argparse
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
import worlds

import replay
from replay.planning.planner import ARMS, PLANNED_POLICIES

BUDGET = 64
SPLITS = {N: BUDGET // N for N in (1, 2, 4, 8, 16, 32, 64)}
SEARCHES = 2000
RULES = {"T = N": 8, "N = 1": 1, "T = 1": BUDGET}
"""N of one run under rules that look at no pilot."""
PILOTS = {
    "N = 1, 4, 16": (worlds.DESIGN, (2, 6)),
    "N = 4": (((4, BUDGET // 4),), (18,)),
}
"""Runs of a pilot: N and T of each seed's runs, and the numbers of seeds."""


@cache
def truth(world: str, N: int) -> float:
    """Mean of what one run of N children reaches with the budget."""
    rng = np.random.default_rng([1, N])
    return float(np.mean([worlds.run(world, rng, N, BUDGET // N)[-1] for _ in range(SEARCHES)]))


@cache
def truth_of_arms(world: str, N: int, K: int, policy: str) -> float:
    """Mean of what a policy reaches over K runs of N children with the budget."""
    rng, rounds = np.random.default_rng([2, N, K]), BUDGET // N
    runs = np.array([worlds.run(world, rng, N, rounds) for _ in range(400 * K)])
    rows = np.arange(len(runs)).reshape(-1, K)
    settings = {"rounds": rounds, "arms": rows, "replicates": len(rows), "reward": "rank"}
    return float(replay.simulate(runs, policy, **settings).best_fitness[:, -1].mean())


def plans(
    world: str, pilots: int, seeds: int, design: tuple[tuple[int, int], ...] = worlds.DESIGN
) -> pd.DataFrame:
    """What each pilot's plan chose, and what it gains over T = N in truth."""
    rows = []
    for number in range(pilots):
        frame, children = worlds.pilot(world, np.random.default_rng([3, number]), seeds, design)
        made = replay.plan(frame, budget=BUDGET, children=children, best=1.0, seed=number)
        choice = made.choice
        value = (
            truth(world, choice.children)
            if choice.arms == 1
            else truth_of_arms(world, choice.children, choice.arms, choice.policy)
        )
        chosen = f"N={choice.children}" + (f" K={choice.arms}" if choice.arms > 1 else "")
        rows.append((world, seeds, chosen, value - truth(world, 8)))
    return pd.DataFrame(rows, columns=["world", "seeds", "chosen", "gain"])


@cache
def best_way(world: str) -> float:
    """Mean of what the best way to spend the budget reaches: a split in one run, or over arms.

    Being the largest of many estimates, it is up to about .01 too high.
    """
    single = [truth(world, N) for N in SPLITS]
    over = [
        truth_of_arms(world, N, K, policy)
        for N, T in SPLITS.items()
        for K in ARMS if T >= 2 * K
        for policy in PLANNED_POLICIES
    ]  # fmt: skip
    return max(single + over)


def regrets(world: str, pilots: int) -> pd.DataFrame:
    """Mean regret of the plan, with its standard error over pilots, and of `RULES`.

    Returns:
        One row per kind of pilot and rule: world, runs (their N), calls (of a pilot), rule, regret,
        error, pilots. Rules look at no pilot, so they have the same regret at each, and no error.
    """
    best, usual, rows = best_way(world), truth(world, RULES["T = N"]), []
    for runs, (design, sizes) in PILOTS.items():
        for seeds in sizes:
            calls = seeds * sum(N * T for N, T in design)
            lost = best - usual - plans(world, pilots, seeds, design)["gain"]
            error = lost.std() / len(lost) ** 0.5
            rows.append((world, runs, calls, "plan", lost.mean(), error, pilots))
            rows += [
                (world, runs, calls, rule, best - truth(world, N), 0.0, pilots)
                for rule, N in RULES.items()
            ]
    return pd.DataFrame(
        rows, columns=["world", "runs", "calls", "rule", "regret", "error", "pilots"]
    )


def main() -> None:
    """Print a row for each world and size of pilots, or write the table of regrets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[6, 2])
    parser.add_argument(
        "--children", type=int, help="pilots of runs of this N alone, as many as there are seeds"
    )
    parser.add_argument("--regret", type=Path, help="where to write the table of regrets")
    options = parser.parse_args()
    if options.regret:
        table = pd.concat([regrets(world, options.pilots) for world in worlds.CHILDREN])
        print(table.round(4).to_string(index=False))
        table.round(5).to_csv(options.regret, index=False)
        return
    design, calls = worlds.DESIGN, 192
    if options.children:
        design, calls = ((options.children, BUDGET // options.children),), BUDGET
    for world in worlds.CHILDREN:
        available = max(truth(world, N) for N in SPLITS) - truth(world, 8)
        for seeds in options.seeds:
            table = plans(world, options.pilots, seeds, design)
            gain, error = table["gain"].mean(), table["gain"].std() / len(table) ** 0.5
            chosen = ", ".join(f"{n} {k}" for k, n in table["chosen"].value_counts().items())
            print(
                f"{world:6} {calls * seeds:5} calls: gain {gain:+.4f} +- {error:.4f} of "
                f"{available:.4f} available; {chosen}",
                flush=True,
            )


if __name__ == "__main__":
    main()
