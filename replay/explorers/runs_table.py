"""The table of runs: one row a run; a row opens it, two compare, several overlay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evo.logs.types import JsonObject
from replay.explorers.chosen_runs import ChosenRuns, runs_table
from replay.explorers.widgets import close_previous, close_tree
from replay.plots.style import Theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from ipywidgets import Widget

HELP = "Click on a row to open the run; on a second one to compare the two; on more to overlay."


class Runs:
    """A table of runs and, below it, what is chosen of them.

    Args:
        frame: Rows of `replay.load`.
        theme: Inks; `neutral` is the page's.
        chosen: Where they are shown that are chosen, if something else shows them; None: below.

    Attributes:
        widget: The whole as one widget.
        table: One row per run.
        chosen: The runs that are chosen.

    Example:
        >>> type(replay.explorers.Runs(frame)).__name__
        'Runs'
    """

    def __init__(
        self, frame: pd.DataFrame, *, theme: Theme = "neutral", chosen: ChosenRuns | None = None
    ) -> None:
        import ipywidgets

        close_previous(self)
        self.table = runs_table(frame)
        self.chosen = chosen or ChosenRuns(frame, help=HELP, theme=theme)
        self._rows, self._trait = _rows_widget(self.table)
        self._linking = False
        self._rows.observe(lambda change: self.show(change["new"]), names=self._trait)
        self.chosen.observe(self._mark)
        self._mark(self.chosen.names)
        self._own = chosen is None
        parts = [self.chosen.words, self._rows, self.chosen.below] if self._own else [self._rows]
        # No width of its own, so that a wide table scrolls and does not widen the page.
        self.widget = ipywidgets.VBox(parts, layout={"width": "0", "min_width": "100%"})
        self.widget.add_class("replay-runs")

    def show(self, numbers: Sequence[int]) -> None:
        """Show the runs in these rows of the table."""
        if not self._linking:
            self.chosen.choose(self.table["run"].iloc[list(numbers)].tolist())

    def close(self) -> None:
        """Free the widgets."""
        if self._own:
            self.chosen.close()
        close_tree(self.widget)

    def _mark(self, names: Sequence[str]) -> None:
        """Select the rows of the runs that are chosen."""
        numbers = {run: k for k, run in enumerate(self.table["run"])}
        wanted = [numbers[each] for each in names]
        if sorted(wanted) != sorted(getattr(self._rows, self._trait)):
            self._linking = True
            try:
                made = tuple(wanted) if self._trait == "value" else wanted
                setattr(self._rows, self._trait, made)
            finally:
                self._linking = False

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The live widget; the table where no kernel runs."""
        bundle = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        return bundle | {"text/plain": self.table.to_string(max_rows=20)}


def _rows_widget(table: pd.DataFrame) -> tuple[Widget, str]:
    """The table, sortable and searchable where itables is installed, else a list; and its trait.

    What all runs share, model or search, is left out.
    """
    import ipywidgets

    alike = {name for name in ("model", "search") if name in table and table[name].nunique() == 1}
    table = table.drop(columns=[*alike] if len(table) > 1 else [])

    try:
        from itables.widget import ITable
    except ImportError:
        lines = table.to_string(index=False).splitlines()[1:]
        made = ipywidgets.SelectMultiple(
            options=[(line, k) for k, line in enumerate(lines)], rows=12, layout={"width": "100%"}
        )
        return made, "value"
    made = ITable(
        table, select="multi", paging=len(table) > 12, pageLength=12, showIndex=False,
        layout={"topStart": "search", "topEnd": None}, style="width:100%",
        maxBytes=0, scrollX=True, text_in_header_can_be_selected=False,  # a click there sorts
    )  # fmt: skip
    return made, "selected_rows"
