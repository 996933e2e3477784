"""Explorers: figures with sliders in Jupyter, each also a plain function that returns a figure.

    replay.explore(frame)                                      # all of them, in tabs
    replay.explorers.explore_budget(frame)                     # one
    replay.explorers.pick("my_logs")                           # anyone's logs, chosen by hand
    replay.browse("logs/local/*.jsonl")                        # runs, child by child
    replay.explorers.explore_sweep(replay.load_sweep(folder))  # a sweep, by its fields
    replay.explorers.explore_selection(frame)                  # which configuration is best
    replay.follow(evo.start("circle_packing"))                 # a run in progress
    replay.explorers.budget_figure(frame, generations=16, children=8)    # the same without a mouse

Nothing outside this package imports ipywidgets, and here only functions that make widgets do.
"""

from __future__ import annotations

from replay.explorers.allocation import allocation_figure, explore_allocation
from replay.explorers.budget import budget_figure, explore_budget
from replay.explorers.live_view import follow, live_figure
from replay.explorers.picker import Picker, pick
from replay.explorers.run_browser import browse, run_figure
from replay.explorers.runs_table import Runs, runs_figure
from replay.explorers.selection import explore_selection, selection_figure
from replay.explorers.sweep import explore_sweep, sweep_figure
from replay.explorers.sweep_controls import SweepControls, sweep_controls
from replay.explorers.tabs import Tabs, explore

__all__ = [
    "Picker",
    "Runs",
    "SweepControls",
    "Tabs",
    "allocation_figure",
    "browse",
    "budget_figure",
    "explore",
    "explore_allocation",
    "explore_budget",
    "explore_selection",
    "explore_sweep",
    "follow",
    "live_figure",
    "pick",
    "run_figure",
    "runs_figure",
    "selection_figure",
    "sweep_controls",
    "sweep_figure",
]
