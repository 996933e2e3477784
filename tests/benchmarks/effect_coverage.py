"""Coverage of the intervals of policies over pools, in worlds whose truth is known.

Runs are drawn anew for each world: with increments of one law that say nothing of what comes next
(`null`), with a rate of their own (`advantage`), with ends of which about a third lie far below the
others (`stuck`), or with a jump in one run of ten (`jumps`). As policies on raw rewards ask for,
fitness lies in [0, 1]: rates saturate there. Runs have 8 generations, or twice as many as there are
arms, so that UCB1 always has rounds left to adapt.

Measured are the intervals of `replay.pool_interval` for the mean result of UCB1 (kind `pool`), and
for the pool effect (random less single) and the allocation effect (UCB1 less random; kind
`effect`). `--write` replaces these kinds in `coverage.csv` by the worst over K, world, law and
effect. Pools of up to a fifth of the runs and larger ones, up to half of them, are separate kinds.
Rare jumps are measured and stay out of the label; so does the allocation effect where runs get
stuck, which is next to nothing there: its intervals miss it above, never below. `--evidence`
replaces this file's rows of `evidence.csv`. Batches of worlds are drawn in turns, so `--minutes`
may end the measurement at any time; the Monte Carlo error is stated.
"""

import argparse
import csv
import functools
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import replay.statistics.intervals
from evo.policies import PolicyWarning
from replay.simulation.effects import pool_errors, pool_interval
from replay.simulation.simulate import simulate
from replay.simulation.sizes import pool_kind
from replay.statistics.intervals import measured
from replay.statistics.jackknife import jackknife

Floats = NDArray[np.float64]

LAWS = ("normal", "lognormal", "beta")
WORLDS = ("null", "advantage", "stuck")
SIZES = (10, 12, 15, 20, 40)
LEVELS = (0.8, 0.9, 0.95)
ROUNDS, REPLICATES, FRESH, BATCH = 8, 400, 40_000, 100
Case = tuple[str, str, int, int]  # world, law, n and K
POLICIES = ("single", "random", "ucb1")
MEASURES = ("ucb1", "random less single", "ucb1 less random")
KINDS = {"pool": slice(0, 1), "effect": slice(1, 3)}
UNLABELLED = {"pool": ("jumps",), "effect": ("jumps", "stuck")}
WHAT = {"pool": "what a policy reaches", "effect": "effects of policies"}


