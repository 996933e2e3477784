"""Speed of the kernel: `python tests/benchmarks/kernel_speed.py [LOGS]`.

Simulates 1,000 runs of every cell of C = 512 and, as the baseline, the same runs one generation at
a time in plain Python. Without logs, the kernel is estimated from a synthetic chain.
"""

import argparse
import bisect
import random
import sys
import time
from pathlib import Path

from replay.kernel import Kernel, fit_kernel
from replay.logs import children

sys.path.insert(0, str(Path(__file__).parents[1] / "replay"))
from synthetic_runs import chain_runs

RUNS = 1000


def plainly(kernel: Kernel, generations: int, size: int, runs: int) -> float:
    """Mean final fitness of `runs` runs, child by child."""
    steps, total = kernel.steps.tolist(), 0.0
    rng = random.Random(0)
    for _ in range(runs):
        state, better = 0, float(kernel.better[0])
        for _ in range(generations):
            best = state
            for _ in range(size):
                if rng.random() < better:
                    best = max(best, bisect.bisect_right(steps[state], rng.random()))
            if best != state:
                state, mean = best, float(kernel.better[best])
                s = kernel.concentration
                better = rng.betavariate(s * mean, s * (1 - mean))
        total += float(kernel.fitness[state])
    return total / runs


def main() -> None:
    """Print one row per cell: best of five processor times, and the ratio to the plain loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="*", help="logs of one task")
    options = parser.parse_args()
    sizes = [2**power for power in range(10)]
    table = children(*options.logs) if options.logs else chain_runs(sizes=sizes, budget=512)[1]
    begin = time.process_time()
    kernel = fit_kernel(table)
    print(f"estimated from {len(table)} children in {time.process_time() - begin:.3f} s")
    print(f"{'T':>4}{'N':>5}{'ms':>9}{'mean':>9}{'plain ms':>11}{'mean':>9}{'ratio':>8}")
    for N in sizes:
        T, times = 512 // N, []
        for _ in range(5):
            begin = time.process_time()
            best = kernel.simulate(T, N, runs=RUNS)
            times.append(time.process_time() - begin)
        begin = time.process_time()
        slow = plainly(kernel, T, N, RUNS // 20)
        plain = 20 * (time.process_time() - begin)
        print(
            f"{T:>4}{N:>5}{1e3 * min(times):>9.1f}{best[:, -1].mean():>9.4f}"
            f"{1e3 * plain:>11.0f}{slow:>9.4f}{plain / min(times):>8.0f}"
        )


if __name__ == "__main__":
    main()
