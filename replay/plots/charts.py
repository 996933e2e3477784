"""Every figure as a chart: `replay.plots.charts.NAME(frame, ...)` is a `Chart`.

`replay.plots.NAME(frame, ..., ax=None, theme="light")` draws it on matplotlib's axes. A chart in a
cell of a notebook shows itself and answers to the mouse.
"""

from replay.plots.comparison import comparison, verdict
from replay.plots.constructions import construction
from replay.plots.descent import tree
from replay.plots.grid import (
    envelope_curves,
    heatmap,
    odds,
    planner_card,
    regime_probabilities,
    slices,
    value_of_knowing,
)
from replay.plots.policies import (
    gains,
    policy_curves,
    pool_vs_allocation,
    pulls_per_arm,
    race,
    threshold_times,
    verdicts,
)
from replay.plots.registry import best_so_far
from replay.plots.runs import pulls, trajectories, worth
from replay.plots.shapes import estimates, lines
from replay.plots.sweeps import (
    cost_and_fitness,
    depth_breadth_slice,
    main_effects,
    parallel_coordinates,
)
from replay.plots.timeline import timeline

__all__ = [
    "best_so_far",
    "comparison",
    "construction",
    "cost_and_fitness",
    "depth_breadth_slice",
    "envelope_curves",
    "estimates",
    "gains",
    "heatmap",
    "lines",
    "main_effects",
    "odds",
    "parallel_coordinates",
    "planner_card",
    "policy_curves",
    "pool_vs_allocation",
    "pulls",
    "pulls_per_arm",
    "race",
    "regime_probabilities",
    "slices",
    "threshold_times",
    "timeline",
    "trajectories",
    "tree",
    "value_of_knowing",
    "verdict",
    "verdicts",
    "worth",
]
