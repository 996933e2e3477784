"""Worlds whose truth is known, for the benchmarks of statistics, policies, diagnosis and planning.

Runs, by `paths`:

- `null`: increments are independent of the run, so nothing can be chosen;
- `rates`: each run improves at a rate of its own for as long as it goes on;
- `ceilings`: each run climbs quickly to a ceiling of its own;
- `jump`: as `null`, and one run in ten jumps once.

Children, by `children_of`, from which `run` and `pilot` make searches:

- `deep`: small steps from any parent favour few children and many generations;
- `broad`: a good first draw, then nearly nothing, favours many children;
- `arms`: each run has a ceiling from its first success on, which favours several runs;
- `flat`: the split of a budget does not matter.

A task of the same family has another `pace`, by which its steps are longer or shorter.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Keep = Callable[[int, int, float, float], object]

PATHS = ("null", "rates", "ceilings", "jump")
CHILDREN = ("deep", "broad", "arms", "flat")
START = 0.2
DESIGN = ((1, 64), (4, 16), (16, 4))
"""N and T of the runs of a pilot, 64 calls each."""


def paths(world: str, rng: np.random.Generator, n: int, T: int = 24) -> Floats:
    """Best fitness of n runs by generation, (n, T + 1)."""
    steps = rng.exponential(1, (n, T)) * (rng.random((n, T)) < 0.25)
    if world == "ceilings":
        ceiling = rng.beta(2, 2, (n, 1))
        climbs = (rng.random((n, T)) < 0.6).cumsum(axis=1)
        climbed = np.concatenate([np.zeros((n, 1)), climbs], axis=1)
        return np.asarray(0.2 + 0.75 * ceiling * (1 - np.exp(-0.6 * climbed)))
    if world == "rates":
        steps = steps * rng.gamma(1, 1, (n, 1))
    elif world not in PATHS:
        raise ValueError(f"expected one of {', '.join(PATHS)}, got {world!r}")
    climbed = np.concatenate([np.zeros((n, 1)), steps.cumsum(axis=1)], axis=1)
    path = 1 - 0.7 * np.exp(-0.25 * climbed)
    if world == "jump":
        jumps = rng.random((n, 1)) < 0.1
        at = rng.integers(4, 20, (n, 1))
        return np.asarray(0.5 * path + 0.4 * jumps * (np.arange(T + 1)[None] >= at))
    return np.asarray(path)


def ceiling_of(world: str, rng: np.random.Generator) -> float:
    """The ceiling of one run: its own in `arms`, else 1."""
    return float(0.25 + 0.7 * rng.beta(1.2, 2.5)) if world == "arms" else 1.0


def children_of(
    world: str,
    rng: np.random.Generator,
    fitness: float,
    first: bool,
    ceiling: float,
    N: int,
    pace: float = 1.0,
) -> Floats:
    """Fitness of N rewrites of a parent, (N,); `first`: no rewrite has improved yet."""
    u, away = rng.random(N), 1 - fitness
    if world == "deep":
        better = 1 - away * np.exp(-rng.exponential(0.12 * pace, N))
        return np.where(u < 0.35, better, fitness - 0.05 * rng.random(N))
    if world == "broad" and first:
        return np.where(u < 0.8, 0.2 + 0.7 * rng.beta(1, 4 / pace, N), 0.1)
    if world == "broad":
        better = fitness + 0.02 * pace * away * rng.random(N)
        return np.where(u < 0.02, better, fitness - 0.1 * rng.random(N))
    if world == "arms":
        better = fitness + (max(ceiling, fitness) - fitness) * rng.beta(2, 3 / pace, N)
        return np.where(u < 0.5, better, fitness - 0.05 * rng.random(N))
    if world == "flat":
        return np.where(u < 0.01, fitness + 0.3 * pace * away * rng.random(N), fitness - 0.05)
    raise ValueError(f"expected one of {', '.join(CHILDREN)}, got {world!r}")


def run(
    world: str,
    rng: np.random.Generator,
    N: int,
    T: int,
    keep: Keep | None = None,
    pace: float = 1.0,
) -> Floats:
    """Best fitness of one greedy search by generation, (T + 1,).

    `keep(generation, index, fitness, parent_fitness)` is called for each child.
    """
    fitness, first, ceiling, path = START, True, ceiling_of(world, rng), [START]
    for generation in range(1, T + 1):
        values = children_of(world, rng, fitness, first, ceiling, N, pace)
        if keep is not None:
            for index, value in enumerate(values):
                keep(generation, index, float(value), fitness)
        if values.max() > fitness + 1e-9:
            fitness, first = float(values.max()), False
        path.append(fitness)
    return np.array(path)


def pilot(
    world: str,
    rng: np.random.Generator,
    seeds: int = 6,
    design: tuple[tuple[int, int], ...] = DESIGN,
    task: str = "t",
    pace: float = 1.0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A pilot as `replay.plan(frame, budget=64, children=children, best=1.0)` takes it.

    Returns:
        The rows of `replay.load` and of `replay.children`; 192 calls a seed by default.
    """
    rows: list[tuple[object, ...]] = []
    kept: list[tuple[object, ...]] = []
    for seed in range(seeds):
        for N, T in design:
            name = f"N{N}s{seed}" if task == "t" else f"{task}-N{N}s{seed}"

            def keep(g: int, i: int, f: float, p: float, name: str = name, N: int = N) -> None:
                kept.append((name, task, "m", N, g, i, f, p, f > p + 1e-9))

            path = run(world, rng, N, T, keep, pace)
            rows += [(name, task, "m", seed, N, g, f) for g, f in enumerate(path)]
    about = ["run", "task", "model"]
    frame = pd.DataFrame(rows, columns=[*about, "seed", "children", "generation", "best_fitness"])
    of_child = ["children", "generation", "index", "fitness", "parent_fitness", "improved"]
    children = pd.DataFrame(kept, columns=[*about, *of_child])
    return frame.assign(search="greedy"), children.assign(status="ok", seed=0, search="greedy")
