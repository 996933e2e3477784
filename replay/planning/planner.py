"""The planner: from a pilot, how to spend the next budget.

A kernel is estimated from the pilot's children and from bootstrap samples of its runs. Each such
kernel is one state of the world that the pilot allows; every way to spend is simulated in all of
them, and is as good as it is on average over them.

A pilot is noisy and the best of many noisy splits flatters. So a plan departs from one run of the
split nearest to T = N only for a clear lead, one beyond its margin: first to another split, then
from one run of that split to several arms. Nothing in its table leads what it recommends by more
than the margin. Where nothing departs there is no advice, and the plan says what lead could have
been seen. A margin is the deviation of the lead over worlds times Student's t, with the pilot's
runs less one degrees of freedom, at CHANCE shared by all rivals (Bonferroni).

Several arms are worth having where each run has a ceiling of its own, which the kernel cannot see.
So where a pilot holds at least 8 runs of one N that are as deep as the budget allows, policies are
replayed over these runs in its place (`replay.planning.replayed`).

What a single run will reach is forecast only inside what the pilot saw (`Kernel.inside`); whether
it reaches tau, by the kernels and the pilot's own runs of that split together (`chance`).
`tests/benchmarks/forecast_scores.py` measures forecasts, `planner_backtest.py` plans on runs that
were left out, and `planner_worlds.py` plans where the truth is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pandas as pd

from evo.plugins import MistakenType
from replay.logs.frames import originals
from replay.logs.given import check_loaded
from replay.planning.borrowing import Logs, borrow, children_in
from replay.planning.choices import BudgetPlan, Choice, SplitCosts, chance
from replay.planning.grid import FloatArray, GridSweep, one_sweep
from replay.planning.kernel import Kernel, fit_kernel, simulate_kernels
from replay.planning.leads import CHANCE, follow, lead_and_margin, middle_of, nearest_square
from replay.planning.replayed import replayed_arms, replayed_paths
from replay.simulation.simulate import simulate

COST_ITEMS = ("call", "evaluation", "generation")
"""What costs can be given for: a call of the model, an evaluation, and once per generation."""

PLANNED_POLICIES = ("round_robin", "ucb1", "thompson_nig", "successive_halving")
ARMS = (2, 5, 8)
_OPTIONS = (
    *("generations", "children", "arms", "policy", "cost", "value", "inside", "low", "high"),
    *("p_tau", "ahead", "margin", "p_best", "tied", "replayed"),
)
RUNS = 25
"""The default number of searches that are simulated in each world."""
MOST_ROUNDS = 20_000
"""Generations of a plan, beyond which it would take minutes and gigabytes."""


def plan(
    frame: pd.DataFrame,
    *,
    budget: float | Mapping[str, float],
    children: pd.DataFrame | None = None,
    costs: Mapping[str, float] | None = None,
    tau: float | None = None,
    best: float | None = None,
    arms: Sequence[int] = ARMS,
    policies: Sequence[str] = PLANNED_POLICIES,
    kernels: int = 24,
    seed: int = 0,
    earlier: Logs | Sequence[Logs] | pd.DataFrame | None = None,
) -> BudgetPlan:
    """Recommend how to spend a budget on one task with one model.

    Args:
        frame: The pilot, one row per run and generation, as `replay.load` returns it. Some 32 to 64
            calls over at least three seeds.
        budget: What may be spent, in calls or in the unit of `costs`, or `{"calls": 512}` as of
            `evo.run`; the pilot is not part of it.
        children: The pilot's children, as `replay.children` returns them; None reads them from the
            logs that the frame came from.
        costs: Cost per `call`, `evaluation` and `generation`; None counts calls, as many for a
            child as those of the pilot took, such as for the instances that score a text.
        tau: A fitness that one would like to reach.
        best: The best known fitness of the task, on the scale of the frame; None: 1, where that is
            not far from what was reached (`replay.planning.grid.best_known`). Where fitness is not
            scaled to 1 it must be given: the best that anybody has reached, or where none is known
            the highest of the pilot plus what its runs span.
        arms: Numbers of arms to try beside a single run; empty for none.
        policies: Policies to try on them; their reward is the rank.
        kernels: Resampled kernels, the states of the world that the plan is averaged over.
        seed: Key of the generator.
        earlier: Logs of at least three other tasks, as `replay.load` takes them, or a frame or a
            table of children of them, whose splits say what to expect of this task. The more the
            pilot knows, and the further it is from them, the less they count
            (`replay.planning.borrowing`); `BudgetPlan.borrowed` states it. Their best known fitness
            is 1, or what a column `best` of such a table says.

    Raises:
        TypeError: If the budget is neither a number nor a mapping with calls alone.
        ValueError: If the budget does not pay for one call, a cost is unknown or negative, `best`
            is not the best, or the frame holds several tasks or models; if earlier runs are of this
            task and model, or of fewer than three others.

    Example:
        >>> settings = {"generations": 4, "children": 2, "log_dir": new(""), "progress": False}
        >>> made = evo.run_many("mmd", seeds=range(6), **settings)
        >>> table, children = replay.load(*made), replay.children(*made)
        >>> plan = replay.plan(table, budget=8, children=children, kernels=2)
        >>> plan.choice.generations * plan.choice.children <= 8
        True
    """
    check_loaded("plan", frame, "replay.load")
    pilot = one_sweep(frame)
    children = children_in(frame) if children is None else originals(children)
    budget, price = _in_calls(budget, costs), _costs(costs, frame)
    rounds = affordable(budget, price)
    base = fit_kernel(children, best=best)
    worlds = list(base.resampled(kernels, seed=seed))
    options, own_leads = _splits(worlds, rounds, base, pilot, tau, seed)
    by_world, borrowed, runs = own_leads, None, len(base.sizes)
    if earlier is not None:
        by_world, borrowed = borrow(own_leads, base, rounds, earlier, kernels=kernels, seed=seed)
        runs = max(runs, 2)  # other tasks tell even one run how sure its leads are
    options = _with_leads(options, by_world, own_leads, rounds, runs)
    square = nearest_square(rounds)
    usual, chosen = _single(rounds, square), follow(by_world, square, runs)
    single = _single(rounds, chosen)
    paid = partial(rounds_paid, budget, price)
    pools = arms_beside(
        worlds, single, own_leads[:, chosen], len(pilot.runs), arms=arms, policies=policies,
        seed=seed, paid=paid,
    )  # fmt: skip
    replayed = replayed_arms(
        pilot, rounds, arms=arms, policies=policies, chance=CHANCE, seed=seed, paid=paid
    )
    pools = _with_replayed(pools, replayed, by_world, list(rounds), chosen, runs)
    ahead = _clearly_ahead(pools)
    choice, over = (single, usual) if ahead is None else (ahead, single)
    options = _ordered(pd.concat([options, pools]), choice, price)
    from_runs = bool(options["replayed"].iloc[0])
    inside = from_runs or base.inside(choice.generations, choice.children)
    if from_runs:
        paths = replayed_paths(pilot, choice, seed=seed + 1)
    else:
        paths = simulate_choice(worlds, choice, rounds=choice.generations, runs=50, seed=seed + 1)
    own = _own_searches(pilot, choice)
    reached = np.zeros(0) if tau is None else chance(paths, own, tau)
    known = [from_runs or base.inside(T + 1, choice.children) for T in range(len(reached))]
    reached = np.where(known, reached, np.nan)
    if tau is not None:
        options.loc[0, "p_tau"] = reached[-1]  # of more simulated searches than the other rows
    return BudgetPlan(
        task=pilot.task, model=pilot.model, budget=budget, costs=price, choice=choice,
        usual=usual, over=over, inside=inside, options=options, outcomes=paths[:, -1], tau=tau,
        p_tau=None if tau is None else float(reached[-1]),
        budget_for_tau=None if tau is None else _spent_by(reached, price, choice),
        reached=reached, pilot_runs=len(pilot.runs), borrowed=borrowed, own=own[:, -1],
        pilot_calls=_calls_of_pilot(frame, len(children), len(pilot.runs)),
    )  # fmt: skip


def _clearly_ahead(pools: pd.DataFrame) -> Choice | None:
    """The pool of arms whose lead over one run is largest, of those that are beyond its margin."""
    clear = pools[pools["ahead"] > pools["margin"]]
    if clear.empty:
        return None
    best = clear.sort_values("ahead", kind="stable").iloc[-1]
    return Choice(
        generations=int(best["generations"]), children=int(best["children"]),
        arms=int(best["arms"]), policy=str(best["policy"]),
    )  # fmt: skip


def _ordered(options: pd.DataFrame, choice: Choice, price: SplitCosts) -> pd.DataFrame:
    """The options with what they cost: the choice first, then by value."""
    options = options.reindex(columns=_OPTIONS)
    options = options.astype({"generations": int, "children": int, "arms": int})
    options[["inside", "replayed"]] = options[["inside", "replayed"]].eq(True)
    chosen_row = (options[[*asdict(choice)]] == pd.Series(asdict(choice))).all(axis=1)
    options = options.assign(first=chosen_row).sort_values(
        ["first", "value"], ascending=False, kind="stable", ignore_index=True
    ).drop(columns="first")  # fmt: skip
    generation = np.array([price.of_generation(N) for N in options["children"]])
    options["cost"] = options["generations"] * generation + options["arms"] * price.initial
    return options


def _spent_by(reached: FloatArray, price: SplitCosts, choice: Choice) -> float:
    """Returns the cost until nine runs in ten have reached tau; infinite if they do not."""
    enough = np.flatnonzero(reached >= 0.9)
    rounds = enough[0] + 1 if len(enough) else np.inf
    return float(price.of_generation(choice.children) * rounds + choice.arms * price.initial)


def _with_replayed(
    pools: pd.DataFrame,
    replayed: pd.DataFrame,
    by_world: FloatArray,
    splits: Sequence[int],
    chosen: int,
    runs: int,
) -> pd.DataFrame:
    """Ways to spend on several arms: those that were replayed in place of what the kernel says.

    The lead of arms of N children over one run of the chosen split is their gain over one run of N,
    as replayed, and what the kernel says that run is ahead of the chosen one; their margins add in
    squares.
    """
    if replayed.empty:
        return pools
    ahead, margin = lead_and_margin(by_world, chosen, runs)
    at = [splits.index(N) for N in replayed["children"]]
    made = replayed.assign(
        value=by_world.mean(axis=0)[at] + replayed["gain"], ahead=replayed["gain"] + ahead[at],
        margin=np.hypot(replayed["margin"], margin[at]), replayed=True, inside=True,
    )  # fmt: skip
    same = ["children", "arms", "policy"]
    if len(pools):
        twice = pools[same].apply(tuple, axis=1).isin(replayed[same].apply(tuple, axis=1))
        pools = pools[~twice]
    return pd.concat([pools, made.drop(columns="gain")], ignore_index=True)


def _single(rounds: Mapping[int, int], number: int) -> Choice:
    """One run of the split of that number."""
    N = list(rounds)[number]
    return Choice(generations=rounds[N], children=N)


def _in_calls(budget: object, costs: object) -> float:
    """Returns a budget as a number, in calls unless there are costs."""
    given = budget
    if isinstance(budget, Mapping) and set(budget) == {"calls"} and costs is None:
        given = budget["calls"]
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise MistakenType(
            'budget: expected a number of calls, which a plan is one of, as {"calls": NUMBER} or '
            f"plainly, or with costs= a number in their unit, got {budget!r}"
        )
    if math.isnan(given):
        raise ValueError(f"budget: expected a number of calls, got {budget!r}")
    return given


def affordable(budget: float, costs: SplitCosts) -> dict[int, int]:
    """Generations of one run that the budget pays for at each N = 1, 2, 4, ...

    Raises:
        ValueError: If it does not pay for a single call, or for more generations than MOST_ROUNDS.
    """
    if (most := budget / costs.of_generation(1)) > MOST_ROUNDS:
        raise ValueError(
            f"expected a budget of at most {MOST_ROUNDS:,} generations of one child, which are "
            f"simulated one by one, got {budget:g}, which pays for {most:,.0f} at "
            f"{costs.of_generation(1):g} each; plan a part of it, and the rest from its runs, or "
            "give it in the unit of the costs if it is in another"
        )
    rounds, N = {}, 1
    while (T := rounds_paid(budget, costs, N)) >= 1:
        rounds[N], N = T, 2 * N
    if not rounds:
        raise ValueError(
            f"expected a budget of at least one call ({costs.of_generation(1) + costs.initial:g}), "
            f"got {budget!r}"
        )
    return rounds


def rounds_paid(budget: float, costs: SplitCosts, children: int, arms: int = 1) -> int:
    """Generations of N children that the budget pays for beside the initial program of each arm."""
    return int((budget - arms * costs.initial) / costs.of_generation(children) + 1e-9)


def simulate_choice(
    worlds: Sequence[Kernel], choice: Choice, *, rounds: int, runs: int = RUNS, seed: int = 0
) -> FloatArray:
    """Best fitness so far of searches that spend as in `choice`, (kernels * runs, rounds).

    All arms of a search live in one world; `runs` searches are made in each. Minus infinity while
    nothing is ok.
    """
    fitness = _simulated(worlds, choice, rounds, runs, seed)
    if choice.arms > 1:
        return _pulled(fitness, choice, rounds, seed)
    return np.nan_to_num(fitness[:, 1:], nan=-np.inf)


def _simulated(
    worlds: Sequence[Kernel], choice: Choice, rounds: int, runs: int, seed: int
) -> FloatArray:
    """Runs of all arms, (kernels * runs * arms, rounds + 1); NaN while nothing is ok."""
    return simulate_kernels(worlds, rounds, choice.children, runs=runs * choice.arms, seed=seed)


def _pulled(fitness: FloatArray, choice: Choice, rounds: int, seed: int) -> FloatArray:
    """Fitness of a policy on pools of runs, (pools, rounds); -inf if no program is ok."""
    rows = np.arange(len(fitness)).reshape(-1, choice.arms)
    replay = simulate(
        fitness, choice.policy, rounds=rounds, replicates=len(rows), arms=rows, seed=seed,
        reward="rank",
    )  # fmt: skip
    return np.nan_to_num(replay.best_fitness, nan=-np.inf)


def own_runs(pilot: GridSweep, generations: int, children: int) -> FloatArray:
    """Best fitness so far of the pilot's runs of one split, (runs, T); few or none."""
    rows = (pilot.children == children) & (pilot.depth >= generations)
    own = pilot.values[rows, 1 : generations + 1] if rows.any() else np.empty((0, generations))
    return np.where(np.isnan(own), -np.inf, own)


