"""The view of one choice in the budget explorer, in words and as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from replay.explorers.budget_data import NAMES, CostAxis, Outlook, Split
from replay.explorers.budget_values import ChosenRun
from replay.statistics.intervals import Interval
from replay.statistics.numbers import amount, number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class BudgetView:
    """The view of one choice in the explorer."""

    outlook: Outlook  # the splits of the task and model
    axis: CostAxis  # what curves are drawn against
    tau: float  # the fitness to reach
    splits: tuple[Split | None, ...]  # the chosen one, twice as deep, twice as broad
    runs: tuple[ChosenRun, ...] = ()  # drawn one by one
    map: str = "fitness"  # what colours of the heatmap mean

    @property
    def words(self) -> str:
        """The choice, its costs and its neighbours in sentences."""
        split = self.splits[0]
        assert split is not None
        asked = split.generations, split.children, split.costs
        offline = self.outlook.fitness.model == "offline"
        n = amount(split.fitness.n, "run")
        source = (
            f"n = {n}, logged"
            if split.logged
            else f"never run: the kernel's prediction for the mean of {n}"
        )
        T, N = split.generations, split.children
        is_known = not math.isnan(split.fitness.value[-1])
        text = [
            f"{self.outlook.fitness.task}, {self.outlook.model}: T = {amount(T, 'generation')} of "
            f"N = {amount(N, 'child', 'children')} (C = {amount(T * N, 'call')}) have a mean best "
            f"fitness {'of' if is_known else 'that is'} {split.fitness.last} ({source}).",
            f"A run reaches τ = {self.tau:g} with probability {split.reached.last}.",
            f"A run costs {costs_in_words(*asked, offline=offline)}.",
        ]
        if split.logged and split.fitness.n < split.fitness.of:
            text.append(
                f"Of {split.fitness.of} runs of N = {N}, {split.fitness.n} go on so far: where the "
                "curve is thin it is the mean of those that go on, which may fall."
            )
        behind = self.outlook.behind.get((split.generations, split.children))
        if behind is not None:
            text.append(behind.words())
        for name, other in zip(NAMES[1:], self.splits[1:], strict=True):
            if other is not None:
                kind = "" if other.logged else " (predicted)"
                text.append(
                    f"{name.capitalize()}, T = {other.generations} and N = {other.children}: "
                    f"{other.fitness.last}{kind}."
                )
        if self.runs:
            text.append(f"Runs chosen: {'; '.join(each.words(T) for each in self.runs)}.")
        shown = [each for each in self.splits if each is not None]
        brackets = limits_in_words(
            self.outlook.interval,
            logged=any(each.logged for each in shown),
            predicted=not all(each.logged for each in shown),
        )
        return " ".join([*text, brackets])

    def table(self) -> pd.DataFrame:
        """One row per split and generation."""
        import pandas as pd

        parts = []
        for name, split in zip(NAMES, self.splits, strict=True):
            if split is None:
                continue
            count = split.generations
            parts.append(
                pd.DataFrame(
                    {
                        "split": name,
                        "generations": count,
                        "children": split.children,
                        "generation": np.arange(1, count + 1),
                        self.axis if self.axis != "generation" else "cost": split.fitness.x,
                        **split.fitness.columns("fitness"),
                        **split.reached.columns("reached"),
                        "logged": np.arange(count) < split.fitness.logged,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)


def limits_in_words(interval: str, *, logged: bool, predicted: bool) -> str:
    """What the brackets hold where logged means, predicted ones or both are shown."""
    limits = ["limits that hold in at least 95 %, of the probability"]
    if predicted:
        limits.insert(0, "where 95 % of simulated means lie, of predictions")
    if logged and interval != "no interval":
        limits.insert(0, f"a {interval}, of logged means")
    return f"In brackets: {'; '.join(limits)}."


def costs_in_words(
    generations: int, children: int, costs: Mapping[str, Interval], *, offline: bool
) -> str:
    """Costs of a split; units that are not known are named as such.

    Calls of all kinds are stated beside those for children where `costs` has them.
    """
    calls = generations * children
    parts, unknown = [amount(calls, "call") + " for children" * ("calls" in costs)], []
    units = {"tokens": "tokens", "flops": "FLOPs", "dollars": "dollars"}
    if "calls" in costs:
        units = {"calls": "calls of all kinds", **units}
    for unit, name in units.items():
        found = costs.get(unit)
        if found is None and offline and unit != "tokens":
            continue
        if found is None or math.isnan(found.value):
            unknown.append(name)
        elif math.isfinite(found.low):
            value, low, high = map(number, (found.value, found.low, found.high))
            parts.append(f"{value} {name} [{low}, {high}]")
        else:
            parts.append(f"about {number(found.value)} {name}")
    return ", ".join(parts) + (f" ({' and '.join(unknown)} unknown)" if unknown else "")
