"""Effects of policies over several tasks, where the truth is known: `task_policies.py --draws 200`.

Tasks are drawn from one world, each with a scale of its own. Printed is, for a number of tasks and
of runs on each, how often the interval of UCB1 less one run holds the truth (the effect in standard
deviations of one run, from 20,000 fresh pools), and how often the limits that decide lie above 0,
which in the worlds `null` and `jump` is an error. Monte Carlo errors stand beside them.
"""

import argparse
import sys
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import worlds

import replay
from replay.simulation.effects import spread_of
from replay.simulation.together import Scaled, effects_together

ROUNDS, K, REPLICATES, POLICY = 16, 2, 400, "ucb1"
DESIGNS = ((3, 6), (3, 12), (6, 6), (6, 12))
"""Tasks, and runs on each."""


@cache
def truth(world: str) -> float:
    """The effect in standard deviations, over fresh pools of K runs."""
    runs = worlds.paths(world, np.random.default_rng(1), 40_000, ROUNDS)
    rows = np.arange(len(runs)).reshape(-1, K)
    ends = {
        name: replay.simulate(
            runs, name, rounds=ROUNDS, arms=rows, replicates=len(rows)
        ).best_fitness[:, -1]
        for name in ("single", POLICY)
    }
    return float((ends[POLICY] - ends["single"]).mean() / ends["single"].std())


def one_study(world: str, rng: np.random.Generator, tasks: int, n: int) -> tuple[bool, bool]:
    """Whether the interval of a study holds the truth, and whether it says greater."""
    parts = []
    for task in range(tasks):
        runs = worlds.paths(world, rng, n, ROUNDS) * float(rng.uniform(0.1, 1))
        single, other = (
            replay.simulate(runs, name, rounds=ROUNDS, arms=K, replicates=REPLICATES, seed=task)
            for name in ("single", POLICY)
        )
        parts.append(Scaled(replay.policy_effect(single, other), spread_of(single), K))
    found = effects_together(parts, level=0.95, name="effect")
    held = found.interval.low <= truth(world) <= found.interval.high
    return held, found.limits[0] > 0


def main() -> None:
    """Print a row for each world and design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    draws = parser.parse_args().draws
    for world in worlds.PATHS:
        for tasks, n in DESIGNS:
            rng = np.random.default_rng([tasks, n, len(world)])
            found = np.array([one_study(world, rng, tasks, n) for _ in range(draws)])
            share = found.mean(axis=0)
            error = np.sqrt(share * (1 - share) / draws)
            print(
                f"{world:8} {tasks} tasks of {n:2} runs: truth {truth(world):+.3f}, held "
                f"{share[0]:.3f} +- {error[0]:.3f}, greater {share[1]:.3f} +- {error[1]:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
