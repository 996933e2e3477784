"""Power and errors of comparisons over several tasks: `python tests/benchmarks/task_nulls.py`.

Eight tasks of scales of their own with five runs a side. Truths: no difference, half a standard
deviation on every task, and opposite effects of half a standard deviation whose mean is 0. Printed
is how often each of the two answers calls a difference at 5 %, with its Monte Carlo error: for
these tasks (runs exchanged within tasks) and for further ones (random effects over tasks).
"""

import argparse

import numpy as np

from replay.statistics.strata import Stratum, compare_strata, further_tasks

TASKS, RUNS = 8, 5
TRUTHS = {
    "no difference": np.zeros(TASKS),
    "half a standard deviation": np.full(TASKS, 0.5),
    "opposite effects": np.array([0.5, -0.5] * (TASKS // 2)),
}


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    draws = parser.parse_args().draws
    for name, effects in TRUTHS.items():
        rng, called = np.random.default_rng(1), np.zeros(2)
        for _ in range(draws):
            scales = np.exp(rng.normal(size=TASKS))
            runs = rng.normal(size=(2, TASKS, RUNS))
            runs[0] += effects[:, None]
            strata = [Stratum(*(scale * runs[:, k])) for k, scale in enumerate(scales)]
            strata = [each.over(each.scale) for each in strata]
            these = compare_strata(strata)
            values = np.array([each.left.mean() - each.right.mean() for each in strata])
            errors = np.array([
                np.sqrt((each.left.var(ddof=1) + each.right.var(ddof=1)) / RUNS) for each in strata
            ])  # fmt: skip
            called += [
                2 * min(these.p_greater, these.p_less) <= 0.05,
                further_tasks(values, errors).p <= 0.05,
            ]
        shares = called / draws
        error = np.sqrt(shares * (1 - shares) / draws)
        print(f"{name}: these tasks {shares[0]:.3f} +- {error[0]:.3f}, further tasks "
              f"{shares[1]:.3f} +- {error[1]:.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
