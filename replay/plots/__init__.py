"""Figures: tables in, matplotlib Axes out.

Two shapes, `lines` and `estimates`, serve any table; the others draw what this package computes.
Each figure states its kind of interval and the number of runs. It draws on `ax`, or on a
figure of its own, in one of the themes of `replay.plots.style`, and returns the Axes. `facets`
draws the same for several names side by side. `FIGURES` lists those that reports, sites and
`overview` show; a figure of your own that is added there joins them.
"""

from __future__ import annotations

from replay.plots.descent import blame, tree
from replay.plots.grid import (
    envelope_curves,
    heatmap,
    odds,
    planner_card,
    regime_probabilities,
    slices,
    value_of_knowing,
)
from replay.plots.output import save, show
from replay.plots.policies import (
    gains,
    policy_curves,
    pool_vs_allocation,
    pulls_per_arm,
    race,
    threshold_times,
    verdicts,
)
from replay.plots.printed import paper
from replay.plots.registry import FIGURES, best_so_far, overview
from replay.plots.runs import COSTS, Cost, construction, pulls, trajectories, worth
from replay.plots.shapes import estimates, facets, lines
from replay.plots.style import FITNESS, Theme, subplots
from replay.plots.sweeps import (
    cost_and_fitness,
    depth_breadth_slice,
    main_effects,
    parallel_coordinates,
)

__all__ = [
    "COSTS",
    "FIGURES",
    "FITNESS",
    "Cost",
    "Theme",
    "best_so_far",
    "blame",
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
    "trajectories",
    "tree",
    "value_of_knowing",
    "verdicts",
    "worth",
]