def draws(law: str, rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """Positive draws with a mean near 1."""
    if law == "normal":
        return np.abs(1 + 0.4 * rng.normal(size=size))
    if law == "lognormal":
        return rng.lognormal(-0.5, 1.0, size)
    return rng.beta(0.2, 2, size) * 11


def rounds_of(K: int) -> int:
    """Generations of each run, and pulls of each replicate."""
    return max(ROUNDS, 2 * K)


def runs(world: str, law: str, rng: np.random.Generator, count: int, n: int, T: int) -> Floats:
    """Best fitness by generation of n runs in each of so many worlds, (count, n, T + 1)."""
    shape = (count, n, T)
    if world == "jumps":
        has_one = rng.random(shape[:2]) < 0.1
        at = rng.integers(T, size=shape[:2])
        jumps = has_one[..., None] & (np.arange(T) == at[..., None])
        steps = 0.16 / T * rng.random(shape) + 0.7 * jumps
    elif world == "stuck":
        low = rng.random(shape[:2]) < 0.35
        ends = np.where(low, 0.3, 0.9) + np.where(low, 0.3, 0.05) * rng.random(shape[:2])
        share = draws(law, rng, shape) * (np.arange(T) < max(1, T // 8))
        share /= share.sum(axis=2, keepdims=True)
        steps = -np.log1p(-ends)[..., None] * share
    elif world == "null":
        steps = draws(law, rng, shape) / T / 2
    else:
        rate = draws(law, rng, shape[:2])[..., None] / T / 2
        steps = rate * (0.5 + rng.random(shape))
    start = np.zeros((count, n, 1))
    return 1 - np.exp(-np.concatenate([start, steps.cumsum(axis=2)], axis=2))


def played(fitness: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """What each measure is in each replicate, (replicates, measures)."""
    ends = {
        name: simulate(
            fitness, name, rounds=fitness.shape[1] - 1, arms=rows, replicates=len(rows), seed=seed
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
    fitness = runs(world, law, np.random.default_rng(1), FRESH, K, rounds_of(K))
    rows = np.arange(FRESH * K).reshape(-1, K)
    return played(fitness.reshape(FRESH * K, -1), rows, 9).mean(axis=0)


def holds(case: Case, batch: int) -> Iterator[NDArray[np.bool_]]:
    """Whether the intervals of each world of a batch hold the truth, (LEVELS, measures)."""
    from scipy.special import stdtrit

    world, law, n, K = case
    rng = np.random.default_rng([n, K, len(law), len(world), batch])
    fitness = runs(world, law, rng, BATCH, n, rounds_of(K))
    arms = np.stack([pools(rng, n, K) for _ in range(BATCH)])
    rows = (arms + n * np.arange(BATCH)[:, None, None]).reshape(-1, K)
    values = played(fitness.reshape(BATCH * n, -1), rows, batch)
    true, factors = truth(world, law, K), stdtrit(n - 1, (1 + np.array(LEVELS)) / 2)
    for own, part in zip(arms, values.reshape(BATCH, REPLICATES, -1), strict=True):
        estimate = jackknife(part, own, n)
        half = factors[:, None] * pool_errors(estimate, "effect")[0]
        low, high = estimate.mean - half, estimate.mean + half
        for k, level in enumerate(LEVELS):
            reached = pool_interval(part[:, 0], own, level=level)
            low[k, 0], high[k, 0] = reached.low, reached.high
        yield (low <= true) & (true <= high)


def held(case: Case, batch: int) -> Floats:
    """Number of worlds of a batch whose interval holds the truth, (LEVELS, measures)."""
    return np.sum([*holds(case, batch)], axis=0, dtype=np.float64)


def arms_of(n: int) -> tuple[int, ...]:
    """K of which the coverage is measured at n."""
    return tuple(sorted({K for K in (2, 4, n // 2) if n >= 2 * K}))


def cases() -> list[Case]:
    """All that is measured."""
    worlds = [*((world, law) for world in WORLDS for law in LAWS), ("jumps", "normal")]
    return [(*world, n, K) for n in SIZES for K in arms_of(n) for world in worlds]


def labels(shares: dict[Case, Floats]) -> list[tuple[str, ...]]:
    """Rows of `coverage.csv`: the worst over K, world and measure."""
    worst: dict[tuple[str, int, str], Floats] = {}
    for (world, law, n, K), share in shares.items():
        for kind, columns in KINDS.items():
            if world not in UNLABELLED[kind]:
                key = (pool_kind(kind, n, K), n, law)
                least = share[:, columns].min(axis=1)
                worst[key] = np.minimum(worst.get(key, np.ones(len(LEVELS))), least)
    kinds = dict.fromkeys((kind, n) for kind, n, _ in worst)
    return [
        (kind, f"{level:g}", f"{n}", *(f"{worst[kind, n, law][k]:.3f}" for law in LAWS))
        for kind, n in kinds for k, level in enumerate(LEVELS)
    ]  # fmt: skip


def evidence(shares: dict[Case, Floats], counts: dict[Case, int]) -> list[tuple[str, ...]]:
    """Rows of `evidence.csv`: the worst over law and effect, beside the label that is in force."""
    rows = []
    for kind, columns in KINDS.items():
        for n, K, world in dict.fromkeys((case[2], case[3], case[0]) for case in shares):
            mine = [case for case in shares if (case[2], case[3], case[0]) == (n, K, world)]
            worst = min(mine, key=lambda case: shares[case][-1, columns].min())
            share, count = float(shares[worst][-1, columns].min()), counts[worst]
            bar = f"at least its label {measured(pool_kind(kind, n, K), n):.3f}"
            rows.append((
                Path(__file__).name,
                f"coverage of {WHAT[kind]} at a nominal 95 %, worst of each world",
                f"{world}, {n} runs, K = {K}", f"{share:.4f}",
                f"{math.sqrt(share * (1 - share) / count):.4f}",
                "none: not in the label" if world in UNLABELLED[kind] else bar, f"{count}",
            ))  # fmt: skip
    return rows


def replace_rows(place: Path, known: set[str], rows: list[tuple[str, ...]]) -> None:
    """Replaces the rows of a table whose first field is among those that are known."""
    with place.open(encoding="utf-8", newline="") as file:
        head, *others = csv.reader(file)
    with place.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *(row for row in others if row[0] not in known), *rows])


def main() -> None:
    """Prints the coverage of each measure at 95 %, then the worst by n."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000, help="in each case, at most")
    parser.add_argument("--minutes", type=float, default=math.inf, help="of measuring, at most")
    parser.add_argument("--write", action="store_true", help="replace these kinds in coverage.csv")
    parser.add_argument("--evidence", action="store_true", help="replace rows of evidence.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PolicyWarning)
    end, hits, counts = time.monotonic() + 60 * options.minutes, {}, dict.fromkeys(cases(), 0)
    for batch in range(options.worlds // BATCH):
        for case in cases():
            if batch == 0 or time.monotonic() < end:
                hits[case] = held(case, batch) + hits.get(case, 0.0)
                counts[case] += BATCH
    shares = {case: hits[case] / count for case, count in counts.items()}
    print("world,law,n,K," + ",".join(MEASURES) + ",worlds")
    for case, share in shares.items():
        print(*case, *(f"{x:.3f}" for x in share[-1]), counts[case], sep=",")
    rows, kept = labels(shares), evidence(shares, counts)
    for row in (*rows, *kept):
        print(*row, sep=",")
    if options.write:
        place = Path(replay.statistics.intervals.__file__).with_name("coverage.csv")
        replace_rows(place, {"pool", *(row[0] for row in rows)}, rows)
    if options.evidence:
        name = Path(__file__).name
        replace_rows(Path(__file__).with_name("evidence.csv"), {name}, kept)


if __name__ == "__main__":
    main()
