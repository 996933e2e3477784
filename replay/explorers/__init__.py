"""Explorers: figures with sliders in Jupyter, whose view is also to be had as a plain figure.

    replay.explore(frame)                                      # all of them, in tabs
    replay.explorers.explore_budget(frame)                     # one
    replay.explorers.pick("my_logs")                           # anyone's logs, chosen by hand
    replay.browse("logs/local/*.jsonl")                        # runs, child by child
    replay.explorers.explore_sweep(replay.load_sweep(folder))  # a sweep, by its fields
    replay.explorers.explore_selection(frame)                  # which configuration is best
    replay.follow(evo.start("circle_packing"))                 # a run in progress
    replay.explorers.explore_budget(frame, generations=16, children=8).figure()    # for paper

Nothing outside this package imports ipywidgets. Public names: `__init__.pyi`.
"""

import importlib.util
from typing import NoReturn

import lazy_loader

_loaded, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Returns a public name; without ipywidgets one that explains how to install it when called."""
    if name in __all__ and importlib.util.find_spec("ipywidgets") is None:
        return _needs_ipywidgets
    return _loaded(name)


def _needs_ipywidgets(*_: object, **__: object) -> NoReturn:
    """Not installed: explorers need ipywidgets (pip install 'evo-replay[notebook]')."""
    raise ModuleNotFoundError(
        "explorers need ipywidgets: pip install 'evo-replay[notebook]'; plain figures, "
        "replay.plots, and pages, replay.site, do without",
        name="ipywidgets",
    )
