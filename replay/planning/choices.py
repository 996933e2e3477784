"""Ways to spend a budget, what they cost, and a plan: a recommendation with its grounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from replay.markup import card
from replay.planning.borrowing import Borrowed
from replay.planning.grid import FloatArray
from replay.planning.kernel import FEWEST
from replay.statistics.numbers import amount, brackets

NO_MARGIN = "one run shows no margin"
"""Why no lead counts after a pilot of one run."""

SIMULATED = 40
"""Runs that a forecast by the kernel alone is worth beside the pilot's own."""


def chance(paths: FloatArray, own: FloatArray, tau: FloatArray | float) -> FloatArray:
    """Probability that a search reaches `tau`, by column of simulated searches and of the pilot's.

    The kernel counts as SIMULATED runs beside the pilot's own of that split, and one more run
    reaches it or not (Jeffreys): without them the kernel was measured to be too sure.
    """
    hits, n = (own >= tau).sum(axis=0), len(own)
    return np.asarray((SIMULATED * (paths >= tau).mean(axis=0) + hits + 0.5) / (SIMULATED + n + 1))


@dataclass(frozen=True)
class SplitCosts:
    """What a call, an evaluation, and a generation whatever its N cost, in the budget's unit.

    `initial` is what a run pays before its first generation, for its initial program.
    """

    call: float = 1.0
    evaluation: float = 0.0
    generation: float = 0.0
    initial: float = 0.0

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
        children = amount(self.children, "child", "children")
        if self.arms == 1:
            generations = amount(self.generations, "generation")
            return f"one run of T = {generations} of N = {children}"
        return (
            f"K = {self.arms} arms of N = {children} under {self.policy} "
            f"(reward: the rank), {amount(self.generations, 'round')}"
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
        over: What the recommendation leads: `usual`, or one run of the split on whose arms it is.
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
            behind the best by more than its margin); replayed (arms that are the pilot's own runs).
        outcomes: Simulated final fitness of the recommendation, (outcomes,).
        own: Final fitness of the pilot's own runs of the recommended split, (runs,); each forecast
            counts them beside the simulated ones. Empty where none is as long, or of arms.
        tau: The fitness to reach, or None.
        p_tau: Probability that the recommendation reaches it; NaN unless inside, None without tau.
        budget_for_tau: Budget with which tau is reached with probability .9 by the recommended
            split; infinite if none that is forecast; None without tau.
        reached: Probability of having reached tau by generation, (rounds,), NaN where it is not
            forecast; empty without tau.
        pilot_runs: Runs of the pilot.
        pilot_calls: Their calls.
        borrowed: What was taken from other tasks, or None.
    """

    task: str
    model: str
    budget: float
    costs: SplitCosts
    choice: Choice
    usual: Choice
    over: Choice
    inside: bool
    options: pd.DataFrame
    outcomes: FloatArray
    tau: float | None
    p_tau: float | None
    budget_for_tau: float | None
    reached: FloatArray
    pilot_runs: int
    pilot_calls: int
    borrowed: Borrowed | None = None
    own: FloatArray = field(default_factory=lambda: np.empty(0))

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

    @property
    def expected(self) -> tuple[FloatArray, FloatArray]:
        """Levels of fitness in ascending order, and the probability that a search reaches each.

        It is the probability that `p_tau` is of tau.
        """
        levels = np.sort(np.append(self.outcomes, self.own))
        return levels, chance(self.outcomes[:, None], self.own[:, None], levels)

    def reached_by(self, *shares: float) -> list[float]:
        """The highest fitness that at least each of these shares of searches is to reach."""
        levels, reached = self.expected
        return [float(levels[np.flatnonzero(reached >= share)[-1]]) for share in shares]

    @property
    def beyond(self) -> str:
        """Why nothing is forecast; empty where something is."""
        if self.inside:
            return ""
        T, N = self.choice.generations, self.choice.children
        return (
            f"beyond what the pilot saw (it takes {FEWEST} runs of at least {N} children and "
            f"{amount(T, 'generation')}, and one of at most {amount(N, 'child', 'children')})"
        )

    @property
    def summary(self) -> tuple[str, str]:
        """What is advised, in a sentence; then n, and what would change it."""
        first, *others = self._support
        known = (
            f"{self.task}, {self.model}: n = {amount(self.pilot_runs, 'run')}, "
            f"{amount(self.pilot_calls, 'call')} of the pilot."
        )
        if self.departs:
            return first, f"{known} What would change that: a lead no larger than its margin."
        return first, f"{known} {others[0]}" if others else known

    @property
    def details(self) -> str:
        """How sure it is, and the alternatives."""
        singles = self.options[self.options["arms"] == 1]
        tied = sorted(singles.loc[singles["tied"], "children"])
        each = self.costs.call + self.costs.evaluation
        lines = [
            *(
                []
                if each == 1
                else [f"each child with its evaluation costs {each:g} of the budget"]
            ),
            *([f"each initial program costs {self.costs.initial:g}"] * (self.costs.initial > 0)),
            *self._support[1 if self.departs else 2 :],
        ]
        if self.borrowed is not None:
            lines.append(f"{self.borrowed}")
        if len(tied) > 1:
            lines.append(f"the pilot cannot tell apart N = {', '.join(map(str, tied))}")
        if not self.inside:
            return "\n".join([*lines, f"no forecast of the fitness: {self.beyond}"])
        low, middle, high = self.reached_by(0.95, 0.5, 0.05)
        limits = brackets(low, high, "{:z.4f}".format)
        lines.append(f"fitness: median {middle:z.4f}, 90 % of searches in {limits}")
        if self.tau is not None and self.budget_for_tau is not None:
            bound = self.budget_for_tau
            lines.append(
                f"reaches {self.tau:g} with probability {self.p_tau:.2f}; 90 % need a budget of "
                + (f"{bound:.4g}" if np.isfinite(bound) else f"more than {self.budget:g}")
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        """The summary, then the details."""
        lines = self.details.splitlines()
        return "\n".join([*self.summary, *(f"  {line}" for line in lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card(*self.summary, self.details)

    @property
    def _support(self) -> list[str]:
        """What is advised and on what grounds; then what would be needed for more, by line."""
        T, N = self.usual.generations, self.usual.children
        rule = f"{'T = N' if T == N else 'the split nearest to T = N'} and one run"
        if self.departs:
            first = self.options.iloc[0]
            over = rule if self.over == self.usual else str(self.over)
            by = "replayed on the pilot's runs" if first["replayed"] else "in simulation"
            lines = [
                f"Spend the budget of {self.budget:g} on {self.choice}: {by} it leads {over} by "
                f"{first['ahead']:+.4f}, beyond its margin of {first['margin']:.4f}."
            ]
        else:
            lines = [
                f"No advice: no other way to spend {self.budget:g} is clearly ahead of {rule}, "
                f"which stays the default: {self.choice}."
            ]
        for other in self.needed.to_dict("records"):
            if math.isinf(other["margin"]):
                return [*lines, f"{NO_MARGIN[0].upper()}{NO_MARGIN[1:]}; a pilot of several does."]
            name = f"N = {other['children']}"
            if other["arms"] > 1:
                name = f"K = {other['arms']} arms ({other['policy']})"
            if other["ahead"] > other["margin"]:
                lines.append(
                    f"{name} leads {rule} by {other['ahead']:+.4f} too, beyond its margin of "
                    f"{other['margin']:.4f}, and does not clearly lead what is advised."
                )
            else:
                lines.append(
                    f"{name} would have been advised for a lead of more than "
                    f"{other['margin']:.4f}; in simulation it leads by {other['ahead']:+.4f}."
                )
        return lines
