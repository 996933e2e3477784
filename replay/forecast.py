"""The planner: from a pilot, how to spend the next budget.

A kernel is estimated from the pilot's children and from bootstrap samples of its runs. Each such
kernel is one state of the world that the pilot allows; every split is simulated in all of them, and
a split is as good as it is on average over them. Splits within one standard deviation of the best,
over worlds, are tied: a pilot cannot tell them apart. Of these the plan takes the one nearest to
T = N, as far from both corners as the pilot allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replay.cells import one_sweep
from replay.kernel import FloatArray, IntArray, Kernel, fit_kernel

if TYPE_CHECKING:
    import pandas as pd

COSTS = ("call", "evaluation", "generation")
"""What costs can be given for: a call of the model, an evaluation, and once per generation."""

PLANNED_POLICIES = ("round_robin", "thompson_nig", "successive_halving", "threshold_ascent")
ARMS = (2, 4, 8)
HORIZON = 4
"""How many budgets ahead the budget for 90 % is looked for."""


@dataclass(frozen=True)
class Costs:
    """What a generation costs, in the unit of the budget.

    Attributes:
        call: Per call of the model.
        evaluation: Per evaluation.
        generation: Per generation, whatever N is: waiting, for instance.
    """

    call: float = 1.0
    evaluation: float = 0.0
    generation: float = 0.0

    def of_generation(self, children: int) -> float:
        """Cost of one generation of N children."""
        return children * (self.call + self.evaluation) + self.generation


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A way to spend a budget: K arms of N children, advanced for so many rounds by a policy."""

    generations: int
    children: int
    arms: int = 1
    policy: str = "single"

    def __str__(self) -> str:
        """In words."""
        if self.arms == 1:
            return f"one run of T = {self.generations} generations of N = {self.children} children"
        return (
            f"K = {self.arms} arms of N = {self.children} children under {self.policy}, "
            f"{self.generations} rounds"
        )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A recommendation and what it rests on.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        budget: In the unit of the costs; calls by default.
        costs: What was counted.
        choice: The recommendation.
        options: One row per way to spend the budget, best first: generations (rounds, if there are
            several arms), children, arms, policy, cost, value (mean over simulated outcomes), low
            and high (95 % of the outcomes of one search), error (of value, from simulating), p_tau;
            of single runs also p_best (share of resampled kernels in which the split is the best),
            regret (mean over kernels of what their best split gives more), tied (the pilot cannot
            tell it from the best), extrapolated (share of runs that end where the pilot saw too few
            parents).
        outcomes: Simulated final fitness of the recommendation, (outcomes,).
        tau: The fitness to reach, or None.
        p_tau: Probability that the recommendation reaches it.
        budget_for_tau: Budget with which 90 % of outcomes reach tau by the recommended N, arms and
            policy; infinite if more than HORIZON budgets; None without tau.
        reached: Share of outcomes that reached tau by budget, (rounds,), for the figure; empty
            without tau.
        pilot_runs: Runs of the pilot.
        pilot_calls: Their calls.
    """

    task: str
    model: str
    budget: float
    costs: Costs
    choice: Choice
    options: pd.DataFrame
    outcomes: FloatArray
    tau: float | None
    p_tau: float | None
    budget_for_tau: float | None
    reached: FloatArray
    pilot_runs: int
    pilot_calls: int

    def __str__(self) -> str:
        """The recommendation, how sure it is, and the alternatives."""
        singles = self.options[self.options["arms"] == 1]
        split = singles[singles["children"] == self.choice.children].iloc[0]
        tied = ", ".join(str(N) for N in sorted(singles.loc[singles["tied"] == 1, "children"]))
        low, middle, high = np.quantile(self.outcomes, [0.05, 0.5, 0.95])
        lines = [
            f"{self.task}, {self.model}: budget {self.budget:g}, from a pilot of "
            f"{self.pilot_runs} runs, {self.pilot_calls} calls",
            f"  spend it on {self.choice}",
            f"  fitness: median {middle:.4f}, 90 % of searches in [{low:.4f}, {high:.4f}]; "
            f"{split['extrapolated']:.0%} end beyond what the pilot saw",
            f"  this N is the best for one run in {split['p_best']:.0%} of resampled pilots, "
            f"expected regret {split['regret']:.4f}; the pilot cannot tell apart N = {tied}",
        ]
        if self.tau is not None and self.budget_for_tau is not None:
            bound = self.budget_for_tau
            lines.append(
                f"  reaches {self.tau:g} with probability {self.p_tau:.2f}; 90 % need a budget of "
                + (f"{bound:.4g}" if np.isfinite(bound) else f"more than {HORIZON * self.budget:g}")
            )
        return "\n".join(lines)


def plan(
    frame: pd.DataFrame,
    *,
    budget: float,
    children: pd.DataFrame | None = None,
    costs: Mapping[str, float] | None = None,
    tau: float | None = None,
    arms: Sequence[int] = ARMS,
    policies: Sequence[str] = PLANNED_POLICIES,
    kernels: int = 24,
    seed: int = 0,
) -> Plan:
    """Recommend how to spend a budget on one task with one model.

    Args:
        frame: The pilot, one row per run and generation, as `replay.load` returns it. Some 32 to 64
            calls over at least three seeds.
        budget: What may be spent, in calls or in the unit of `costs`; the pilot is not part of it.
        children: The pilot's children, as `replay.children` returns them; None reads them from the
            logs that the frame came from.
        costs: Cost per `call`, `evaluation` and `generation`; None counts calls.
        tau: A fitness that one would like to reach.
        arms: Numbers of arms to try beside a single run; empty for none.
        policies: Policies to try on them.
        kernels: Resampled kernels, the states of the world that the plan is averaged over.
        seed: Key of the generator.

    Raises:
        ValueError: If the budget does not pay for one call, a cost is unknown or negative, or the
            frame holds several tasks or models.
    """
    import pandas as pd

    sweep = one_sweep(frame)
    if children is None:
        children = _read_children(frame)
    price = _costs(costs)
    rounds = affordable(budget, price)
    base = fit_kernel(children)
    worlds = list(base.resampled(kernels, seed=seed))
    options = _rank_splits(worlds, rounds, base, tau, seed)
    single = _choice(options[options["chosen"]].iloc[0])
    options = pd.concat(
        [
            options.drop(columns="chosen"),
            _rank_arms(worlds, single, arms, policies, tau, seed),
        ]
    )
    options.insert(4, "cost", [price.of_generation(N) for N in options["children"]])
    options["cost"] *= options["generations"]
    options = options.sort_values("value", ascending=False, kind="stable", ignore_index=True)
    choice = _choose(options, single)
    ahead = choice.generations * (HORIZON if tau is not None else 1)
    best = simulate_choice(worlds, choice, rounds=ahead, seed=seed + 1)
    outcomes = best[:, choice.generations - 1]
    reached = (best >= tau).mean(axis=0) if tau is not None else np.zeros(0)
    enough = np.flatnonzero(reached >= 0.9)
    spent = price.of_generation(choice.children) * (enough[0] + 1 if len(enough) else np.inf)
    return Plan(
        task=sweep.task,
        model=sweep.model,
        budget=budget,
        costs=price,
        choice=choice,
        options=options,
        outcomes=outcomes,
        tau=tau,
        p_tau=None if tau is None else float((outcomes >= tau).mean()),
        budget_for_tau=None if tau is None else float(spent),
        reached=reached,
        pilot_runs=len(sweep.runs),
        pilot_calls=len(children),
    )


def affordable(budget: float, costs: Costs) -> dict[int, int]:
    """Generations that the budget pays for at each N = 1, 2, 4, ...

    Raises:
        ValueError: If it does not pay for a single call.
    """
    rounds = {}
    N = 1
    while (T := int(budget / costs.of_generation(N) + 1e-9)) >= 1:
        rounds[N] = T
        N *= 2
    if not rounds:
        raise ValueError(
            f"expected a budget of at least one call ({costs.of_generation(1):g}), got {budget!r}"
        )
    return rounds


def simulate_splits(
    worlds: Sequence[Kernel], rounds: Mapping[int, int], *, runs: int = 200, seed: int = 0
) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Simulate one run of each N in each world.

    Args:
        worlds: Kernels.
        rounds: Generations by N.
        runs: Runs per kernel.
        seed: Key of the generator.

    Yields:
        N, states and best fitness so far, both (kernels, runs, T + 1).
    """
    for N, T in rounds.items():
        states = np.stack(
            [
                kernel.simulate_states(T, N, runs=runs, seed=seed + number)
                for number, kernel in enumerate(worlds)
            ]
        )
        fitness = np.stack([_filled(k)[s] for k, s in zip(worlds, states, strict=True)])
        yield N, states, fitness


