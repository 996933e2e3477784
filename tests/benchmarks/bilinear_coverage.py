"""Coverage of the bilinear fit's intervals: `python tests/benchmarks/bilinear_coverage.py`.

Each draw makes whole runs (10 seeds, every N up to C = 512) from known coefficients with noise per
run and per generation, and asks whether the 95 % intervals hold the truth and whether the regime at
C = 512 is right. The standard error of a coverage near 95 % is 1 point at 500 draws.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from replay.bilinear import NAMES, fit_bilinear

sys.path.insert(0, str(Path(__file__).parents[1] / "replay"))
from synthetic_runs import bilinear_runs

TRUTHS = {
    "interior": (-0.5, -0.2, -0.2, -0.06),
    "depth corner": (-0.5, -0.3, -0.1, 0.0),
    "breadth corner": (-0.5, -0.1, -0.3, -0.01),
}
NOISES = {"run": (0.3, 0.1), "generation": (0.1, 0.3)}
"""Standard deviations of log(1 - V) per run and per generation; which of them is the larger."""


def main() -> None:
    """Print one row per truth and noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    print(
        f"{'regime at 512':<16}{'noise':<12}", *(f"{name:>7}" for name in NAMES), "  regime right"
    )
    for regime, truth in TRUTHS.items():
        for noise, (run, generation) in NOISES.items():
            rng = np.random.default_rng(1)
            held, right = np.zeros(len(NAMES)), 0
            for draw in range(options.draws):
                frame = bilinear_runs(truth, run_noise=run, generation_noise=generation, rng=rng)
                fit = fit_bilinear(frame, resamples=options.resamples, seed=draw)
                found = [fit.coefficients[name] for name in NAMES]
                held += [
                    at["low"] <= value <= at["high"] for at, value in zip(found, truth, strict=True)
                ]
                right += fit.regime_at(512) == regime
            shares = (f"{share:7.1%}" for share in held / options.draws)
            print(f"{regime:<16}{noise:<12}", *shares, f"{right / options.draws:14.1%}", flush=True)


if __name__ == "__main__":
    main()
