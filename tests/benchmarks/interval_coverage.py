"""Coverage of every kind of interval by simulation; `--write` makes coverage.csv again.

Each trial draws n runs from a known distribution and asks whether the interval holds the truth.
Shares have 5, 20 and 50 % successes in the columns of the three distributions. Policies over pools
are measured by `effect_coverage.py`.
The standard error of a coverage near 95 % is 0.5 points at 2,000 trials.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import replay.statistics.intervals
from replay.statistics.comparison import welch_half
from replay.statistics.intervals import interval

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
    "beta": lambda rng, size: rng.beta(0.2, 2, size=size),
}
SHARES = {"normal": 0.05, "lognormal": 0.2, "beta": 0.5}
SIZES = (5, 6, 7, 8, 9, 10, 12, 15, 20, 29, 30, 40, 100)
LEVELS = (0.8, 0.9, 0.95)
STATISTICS: dict[str, tuple[str | float, Callable[[Floats], float]]] = {
    "mean": ("mean", np.mean),
    "median": ("median", np.median),
    "quantile": (0.9, lambda values: float(np.quantile(values, 0.9))),
}
KINDS = (*STATISTICS, "betting", "share", "difference")
TRUTH_FROM = 300_000


def coverage(kind: str, name: str, n: int, level: float, trials: int, seed: int = 2) -> float:
    """Share of trials whose interval holds the truth; NaN where there is none at this n."""
    rng, draw = np.random.default_rng(seed), DISTRIBUTIONS[name]
    if kind == "difference":
        left, right = draw(rng, (n, trials)), draw(rng, (n, trials))
        half = welch_half(left, right, level)
        return float(np.mean(np.abs(right.mean(axis=0) - left.mean(axis=0)) <= half))
    if kind == "share":
        runs = (rng.random((n, trials)) < SHARES[name]).astype(float)
        found, truth = interval(runs, "share", level), SHARES[name]
    elif kind == "betting":
        runs = 1 / (1 + np.exp(-draw(rng, (n, trials))))
        truth = float((1 / (1 + np.exp(-draw(rng, (TRUTH_FROM,))))).mean())
        if name == "beta":
            runs, truth = draw(rng, (n, trials)), 0.2 / 2.2
        found = interval(runs, "mean", level, method="betting")
    else:
        statistic, of = STATISTICS[kind]
        truth = float(of(draw(np.random.default_rng(1), (TRUTH_FROM,))))
        found = interval(draw(rng, (n, trials)), statistic, level)
    if np.isnan(found.low).all():
        return float("nan")
    return float(np.mean((found.low <= truth) & (truth <= found.high)))


def main() -> None:
    """Print, and write if asked to, one row per kind, level and n."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--write", action="store_true", help="replace these kinds in coverage.csv")
    options = parser.parse_args()
    rows = []
    for kind in options.kinds:
        for level in LEVELS:
            for n in SIZES:
                trials = min(options.trials, 200) if kind == "betting" else options.trials
                found = [coverage(kind, name, n, level, trials) for name in DISTRIBUTIONS]
                if not np.isnan(found).any():
                    rows.append((kind, f"{level:g}", n, *(f"{share:.3f}" for share in found)))
                    print(*rows[-1], flush=True)
    if options.write:
        place = Path(replay.statistics.intervals.__file__).with_name("coverage.csv")
        with place.open(encoding="utf-8", newline="") as file:
            head, *kept = [row for row in csv.reader(file) if row[0] not in options.kinds]
        with place.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *rows, *kept])


if __name__ == "__main__":
    main()
