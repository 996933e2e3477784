"""All explorers of a frame in one place, each made when its tab is first opened."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from evo.logs.types import JsonObject
from replay.explorers.allocation import explore_allocation
from replay.explorers.budget import explore_budget
from replay.explorers.drawn import Drawn
from replay.explorers.runs_table import Runs
from replay.explorers.selection import explore_selection
from replay.explorers.shell import Explorer
from replay.explorers.sweep import explore_sweep
from replay.explorers.widgets import close_previous, close_tree
from replay.plots.style import Theme

if TYPE_CHECKING:
    import pandas as pd


class Tabs:
    """Explorers in tabs.

    Args:
        makers: By title, what makes the explorer of a tab.

    Attributes:
        widget: The whole as one widget.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Drawn | Explorer | Runs]]) -> None:
        import ipywidgets

        close_previous(self)
        self._makers = dict(makers)
        self._made: dict[str, Drawn | Explorer | Runs] = {}
        self.widget = ipywidgets.Tab(
            children=[ipywidgets.VBox() for _ in self._makers], titles=list(self._makers)
        )
        self.widget.observe(lambda change: self._opened(change["new"]), names="selected_index")
        self.widget.selected_index = 0
        self._opened(0)

    def __getitem__(self, title: str) -> Any:
        """The explorer of a tab, made if it was not yet."""
        if title not in self._makers:
            raise KeyError(f"expected a tab among {[*self._makers]}, got {title!r}")
        self._opened(list(self._makers).index(title))
        return self._made[title]

    def close(self) -> None:
        """Free the widgets of every tab."""
        for each in self._made.values():
            each.close()
        close_tree(self.widget)

    def _opened(self, index: int | None) -> None:
        if index is None:
            return
        title = list(self._makers)[index]
        if title not in self._made:
            self._made[title] = self._makers[title]()
            self.widget.children[index].children = (self._made[title].widget,)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The live widget, and the open tab's picture for where no kernel runs."""
        title = list(self._makers)[self.widget.selected_index or 0]
        shown = self[title]._repr_mimebundle_(include, exclude)
        live = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        found: dict[str, object] = shown | live | {"text/plain": shown["text/plain"]}
        return found


def explore(
    frame: pd.DataFrame | str | os.PathLike[str],
    *,
    child_table: pd.DataFrame | None = None,
    theme: Theme = "neutral",
) -> Tabs:
    """Explore logged runs: a table that opens each of them, budgets and allocations with sliders.

    Args:
        frame: Rows of `replay.load`, or a log or folder to load; of `replay.load_sweep`: the sweep,
            and which configuration of it is best.
        child_table: Rows of `replay.children` of the same runs, for predictions of splits that
            nobody ran; None reads them from the logs that the frame names.
        theme: Inks; `neutral` suits light and dark pages alike.
    """
    if isinstance(frame, str | os.PathLike):
        from replay import importers

        frame = importers.load(frame)
    makers: dict[str, Callable[..., Drawn | Explorer | Runs]] = {
        "Table of runs": functools.partial(Runs, frame),
        "Budget": functools.partial(explore_budget, frame, child_table=child_table),
        "Allocation": functools.partial(explore_allocation, frame),
    }
    if "fields" in frame.attrs:
        makers = {
            "Sweep": functools.partial(explore_sweep, frame),
            "Selection": functools.partial(explore_selection, frame),
        }
    return Tabs({title: functools.partial(make, theme=theme) for title, make in makers.items()})
