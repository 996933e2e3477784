"""How wide intervals of effects of policies must be, in worlds whose truth is known.

An effect (ucb1 less single, thompson less single, random less single, ucb1 less random) is the mean
over pools of K of n runs; its standard error is that of the infinitesimal jackknife, computed here
by code of its own. For each world, n and K the benchmark prints the multiplier of Student's
half-width that holds the truth in 95 % of the worlds drawn. `--write` makes
`replay/statistics/effects.csv`: by n and K the multiplier for 95 % of the ordinary worlds (of the
effect that needs most), the one for the worst of all worlds, and the least coverage of the former
in any world.
`--check` draws other worlds and prints the coverage of the shipped table, how often ucb1 is called
*greater* than `single` where nothing can be chosen, and how often it is where something can.

Ordinary worlds are `null`, `rates` and `ceilings` of `worlds.py`, increments of normal, lognormal
and Beta(.2, 2) law, and paces of normal law. In the others few runs decide: paces of lognormal and
Beta(.2, 2) law, and the rare jumps of `worlds.py`.
"""

import argparse
import csv
import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from worlds import Floats, paths

import replay.statistics.intervals
from replay.simulation.simulate import simulate

SIZES = (6, 10, 15, 20, 40)
ORDINARY = ("null", "rates", "ceilings", "increments normal", "increments lognormal",
            "increments beta", "pace normal")  # fmt: skip
WORLDS = (*ORDINARY, "pace lognormal", "pace beta", "jump")
EFFECTS = (("random", "single"), ("ucb1", "single"), ("thompson", "single"), ("ucb1", "random"))
POLICIES = ("single", "random", "ucb1", "thompson")
REPLICATES, FRESH = 50, 20_000  # replicates for each run; fresh pools for the truth


def rounds_of(K: int) -> int:
    """Generations of each run, and pulls of each replicate."""
    return max(12, 2 * K)


def runs(world: str, rng: np.random.Generator, count: int, T: int) -> Floats:
    """Best fitness of so many runs by generation, (count, T + 1)."""
    kind, _, law = world.partition(" ")
    if not law:
        return paths(world, rng, count, max(T, 24))[:, : T + 1]
    shape = (count, T) if kind == "increments" else (count, 1)
    draw = {
        "normal": lambda: np.abs(1 + 0.4 * rng.normal(size=shape)),
        "lognormal": lambda: rng.lognormal(-0.5, 1.0, shape),
        "beta": lambda: rng.beta(0.2, 2, shape) * 11,
    }[law]
    steps = np.broadcast_to(draw(), (count, T)) / T / 2
    if kind == "pace":
        steps = steps * (0.5 + rng.random((count, T)))
    return np.asarray(
        1 - np.exp(-np.concatenate([np.zeros((count, 1)), steps.cumsum(axis=1)], axis=1))
    )


def ends(fitness: Floats, rows: NDArray[np.int64], seed: int) -> dict[str, Floats]:
    """Final best fitness of each policy in each replicate; `single` is the mean over its pool."""
    T = fitness.shape[1] - 1
    found = {
        name: simulate(
            fitness, name, rounds=T, arms=rows, replicates=len(rows), seed=seed
        ).best_fitness[:, -1]
        for name in POLICIES
        if name != "single"
    }
    return {**found, "single": fitness[rows, -1].mean(axis=1)}


@functools.cache
def truth(world: str, K: int) -> Floats:
    """Each effect over fresh runs, (effects,)."""
    fitness = runs(world, np.random.default_rng(101), FRESH * K, rounds_of(K))
    found = ends(fitness, np.arange(FRESH * K).reshape(-1, K), 9)
    return np.array([(found[a] - found[b]).mean() for a, b in EFFECTS])


