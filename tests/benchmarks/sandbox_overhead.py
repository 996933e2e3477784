"""Evaluations per second in the sandbox against a fresh interpreter per program, in the same run.

Usage: python tests/benchmarks/sandbox_overhead.py [--workers 2] [--rounds 5]

Both sides evaluate the initial program of `min_max_distance` with as many at once as there are
workers, in alternating rounds, so that a busy machine slows both. The fresh interpreter imports
NumPy and SciPy, runs the program and has no protection at all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from evo import load_task
from evo.sandbox import Evaluator

_FRESH = {
    "import numpy, scipy": "import numpy, scipy\n",
    "import numpy, scipy.optimize": "import numpy, scipy.optimize\n",
}


def rate(pool: ThreadPoolExecutor, action: Callable[[], object], count: int) -> float:
    """Calls of `action` per second with the pool's threads."""
    began = time.perf_counter()
    for future in [pool.submit(action) for _ in range(count)]:
        future.result()
    return count / (time.perf_counter() - began)


def main() -> None:
    """Print both rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    task = load_task("min_max_distance")
    program = task.initial_program
    with_scipy = f"import scipy.optimize\n{program}"
    call = f"{task.record.entry[0]}()\n"

    with Evaluator(options.workers) as evaluator, ThreadPoolExecutor(options.workers) as pool:

        def jailed(source: str) -> Callable[[], None]:
            def evaluate() -> None:
                evaluation = evaluator.evaluate(task.record, source, task.limits)
                if evaluation.status != "ok":
                    raise RuntimeError(f"the evaluation failed: {evaluation.error}")

            return evaluate

        def fresh(imports: str) -> Callable[[], object]:
            command = [sys.executable, "-c", imports + program + call]
            return lambda: subprocess.run(command, check=True)

        sides = {
            "sandbox": (jailed(program), 200),
            "sandbox, program imports scipy": (jailed(with_scipy), 200),
            **{f"fresh python, {name}": (fresh(text), 10) for name, text in _FRESH.items()},
        }
        print("layers:", ", ".join(evaluator.protections))
        for action, _ in sides.values():
            rate(pool, action, 4 * options.workers)
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(options.rounds):
            for name, (action, count) in sides.items():
                rates[name].append(rate(pool, action, count))

    middle = {name: median(values) for name, values in rates.items()}
    for name, value in middle.items():
        print(f"{name:45s} {value:7.1f} evaluations/s")
    sandbox = rates["sandbox"]
    for name in list(sides)[2:]:
        ratios = [ours / theirs for ours, theirs in zip(sandbox, rates[name], strict=True)]
        print(f"sandbox / {name:35s} {median(ratios):7.1f} x (min {min(ratios):.1f})")


if __name__ == "__main__":
    main()