def simulate_choice(
    worlds: Sequence[Kernel], choice: Choice, *, rounds: int, runs: int = 25, seed: int = 0
) -> FloatArray:
    """Best fitness so far of searches that spend as `choice` says, (kernels * runs, rounds).

    All arms of a search live in one world; `runs` searches are made in each.
    """
    from replay.simulation import simulate

    pool = runs * choice.arms
    fitness = np.concatenate(
        [
            _filled(kernel)[
                kernel.simulate_states(rounds, choice.children, runs=pool, seed=seed + number)
            ]
            for number, kernel in enumerate(worlds)
        ]
    )
    if choice.arms == 1:
        return fitness[:, 1:]
    rows = np.arange(len(fitness)).reshape(-1, choice.arms)
    replay = simulate(
        fitness, choice.policy, rounds=rounds, replicates=len(rows), arms=rows, seed=seed
    )
    return np.asarray(replay.best_fitness)


def _read_children(frame: pd.DataFrame) -> pd.DataFrame:
    """The children of the frame's generations, from the logs named in its column `source`."""
    from replay.logs import children

    if "source" not in frame or not frame["source"].astype(bool).all():
        raise ValueError(
            "the frame does not say which logs it came from; pass children=replay.children(...)"
        )
    table = children(*frame["source"].unique())
    depth = frame.groupby("source")["generation"].max()
    return table[table["generation"] <= table["source"].map(depth)]


