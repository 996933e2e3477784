"""Whether claims pass where nothing is and where something is: `python claims_nulls.py`.

Per kind of claim, over `--draws` made data sets: how often it passes (p <= .05, Holm aside) where
its null is true, and where the effect is twice the one that it says these runs would detect. The
null of a regime is runs of one distribution at every N; of an envelope, cells of nothing but noise;
of a policy against random allocation, increments dealt to arms anew; of a pool against one run,
runs of which the best of K gains just what a K-th of the generations loses. An effect is put in
place of what bootstrapped runs have themselves: one N lifted, a rise with log C, runs that keep
rising, a smaller loss. Of data sets of ten runs a policy has five pools of two.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replay.claims.paper import ALPHA, envelope_test, halves, regime_test
from replay.planning.grid import Cells, Sweep, cells
from replay.simulation.effects import pool_interval
from replay.simulation.pools import Pools
from replay.simulation.simulate import simulate_many

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

NOISE: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
}
RUNS, ROUNDS, K = 10, 12, 2
SIZES = np.repeat(2 ** np.arange(7), 5)
BUDGET = 64


def regimes(sign: float, draw: Draw, draws: int) -> tuple[float, float]:
    """Of 7 N with five runs each."""
    rng = np.random.default_rng(1)
    data = [draw(rng, (5, 7)) for _ in range(draws)]
    null = [regime_test(values, sign, 0, detect=False)["p"] for values in data]
    lifted, powers = np.arange(7) == (3 if sign > 0 else 0), []
    for values in data[:10]:
        effect = 2 * regime_test(values, sign, 0)["detectable"]
        for _ in range(20):
            drawn = rng.integers(0, 5, (5, 7))
            world = np.take_along_axis(values - values.mean(axis=0), drawn, axis=0)
            powers.append(regime_test(world + effect * lifted, sign, 0, detect=False)["p"])
    return _passes(null), _passes(powers)


def envelopes(degree: int, draw: Draw, draws: int) -> tuple[float, float]:
    """Of 7 N with five runs each, of 64 calls."""
    rng, depths = np.random.default_rng(2), BUDGET // SIZES
    inside = np.arange(BUDGET + 1) <= depths[:, None]
    names = np.arange(len(SIZES)).astype(object)

    def of(values: Floats) -> tuple[Cells, Floats, int, int]:
        sweep = Sweep(task="", model="", runs=names, children=SIZES, depth=depths, values=values)
        grid = cells(sweep)
        return grid, halves(grid, 0), degree, 0

    data = [np.where(inside, draw(rng, inside.shape), np.nan) for _ in range(draws)]
    null = [envelope_test(*of(each), detect=False)["p"] for each in data]
    calls = np.log2(np.maximum(np.outer(SIZES, np.arange(BUDGET + 1)), 1))
    unit = 1.0 if degree == 1 else np.log2(2.0 ** np.arange(7)).std()
    powers = []
    for each in data[:10]:
        effect = 2 * envelope_test(*of(each))["detectable"]
        with np.errstate(invalid="ignore"):
            level = np.vstack([each[SIZES == N].mean(axis=0) for N in SIZES])
        for _ in range(20):
            rows = np.arange(len(SIZES)) // 5 * 5 + rng.integers(0, 5, len(SIZES))
            world = (each - level)[rows] + effect / unit * calls
            powers.append(envelope_test(*of(world), detect=False)["p"])
    return _passes(null), _passes(powers)


def policies(name: str, draw: Draw, draws: int) -> tuple[float, float]:
    """A policy against random allocation: the null, and runs that keep rising as they did."""
    rng = np.random.default_rng(3)
    base = np.exp(draw(rng, (RUNS, ROUNDS + 1)) / 2).cumsum(axis=1)
    null = _null(base, name, math.inf)
    steps = np.diff(base, axis=1, prepend=0.0)
    order = rng.random((draws, *steps.shape)).argsort(axis=1)
    dealt = np.take_along_axis(steps[None], order, axis=1).cumsum(axis=2)
    found, _ = _effects(dealt, name, "random")
    passed = [float((1 + (null >= each).sum()) / (1 + len(null))) for each in found]
    # Bootstrapped runs of which every other one keeps rising, the more the larger the effect.
    quality = np.where(np.arange(RUNS) % 2, 1.0, -1.0)[:, None] * np.arange(ROUNDS + 1)
    rows = rng.integers(0, RUNS, (40, RUNS))
    _, errors = _effects(base[rows], name, "random")
    needed = 0.94 * errors.mean() + max(2.78 * errors.mean(), np.quantile(null, 0.95))
    for rate in np.geomspace(0.05, 100, 40) * np.abs(steps).mean():
        worlds = np.maximum.accumulate((base + rate * quality)[rows], axis=2)
        effects, _ = _effects(worlds, name, "random")
        if effects.mean() >= 2 * needed:
            drawn = [_null(world, name, each) for world, each in zip(worlds, effects, strict=True)]
            ps = [(1 + (d >= e).sum()) / (1 + len(d)) for d, e in zip(drawn, effects, strict=True)]
            return _passes(passed), _passes(ps)
    return _passes(passed), float("nan")


def _null(fitness: Floats, name: str, value: float) -> Floats:
    runs = np.arange(RUNS).repeat(ROUNDS + 1)
    generations = np.tile(np.arange(ROUNDS + 1), RUNS)
    columns = {"run": runs, "generation": generations, "best_fitness": fitness.ravel()}
    return Pools(pd.DataFrame(columns), arms=K).permuted_effects(name, "random", value)


def pools(draw: Draw, draws: int) -> tuple[float, float]:
    """A pool against one run."""
    rng = np.random.default_rng(4)

    def worlds(loss: float, count: int) -> Floats:
        ends = draw(rng, (count, RUNS, 1))
        return ends + loss * np.arange(ROUNDS + 1)

    def gain(loss: float) -> float:
        return float(np.mean(_effects(worlds(loss, 400), "random", "single")[0]))

    low, high = 0.0, 4.0
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle) > 0 else (low, middle)
    from scipy.special import stdtr

    def ps(values: Floats, errors: Floats) -> Floats:
        return np.asarray(1 - stdtr(RUNS / K - 1, values / errors))

    null = ps(*_effects(worlds(low, draws), "random", "single"))
    values, errors = _effects(worlds(low, draws), "random", "single")
    shift = 2 * (2.78 + 0.94) * errors  # of each data set, as it would say
    return _passes(null), _passes(ps(values + shift, errors))


def _effects(worlds: Floats, a: str, b: str, replicates: int = 100) -> tuple[Floats, Floats]:
    """Effect of a over b and its standard error in each data set, (worlds, runs, columns)."""
    count, n = worlds.shape[:2]
    rng = np.random.default_rng(6)
    order = rng.random((count, replicates // (n // K), n)).argsort(axis=2)
    pools = order[:, :, : n // K * K].reshape(count, -1, K)
    rows = (pools + n * np.arange(count)[:, None, None]).reshape(-1, K)
    played = simulate_many(
        worlds.reshape(-1, worlds.shape[2]), [a, b], rounds=ROUNDS, replicates=len(rows),
        arms=rows,
    )  # fmt: skip
    ends = [played[name].best_fitness[:, -1].reshape(count, -1) for name in (a, b)]
    found = [pool_interval(one, arms) for one, arms in zip(ends[0] - ends[1], pools, strict=True)]
    return (
        np.array([each.value for each in found]),
        np.array([(each.high - each.low) / 2 / 2.7764451 for each in found]),
    )


def _passes(ps: Floats | list[float]) -> float:
    return float(np.mean(np.asarray(ps) <= ALPHA))


def main() -> None:
    """Print one row per claim and kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    rows = []
    for noise, draw in NOISE.items():
        kinds = {
            "interior": lambda draw=draw: regimes(1.0, draw, draws),
            "corner": lambda draw=draw: regimes(-1.0, draw, draws),
            "rises": lambda draw=draw: envelopes(1, draw, draws),
            "smooth": lambda draw=draw: envelopes(2, draw, draws),
            "a pool beats one run": lambda draw=draw: pools(draw, draws),
            "ucb1 beats random": lambda draw=draw: policies("ucb1", draw, draws),
        }
        for claim, measure in kinds.items():
            rows.append((claim, noise, *measure()))
            print(*rows[-1], flush=True)
    print(pd.DataFrame(rows, columns=["claim", "noise", "null passes", "power"]).to_string())


if __name__ == "__main__":
    main()
