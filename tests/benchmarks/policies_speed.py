"""Speed of the policies against plain Python loops and mabwiser, in the same run, on one core.

python tests/benchmarks/policies_speed.py
"""

from __future__ import annotations

import random
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from replay.simulation import simulate

sys.path.insert(0, str(Path(__file__).parents[1] / "evo"))
import scalar_policies

ARMS, ROUNDS, REPLICATES = 10, 512, 1000
LOOPS = 40  # replicates of the plain loop that are timed
BARS = {"ucb1": 12, "thompson": 20, "exp3p": 8, "random": 10}


def seconds(job, repeats):
    """Best of several runs: what the code takes when nothing else runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - start)
    return best


def loop(policy, arms):
    """So many replicates of a scalar policy."""
    for replicate in range(LOOPS):
        policy(arms, ROUNDS, random.Random(replicate))


def mabwiser_ucb1(arms, rounds):
    """One replicate of mabwiser's UCB1; its alpha of 1 is c = sqrt(2)."""
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(arms=list(range(len(arms))), learning_policy=LearningPolicy.UCB1(alpha=1))
    depth = [0] * len(arms)
    for t in range(rounds):
        arm = t if t < len(arms) else mab.predict()
        depth[arm] += 1
        learn = mab.partial_fit if t else mab.fit
        learn([arm], [arms[arm][depth[arm]]])


def main():
    rng = np.random.default_rng(0)
    fitness = np.maximum.accumulate(rng.random((ARMS, ROUNDS + 1)), axis=1)
    arms = fitness.tolist()
    scalar = {
        "ucb1": scalar_policies.ucb1,
        "thompson": scalar_policies.thompson,
        "exp3p": scalar_policies.exp3p,
        "random": scalar_policies.random_choice,
    }
    simulate(fitness, "ucb1", rounds=2, replicates=2, reward="improved", arms=1)  # imports
    pulls = ROUNDS * REPLICATES
    print(f"K={ARMS}, {ROUNDS} rounds, {REPLICATES} replicates, one core; Mpulls/s and ratios")
    for name, bar in BARS.items():
        batch = partial(simulate, fitness, name, rounds=ROUNDS, replicates=REPLICATES)
        ours = seconds(batch, 7)
        plain = seconds(partial(loop, scalar[name], arms), 5) * REPLICATES / LOOPS
        print(
            f"{name:10s} ours {pulls / ours / 1e6:6.2f}  loop {pulls / plain / 1e6:5.2f}  "
            f"ratio {plain / ours:6.1f}  (bar {bar})"
        )
        if name == "ucb1":
            other = seconds(lambda: mabwiser_ucb1(arms, ROUNDS), 3) * REPLICATES
            print(
                f"{'':10s} mabwiser {pulls / other / 1e6:.4f}  ratio {other / ours:.0f}  (bar 150)"
            )
    four = ("ucb1", "exp3p", "thompson", "random")
    total = seconds(
        lambda: [simulate(fitness, name, rounds=64, replicates=1000, arms=10) for name in four], 9
    )
    print(
        f"{', '.join(four)}: 1,000 replicates, 64 rounds, 10 arms: {total * 1e3:.0f} ms (bar 120)"
    )


if __name__ == "__main__":
    main()
