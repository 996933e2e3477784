"""The planner judged on runs that were paid for: `python tests/benchmarks/planner_backtest.py`.

A pilot is cut out of a few seeds of a sweep; the prefix property makes it the very pilot that these
seeds would have given. The plan and fixed rules then choose a split, and are judged on the other
seeds: regret against the best split there in hindsight. `--arms` does the same for arms and policy
on real runs of one N, `--family` asks how often plans leave T = N where depth is truly ahead.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "replay"))
from paper_ledger import sources
from synthetic_runs import chain_runs

from evo.policies.base import PolicyWarning
from replay.cells import FloatArray, cells, one_sweep
from replay.depth import RULES, fixed_split
from replay.forecast import (
    ARMS,
    PLANNED_POLICIES,
    Choice,
    choose_arms,
    choose_split,
    plan,
    simulate_choice,
)
from replay.frames import fitness_matrix
from replay.intervals import interval
from replay.kernel import fit_kernel
from replay.simulation import simulate

PILOT = {1: 8, 4: 2}
"""Generations by N of each seed of the pilot: 16 calls."""
POLICIES = ("random", *PLANNED_POLICIES)


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
    """Regret of the plan and of `replay.depth.RULES`, for many pilots of a few seeds each.

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
    kernel = fit_kernel(children)
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


def backtest_arms(
    frame: pd.DataFrame,
    children: pd.DataFrame,
    *,
    generations: int = 16,
    runs: int = 4,
    pilots: int = 4,
    arms: Sequence[int] = (2, 4, 5, 8, 10),
    policies: Sequence[str] = POLICIES,
    replicates: int = 200,
    kernels: int = 12,
) -> pd.DataFrame:
    """Regret of numbers of arms and policies, and of the plan, on runs of one task, model and N.

    One run is left out, `runs` of the others make a pilot of so many generations, and pools are
    drawn from the rest, no run twice in a pool. The budget is that of one of these runs.

    Returns:
        One row per pilot and rule (`single`, each number of arms with each policy, `plan`):
        left_out, arms, policy, value and regret against the best choice on the same runs.
    """
    rows, names = [], frame["run"].unique()
    depth = int(frame.groupby("run")["generation"].max().min())
    single = Choice(generations=depth, children=int(frame["children"].iloc[0]))
    fitness, logged = fitness_matrix(frame), children[children["generation"] <= generations]
    sizes = [K for K in arms if len(names) - runs - 1 >= K]
    for number in range(pilots * len(names)):
        left_out = number % len(names)
        rng = np.random.default_rng([0, number, len(names)])
        drawn = rng.permutation(np.delete(np.arange(len(names)), left_out))
        values = _judge(fitness[drawn[runs:]], single, sizes, policies, replicates, number)
        pilot = logged[logged["run"].isin(names[drawn[:runs]])]
        rules = {"single" if each.arms == 1 else f"K = {each.arms}, {each.policy}": each
                 for each in values}  # fmt: skip
        rules["plan"] = _planned(pilot, single, sizes, policies, kernels, number)
        for rule, each in rules.items():
            value = values[each]
            regret = max(values.values()) - value
            rows.append((number, left_out, rule, each.arms, each.policy, value, regret))
    columns = ["pilot", "left_out", "rule", "arms", "policy", "value", "regret"]
    return pd.DataFrame(rows, columns=columns)


def _judge(
    fitness: FloatArray,
    single: Choice,
    sizes: Sequence[int],
    policies: Sequence[str],
    replicates: int,
    seed: int,
) -> dict[Choice, float]:
    """Mean fitness at the end of every choice; nothing counts as 0, or the lowest if less."""
    nothing = float(np.fmin.reduce(fitness, axis=None, initial=0.0))
    ends = np.fmax.accumulate(fitness, axis=1)[:, single.generations]
    values = {single: float(np.nan_to_num(ends, nan=nothing).mean())}
    for K in sizes:
        for policy in policies:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PolicyWarning)  # too few rounds is a result here
                played = simulate(
                    fitness, policy, rounds=single.generations, replicates=replicates, arms=K,
                    replace=False, seed=seed, reward="rank",
                )  # fmt: skip
            final = np.nan_to_num(played.best_fitness[:, -1], nan=nothing)
            values[replace(single, arms=K, policy=policy)] = float(final.mean())
    return values