def _own_searches(pilot: GridSweep, choice: Choice) -> FloatArray:
    """The pilot's runs that are such searches: a run of it is one arm, not several."""
    own = own_runs(pilot, choice.generations, choice.children)
    return own[:0] if choice.arms > 1 else own


def arms_beside(
    worlds: Sequence[Kernel],
    single: Choice,
    alone: FloatArray,
    runs: int,
    *,
    arms: Sequence[int] = ARMS,
    policies: Sequence[str] = PLANNED_POLICIES,
    seed: int = 0,
    paid: Callable[[int, int], int] | None = None,
) -> pd.DataFrame:
    """Ways to spend on several arms, with their leads over one run and the margins of these.

    `alone`, (worlds,), is what one run of the plan's split reaches; `paid` says for N and K how
    many rounds the budget pays for (default: those of the one run). Arms with fewer than two rounds
    each are left out.
    """
    rows, means, middle = [], [alone], middle_of(float(worlds[0].fitness[0]))
    rounds = {K: paid(single.children, K) if paid else single.generations for K in arms}
    for K, T in ((K, T) for K, T in rounds.items() if T >= 2 * K):
        pool = _simulated(worlds, replace(single, arms=K), T, RUNS, seed)
        for policy in policies:
            choice = replace(single, generations=T, arms=K, policy=policy)
            final = _pulled(pool, choice, T, seed)[:, -1]
            means.append(middle(final.reshape(len(worlds), -1), axis=1))
            rows.append(_option(choice, middle(final)))
    ahead, margin = lead_and_margin(np.stack(means, axis=1), 0, runs)
    return pd.DataFrame(rows).assign(ahead=ahead[1:], margin=margin[1:])


