"""Whether stated power comes true: `python tests/benchmarks/power_bands.py`.

Pilots of ten runs a side from known truths come first: how often the band holds the true
probability of `greater`, beside its label, and the mean of what the pilots state beside the truth.
Then studies drawn from a pilot's own law: `--studies` of them are judged by `replay.judge`, at the
number of runs for which `replay.power` states about 80 %.
"""

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import replay
import replay.statistics.exchange
from replay.claims.decision import shrunk
from replay.claims.power import power
from replay.statistics.exchange import Exchanges
from replay.statistics.groups import compare_groups

Floats = NDArray[np.float64]
A, B = {"model": "a"}, {"model": "b"}
TRUTHS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "uniform": lambda rng, n: rng.uniform(-1.7, 1.7, size=n),
}


def as_frame(left: Floats, right: Floats) -> pd.DataFrame:
    """Runs of one generation with these final values, without a common seed."""
    parts = []
    for side, (name, values) in enumerate((("a", left), ("b", right))):
        number = np.arange(len(values))
        runs = {"run": [f"{name}{i}" for i in number], "task": "t", "model": name, "children": 1}
        runs |= {"seed": number + 1000 * side, "n_calls": 1}
        for generation in (0, 1):
            parts.append(pd.DataFrame(runs | {"generation": generation, "best_fitness": values}))
    return pd.concat(parts, ignore_index=True)


def stated(table: pd.DataFrame, n: int) -> pd.Series:
    """The row of `greater` at n runs."""
    return table[(table["runs"] == n) & (table["verdict"] == "greater")].iloc[0]


def own_law(studies: int, seed: int = 0) -> tuple[float, float]:
    """Stated probability near .8, and the share of the pilot's own studies where it comes true."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(1, 1, 12), rng.lognormal(-0.5, 0.7, 9)
    sizes = [8, 10, 12, 15, 18, 22, 27, 33]
    table = power(as_frame(left, right), A, B, runs=sizes)
    rows = table[table["verdict"] == "greater"]
    row = rows.iloc[int((rows["probability"] - 0.8).abs().argmin())]
    n, found = int(row["runs"]), 0
    pilot = compare_groups(left, right)  # what is stated is for its effect shrunk by its error
    left = left - pilot.value + shrunk(pilot.value, pilot.error)
    for _ in range(studies):
        frame = as_frame(rng.choice(left, n), rng.choice(right, n))
        found += replay.judge(frame, A, B).verdict == "greater"
    return float(row["probability"]), found / studies


def from_truth(law: str, pilots: int, *, effect: float = 1.0, n: int = 20) -> dict[str, float]:
    """Of pilots of ten runs a side: coverage of the band, stated and true probability."""
    draw, rng = TRUTHS[law], np.random.default_rng([1, pilots])
    effect *= float(np.std(draw(np.random.default_rng(0), 100_000)))
    true = np.mean(
        [Exchanges(effect + draw(rng, n), draw(rng, n)).p(0.0, 1) <= 0.025 for _ in range(1000)]
    )
    rows = []
    for _ in range(pilots):
        frame = as_frame(effect + draw(rng, 10), draw(rng, 10))
        rows.append(stated(power(frame, A, B, runs=n, studies=100), n))
    table = pd.DataFrame(rows)
    held = (table["low"] <= true + 0.005) & (table["high"] >= true - 0.005)
    return {
        "true": float(true), "stated": float(table["probability"].mean()),
        "coverage": float(held.mean()), "label": 0.8,
    }  # fmt: skip


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--pilots", type=int, default=200)
    parser.add_argument("--exchanges", type=int, default=replay.statistics.exchange.EXCHANGES)
    options = parser.parse_args()
    replay.statistics.exchange.EXCHANGES = options.exchanges
    for law in TRUTHS:
        print(law, from_truth(law, options.pilots, effect=0.8), flush=True)
    for seed in range(3):
        print("own law: stated, came true", own_law(options.studies, seed), flush=True)


if __name__ == "__main__":
    main()