def _planned(
    children: pd.DataFrame,
    single: Choice,
    sizes: Sequence[int],
    policies: Sequence[str],
    kernels: int,
    seed: int,
) -> Choice:
    """What the planner chooses from a pilot; one run if nothing in the pilot has a fitness."""
    if not children["fitness"].notna().any():
        return single
    kernel = fit_kernel(children)
    worlds = list(kernel.resampled(kernels, seed=seed))
    alone = simulate_choice(worlds, single, rounds=single.generations, runs=200, seed=seed)[:, -1]
    return choose_arms(
        worlds, single, alone.reshape(kernels, -1).mean(axis=1), len(kernel.sizes), seed=seed,
        arms=[K for K in ARMS if K in sizes],
        policies=[name for name in PLANNED_POLICIES if name in policies],
    )[1]  # fmt: skip


def summarise(table: pd.DataFrame, unit: str) -> pd.DataFrame:
    """Mean regret of each rule with its interval over units, and how much more than the plan's."""
    wide = table.pivot_table(index=unit, columns="rule", values="regret")
    rows = []
    for rule in wide:
        one, more = (interval(each) for each in (wide[rule], wide[rule] - wide["plan"]))
        rows.append((rule, one.value, one.low, one.high, more.value, more.low, more.high, one.n))
    columns = ["rule", "regret", "low", "high", "excess", "excess_low", "excess_high", "n"]
    return pd.DataFrame(rows, columns=columns).sort_values("regret", ignore_index=True)


def family(pilots: int, kernels: int, *, calls: int = 64) -> pd.DataFrame:
    """How often plans of pilots of 16 calls a seed leave T = N, by its true lead in margins.

    Chains whose children are better at the same rate whatever their parent: the smaller the rate,
    the less depth gains over T = N, since a generation then seldom wastes a better child.
    """
    rows = []
    for rate in (0.05, 0.2, 0.5):
        world = {"rate": rate, "hardening": 0.0, "step": 0.05}
        ends = []
        for N in (1, 8):
            settings = {"sizes": (N,), "budget": calls, "seeds": range(300)}
            truth = chain_runs(**settings, **world)[0]
            ends.append(truth[truth["generation"] == calls // N]["best_fitness"].mean())
        for seeds in (4, 8, 16):
            found = []
            for number in range(pilots):
                rng = np.random.default_rng([number, seeds])
                runs = {"sizes": (1, 4), "budget": 8, "seeds": range(seeds), "rng": rng}
                frame, children = chain_runs(**runs, **world)
                made = plan(frame, children=children, budget=calls, arms=(), kernels=kernels)
                margin = made.options.set_index("children").loc[1, "margin"]
                found.append((made.choice.children != 8, (ends[0] - ends[1]) / margin))
            left, margins = np.mean(found, axis=0)
            rows.append((rate, seeds, ends[0] - ends[1], margins, left))
    return pd.DataFrame(rows, columns=["rate", "seeds", "lead", "margins", "leaves"])


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", action="store_true")
    parser.add_argument("--family", action="store_true")
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=24)
    options = parser.parse_args()
    settings = {"pilots": options.pilots, "kernels": options.kernels}
    pd.set_option("display.width", 160)
    if options.family:
        print(family(**settings).round(4).to_string(index=False))
        return
    tables = sources()
    if options.arms:
        for name, (frame, children) in tables.items():
            if name.startswith("Gemini") and frame["run"].nunique() > 6:  # four are the pilot's
                table = backtest_arms(frame, children, **settings)
                print(f"{name}\n{summarise(table, 'left_out').round(5).to_string(index=False)}")
        return
    table = backtest(*tables["offline"], **settings)
    print(table.pivot_table(index=["task", "calls"], columns="rule", values="regret").round(4))
    print(summarise(table, "pilot").round(4).to_string(index=False))
    wide = table.pivot(index=["task", "model", "pilot", "calls"], columns="rule")
    left = wide["children"]["plan"] != wide["children"]["square"]
    gain = (wide["regret"]["square"] - wide["regret"]["plan"])[left].mean()
    print(f"the plan leaves T = N in {left.sum()} of {len(left)} choices, gain there {gain:.4f}")


if __name__ == "__main__":
    main()
