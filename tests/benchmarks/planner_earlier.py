"""What logs of other tasks are worth to a plan: `python tests/benchmarks/planner_earlier.py`.

Small pilots (four runs, 64 calls) and large ones (18 runs, 1,152 calls) are planned without earlier
tasks, with five of the same world (`helpful`), with five of the opposite one
(`misleading`: broad for deep, deep for broad and for the others) and with five of all kinds
(`mixed`). Every task has a pace of its own, lognormal with deviation .3. Printed is the regret
against the best split of the pilot's own task, whose truth is simulated without the planner's code,
and how much less it is than without earlier tasks, with standard errors over pilots.
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

BUDGET, TASKS, SEARCHES = 64, 5, 300
SPLITS = {N: BUDGET // N for N in (1, 2, 4, 8, 16, 32, 64)}
OPPOSITE = {"deep": "broad", "broad": "deep", "arms": "deep", "flat": "deep"}
PILOTS: dict[str, tuple[int, tuple[tuple[int, int], ...]]] = {
    "small": (2, ((1, 16), (4, 4))),
    "large": (6, worlds.DESIGN),
}
"""Seeds of a pilot, and N and T of its runs."""
KINDS = ("none", "helpful", "misleading", "mixed")


def pace_of(rng: np.random.Generator) -> float:
    """Pace of a task of a family."""
    return float(rng.lognormal(0, 0.3))


@cache
def truth(world: str, number: int) -> dict[int, float]:
    """Mean of what one run of N children reaches with the budget on the pilot's task, by N."""
    pace, rng = pace_of(np.random.default_rng([4, number])), np.random.default_rng([5, number])
    return {
        N: float(np.mean([worlds.run(world, rng, N, T, pace=pace)[-1] for _ in range(SEARCHES)]))
        for N, T in SPLITS.items()
    }


def earlier_tasks(kind: str, world: str, number: int, tasks: int = TASKS) -> pd.DataFrame:
    """Children of other tasks, six seeds each, as `replay.plan` takes them as `earlier`."""
    found = []
    for k in range(tasks):
        rng = np.random.default_rng([6, number, k])
        of = {
            "helpful": world,
            "misleading": OPPOSITE[world],
            "mixed": worlds.CHILDREN[k % len(worlds.CHILDREN)],
        }[kind]
        found.append(worlds.pilot(of, rng, 6, task=f"{of}-{k}", pace=pace_of(rng))[1])
    return pd.concat(found, ignore_index=True).assign(best=1.0)


def regrets(world: str, number: int, size: str, kinds: tuple[str, ...] = KINDS) -> list[float]:
    """Regret of the plan of one pilot, with each kind of earlier tasks."""
    seeds, design = PILOTS[size]
    pace, rng = pace_of(np.random.default_rng([4, number])), np.random.default_rng([7, number])
    frame, children = worlds.pilot(world, rng, seeds, design, pace=pace)
    value, made = truth(world, number), []
    for kind in kinds:
        earlier = None if kind == "none" else earlier_tasks(kind, world, number)
        plan = replay.plan(
            frame, budget=BUDGET, children=children, best=1.0, seed=number, arms=(), kernels=12,
            earlier=earlier,
        )  # fmt: skip
        made.append(max(value.values()) - value[plan.choice.children])
    return made


def main() -> None:
    """Print a row for each world, size of pilots and kind of earlier tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--sizes", nargs="+", default=list(PILOTS), choices=PILOTS)
    parser.add_argument("--worlds", nargs="+", default=worlds.CHILDREN, choices=worlds.CHILDREN)
    options = parser.parse_args()
    for world in options.worlds:
        for size in options.sizes:
            table = np.array([regrets(world, k, size) for k in range(options.pilots)])
            usual = np.mean([max(t.values()) - t[8] for t in tasks_of(world, options.pilots)])
            print(f"{world}, {size} pilots: T = N {usual:.4f}")
            for kind, column in zip(KINDS, table.T, strict=True):
                less = table[:, 0] - column
                error = less.std(ddof=1) / len(less) ** 0.5
                print(f"  {kind:10} {column.mean():.4f}, less by {less.mean():+.4f} +- {error:.4f}")
            sys.stdout.flush()


def tasks_of(world: str, pilots: int) -> list[dict[int, float]]:
    """The truth of each pilot's task."""
    return [truth(world, number) for number in range(pilots)]


if __name__ == "__main__":
    main()
