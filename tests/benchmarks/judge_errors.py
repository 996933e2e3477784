"""How often `judge` errs: nulls, coverage at unequal n and unlike shapes, and looking again.

- `nulls`: both groups follow one of five laws, or normal ones of unlike spread (1:3 and 3:1, at 6
  and 6, 5 and 20, 10 and 48 runs). Printed is how often each side calls a difference, nominally
  2.5 %.
- `coverage`: of the interval, for groups of equal and of fourfold size and one law, normal ones
  also of threefold spread; for pairs likewise. `--write` replaces the kind `pairs` in
  `coverage.csv` by the worst (`group_nulls.py` makes that of groups); n is the smaller group.
  Unlike shapes, of which a verdict warns, are printed apart, and so are pairs whose differences
  are skewed, one side being a constant.
- `looks`: groups are compared after every pair up to 100. Printed is how often a fixed-n test and
  the e-value ever call a difference that is none, and their power at half a standard deviation,
  the fixed-n test at 100 pairs alone and the e-value at any look.

The Monte Carlo error of 2.5 % is 0.35 points at 2,000 draws. What was found, here and by the other
benchmarks of claims, is in `evidence.csv`.
"""

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import replay.statistics.exchange
import replay.statistics.intervals
from replay.statistics.groups import compare_groups
from replay.statistics.sequential import e_process

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

LAWS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
    "beta": lambda rng, size: rng.beta(0.2, 2, size=size),
    "t3": lambda rng, size: rng.standard_t(3, size=size),
    "rare jumps": lambda rng, size: (rng.random(size) < 0.1) + 0.01 * rng.random(size),
}
MEANS = {"normal": 0.0, "lognormal": float(np.exp(0.5)), "beta": 0.2 / 2.2}
NULLS = ((5, 5), (20, 5), (40, 10))
SPREAD_SIZES = ((6, 6), (5, 20), (10, 48))
RATIOS = ((1.0, 1.0), (1.0, 3.0), (3.0, 1.0))
SIZES = (5, 6, 8, 10, 20, 40)
LEVELS = (0.8, 0.9, 0.95)
PAIRS = 100


def nulls(draws: int) -> Iterator[tuple[str, float, float]]:
    """Share of draws that each side calls a difference: laws, then normal ones of unlike spread."""
    same = [(sizes, law, (1.0, 1.0)) for sizes in NULLS for law in LAWS]
    spread = [(sizes, "normal", ratio) for sizes in SPREAD_SIZES for ratio in RATIOS]
    for sizes, law, ratio in (*same, *spread):
        rng, called = np.random.default_rng(1), np.zeros(2)
        for _ in range(draws):
            sides = (r * LAWS[law](rng, (n,)) for n, r in zip(sizes, ratio, strict=True))
            found = compare_groups(*sides)
            called += [found.p_greater <= 0.025, found.p_less <= 0.025]
        yield f"{sizes} {law} {ratio[0]:g}:{ratio[1]:g}", *(called / draws)


def coverage(kind: str, law: str, n: int, draws: int, unlike: bool = False) -> Floats:
    """Worst share of draws whose interval holds the truth, by level.

    Groups are as large as each other and of fourfold size, normal ones also of threefold spread;
    `unlike` ones, of which verdicts warn, are one of the law and one normal with threefold spread.
    """
    spreads = {"normal": 1.0, "lognormal": 2.16, "beta": 0.16}
    ratios = RATIOS if kind == "groups" and law == "normal" and not unlike else RATIOS[:1]
    worst = np.ones(len(LEVELS))
    constant = kind == "pairs" and unlike
    for m in (n,) if kind == "pairs" else (n, 4 * n):
        for ratio in ratios:
            rng, held = np.random.default_rng([n, m, unlike, int(ratio[0])]), np.zeros(len(LEVELS))
            for _ in range(draws):
                left = ratio[0] * (LAWS[law](rng, (n,)) - MEANS[law])
                right = (
                    (0.0 if constant else 3 * spreads[law]) * rng.normal(size=m)
                    if unlike
                    else ratio[1] * (LAWS[law](rng, (m,)) - MEANS[law])
                )
                found = compare_groups(left, right, pairs=n if kind == "pairs" else 0)
                least = min(found.p_greater, found.p_less)
                held += [least > (1 - level) / 2 for level in LEVELS]
            worst = np.minimum(worst, held / draws)
    return worst


def looks(draws: int) -> Iterator[tuple[str, float, float]]:
    """Per law, how often the fixed-n test and the e-value ever call, then their power."""
    n = np.arange(1, PAIRS + 1)
    for law, draw in LAWS.items():
        rng = np.random.default_rng(2)
        d = draw(rng, (draws, PAIRS)) - draw(rng, (draws, PAIRS))
        yield f"null, {law}", _fixed(d, n).any(axis=1).mean(), _ever(d).mean()
    rng = np.random.default_rng(3)
    d = rng.normal(0.5, np.sqrt(2), (draws, PAIRS))
    yield "power at 0.5 sd", _fixed(d, n)[:, -1].mean(), _ever(d).mean()


def _ever(d: Floats) -> NDArray[np.bool_]:
    found = [e_process(sign * d) >= 40 for sign in (1, -1)]
    return np.asarray((found[0] | found[1]).any(axis=1))


def _fixed(d: Floats, n: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a t-test at 5 % calls a difference after each pair from the sixth on."""
    mean = d.cumsum(axis=1) / n
    spread = np.sqrt(np.maximum((d**2).cumsum(axis=1) / n - mean**2, 0) * n / np.maximum(n - 1, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / (spread / np.sqrt(n))
    return np.asarray((t > stats.t.ppf(0.975, np.maximum(n - 1, 1))) & (n >= 6))


def main() -> None:
    """Prints the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--exchanges", type=int, default=replay.statistics.exchange.EXCHANGES)
    parser.add_argument("--write", action="store_true", help="replace these kinds in coverage.csv")
    options = parser.parse_args()
    replay.statistics.exchange.EXCHANGES = options.exchanges
    for name, fixed, ever in looks(options.draws):
        print(f"{name}: fixed n {fixed:.4f}, e-value {ever:.4f}", flush=True)
    rows = []
    for kind in ("groups", "pairs"):
        for n in SIZES:
            if kind == "pairs" and n < 6:
                continue
            found = [coverage(kind, law, n, options.draws // 4) for law in MEANS]
            for k, level in enumerate(LEVELS):
                rows.append((kind, f"{level:g}", n, *(f"{each[k]:.3f}" for each in found)))
            print(*rows[-1], sep=",", flush=True)
    for law in MEANS:
        print(f"unlike {law}, n = 10:", coverage("groups", law, 10, options.draws // 4, True))
        for n in (6, 8, 10, 20):
            print(f"skewed pairs, {law}, n = {n}:", coverage("pairs", law, n, options.draws, True))
    for name, greater, less in nulls(options.draws):
        print(f"null {name}: greater {greater:.4f}, less {less:.4f}", flush=True)
    if options.write:
        place = Path(replay.statistics.intervals.__file__).with_name("coverage.csv")
        with place.open(encoding="utf-8", newline="") as file:
            kept = [row for row in csv.reader(file) if row[0] != "pairs"]
        pairs = [row for row in rows if row[0] == "pairs"]
        with place.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([*kept, *pairs])


if __name__ == "__main__":
    main()
