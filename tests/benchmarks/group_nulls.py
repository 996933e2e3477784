"""How often two groups of equal means are called different, by code of its own.

The rule of `replay.judge` for two groups is written again here over many samples at once: p is the
larger of that of exchanging runs (studentised, `--exchanges` of them) and of Welch's t. Printed
are, for each law and for normal groups of unlike spread, the share of samples that each test and
both together call different at 5 %, with the Monte Carlo error; a test of `compare_groups` holds it
to this code. `--write` replaces the kind `groups` in `coverage.csv` by one less the share, the
worst of equal and fourfold sizes and, of normal groups, of spreads 1:3 and 3:1.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

import replay.statistics.intervals

Floats = NDArray[np.float64]

MEANS = {"normal": 0.0, "lognormal": float(np.exp(0.5)), "beta": 0.2 / 2.2}
SIZES = (5, 6, 8, 10, 20, 40)
BAR = ((6, 6), (5, 20), (10, 48))
RATIOS = ((1.0, 1.0), (1.0, 3.0), (3.0, 1.0))
LEVELS = (0.8, 0.9, 0.95)


def draw(law: str, rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Samples of mean 0."""
    laws = {
        "normal": lambda: rng.normal(size=size),
        "lognormal": lambda: rng.lognormal(size=size),
        "beta": lambda: rng.beta(0.2, 2, size),
    }
    return np.asarray(laws[law]() - MEANS[law])


def tails(left: Floats, right: Floats, exchanges: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Two-sided p of each sample, (samples,), by exchanging runs and by Welch's t."""
    a, b = left.shape[1], right.shape[1]
    both = np.concatenate([left, right], axis=1)
    both = both - both.mean(axis=1, keepdims=True)
    order = np.random.default_rng(seed).random((exchanges, a + b)).argsort(axis=1)
    inside = np.zeros((a + b, exchanges))
    inside[order[:, :a].T, np.arange(exchanges)] = 1
    inside[:, 0] = np.arange(a + b) < a
    sums, squares = both @ inside, both**2 @ inside
    rest, others = both.sum(axis=1, keepdims=True) - sums, (both**2).sum(axis=1)[:, None] - squares
    one = np.maximum(squares - sums**2 / a, 0) / (a * (a - 1))
    other = np.maximum(others - rest**2 / b, 0) / (b * (b - 1))
    t = (sums / a - rest / b) / np.sqrt(np.maximum(one + other, 1e-300))
    seen, tie = t[:, :1], 1e-9 * (1 + np.abs(t[:, :1]))
    shares = ((t >= seen - tie).mean(axis=1), (t <= seen + tie).mean(axis=1))
    first, second = one[:, 0], other[:, 0]
    freedom = (first + second) ** 2 / (first**2 / (a - 1) + second**2 / (b - 1))
    return 2 * np.minimum(*shares), 2 * stdtr(freedom, -np.abs(seen[:, 0]))


def rejected(
    law: str, sizes: tuple[int, int], ratio: tuple[float, float], samples: int, exchanges: int
) -> Floats:
    """Share of samples called different, (tests: exchange, Welch, both; levels)."""
    rng = np.random.default_rng([*sizes, int(ratio[0]), int(ratio[1]), len(law)])
    found = np.zeros((3, len(LEVELS)))
    for _ in range(samples // 500):
        sides = (r * draw(law, rng, (500, n)) for n, r in zip(sizes, ratio, strict=True))
        one, other = tails(*sides, exchanges)
        p = np.stack([one, other, np.maximum(one, other)])
        found += (p[:, :, None] <= 1 - np.array(LEVELS) + 1e-12).sum(axis=1)
    return found / (samples // 500 * 500)


def main() -> None:
    """Prints the shares, and writes the coverages if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--exchanges", type=int, default=999)
    parser.add_argument("--write", action="store_true", help="replace the kind in coverage.csv")
    options = parser.parse_args()
    setting = (options.samples, options.exchanges)
    for sizes in BAR:
        for ratio in RATIOS:
            exchange, welch, both = rejected("normal", sizes, ratio, *setting)[:, -1]
            error = np.sqrt(both * (1 - both) / options.samples)
            print(f"{sizes} {ratio}: exchange {exchange:.4f}, Welch {welch:.4f}, "
                  f"both {both:.4f} +- {error:.4f}", flush=True)  # fmt: skip
    rows: list[tuple[object, ...]] = []
    for n in SIZES:
        worst = []
        for law in MEANS:
            ratios = RATIOS if law == "normal" else RATIOS[:1]
            cells = [rejected(law, (n, m), r, *setting)[2] for m in (n, 4 * n) for r in ratios]
            worst.append(1 - np.max(cells, axis=0))
        for k, level in enumerate(LEVELS):
            rows.append(("groups", f"{level:g}", n, *(f"{each[k]:.3f}" for each in worst)))
        print(*rows[-1], flush=True)
    if options.write:
        place = Path(replay.statistics.intervals.__file__).with_name("coverage.csv")
        with place.open(encoding="utf-8", newline="") as file:
            kept = [row for row in csv.reader(file) if row[0] != "groups"]
        with place.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([*kept, *rows])


if __name__ == "__main__":
    main()