def _calls_of_child(frame: pd.DataFrame) -> float:
    """Returns the calls that a child of a pilot took on average, to two decimals, at least 1."""
    made = frame[(frame["generation"] > 0) & (frame.get("n_calls", 0) > 0)]
    mean = float(made["n_calls"].sum() / made["children"].sum()) if len(made) else 1.0
    return max(1.0, round(mean, 2))


def _calls_at_first(frame: pd.DataFrame) -> float:
    """Returns the calls that the evaluation of the initial program took on average, in a run."""
    first = frame[frame["generation"] == 0]
    made = first["n_calls"].dropna() if "n_calls" in first else first["generation"]
    return round(float(made.mean()), 2) if len(made) else 0.0


def _calls_of_pilot(frame: pd.DataFrame, children: int, runs: int) -> int:
    """Returns all calls of so many children and runs of a pilot."""
    return round(children * _calls_of_child(frame) + runs * _calls_at_first(frame))


def _costs(costs: Mapping[str, float] | None, frame: pd.DataFrame) -> SplitCosts:
    """Returns the prices given; else calls, those beside the one for its reply per evaluation."""
    if costs is None:
        return SplitCosts(evaluation=_calls_of_child(frame) - 1, initial=_calls_at_first(frame))
    if unknown := sorted(set(costs) - set(COST_ITEMS)):
        raise ValueError(f"expected costs among {COST_ITEMS!r}, got {unknown!r}")
    price = SplitCosts(**{"call": 0.0, **costs})
    if min(price.call, price.evaluation, price.generation) < 0 or not price.call + price.evaluation:
        raise ValueError(
            "expected costs of at least 0, and above 0 for a call or an evaluation, "
            f"got {dict(costs)!r}"
        )
    return price


