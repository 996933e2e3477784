"""The planner judged on runs that were paid for: `python tests/benchmarks/planner_backtest.py`.

A pilot is cut out of a few seeds of a sweep; the prefix property makes it the very pilot that these
seeds would have given. The plan and fixed rules then choose a split, and are judged on the other
seeds: regret against the best split there in hindsight. The rule called `plan` is `choose_split`,
which departs from T = N where the pilot's kernels give another split a clear lead.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from paper_ledger import sources

from replay.planning.depth import RULES, fixed_split
from replay.planning.grid import cells, one_sweep
from replay.planning.kernel import fit_kernel
from replay.planning.leads import choose_split
from replay.planning.planner import Choice, simulate_choice
from replay.statistics.intervals import interval

BEST = 1.0
"""The best known fitness of the shipped tasks, which are scored against it."""
PILOT = {1: 8, 4: 2}
"""Generations by N of each seed of the pilot: 16 calls."""
LARGE: dict[str, Any] = {"pilot": {1: 64, 4: 16, 16: 4}, "seeds": 6, "budgets": (64, 128)}
"""Settings of pilots that saw most of what they plan."""


def backtest(
    frame: pd.DataFrame,
    children: pd.DataFrame,
    *,
    budgets: Sequence[int] = (64, 128, 256, 512),
    pilot: Mapping[int, int] = PILOT,
    seeds: int = 4,
    pilots: int = 20,
    kernels: int = 24,
) -> pd.DataFrame:
    """Regret of the plan and of `replay.planning.depth.RULES`, for many pilots of a few seeds each.

    Returns:
        One row per task, model, pilot, budget (calls) and rule: generations, children, value (mean
        over the seeds that are not in the pilot) and regret.
    """
    rows = []
    for (task, model), part in frame.groupby(["task", "model"], sort=False):
        logged = children[(children["task"] == task) & (children["model"] == model)]
        every = np.sort(part["seed"].unique())
        rng = np.random.default_rng([0, len(every)])
        for number in range(pilots):
            drawn = rng.choice(every, seeds, replace=False)
            grid = cells(one_sweep(part[~part["seed"].isin(drawn)]))
            splits = zip(grid.generations.tolist(), grid.children.tolist(), strict=True)
            judged = dict(zip(splits, grid.means, strict=True))
            design = logged["generation"] <= logged["children"].map(pilot).fillna(-1)
            ours = logged[logged["seed"].isin(drawn) & design]
            for C, rule, split in _choices(ours, budgets, kernels, number):
                best = max(judged[C // N, N] for N in _sizes(C))
                value = judged[split]
                rows.append((task, model, number, C, rule, *split, value, best - value))
    names = ("task", "model", "pilot", "calls", "rule", "generations", "children")
    return pd.DataFrame(rows, columns=[*names, "value", "regret"])


def _choices(
    children: pd.DataFrame, budgets: Sequence[int], kernels: int, seed: int
) -> Iterator[tuple[int, str, tuple[int, int]]]:
    """What each rule chooses for each budget, from a pilot's children."""
    kernel = fit_kernel(children, best=BEST)
    worlds, most, means = list(kernel.resampled(kernels, seed=seed)), max(budgets), {}
    for N in _sizes(most):
        one = Choice(generations=most // N, children=N)
        paths = simulate_choice(worlds, one, rounds=most // N, runs=200, seed=seed)
        means[N] = paths.reshape(kernels, -1, most // N).mean(axis=1)
    for C in budgets:
        N = np.array(_sizes(C))
        for rule in RULES:
            at = fixed_split(rule, C // N, N)
            assert at is not None
            yield C, rule, (int(C // N[at]), int(N[at]))
        by_world = np.stack([means[n][:, C // n - 1] for n in _sizes(C)], axis=1)
        chosen = choose_split(by_world, {n: C // n for n in _sizes(C)}, len(kernel.sizes))
        yield C, "plan", (C // chosen, chosen)


def _sizes(calls: int) -> list[int]:
    return [2**power for power in range(calls.bit_length())]


def summarise(table: pd.DataFrame, unit: str) -> pd.DataFrame:
    """Mean regret of each rule with its interval over units, and how much more than the plan's."""
    wide = table.pivot_table(index=unit, columns="rule", values="regret")
    rows = []
    for rule in wide:
        one, more = (interval(each) for each in (wide[rule], wide[rule] - wide["plan"]))
        rows.append((rule, one.value, one.low, one.high, more.value, more.low, more.high, one.n))
    columns = ["rule", "regret", "low", "high", "excess", "excess_low", "excess_high", "n"]
    return pd.DataFrame(rows, columns=columns).sort_values("regret", ignore_index=True)


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=24)
    parser.add_argument("--large", action="store_true", help="pilots of 192 calls and six seeds")
    options = parser.parse_args()
    settings: dict[str, Any] = {"pilots": options.pilots, "kernels": options.kernels}
    settings |= LARGE if options.large else {}
    pd.set_option("display.width", 160)
    table = backtest(*sources()["offline"], **settings)
    print(table.pivot_table(index=["task", "calls"], columns="rule", values="regret").round(4))
    print(summarise(table, "pilot").round(4).to_string(index=False))
    wide = table.pivot(index=["task", "model", "pilot", "calls"], columns="rule")
    left = wide["children"]["plan"] != wide["children"]["square"]
    gain = (wide["regret"]["square"] - wide["regret"]["plan"])[left].mean()
    print(f"the plan leaves T = N in {left.sum()} of {len(left)} choices, gain there {gain:.4f}")


if __name__ == "__main__":
    main()
