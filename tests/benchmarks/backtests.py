"""The planner judged on sweeps that were paid for: regret against the best split in hindsight.

A pilot is cut out of a few seeds of the sweep; the prefix property makes it the very pilot that
these seeds would have given. Every rule then chooses a split, and the choice is judged on the
other seeds. `backtest_arms` does the same for arms and policy where there is no sweep over N.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evo.policies.base import PolicyWarning
from replay.bilinear import fit_bilinear
from replay.cells import FloatArray, IntArray, cells, one_sweep
from replay.depth import RULES
from replay.forecast import (
    ARMS,
    PLANNED_POLICIES,
    Choice,
    choose_arms,
    choose_split,
    simulate_choice,
)
from replay.frames import fitness_matrix
from replay.intervals import interval
from replay.kernel import fit_kernel
from replay.simulation import simulate

if TYPE_CHECKING:
    import pandas as pd

PILOT = {1: 8, 4: 2}
"""Generations by N of each seed of the pilot: 16 calls."""
SMALLEST_C = 0.03
"""Least |c| of the bilinear fit that makes an optimum interior (arXiv 2605.29268)."""

_CHOICES = (
    *("task", "model", "pilot", "calls", "rule"),
    *("generations", "children", "value", "regret"),
)
_POOLS = (
    *("task", "model", "children", "pilot", "left_out", "runs", "rule"),
    *("arms", "policy", "value", "regret"),
)
_POOL_SUMMARY = ("task", "model", "children", "rule", "value", "regret", "low", "high", "n")
_SUMMARY = ("rule", "regret", "low", "high", "excess", "excess_low", "excess_high", "n")

Split = tuple[int, int]


def backtest(
    frame: pd.DataFrame,
    children: pd.DataFrame,
    *,
    budgets: Sequence[int] = (64, 128, 256, 512),
    pilot: Mapping[int, int] | None = None,
    seeds: int = 4,
    pilots: int = 20,
    kernels: int = 24,
    seed: int = 0,
) -> pd.DataFrame:
    """Regret of the planner and of fixed rules, for many pilots.

    Args:
        frame: A sweep per task and model, as `replay.load` returns it: each N = 1, 2, 4, ... to
            the depth of the largest budget.
        children: Its children, as `replay.children` returns them.
        budgets: Budgets in calls, powers of two.
        pilot: Generations by N that each seed of a pilot runs; None: `PILOT`.
        seeds: Seeds of a pilot.
        pilots: Pilots per task and model, drawn at random.
        kernels: See `replay.plan`.
        seed: Key of the generator.

    Returns:
        One row per task, model, pilot, budget and rule: generations, children (the choice), value
        (its mean over the seeds that are not in the pilot), regret (against the best split of the
        budget on the same seeds). Rules are those of `replay.depth.RULES`, `corner` (the paper's:
        the optimum of the bilinear fit to the pilot if interior, else the better corner) and
        `plan`.

    Raises:
        ValueError: If a sweep has too few seeds to judge a pilot, or lacks a split.
    """
    import pandas as pd

    rows = []
    design = dict(pilot or PILOT)
    for (task, model), part in frame.groupby(["task", "model"], sort=False):
        logged = children[(children["task"] == task) & (children["model"] == model)]
        every = np.sort(part["seed"].unique())
        if len(every) < seeds + 2:
            raise ValueError(
                f"expected at least {seeds + 2} seeds of {task!r}, {model!r}, to judge pilots of "
                f"{seeds}, got {len(every)}"
            )
        rng = np.random.default_rng([seed, len(every)])
        for number in range(pilots):
            drawn = rng.choice(every, seeds, replace=False)
            judged = _judge(part[~part["seed"].isin(drawn)], budgets)
            ours = part[part["seed"].isin(drawn)]
            choices = _choices(
                _prefix(ours, design),
                _prefix(logged[logged["seed"].isin(drawn)], design),
                budgets,
                kernels,
                seed + number,
            )
            for C, rule, (T, N) in choices:
                value, best = judged[T, N], max(judged[C // n, n] for n in _sizes(C))
                rows.append((task, model, number, C, rule, T, N, value, best - value))
    return pd.DataFrame(rows, columns=_CHOICES)


def summarise(table: pd.DataFrame, *, level: float = 0.95, seed: int = 0) -> pd.DataFrame:
    """Mean regret of each rule over tasks, models and budgets, and how much more than the plan's.

    Args:
        table: As `backtest` returns it.
        level: Nominal coverage. A pilot with all its budgets is the unit that is resampled, within
            each task and model: the intervals are about the luck of the pilot, not about tasks.
        seed: Key of the generator.

    Returns:
        One row per rule, least regret first: regret, low, high, excess (regret less the plan's on
        the same pilots), excess_low, excess_high, n (pilots).
    """
    import pandas as pd

    wide = table.pivot_table(index=["task", "model", "pilot"], columns="rule", values="regret")
    strata = wide.groupby(level=["task", "model"]).ngroup().to_numpy()
    rows = []
    for rule in wide.columns:
        regret = wide[rule].to_numpy(np.float64)
        found = interval(regret, strata=strata, level=level)
        more = interval(regret - wide["plan"].to_numpy(np.float64), strata=strata, level=level)
        rows.append(
            (rule, found.value, found.low, found.high, more.value, more.low, more.high, len(wide))
        )
    return pd.DataFrame(rows, columns=_SUMMARY).sort_values("regret", ignore_index=True)


def backtest_arms(
    frame: pd.DataFrame,
    children: pd.DataFrame,
    *,
    generations: int = 16,
    runs: int = 4,
    pilots: int = 4,
    arms: Sequence[int] = (2, 4, 5, 8, 10),
    policies: Sequence[str] = ("random", *PLANNED_POLICIES),
    replicates: int = 200,
    kernels: int = 12,
    seed: int = 0,
) -> pd.DataFrame:
    """Regret of fixed numbers of arms and policies, and of the planner, on runs of one N.

    Of n runs one is left out, some make the pilot, and pools are drawn from the others, no run
    twice in a pool. The budget is that of one of these runs.

    Args:
        frame: Runs per task, model and N, as `replay.load` returns it.
        children: Their children, as `replay.children` returns them.
        generations: Depth of the pilot.
        runs: Runs of the pilot.
        pilots: Pilots for each run left out.
        arms: Numbers of arms; those that the judged runs cannot fill are dropped.
        policies: Names in `POLICIES`.
        replicates: Pools per pilot, number of arms and policy.
        kernels: See `replay.plan`.
        seed: Key of all draws.

    Returns:
        One row per task, model, children, pilot and rule: left_out (number of a run), runs (how
        many there are), arms, policy (the choice), value (its mean over pools; nothing at all
        counts as 0, or as the lowest fitness if that is lower), regret (against the best in
        hindsight of all choices on the same runs). Rules are `single`, each number of arms with
        each policy, and `plan`.

    Raises:
        ValueError: If there are fewer than runs + 3 runs of a task, model and N.
    """
    import pandas as pd

    rows = []
    for (task, model, N), part in frame.groupby(["task", "model", "children"], sort=False):
        names = part["run"].unique()
        if len(names) < runs + 3:
            raise ValueError(
                f"expected at least {runs + 3} runs of {task!r}, {model!r}, N = {N}, to judge "
                f"pilots of {runs}, got {len(names)}"
            )
        fitness = fitness_matrix(part)
        single = Choice(generations=_shortest(part), children=int(part["children"].iloc[0]))
        logged = children[children["run"].isin(names) & (children["generation"] <= generations)]
        judged = len(names) - runs - 1
        sizes = [K for K in arms if judged >= K]
        for number in range(pilots * len(names)):
            left_out = number % len(names)
            rng = np.random.default_rng([seed, number, len(names)])
            drawn = rng.permutation(np.delete(np.arange(len(names)), left_out))
            values = _judge_arms(fitness, drawn[runs:], single, sizes, policies, replicates, number)
            pilot = logged[logged["run"].isin(names[drawn[:runs]])]
            plan = _planned(pilot, single, sizes, policies, kernels, seed + number)
            best = max(values.values())
            rules = {_label(choice): choice for choice in values} | {"plan": plan}
            for rule, choice in rules.items():
                value = values[choice]
                head = (task, model, N, number, left_out, len(names), rule)
                rows.append((*head, choice.arms, choice.policy, value, best - value))
    return pd.DataFrame(rows, columns=_POOLS)


def summarise_arms(table: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Mean regret of each rule by task, model and N, least first.

    Args:
        table: As `backtest_arms` returns it.
        level: Nominal coverage of the jackknife over whole runs.

    Returns:
        task, model, children, rule, value (mean fitness), regret, low, high, n (runs).
    """
    import pandas as pd
    from scipy.special import stdtrit

    parts = []
    for names, group in table.groupby(["task", "model", "children"], sort=False):
        rows = []
        for rule, part in group.groupby("rule", sort=False):
            without = part.groupby("left_out")["regret"].mean().to_numpy()
            n, regret = len(without), float(part["regret"].mean())
            spread = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
            half = float(stdtrit(n - 1, (1 + level) / 2) * spread)
            value = float(part["value"].mean())
            rows.append((*names, rule, value, regret, regret - half, regret + half, n))
        ranked = pd.DataFrame(rows, columns=_POOL_SUMMARY).sort_values("regret", kind="stable")
        parts.append(ranked)
    return pd.concat(parts, ignore_index=True)


