"""Explorers: figures with sliders in Jupyter, whose view is also to be had as a plain figure.

    replay.explore(frame)                                      # all of them, in tabs
    replay.explorers.explore_budget(frame)                     # one
    replay.explorers.pick("my_logs")                           # anyone's logs, chosen by hand
    replay.browse("logs/local/*.jsonl")                        # runs, child by child
    replay.explorers.explore_sweep(replay.load_sweep(folder))  # a sweep, by its fields
    replay.explorers.explore_selection(frame)                  # which configuration is best
    replay.follow(evo.start("circle_packing"))                 # a run in progress
    replay.explorers.explore_budget(frame, generations=16, children=8).figure()    # for paper

Nothing outside this package imports ipywidgets. What every explorer needs is imported with it, so
that the first picture does not wait for that.
"""

from __future__ import annotations

import contextlib
import importlib

from replay.explorers.allocation import explore_allocation
from replay.explorers.budget import explore_budget
from replay.explorers.live_view import follow
from replay.explorers.picker import Picker, pick
from replay.explorers.run_browser import browse
from replay.explorers.runs_table import Runs
from replay.explorers.selection import explore_selection
from replay.explorers.sweep import explore_sweep
from replay.explorers.sweep_controls import SweepControls, sweep_controls
from replay.explorers.tabs import Tabs, explore

for _name in ("matplotlib.backends.backend_agg", "scipy.special", "ipywidgets", "anywidget"):
    with contextlib.suppress(ImportError):  # said by the function that needs it
        importlib.import_module(_name)

__all__ = [
    "Picker",
    "Runs",
    "SweepControls",
    "Tabs",
    "browse",
    "explore",
    "explore_allocation",
    "explore_budget",
    "explore_selection",
    "explore_sweep",
    "follow",
    "pick",
    "sweep_controls",
]
