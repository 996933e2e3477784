"""How often each selector returns a wrong configuration, and after how many samples.

python tests/benchmarks/selector_errors.py [--instances 4000] [--folder logs/corpus/offline]

Instances of 8 configurations with up to 2,000 samples each:

- bernoulli: one configuration at .6 (or .8), seven at .5.
- gaussian: the same means, standard deviation .2, clipped to the declared bounds [0, 1].
- logged: final fitness of logged runs, N = 1 ... 128 of one task; each sample is a seed drawn with
  replacement, the same for all configurations.

`compat` is arm elimination by mean +- SE, with up to 2,000 samples and with 100.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import replay
from evo.policies import Draws
from evo.studies.selection import SELECTORS, Terms, find_selector
from evo.studies.selection.race import LoggedSamples, race

ARMS, SIZE, PIECE = 8, 2000, 125


def simulated(kind, gap, count, seed):
    """Samples (count, arms, size), and the best arm of each."""
    rng = np.random.default_rng(seed)
    best = rng.integers(0, ARMS, count)
    mean = np.full((count, ARMS), 0.5)
    mean[np.arange(count), best] += gap
    if kind == "bernoulli":
        values = (rng.random((count, ARMS, SIZE)) < mean[:, :, None]).astype(float)
    else:
        values = np.clip(rng.normal(mean[:, :, None], 0.2, (count, ARMS, SIZE)), 0, 1)
    return values, best


def resampled(matrix, count, seed):
    """Seeds drawn with replacement, paired; the best by the logged mean."""
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(ARMS), (count, 1)), axis=1)
    drawn = rng.integers(0, matrix.shape[1], (count, SIZE))
    values = matrix[order[:, :, None], drawn[:, None, :]]
    return values, matrix.mean(axis=1)[order].argmax(axis=1)


def logged(folder, task):
    """(arms, seeds), final fitness of one task's runs, N = 1 ... 128."""
    frame = replay.load(folder, progress=False)
    frame = frame[(frame.task == task) & (frame.children <= 128)]
    last = frame.sort_values("generation").groupby(["children", "seed"]).best_fitness.last()
    return np.clip(last.unstack().to_numpy(), 0, 1)


def measure(label, draw, selector, *, count, size=SIZE, interval="anytime", **parameters):
    """Race all instances and print a line."""
    terms = Terms(size=size, batch=10, interval=interval)
    wrong = lost = certain = 0
    samples = []
    began = time.perf_counter()
    for first in range(0, count, PIECE):
        values, best = draw(min(PIECE, count - first), first)
        values, rows = values[:, :, :size], np.arange(len(values))
        rng = Draws(first, len(values))
        found = race(
            find_selector(selector, **parameters)(values.shape[:2], terms, rng=rng),
            LoggedSamples(values),
        )
        wrong += int((found.winner != best).sum())
        lost += int((~found.survivors[rows, best]).sum())
        certain += int((found.end == 0).sum())
        samples += found.standing.count.sum(axis=1).tolist()
    share = np.mean(samples) / (ARMS * size)
    print(
        f"{label:16} {selector if interval == 'anytime' else 'compat':20} {size:>5} "
        f"{100 * wrong / count:>7.2f} {100 * lost / count:>7.2f} {100 * certain / count:>7.0f} "
        f"{np.mean(samples):>8.0f} {100 * share:>6.0f} {time.perf_counter() - began:>7.1f}",
        flush=True,
    )


def main():
    """Print a line per set of instances and selector."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=4000)
    parser.add_argument("--folder", default="logs/corpus/offline")
    parser.add_argument("--task", default="heilbronn_triangle")
    parser.add_argument("--selectors", nargs="+", default=[*SELECTORS, "compat"])
    parser.add_argument("--sets", nargs="+", help="such as 'bernoulli .6' (default: all)")
    options = parser.parse_args()
    matrix = logged(options.folder, options.task)
    sets = {
        "bernoulli .6": (lambda n, seed: simulated("bernoulli", 0.1, n, seed), 0.55),
        "bernoulli .8": (lambda n, seed: simulated("bernoulli", 0.3, n, seed), 0.65),
        "gaussian .6": (lambda n, seed: simulated("gaussian", 0.1, n, seed), 0.55),
        "logged": (
            lambda n, seed: resampled(matrix, n, seed),
            float(np.sort(matrix.mean(axis=1))[-2:].mean()),
        ),
    }
    print(
        f"{'instances':16} {'selector':20} {'size':>5} {'wrong %':>7} {'lost %':>7} "
        f"{'sure %':>7} {'samples':>8} {'% all':>6} {'seconds':>7}"
    )
    for label, (draw, threshold) in sets.items():
        if options.sets and label not in options.sets:
            continue
        for selector in options.selectors:
            own = {"threshold": threshold} if selector == "threshold" else {}
            if selector != "compat":
                measure(label, draw, selector, count=options.instances, **own)
                continue
            for size in (SIZE, 100):
                measure(
                    label,
                    draw,
                    "arm_elimination",
                    count=options.instances,
                    size=size,
                    interval="compat",
                )


if __name__ == "__main__":
    main()
