"""Millions of pulls per second of each policy, replayed on one core.

python tests/benchmarks/policies_speed.py
"""

import timeit

import numpy as np

import replay

ARMS, ROUNDS, REPLICATES = 10, 512, 1000

if __name__ == "__main__":
    jumps = np.random.default_rng(0).random((ARMS, ROUNDS + 1)) / ROUNDS
    fitness = jumps.cumsum(axis=1)
    setting = {"rounds": ROUNDS, "replicates": REPLICATES}
    for name in replay.POLICIES:
        taken = timeit.repeat(lambda n=name: replay.simulate(fitness, n, **setting), number=1)
        print(f"{name:20} {ROUNDS * REPLICATES / min(taken) / 1e6:6.1f}")
