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

What a single run will reach is forecast only inside what the pilot saw (`Kernel.inside`); whether
it reaches tau, by the kernels and the pilot's own runs of that split together (`chance`).
`tests/benchmarks/forecast_scores.py` measures forecasts, `planner_backtest.py` plans on runs that
were left out, and `planner_worlds.py` plans where the truth is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from replay.logs.tables import children as children_of
from replay.planning.grid import FloatArray, GridSweep, one_sweep
from replay.planning.kernel import Kernel, fit_kernel, simulate_kernels
from replay.planning.leads import follow, lead, nearest_square
from replay.simulation.simulate import simulate

COST_ITEMS = ("call", "evaluation", "generation")
"""What costs can be given for: a call of the model, an evaluation, and once per generation."""

PLANNED_POLICIES = ("round_robin", "ucb1", "thompson_nig", "successive_halving")
ARMS = (2, 5, 8)
_OPTIONS = (
    *("generations", "children", "arms", "policy", "cost", "value", "inside", "low", "high"),
    *("p_tau", "ahead", "margin", "p_best", "tied"),
)
RUNS = 25
"""The default number of searches that are simulated in each world."""
SIMULATED = 40
"""Runs that a forecast by the kernel alone is worth beside the pilot's own."""


@dataclass(frozen=True)
class SplitCosts:
    """What a call, an evaluation, and a generation whatever its N cost, in the budget's unit."""

    call: float = 1.0
    evaluation: float = 0.0
    generation: float = 0.0

    def of_generation(self, children: int) -> float:
        """Cost of one generation of N children."""
        return children * (self.call + self.evaluation) + self.generation


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A way to spend a budget: a policy advances K arms of N children for some rounds."""

    generations: int
    children: int
    arms: int = 1
    policy: str = "single"

    def __str__(self) -> str:
        """In words."""
        if self.arms == 1:
            return f"one run of T = {self.generations} generations of N = {self.children} children"
        return (
            f"K = {self.arms} arms of N = {self.children} children under {self.policy} "
            f"(reward: the rank), {self.generations} rounds"
        )


@dataclass(frozen=True, kw_only=True)
class BudgetPlan:
    """A recommendation and what it rests on.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        budget: In the unit of the costs; calls by default.
        costs: What was counted.
        choice: The recommendation.
        usual: One run of the split nearest to T = N, from which only a clear lead departs.
        inside: Whether the recommendation lies inside what the pilot saw. Elsewhere its
            outcomes are an extrapolation whose calibration was not measured, and not shown.
        options: One row per way to spend the budget, the recommended one first and then the best
            first: generations (rounds, if there are several arms), children, arms, policy, cost,
            value (mean of simulated outcomes, median
            where the initial program has no fitness), inside (whether it is forecast), low and high
            (95 % of the outcomes of one search) and p_tau
            (NaN unless inside), ahead (how much more value than the T = N split or, of arms, than
            one run of that split) and margin (what luck accounts for); of single runs
            also p_best (share of resampled kernels in which the split is the best) and tied (not
            behind the best by more than its margin).
        outcomes: Simulated final fitness of the recommendation, (outcomes,).
        tau: The fitness to reach, or None.
        p_tau: Probability that the recommendation reaches it; NaN unless inside, None without tau.
        budget_for_tau: Budget with which tau is reached with probability .9 by the recommended
            split; infinite if none that is forecast; None without tau.
        reached: Probability of having reached tau by generation, (rounds,), NaN where it is not
            forecast; empty without tau.
        pilot_runs: Runs of the pilot.
        pilot_calls: Their calls.
    """

    task: str
    model: str
    budget: float
    costs: SplitCosts
    choice: Choice
    usual: Choice
    inside: bool
    options: pd.DataFrame
    outcomes: FloatArray
    tau: float | None
    p_tau: float | None
    budget_for_tau: float | None
    reached: FloatArray
    pilot_runs: int
    pilot_calls: int

    @property
    def departs(self) -> bool:
        """Whether the plan advises anything but one run of the split nearest to T = N."""
        return self.choice != self.usual

    @property
    def needed(self) -> pd.DataFrame:
        """The best other split and the best pool of arms, with their leads and margins.

        Up to two rows of `options` that are not recommended. Those whose lead exceeds their margin
        come before others.
        """
        others = self.options.iloc[1:]
        others = others[others["margin"] > 0]
        others = others.assign(clear=others["ahead"] > others["margin"])
        ordered = others.sort_values("clear", ascending=False, kind="stable")
        best = ordered.groupby(ordered["arms"] > 1).head(1)
        return best.sort_values("arms", kind="stable").drop(columns="clear")

    def __str__(self) -> str:
        """The recommendation, how sure it is, and the alternatives."""
        singles = self.options[self.options["arms"] == 1]
        tied = sorted(singles.loc[singles["tied"], "children"])
        lines = [
            f"{self.task}, {self.model}: budget {self.budget:g}, from a pilot of "
            f"{self.pilot_runs} runs, {self.pilot_calls} calls",
            *self._support,
        ]
        if len(tied) > 1:
            lines.append(f"  the pilot cannot tell apart N = {', '.join(map(str, tied))}")
        if not self.inside:
            return "\n".join([*lines, "  no forecast of the fitness: beyond what the pilot saw"])
        low, middle, high = np.quantile(self.outcomes, [0.05, 0.5, 0.95], method="inverted_cdf")
        lines.append(f"  fitness: median {middle:.4f}, 90 % of searches in [{low:.4f}, {high:.4f}]")
        if self.tau is not None and self.budget_for_tau is not None:
            bound = self.budget_for_tau
            lines.append(
                f"  reaches {self.tau:g} with probability {self.p_tau:.2f}; 90 % need a budget of "
                + (f"{bound:.4g}" if np.isfinite(bound) else f"more than {self.budget:g}")
            )
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _support(self) -> list[str]:
        """Lines that say what is advised, on what grounds, and what would be needed for more."""
        T, N = self.usual.generations, self.usual.children
        rule = f"{'T = N' if T == N else 'the split nearest to T = N'} and one run"
        if self.departs:
            first = self.options.iloc[0]
            over = rule if self.choice.arms == 1 else f"one run of N = {self.choice.children}"
            lines = [
                f"  spend it on {self.choice}",
                f"  in simulation it leads {over} by {first['ahead']:+.4f}, beyond its margin of "
                f"{first['margin']:.4f}",
            ]
        else:
            lines = [
                f"  no advice: no other way to spend leads {rule} by more than luck accounts for",
                f"  without advice, {self.choice}",
            ]
        for other in self.needed.to_dict("records"):
            name = f"N = {other['children']}"
            if other["arms"] > 1:
                name = f"K = {other['arms']} arms ({other['policy']})"
            if other["ahead"] > other["margin"]:
                lines.append(
                    f"  {name} leads {rule} by {other['ahead']:+.4f} too, beyond its margin of "
                    f"{other['margin']:.4f}, and does not clearly lead what is advised"
                )
            else:
                lines.append(
                    f"  {name} would have been advised for a lead of more than "
                    f"{other['margin']:.4f}; in simulation it leads by {other['ahead']:+.4f}"
                )
        return lines


def plan(
    frame: pd.DataFrame,
    *,
    budget: float,
    children: pd.DataFrame | None = None,
    costs: Mapping[str, float] | None = None,
    tau: float | None = None,
    best: float | None = None,
    arms: Sequence[int] = ARMS,
    policies: Sequence[str] = PLANNED_POLICIES,
    kernels: int = 24,
    seed: int = 0,
) -> BudgetPlan:
    """Recommend how to spend a budget on one task with one model.

    Args:
        frame: The pilot, one row per run and generation, as `replay.load` returns it. Some 32 to 64
            calls over at least three seeds.
        budget: What may be spent, in calls or in the unit of `costs`; the pilot is not part of it.
        children: The pilot's children, as `replay.children` returns them; None reads them from the
            logs that the frame came from.
        costs: Cost per `call`, `evaluation` and `generation`; None counts calls.
        tau: A fitness that one would like to reach.
        best: The best known fitness of the task, on the scale of the frame; None: 1, where that is
            not far from what was reached (`replay.planning.grid.best_known`).
        arms: Numbers of arms to try beside a single run; empty for none.
        policies: Policies to try on them; their reward is the rank.
        kernels: Resampled kernels, the states of the world that the plan is averaged over.
        seed: Key of the generator.

    Raises:
        ValueError: If the budget does not pay for one call, a cost is unknown or negative, `best`
            is not the best, or the frame holds several tasks or models.
    """
    pilot = one_sweep(frame)
    children = _read_children(frame) if children is None else children
    price = _costs(costs)
    rounds = affordable(budget, price)
    base = fit_kernel(children, best=best)
    worlds = list(base.resampled(kernels, seed=seed))
    options, by_world = _splits(worlds, rounds, base, pilot, tau, seed)
    square = nearest_square(rounds)
    usual = _single(rounds, square)
    chosen = follow(by_world, square, len(base.sizes))
    choice = _single(rounds, chosen)
    pools = arms_beside(
        worlds, choice, by_world[:, chosen], len(pilot.runs), arms=arms, policies=policies,
        seed=seed,
    )  # fmt: skip
    clear = pools[pools["ahead"] > pools["margin"]].sort_values("ahead", kind="stable")
    if len(clear):
        best_pool = clear.iloc[-1]
        choice = replace(choice, arms=int(best_pool["arms"]), policy=str(best_pool["policy"]))
    options = pd.concat([options, pools]).reindex(columns=_OPTIONS)
    options["inside"] = options["inside"].eq(True)
    chosen_row = (options[[*asdict(choice)]] == pd.Series(asdict(choice))).all(axis=1)
    options = options.assign(first=chosen_row).sort_values(
        ["first", "value"], ascending=False, kind="stable", ignore_index=True
    ).drop(columns="first")  # fmt: skip
    generation = [price.of_generation(N) for N in options["children"]]
    options["cost"] = options["generations"] * np.array(generation)
    inside = base.inside(choice.generations, choice.children)
    paths = simulate_choice(worlds, choice, rounds=choice.generations, runs=50, seed=seed + 1)
    own = own_runs(pilot, choice.generations, choice.children)
    if choice.arms > 1:
        own = own[:0]  # a run of the pilot is one arm, not such a search
    reached = np.zeros(0) if tau is None else chance(paths, own, tau)
    known = [base.inside(T + 1, choice.children) for T in range(len(reached))]
    reached = np.where(known, reached, np.nan)
    enough = np.flatnonzero(reached >= 0.9)
    spent = price.of_generation(choice.children) * (enough[0] + 1 if len(enough) else np.inf)
    return BudgetPlan(
        task=pilot.task, model=pilot.model, budget=budget, costs=price, choice=choice,
        usual=usual, inside=inside, options=options, outcomes=paths[:, -1], tau=tau,
        p_tau=None if tau is None else float(reached[-1]),
        budget_for_tau=None if tau is None else float(spent),
        reached=reached, pilot_runs=len(pilot.runs), pilot_calls=len(children),
    )  # fmt: skip


def _single(rounds: Mapping[int, int], number: int) -> Choice:
    """One run of the split of that number."""
    N = list(rounds)[number]
    return Choice(generations=rounds[N], children=N)


def affordable(budget: float, costs: SplitCosts) -> dict[int, int]:
    """Generations that the budget pays for at each N = 1, 2, 4, ...

    Raises:
        ValueError: If it does not pay for a single call.
    """
    rounds, N = {}, 1
    while (T := int(budget / costs.of_generation(N) + 1e-9)) >= 1:
        rounds[N], N = T, 2 * N
    if not rounds:
        raise ValueError(
            f"expected a budget of at least one call ({costs.of_generation(1):g}), got {budget!r}"
        )
    return rounds


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


def chance(paths: FloatArray, own: FloatArray, tau: FloatArray | float) -> FloatArray:
    """Probability that a search reaches `tau`, by column of simulated searches and of the pilot's.

    The kernel counts as SIMULATED runs beside the pilot's own of that split, and one more run
    reaches it or not (Jeffreys): without them the kernel was measured to be too sure.
    """
    hits, n = (own >= tau).sum(axis=0), len(own)
    return np.asarray((SIMULATED * (paths >= tau).mean(axis=0) + hits + 0.5) / (SIMULATED + n + 1))


def _centre(worlds: Sequence[Kernel]) -> Callable[..., FloatArray]:
    """The mean of outcomes; their median where the initial program has no fitness, as some have."""
    return np.median if np.isnan(worlds[0].fitness[0]) else np.mean


def arms_beside(
    worlds: Sequence[Kernel],
    single: Choice,
    alone: FloatArray,
    runs: int,
    *,
    arms: Sequence[int] = ARMS,
    policies: Sequence[str] = PLANNED_POLICIES,
    seed: int = 0,
) -> pd.DataFrame:
    """Ways to spend on several arms, with their leads over one run and the margins of these.

    `alone`, (worlds,), is what one run of the plan's split reaches. Arms with fewer than two rounds
    each are left out.
    """
    rows, means, middle = [], [alone], _centre(worlds)
    for K in (K for K in arms if single.generations >= 2 * K):
        pool = _simulated(worlds, replace(single, arms=K), single.generations, RUNS, seed)
        for policy in policies:
            choice = replace(single, arms=K, policy=policy)
            final = _pulled(pool, choice, single.generations, seed)[:, -1]
            means.append(middle(final.reshape(len(worlds), -1), axis=1))
            rows.append(_option(choice, middle(final)))
    ahead, margin = lead(np.stack(means, axis=1), 0, runs)
    return pd.DataFrame(rows).assign(ahead=ahead[1:], margin=margin[1:])


def _read_children(frame: pd.DataFrame) -> pd.DataFrame:
    """The children of the frame's generations, from the logs named in its column `source`."""
    if "source" not in frame or not frame["source"].astype(bool).all():
        raise ValueError(
            "the frame does not say which logs it came from; pass children=replay.children(...)"
        )
    table = children_of(*frame["source"].unique())
    depth = frame.groupby("source")["generation"].max()
    return table[table["generation"] <= table["source"].map(depth)]


def _costs(costs: Mapping[str, float] | None) -> SplitCosts:
    if costs is None:
        return SplitCosts()
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
    rows, means, middle = [], [], _centre(worlds)
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
    by_world, runs = np.stack(means, axis=1), len(base.sizes)
    table = pd.DataFrame(rows)
    table["ahead"], table["margin"] = lead(by_world, nearest_square(rounds), runs)
    table["p_best"] = (by_world == by_world.max(axis=1, keepdims=True)).mean(axis=0)
    behind, margin = lead(by_world, int(by_world.mean(axis=0).argmax()), runs)
    table["tied"] = -behind <= margin
    return table, by_world


def _option(choice: Choice, value: FloatArray) -> dict[str, object]:
    return asdict(choice) | {"value": float(value)}
