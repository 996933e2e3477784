"""All explorers of a frame in one place, each made when its tab is first opened."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replay.explorers.allocation import explore_allocation
from replay.explorers.budget import explore_budget
from replay.explorers.run_browser import browse
from replay.explorers.selection import explore_selection
from replay.explorers.shell import Explorer, notice
from replay.explorers.sweep import explore_sweep
from replay.explorers.widgets import close_previous, close_tree
from replay.style import Theme

if TYPE_CHECKING:
    import pandas as pd


class Tabs:
    """Explorers in tabs.

    Args:
        makers: By title, what makes the explorer of a tab.

    Attributes:
        widget: The whole as one widget.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Explorer]]) -> None:
        import ipywidgets

        close_previous(self)
        self._makers = dict(makers)
        self._made: dict[str, Explorer] = {}
        self.widget = ipywidgets.Tab(
            children=[ipywidgets.VBox() for _ in self._makers], titles=list(self._makers)
        )
        self.widget.observe(lambda change: self._opened(change["new"]), names="selected_index")
        self.widget.selected_index = 0
        self._opened(0)

    def __getitem__(self, title: str) -> Explorer:
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

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The live widget, and the open tab's picture for where no kernel runs."""
        title = list(self._makers)[self.widget.selected_index or 0]
        shown = self[title]._repr_mimebundle_(include, exclude)
        live = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        return shown | live | {"text/plain": shown["text/plain"]}


def explore(
    frame: pd.DataFrame, *, child_table: pd.DataFrame | None = None, theme: Theme = "neutral"
) -> Tabs:
    """Explore logged runs: budgets and allocations with sliders, and each run child by child.

    Args:
        frame: Rows of `replay.load`; of `replay.load_sweep`: the sweep, and which configuration of
            it is best.
        child_table: Rows of `replay.children` of the same runs, for predictions of splits that
            nobody ran; None reads them from the logs that the frame names.
        theme: Inks; `neutral` suits light and dark pages alike.
    """
    makers: dict[str, Callable[..., Explorer]] = {
        "Budget": functools.partial(explore_budget, frame, child_table=child_table),
        "Allocation": functools.partial(explore_allocation, frame),
        "Runs": functools.partial(_browse, frame),
    }
    if "fields" in frame.attrs:
        makers = {
            "Sweep": functools.partial(explore_sweep, frame),
            "Selection": functools.partial(explore_selection, frame),
        }
    return Tabs({title: functools.partial(make, theme=theme) for title, make in makers.items()})


def _browse(frame: pd.DataFrame, *, theme: Theme) -> Explorer:
    """The run browser over the logs that the frame names, where they still are."""
    paths = [Path(source) for source in dict.fromkeys(map(str, frame.get("source", ())))]
    if there := [path for path in paths if path.is_file()]:
        return browse(there, theme=theme)
    text = "The logs of these runs are not on this machine, so there is no run to look into."
    return notice("run", "run_figure", text, theme)