def _shortest(frame: pd.DataFrame) -> int:
    return int(frame.groupby("run")["generation"].max().min())


def _label(choice: Choice) -> str:
    return "single" if choice.arms == 1 else f"K = {choice.arms}, {choice.policy}"


def _judge_arms(
    fitness: FloatArray,
    rows: IntArray,
    single: Choice,
    sizes: Sequence[int],
    policies: Sequence[str],
    replicates: int,
    seed: int,
) -> dict[Choice, float]:
    """Mean fitness at the end of every choice, on pools out of these rows."""
    nothing = float(np.fmin.reduce(fitness, axis=None, initial=0.0))
    ends = np.fmax.accumulate(fitness[rows], axis=1)[:, single.generations]
    values = {single: float(np.nan_to_num(ends, nan=nothing).mean())}
    for K in sizes:
        for policy in policies:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PolicyWarning)  # too few rounds is a result here
                played = simulate(
                    fitness[rows],
                    policy,
                    rounds=single.generations,
                    replicates=replicates,
                    arms=K,
                    replace=False,
                    seed=seed,
                    reward="rank",
                )
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
    by_world = alone.reshape(kernels, -1).mean(axis=1)
    offered = {"arms": [K for K in ARMS if K in sizes], "seed": seed}
    offered["policies"] = [name for name in PLANNED_POLICIES if name in policies]
    return choose_arms(worlds, single, by_world, len(kernel.sizes), **offered)[1]


