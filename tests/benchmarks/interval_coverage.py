"""Coverage of nominal 95 % intervals by simulation: `python tests/benchmarks/interval_coverage.py`.

Each trial draws n runs from a known distribution and asks whether the interval holds the true
statistic. The standard error of a coverage near 95 % is 0.5 points at 2,000 trials. Trials are the
columns of matrices of 100; those of one matrix share its resampled rows.
"""

import argparse

import numpy as np

from replay.statistics import METHODS, STATISTICS, interval

BATCH = 100
PLATEAU = np.array([0.36, 0.36, 0.36, 0.60, 0.70, 0.90])
DISTRIBUTIONS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "beta(.6,1.5)": lambda rng, size: rng.beta(0.6, 1.5, size=size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
    "plateau": lambda rng, size: rng.choice(PLATEAU, size=size),
}
"""Bell-shaped; bounded and skewed; heavy-tailed; half the runs tied at the lowest fitness."""


def coverage(name: str, statistic: str, method: str, *, n: int, trials: int) -> float:
    """Share of trials whose interval holds the statistic of the distribution."""
    draw = DISTRIBUTIONS[name]
    truth = STATISTICS[statistic](draw(np.random.default_rng(1), 4_000_000), axis=0)
    if (name, statistic) == ("plateau", "median"):
        truth = 0.48  # half the mass on either side: the middle, as the sample median estimates
    rng, held = np.random.default_rng(2), []
    for seed in range(trials // BATCH):
        found = interval(draw(rng, (n, BATCH)), statistic=statistic, method=method, seed=seed)
        held.append((found.low <= truth + 1e-12) & (truth - 1e-12 <= found.high))
    return float(np.mean(held))


def main() -> None:
    """Print one row per distribution and statistic, one column per method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=10, help="runs")
    parser.add_argument("--trials", type=int, default=2000)
    options = parser.parse_args()
    order = ("percentile", "bca", "expanded", "studentised")
    assert set(order) == set(METHODS)
    print(f"{'runs':13} {'statistic':10}" + "".join(f"{method:>13}" for method in order))
    for name in DISTRIBUTIONS:
        for statistic in STATISTICS:
            covered = [
                coverage(name, statistic, method, n=options.n, trials=options.trials)
                for method in order
            ]
            cells = "".join(f"{100 * share:>13.1f}" for share in covered)
            print(f"{name:13} {statistic:10}{cells}", flush=True)


if __name__ == "__main__":
    main()
