"""All explorers of a frame in one place, each made when its tab is first opened."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from evo.logs.types import JsonObject
from replay.explorers.allocation import explore_allocation
from replay.explorers.browser_explorer import BrowserExplorer
from replay.explorers.budget import explore_budget
from replay.explorers.chosen_runs import ChosenRuns, Split
from replay.explorers.curves import explore_curves
from replay.explorers.explorer import Explorer
from replay.explorers.panels import explore_figures, explore_panel, panels
from replay.explorers.runs_table import Runs
from replay.explorers.selection import explore_selection
from replay.explorers.stored import show_live
from replay.explorers.sweep import explore_sweep
from replay.explorers.widgets import close_previous, close_tree
from replay.logs.frames import unrepeated
from replay.logs.given import check_loaded
from replay.plots.style import Theme

if TYPE_CHECKING:
    import pandas as pd


class Tabs:
    """Explorers in tabs.

    Args:
        makers: By title, what makes the explorer of a tab.
        below: What stands below all tabs, such as the runs that are chosen in any of them.

    Attributes:
        widget: The whole as one widget.
        tabs: The widget of the tabs.

    Example:
        >>> type(replay.explorers.Tabs({"table": lambda: replay.explorers.Runs(frame)})).__name__
        'Tabs'
    """

    def __init__(
        self,
        makers: Mapping[str, Callable[[], Explorer | Runs]],
        below: ChosenRuns | None = None,
    ) -> None:
        import ipywidgets

        close_previous(self)
        self._makers = dict(makers)
        self._made: dict[str, Explorer | Runs] = {}
        self._below = below
        self.tabs = ipywidgets.Tab(
            children=[ipywidgets.VBox() for _ in self._makers], titles=list(self._makers)
        )
        self.widget = self.tabs
        if below is not None:
            self.widget = ipywidgets.VBox([self.tabs, below.widget])
        self.tabs.observe(lambda change: self._opened(change["new"]), names="selected_index")
        self.tabs.selected_index = 0
        self._opened(0)

    def __getitem__(self, title: str) -> Any:
        """The explorer of a tab, made if it was not yet."""
        if title not in self._makers:
            raise KeyError(f"expected a tab among {[*self._makers]}, got {title!r}")
        self._opened(list(self._makers).index(title))
        return self._made[title]

    def __getattr__(self, name: str) -> NoReturn:
        """Says how to reach what an explorer has and the tabs as a whole have not."""
        words = f"{type(self).__name__!r} object has no attribute {name!r}"
        titles = list(self.__dict__.get("_makers", ()))
        if titles and hasattr(Explorer, name):
            words += f"; an explorer has it: use .open({titles[0]!r}).{name}, of tabs {titles}"
        raise AttributeError(words, name=name, obj=self)

    def open(self, title: str) -> Any:
        """Open a tab, and return its explorer."""
        if title not in self._makers:
            raise ValueError(f"expected a tab among {[*self._makers]}, got {title!r}")
        made = self[title]
        self.tabs.selected_index = list(self._makers).index(title)
        return made

    @property
    def chosen(self) -> list[str]:
        """The runs that are chosen, in whichever tab."""
        return [] if self._below is None else list(self._below.names)

    def choose(self, *runs: str) -> None:
        """Choose runs in all tabs, by their identifiers; none closes what is shown of runs."""
        if self._below is not None:
            self._below.choose(runs)

    def close(self) -> None:
        """Free the widgets of every tab."""
        for each in self._made.values():
            each.close()
        if self._below is not None:
            self._below.close()
        close_tree(self.widget)

    def _opened(self, index: int | None) -> None:
        if index is None:
            return
        title = list(self._makers)[index]
        if title not in self._made:
            self._made[title] = self._makers[title]()
            self.tabs.children[index].children = (self._made[title].widget,)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The live widget, and the open tab's picture for where no kernel runs."""
        title = list(self._makers)[self.tabs.selected_index or 0]
        shown = self[title]._repr_mimebundle_(include, exclude)
        live = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        found: dict[str, object] = shown | live | {"text/plain": shown["text/plain"]}
        return found

    def _ipython_display_(self) -> None:
        """Shows the live widget first, then stores the open tab's picture where it stands apart."""
        from IPython.display import display

        shown = self[list(self._makers)[self.tabs.selected_index or 0]]
        if isinstance(shown, Runs):
            display(self._repr_mimebundle_(), raw=True)  # type: ignore[no-untyped-call]
            return
        show_live(self.widget, shown._stored)


def _own_panels(frame: pd.DataFrame, theme: Theme) -> dict[str, Callable[[], Explorer]]:
    """A tab for every panel that was registered."""
    return {name: functools.partial(explore_panel, frame, name, theme=theme) for name in panels()}


HELP = (
    "Click on a cell of the budget to see its runs, and on a run, there or in the table, to open "
    "it here; on a second one to compare the two, on more to overlay them."
)


def explore(
    frame: pd.DataFrame | str | os.PathLike[str],
    *,
    child_table: pd.DataFrame | None = None,
    theme: Theme = "neutral",
) -> Tabs:
    """Explore logged runs: budgets and allocations with sliders, and a table of the runs.

    One selection runs through all of it: a split leads to its runs, a run to its children, a child
    to its program, its changes, its prompt and its error, and back to the split.

    Args:
        frame: Rows of `replay.load`, or a log or folder to load; of `replay.load_sweep`: the sweep,
            and which configuration of it is best.
        child_table: Rows of `replay.children` of the same runs, for predictions of splits that
            nobody ran; None reads them from the logs that the frame names.
        theme: Inks; `neutral` suits light and dark pages alike.

    Example:
        >>> type(replay.explore(frame)).__name__
        'Tabs'
    """
    if isinstance(frame, str | os.PathLike):
        from replay import importers

        frame = importers.load(frame)
    if "fields" in getattr(frame, "attrs", ()):
        return Tabs(
            {
                "Sweep": functools.partial(explore_sweep, frame, theme=theme),
                "Selection": functools.partial(explore_selection, frame, theme=theme),
                **_own_panels(frame, theme),
            }
        )

    check_loaded("explore", frame, "replay.load")
    frame = unrepeated(frame)

    def show(split: Split) -> None:
        """Open the split in the picture of all of them."""
        task, model, T, N = split
        budget = tabs.open("Budget")
        if isinstance(budget, BrowserExplorer):
            T = max(each for each in budget.controls["generations"].options or () if each <= T)
            budget.choose(task=task, model=model, generations=T, children=N, calls=T * N)

    def link(budget: Explorer) -> Explorer:
        """Have the picture draw the runs that are chosen, and choose those that it draws."""
        if isinstance(budget, BrowserExplorer):
            budget.controls["runs"].observe(lambda change: chosen.choose(change["new"]))
            chosen.observe(lambda names: budget.choose(runs=names))
            budget.choose(runs=chosen.names)
        return budget

    chosen = ChosenRuns(frame, help=HELP, theme=theme, back=show)
    tabs = Tabs(
        {
            "Budget": lambda: link(explore_budget(frame, child_table=child_table, theme=theme)),
            "Table of runs": functools.partial(Runs, frame, theme=theme, chosen=chosen),
            "Allocation": functools.partial(explore_allocation, frame, theme=theme),
            "Curves": functools.partial(explore_curves, frame, theme=theme),
            "Figures": functools.partial(explore_figures, frame, theme=theme),
            **_own_panels(frame, theme),
        },
        chosen,
    )
    return tabs