def _costs(costs: Mapping[str, float] | None) -> Costs:
    if costs is None:
        return Costs()
    if unknown := sorted(set(costs) - set(COSTS)):
        raise ValueError(f"expected costs among {COSTS!r}, got {unknown!r}")
    price = Costs(**{"call": 0.0, **costs})
    if min(price.call, price.evaluation, price.generation) < 0 or not price.call + price.evaluation:
        raise ValueError(
            "expected costs of at least 0, and above 0 for a call or an evaluation, "
            f"got {dict(costs)!r}"
        )
    return price


def _filled(kernel: Kernel) -> FloatArray:
    """Fitness of each state; nothing at all counts as the lowest fitness that was logged."""
    return np.nan_to_num(kernel.fitness, nan=kernel.fitness[1])


def _rank_splits(
    worlds: Sequence[Kernel], rounds: Mapping[int, int], base: Kernel, tau: float | None, seed: int
) -> pd.DataFrame:
    """Options of one run, best first."""
    import pandas as pd

    rows, means = [], []
    for N, states, fitness in simulate_splits(worlds, rounds, seed=seed):
        final = fitness[:, :, -1]
        unseen = 1 - base.seen[states[:, :, -1]].mean()
        option = _option(Choice(generations=rounds[N], children=N), final, tau)
        rows.append(option | {"extrapolated": unseen})
        means.append(final.mean(axis=1))
    by_world = np.stack(means, axis=1)
    most = by_world.max(axis=1, keepdims=True)
    table = pd.DataFrame(rows)
    table["p_best"] = (by_world == most).mean(axis=0)
    table["regret"] = (most - by_world).mean(axis=0)
    table["tied"] = tied_splits(by_world)
    table["chosen"] = table["children"] == choose_split(by_world, rounds)
    return table.sort_values("value", ascending=False, ignore_index=True)