def _prefix(table: pd.DataFrame, design: Mapping[int, int]) -> pd.DataFrame:
    """Rows of the N of the design, up to its depth."""
    return table[table["generation"] <= table["children"].map(design).fillna(-1)]


def _sizes(calls: int) -> list[int]:
    return [2**power for power in range(calls.bit_length())]


def _judge(frame: pd.DataFrame, budgets: Sequence[int]) -> dict[Split, float]:
    """Mean fitness of every split of the budgets."""
    grid = cells(one_sweep(frame))
    means = dict(zip(zip(grid.generations, grid.children, strict=True), grid.means, strict=True))
    wanted = [(C // N, N) for C in budgets for N in _sizes(C)]
    if lacking := [split for split in wanted if not np.isfinite(means.get(split, np.nan))]:
        raise ValueError(f"the sweep lacks a fitness for the splits (T, N) {lacking!r}")
    return {split: float(means[split]) for split in wanted}


def _choices(
    frame: pd.DataFrame, children: pd.DataFrame, budgets: Sequence[int], kernels: int, seed: int
) -> Iterator[tuple[int, str, Split]]:
    """What each rule chooses for each budget, from a pilot."""
    kernel = fit_kernel(children)
    worlds = list(kernel.resampled(kernels, seed=seed))
    most = max(budgets)
    means = {}
    for N in _sizes(most):
        one = Choice(generations=most // N, children=N)
        paths = simulate_choice(worlds, one, rounds=most // N, runs=200, seed=seed)
        means[N] = paths.reshape(kernels, -1, most // N).mean(axis=1)
    fitted = fit_bilinear(frame, resamples=100).coefficients
    for C in budgets:
        for rule in RULES:
            yield C, rule, fixed_split(rule, C)
        yield C, "corner", corner_split(fitted, C)
        rounds = {N: C // N for N in _sizes(C)}
        by_world = np.stack([means[n][:, T - 1] for n, T in rounds.items()], axis=1)
        N = choose_split(by_world, rounds, len(kernel.sizes))
        yield C, "plan", (C // N, N)


def fixed_split(rule: str, calls: int) -> Split:
    """(T, N) that a fixed rule of `RULES` gives a budget of `calls`, a power of two."""
    half = 2 ** ((calls.bit_length() - 1) // 2)
    N = {"depth": 1, "breadth": calls, "square": half}[rule]
    return calls // N, N


def corner_split(coefficients: Mapping[str, Mapping[str, float]], calls: int) -> Split:
    """The paper's rule: interior optimum of the bilinear fit if c < -0.03, else the better corner.

    Args:
        coefficients: As in `replay.BilinearFit`.
        calls: The budget, a power of two.

    Returns:
        (T, N), powers of two.
    """
    a, b, c = (coefficients[name]["value"] for name in ("a", "b", "c"))
    power = calls.bit_length() - 1
    L = math.log(calls)
    x = (a - b + c * L) / (2 * c) if c <= -SMALLEST_C else math.inf
    if not 0 < x < L:
        return fixed_split("depth" if a < b else "breadth", calls)
    T = 2 ** min(max(round(x / math.log(2)), 0), power)
    return T, calls // T