def ratios(world: str, n: int, K: int, count: int, seed: int) -> tuple[Floats, Floats]:
    """Estimate less truth, and estimate, over Student's half-width, (worlds, effects) each."""
    rng = np.random.default_rng([seed, n, K, WORLDS.index(world)])
    fitness = runs(world, rng, count * n, rounds_of(K))
    order = rng.random((count, REPLICATES * n, n)).argsort(axis=2)
    pools = order[:, :, : n // K * K].reshape(count, -1, K)[:, : REPLICATES * n]
    rows = (pools + n * np.arange(count)[:, None, None]).reshape(-1, K)
    found = ends(fitness, rows, seed)
    member = np.zeros((count, REPLICATES * n, n))
    np.put_along_axis(member, pools, 1.0, axis=2)
    p, limit = K / n, float(stdtrit(n - 1, 0.975))
    out = []
    for a, b in EFFECTS:
        t = (found[a] - found[b]).reshape(count, REPLICATES * n)
        away = t - t.mean(axis=1, keepdims=True)
        covariance = np.einsum("wri,wr->wi", member, away) / (REPLICATES * n)
        noise = (away**2).mean(axis=1) / (REPLICATES * n)
        inside = (covariance**2).sum(axis=1) - n * p * (1 - p) * noise
        variance = (n - 1) / n * (n / (n - K)) ** 2 * inside
        half = limit * np.sqrt(np.maximum(variance, 0) + noise)
        out.append((t.mean(axis=1), np.maximum(half, 1e-12)))
    mean, half = (np.stack(each, axis=1) for each in zip(*out, strict=True))
    return (mean - truth(world, K)) / half, mean / half


def arms_of(n: int) -> tuple[int, ...]:
    """K that are measured at n: 2, a third and half of the runs."""
    return tuple(sorted({2, max(2, n // 3), n // 2}))


def table(count: int, sizes: tuple[int, ...]) -> list[tuple[object, ...]]:
    """Rows of `effects.csv`."""
    rows: list[tuple[object, ...]] = []
    for n in sizes:
        for K in arms_of(n):
            off = {world: np.abs(ratios(world, n, K, count, 1)[0]) for world in WORLDS}
            needed = {world: np.quantile(each, 0.95, axis=0).max() for world, each in off.items()}
            together = np.concatenate([off[world] for world in ORDINARY])
            ordinary = max(1.0, np.quantile(together, 0.95, axis=0).max())
            least = {world: (each <= ordinary).mean(axis=0).min() for world, each in off.items()}
            rows.append((n, K, f"{ordinary:.2f}", f"{max(*needed.values(), 1.0):.2f}",
                         f"{min(least.values()):.3f}"))  # fmt: skip
            print(*rows[-1], {w: (round(float(needed[w]), 2), round(float(least[w]), 3))
                              for w in WORLDS}, flush=True)  # fmt: skip
    return rows


def check(count: int, sizes: tuple[int, ...]) -> None:
    """Prints what the shipped table does on worlds that it was not made from."""
    from replay.simulation.widths import widths

    for n in sizes:
        for K in arms_of(n):
            usual, worst, _ = widths(n, K)
            rule = max(usual, worst) if n < 20 else usual
            cells = []
            for world in WORLDS:
                off, seen = ratios(world, n, K, count, 2)
                covered = (np.abs(off) <= usual).mean(axis=0).min()
                greater = (seen[:, 1:3] > rule).mean(axis=0)
                cells.append(f"{world} {covered:.3f} greater {greater[0]:.3f} {greater[1]:.3f}")
            print(n, K, "; ".join(cells), flush=True)


def main() -> None:
    """Print the multipliers, or the errors of those that are shipped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=300, help="worlds of each kind, n and K")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--write", action="store_true", help="replace effects.csv")
    parser.add_argument("--check", action="store_true", help="check the table that is shipped")
    options = parser.parse_args()
    if options.check:
        check(options.worlds, tuple(options.sizes))
        return
    rows = table(options.worlds, tuple(options.sizes))
    if options.write:
        place = Path(replay.statistics.intervals.__file__).with_name("effects.csv")
        with place.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("n", "K", "ordinary", "worst", "coverage"))
            writer.writerows(rows)


if __name__ == "__main__":
    main()