def tied_splits(by_world: FloatArray) -> NDArray[np.bool_]:
    """Which splits are within one standard deviation of the best, (splits,).

    Args:
        by_world: Mean fitness of each split in each world, (worlds, splits). The deviation is that
            of the difference from the best split, over worlds.
    """
    best = int(by_world.mean(axis=0).argmax())
    short = by_world[:, [best]] - by_world
    return np.asarray(short.mean(axis=0) <= short.std(axis=0) + 1e-12)


def choose_split(by_world: FloatArray, rounds: Mapping[int, int]) -> int:
    """N of the plan: among tied splits the one nearest to T = N in log, else to T = 2 N.

    Args:
        by_world: See `tied_splits`; splits in the order of `rounds`.
        rounds: Generations by N.
    """
    off = [abs(math.log(T / N)) + 1e-9 * N for N, T in rounds.items()]
    return list(rounds)[int(np.where(tied_splits(by_world), off, np.inf).argmin())]


def _rank_arms(
    worlds: Sequence[Kernel],
    single: Choice,
    arms: Sequence[int],
    policies: Sequence[str],
    tau: float | None,
    seed: int,
) -> pd.DataFrame:
    """Options of several arms with the N and rounds of one run."""
    import pandas as pd

    rows = []
    for K in arms:
        if single.generations < 2 * K:
            continue
        for policy in policies:
            choice = replace(single, arms=K, policy=policy)
            best = simulate_choice(worlds, choice, rounds=choice.generations, seed=seed)
            rows.append(_option(choice, best[:, -1], tau))
    return pd.DataFrame(rows)


def choose_arms(
    worlds: Sequence[Kernel],
    single: Choice,
    *,
    arms: Sequence[int] = ARMS,
    policies: Sequence[str] = PLANNED_POLICIES,
    seed: int = 0,
) -> Choice:
    """The plan's arms and policy where the split is given, as one run."""
    import pandas as pd

    alone = simulate_choice(worlds, single, rounds=single.generations, seed=seed)[:, -1]
    pools = _rank_arms(worlds, single, arms, policies, None, seed)
    options = pd.concat([pd.DataFrame([_option(single, alone, None)]), pools])
    return _choose(options.sort_values("value", ascending=False, kind="stable"), single)


def _option(choice: Choice, final: FloatArray, tau: float | None) -> dict[str, float | int | str]:
    low, high = np.quantile(final, [0.025, 0.975])
    return {
        **asdict(choice),
        "value": float(final.mean()),
        "low": float(low),
        "high": float(high),
        "error": float(final.std() / np.sqrt(final.size)),
        "p_tau": np.nan if tau is None else float((final >= tau).mean()),
    }


def _choice(option: pd.Series[Any]) -> Choice:
    return Choice(
        generations=int(option["generations"]),
        children=int(option["children"]),
        arms=int(option["arms"]),
        policy=str(option["policy"]),
    )


def _choose(options: pd.DataFrame, single: Choice) -> Choice:
    """The best way to use arms if it gains more than twice the simulation's error, else one run."""
    arms = options[options["arms"] > 1]
    if arms.empty:
        return single
    alone = options[(options["arms"] == 1) & (options["children"] == single.children)].iloc[0]
    gain = arms.iloc[0]["value"] - alone["value"]
    error = math.hypot(arms.iloc[0]["error"], alone["error"])
    return _choice(arms.iloc[0]) if gain > 2 * error else single
