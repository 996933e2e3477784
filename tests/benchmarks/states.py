"""The kernel's claim at single states: what forks of one state bring, against what it forecasts.

    python tests/benchmarks/states.py                       # the stand-in: pilots, then forks
    python tests/benchmarks/states.py --pilots "logs/corpus/local-tsp/deep-*" \\
        --forks "logs/corpus/local-tsp-feedback/off-*"      # logged forks of logged runs

A kernel is fitted to whole runs, of which a state shows one parent at a time. Copies of a state
show what N children of that very parent bring. Two claims are checked: that the forecast is right
on average, and that states differ as much as it says (each parent has a probability of its own).
The intervals are of whole root runs.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import evo
import replay
from replay.planning.kernel import Kernel, fit_kernel

DRAWS, FEWEST = 4000, 5


def forecast_at(
    kernel: Kernel, fitness: float, initial: bool, children: int, rng: np.random.Generator
) -> np.ndarray:
    """Draws of the probability that N children of one state bring a better one, (DRAWS,)."""
    state = 0 if initial else 1 + int(np.nanargmin(np.abs(kernel.fitness[1:] - fitness)))
    factor = kernel.level * rng.gamma(1 / kernel.variance, kernel.variance, DRAWS)
    mean = np.clip(kernel.better[state] * factor, 1e-9, 1 - 1e-9)
    if not initial:  # one initial program, but many parents of a fitness
        mean = rng.beta(kernel.concentration * mean, kernel.concentration * (1 - mean))
    return 1 - (1 - mean) ** children


def compare(kernels: list[Kernel], groups: dict[tuple[str, int], list[evo.Log]]) -> None:
    """Prints the agreement over the states, each given by its copies."""
    rng, rows = np.random.default_rng(0), []
    for (root, at), copies in groups.items():
        log, children = copies[0], copies[0].header.children
        best = log.trajectory[at]
        better = [each.generations[at].improved for each in copies if len(each.generations) > at]
        initial = not any(g.improved for g in log.generations[:at])
        share = np.concatenate(
            [forecast_at(each, best, initial, children, rng) for each in kernels]
        )
        told = rng.binomial(len(better), share) / len(better)
        seen = float(np.mean(better))
        low, high = np.quantile(told, [0.1, 0.9])
        place = (told < seen).mean() + (told == seen).mean() / 2
        rows.append((root, seen, share.mean(), low <= seen <= high, place))
    roots = np.array([row[0] for row in rows])
    found = np.array([row[1:] for row in rows], dtype=float)
    names = np.unique(roots)
    means = []
    for _ in range(2000):
        drawn = rng.choice(names, len(names))
        means.append(np.concatenate([found[roots == name] for name in drawn]).mean(axis=0))
    gap = np.array(means)[:, 0] - np.array(means)[:, 1]
    low, high = np.quantile(gap, [0.025, 0.975])
    print(f"{len(rows)} states of {len(names)} runs")
    print(f"copies with a better child  {found[:, 0].mean():.3f}")
    print(f"forecast                    {found[:, 1].mean():.3f}")
    ends = f"[{low:+.3f}, {high:+.3f}]" if len(names) >= FEWEST else "(too few runs to bound it)"
    print(f"difference                  {(found[:, 0] - found[:, 1]).mean():+.3f} {ends}")
    print(f"within the central 80 %     {found[:, 2].mean():.2f}")
    print(f"mean rank in the forecast   {found[:, 3].mean():.2f} (0.5 is right)")
    if found[:, 0].std() > 0:
        print(f"correlation                 {np.corrcoef(found[:, 0], found[:, 1])[0, 1]:.2f}")


def make(folder: Path, runs: int, copies: int) -> tuple[list[evo.Log], list[evo.Log]]:
    """Makes pilots of the stand-in, and forks of other runs at three generations each."""
    quiet = {"progress": False, "children": 4}
    pilots = evo.run_many("mmd", seeds=range(runs), generations=12, log_dir=folder / "p", **quiet)
    left = range(100, 100 + runs)
    roots = evo.run_many("mmd", seeds=left, generations=8, log_dir=folder / "r", **quiet)
    forks: list[evo.Log] = []
    for root in roots:
        for at in (0, 3, 8):
            forks += evo.fork(root, at=at, generations=at + 1, copies=copies + 1,
                              log_dir=folder / "f", progress=False)[1:]  # fmt: skip
    return list(pilots), forks


def main() -> None:
    """Fits the kernel, groups the forks by state, and compares."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pilots")
    parser.add_argument("--forks")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--copies", type=int, default=12)
    parser.add_argument("--kernels", type=int, default=24)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.forks:
            pilots = [evo.read_log(path) for path in sorted(Path().glob(given.pilots + ".jsonl*"))]
            forks = [evo.read_log(path) for path in sorted(Path().glob(given.forks + ".jsonl*"))]
        else:
            pilots, forks = make(Path(folder), given.runs, given.copies)
        groups: dict[tuple[str, int], list[evo.Log]] = {}
        for log in forks:
            if log.header.fork and len(log.generations) > log.header.fork.at:
                groups.setdefault((log.header.fork.root, log.header.fork.at), []).append(log)
        kernel = fit_kernel(replay.children(*pilots))
        compare(list(kernel.resampled(given.kernels)), groups)


if __name__ == "__main__":
    main()
