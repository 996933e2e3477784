"""Coverage of the intervals of policies over pools, in worlds whose truth is known.

Runs are drawn anew for each world: with increments of one law that say nothing of what comes next
(`null`), with a rate of their own (`advantage`), or with a jump in one run of ten (`jumps`). As
policies on raw rewards ask for, fitness lies in [0, 1]: rates saturate there.
Measured are the mean result of UCB1 (kind `pool`), and the pool effect (random less single) and the
allocation effect (UCB1 less random; kind `effect`). `--write` replaces these kinds in
`coverage.csv` by the worst over K and world. Pools of up to a fifth of the runs and larger ones, up
to half of them, are separate kinds. Rare jumps are printed and stay out of the label. The Monte
Carlo error of a coverage near 95 % is 0.5 points at 2,000 worlds and 0.7 points at 1,000.
"""

import argparse
import csv
import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import replay.statistics.intervals
from replay.simulation.effects import pool_errors, pool_kind
from replay.simulation.simulate import simulate
from replay.statistics.jackknife import jackknife

Floats = NDArray[np.float64]

LAWS = ("normal", "lognormal", "beta")
WORLDS = ("null", "advantage")
SIZES = (10, 20, 40)
LEVELS = (0.8, 0.9, 0.95)
ROUNDS, REPLICATES, FRESH, BATCH = 8, 400, 40_000, 100
POLICIES = ("single", "random", "ucb1")
MEASURES = ("ucb1", "random less single", "ucb1 less random")


def draws(law: str, rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """Positive draws with a mean near 1."""
    if law == "normal":
        return np.abs(1 + 0.4 * rng.normal(size=size))
    if law == "lognormal":
        return rng.lognormal(-0.5, 1.0, size)
    return rng.beta(0.2, 2, size) * 11


def runs(world: str, law: str, rng: np.random.Generator, count: int, n: int) -> Floats:
    """Best fitness by generation of n runs in each of so many worlds, (count, n, ROUNDS + 1)."""
    shape = (count, n, ROUNDS)
    if world == "jumps":
        has_one = rng.random(shape[:2]) < 0.1
        at = rng.integers(ROUNDS, size=shape[:2])
        jumps = has_one[..., None] & (np.arange(ROUNDS) == at[..., None])
        steps = 0.02 * rng.random(shape) + 0.7 * jumps
    elif world == "null":
        steps = draws(law, rng, shape) / ROUNDS / 2
    else:
        rate = draws(law, rng, shape[:2])[..., None] / ROUNDS / 2
        steps = rate * (0.5 + rng.random(shape))
    start = np.zeros((count, n, 1))
    return 1 - np.exp(-np.concatenate([start, steps.cumsum(axis=2)], axis=2))


def played(fitness: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """What each measure is in each replicate, (replicates, measures)."""
    ends = {
        name: simulate(
            fitness, name, rounds=ROUNDS, arms=rows, replicates=len(rows), seed=seed
        ).best_fitness[:, -1]
        for name in POLICIES
    }
    pairs = (text.split(" less ") for text in MEASURES)
    return np.stack(
        [ends[pair[0]] - (ends[pair[1]] if pair[1:] else 0.0) for pair in pairs], axis=1
    )


def pools(rng: np.random.Generator, n: int, K: int) -> NDArray[np.int64]:
    """Disjoint pools of one shuffle, then of the next, (REPLICATES, K)."""
    order = rng.random((REPLICATES, n)).argsort(axis=1)[:, : n // K * K].reshape(-1, K)
    return order[:REPLICATES]


@functools.cache
def truth(world: str, law: str, K: int) -> Floats:
    """What each measure is on average over fresh runs."""
    fitness = runs(world, law, np.random.default_rng(1), FRESH, K)
    rows = np.arange(FRESH * K).reshape(-1, K)
    return played(fitness.reshape(-1, ROUNDS + 1), rows, 9).mean(axis=0)


def found(world: str, law: str, n: int, K: int, count: int) -> Iterator[tuple[Floats, ...]]:
    """Mean of the measures in each world, and its standard errors below and above."""
    rng = np.random.default_rng([n, K, len(law), len(world)])
    for first in range(0, count, BATCH):
        fitness = runs(world, law, rng, BATCH, n)
        arms = np.stack([pools(rng, n, K) for _ in range(BATCH)])
        rows = (arms + n * np.arange(BATCH)[:, None, None]).reshape(-1, K)
        values = played(fitness.reshape(-1, ROUNDS + 1), rows, first)
        for own, part in zip(arms, values.reshape(BATCH, REPLICATES, -1), strict=True):
            estimate = jackknife(part, own, n)
            level, effect = pool_errors(estimate, "pool"), pool_errors(estimate, "effect")
            is_effect = np.arange(len(MEASURES)) > 0
            yield estimate.mean, *np.where(is_effect, effect, level)


def coverage(world: str, law: str, n: int, K: int, count: int) -> Floats:
    """Share of worlds whose interval holds the truth, (LEVELS, measures)."""
    from scipy.special import stdtrit

    columns = zip(*found(world, law, n, K, count), strict=True)
    mean, below, above = (np.stack(each) for each in columns)
    off = truth(world, law, K) - mean
    away = np.where(off < 0, -off / np.maximum(below, 1e-300), off / np.maximum(above, 1e-300))
    return np.stack([(away <= stdtrit(n - 1, (1 + level) / 2)).mean(axis=0) for level in LEVELS])


def arms_of(n: int) -> tuple[int, ...]:
    """K of which the coverage is measured at n."""
    return tuple(sorted({K for K in (2, 4, n // 2) if n >= 2 * K}))


def main() -> None:
    """Prints the coverage of each measure at 95 %, then the worst by n."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--write", action="store_true", help="replace these kinds in coverage.csv")
    options = parser.parse_args()
    worst: dict[tuple[str, int, str], Floats] = {}
    print("world,law,n,K," + ",".join(MEASURES))
    for n in SIZES:
        for K in arms_of(n):
            for world, law in [*((w, law) for w in WORLDS for law in LAWS), ("jumps", "normal")]:
                shares = coverage(world, law, n, K, options.worlds)
                print(world, law, n, K, *(f"{x:.3f}" for x in shares[-1]), sep=",", flush=True)
                for kind, columns in (("pool", slice(0, 1)), ("effect", slice(1, 3))):
                    if world != "jumps":
                        key = (pool_kind(kind, n, K), n, law)
                        least = shares[:, columns].min(axis=1)
                        worst[key] = np.minimum(worst.get(key, np.ones(len(LEVELS))), least)
    kinds = dict.fromkeys((kind, n) for kind, n, _ in worst)
    rows = [
        (kind, f"{level:g}", n, *(f"{worst[kind, n, law][k]:.3f}" for law in LAWS))
        for kind, n in kinds for k, level in enumerate(LEVELS)
    ]  # fmt: skip
    for row in rows:
        print(*row, sep=",")
    if options.write:
        place = Path(replay.statistics.intervals.__file__).with_name("coverage.csv")
        with place.open(encoding="utf-8", newline="") as file:
            head, *others = csv.reader(file)
        replaced = {"pool", *(kind for kind, _ in kinds)}
        with place.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([head, *(row for row in others if row[0] not in replaced), *rows])


if __name__ == "__main__":
    main()
