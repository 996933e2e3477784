"""Figures: tables in, charts or matplotlib Axes out.

`charts.NAME(frame, ...)` describes a figure as a `Chart`, which shows itself in a notebook and
answers to the mouse there; `NAME(frame, ..., ax=None, theme="light")` draws it on matplotlib's axes
and returns them. Two shapes, `lines` and `estimates`, serve any table; the others draw what this
package computes. Each figure states its kind of interval and the number of runs.

`facets` draws the same for several names side by side, and in `one_look` a name has one colour in
all figures that are made meanwhile. `FIGURES` lists the figures that reports,
sites and `overview` show; a figure of your own that is added there joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replay.plots import charts
from replay.plots.chart import Chart
from replay.plots.descent import blame
from replay.plots.drawn import drawn
from replay.plots.medium import one_look
from replay.plots.output import save, show
from replay.plots.printed import paper
from replay.plots.registry import FIGURES, overview
from replay.plots.runs import COSTS, Cost
from replay.plots.shapes import facets
from replay.plots.style import FITNESS, Theme, subplots
from replay.plots.timeline import LATEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evo.logs.log import Log
    from replay.claims.task_comparison import TaskComparison
    from replay.planning.choices import BudgetPlan

best_so_far = drawn(charts.best_so_far)
construction = drawn(charts.construction)
cost_and_fitness = drawn(charts.cost_and_fitness)
depth_breadth_slice = drawn(charts.depth_breadth_slice)
envelope_curves = drawn(charts.envelope_curves)
estimates = drawn(charts.estimates)
gains = drawn(charts.gains)
heatmap = drawn(charts.heatmap)
lines = drawn(charts.lines)
main_effects = drawn(charts.main_effects)
odds = drawn(charts.odds)
parallel_coordinates = drawn(charts.parallel_coordinates)
policy_curves = drawn(charts.policy_curves)
pool_vs_allocation = drawn(charts.pool_vs_allocation)
pulls = drawn(charts.pulls)
pulls_per_arm = drawn(charts.pulls_per_arm)
race = drawn(charts.race)
regime_probabilities = drawn(charts.regime_probabilities)
slices = drawn(charts.slices)
threshold_times = drawn(charts.threshold_times)
trajectories = drawn(charts.trajectories)
tree = drawn(charts.tree)
value_of_knowing = drawn(charts.value_of_knowing)
verdict = drawn(charts.verdict)
verdicts = drawn(charts.verdicts)
worth = drawn(charts.worth)


def comparison(found: TaskComparison, *, theme: Theme = "light") -> list[Axes]:
    """Draws what `replay.compare` found: summaries, differences and profiles of the runs.

    See `charts.comparison`, which answers to the mouse.

    Args:
        found: The comparison, from `replay.compare(frame, by=...)`.
        theme: "light" or "dark".

    Returns:
        The axes of a new figure.

    Example:
        >>> import pandas as pd
        >>> both = pd.concat([frame.assign(rule=name, run=frame["run"] + name) for name in "ab"])
        >>> found = replay.compare(both, by="rule")
        >>> len(replay.plots.comparison(found))
        3
    """
    return charts.comparison(found).figure(theme).axes


def planner_card(plan: BudgetPlan, *, theme: Theme = "light") -> list[Axes]:
    """Draws a plan: its splits and, where they are forecast, the fitness and the time to reach tau.

    Args:
        plan: The plan, from `replay.plan`.
        theme: "light" or "dark".

    Returns:
        The axes of a new figure, from left to right.

    Example:
        >>> plan = replay.plan(frame, budget=8, children=children, kernels=2)
        >>> len(replay.plots.planner_card(plan))
        2
    """
    return charts.planner_card(plan).figure(theme).axes


def timeline(log: Log, *, generations: int = LATEST, theme: Theme = "light") -> list[Axes]:
    """Draws where the time of a run went: what each slot did, and what was spent meanwhile.

    See `charts.timeline`, which answers to the mouse.

    Args:
        log: A run, from `evo.read_log`.
        generations: How many are shown, the last ones.
        theme: "light" or "dark".

    Returns:
        The axes of a new figure, from above.

    Example:
        >>> len(replay.plots.timeline(log))
        2
    """
    return charts.timeline(log, generations=generations).figure(theme).axes


__all__ = [
    "COSTS",
    "FIGURES",
    "FITNESS",
    "Chart",
    "Cost",
    "Theme",
    "best_so_far",
    "blame",
    "charts",
    "comparison",
    "construction",
    "cost_and_fitness",
    "depth_breadth_slice",
    "envelope_curves",
    "estimates",
    "facets",
    "gains",
    "heatmap",
    "lines",
    "main_effects",
    "odds",
    "one_look",
    "overview",
    "paper",
    "parallel_coordinates",
    "planner_card",
    "policy_curves",
    "pool_vs_allocation",
    "pulls",
    "pulls_per_arm",
    "race",
    "regime_probabilities",
    "save",
    "show",
    "slices",
    "subplots",
    "threshold_times",
    "timeline",
    "trajectories",
    "tree",
    "value_of_knowing",
    "verdict",
    "verdicts",
    "worth",
]