def _splits(
    worlds: Sequence[Kernel],
    rounds: Mapping[int, int],
    base: Kernel,
    pilot: GridSweep,
    tau: float | None,
    seed: int,
) -> tuple[pd.DataFrame, FloatArray]:
    """Options of one run, and the mean of each in each world, (worlds, splits)."""
    rows, means, middle = [], [], middle_of(float(worlds[0].fitness[0]))
    for N, T in rounds.items():
        choice = Choice(generations=T, children=N)
        final = simulate_choice(worlds, choice, rounds=T, runs=200, seed=seed)[:, -1]
        means.append(middle(final.reshape(len(worlds), -1), axis=1))
        option = _option(choice, middle(final)) | {"inside": base.inside(T, N)}
        if option["inside"]:
            low, high = np.quantile(final, [0.025, 0.975], method="inverted_cdf")
            own = own_runs(pilot, T, N)[:, -1]
            reached = np.nan if tau is None else float(chance(final, own, tau))
            option |= {"low": low, "high": high, "p_tau": reached}
        rows.append(option)
    return pd.DataFrame(rows), np.stack(means, axis=1)


def _with_leads(
    options: pd.DataFrame,
    by_world: FloatArray,
    own: FloatArray,
    rounds: Mapping[int, int],
    runs: int,
) -> pd.DataFrame:
    """The options of one run with their leads, by pooled means; `own` are the pilot's."""
    moved = np.subtract(by_world, own, where=by_world != own, out=np.zeros_like(own))
    table = options.assign(value=options["value"] + moved.mean(axis=0))
    table["ahead"], table["margin"] = lead_and_margin(by_world, nearest_square(rounds), runs)
    table["p_best"] = (by_world == by_world.max(axis=1, keepdims=True)).mean(axis=0)
    behind, margin = lead_and_margin(by_world, int(by_world.mean(axis=0).argmax()), runs)
    table["tied"] = -behind <= margin
    return table


def _option(choice: Choice, value: FloatArray) -> dict[str, object]:
    return asdict(choice) | {"value": float(value)}
