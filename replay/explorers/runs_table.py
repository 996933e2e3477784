"""The table of runs: one row a run; a row opens it, two compare, several overlay."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evo.logs.log import read_log
from evo.logs.types import JsonObject
from replay import markup, plots
from replay.explorers.canvas import WholePicture
from replay.explorers.run_browser import browse
from replay.explorers.run_text import SHEET
from replay.explorers.shell import Explorer
from replay.explorers.subject import Subject
from replay.explorers.widgets import close_previous, close_tree, name_of, page_script, spoken
from replay.logs.frames import is_stand_in
from replay.plots.style import Theme, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from ipywidgets import Widget

MOST_OVERLAID = 12
HELP = "Click on a row to open the run; on a second one to compare the two; on more to overlay."


def runs_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per run of `replay.load`'s rows: what it is, how far it came, what it cost."""
    by = frame.groupby("run", sort=False)
    table = by.agg(
        task=("task", "first"), model=("model", "first"), N=("children", "first"),
        T=("generation", "max"), best_fitness=("best_fitness", "max"), calls=("n_calls", "sum"),
        seed=("seed", "first"),
    )  # fmt: skip
    if "search" in frame:
        table.insert(2, "search", by["search"].first())
    if "n_ok" in frame:
        table["ok"] = by["n_ok"].sum()
        table["failed"] = table["calls"] - table["ok"]
    table["tokens"] = by["tokens"].sum(min_count=1).map(_known)
    dollars = by["dollars"].sum(min_count=1).where(~table["model"].map(is_stand_in))
    if dollars.notna().any():
        table["dollars"] = dollars.map(_known)
    table["best_fitness"] = table["best_fitness"].round(6)
    return table.reset_index()


def _known(value: float) -> str:
    return "" if math.isnan(value) else number(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class RunsView:
    """Some runs."""

    rows: pd.DataFrame  # their rows of `replay.load`
    summary: pd.DataFrame  # their rows of the table

    @property
    def words(self) -> str:
        """Describes each run; of two runs, their differences."""
        text = [
            f"{row['run']}: best fitness {row['best_fitness']:.6g} after T = {row['T']} of "
            f"N = {row['N']}."
            for row in self.summary.to_dict("records")
        ]
        if len(self.summary) == 2:
            one, other = self.summary.to_dict("records")
            differing = [
                f"{k} {one[k]} and {other[k]}" for k in one if k != "run" and one[k] != other[k]
            ]
            text.append(f"They differ in {', '.join(differing) or 'nothing but their name'}.")
        return " ".join([*text, "One run is no estimate: there is no interval."])

    def table(self) -> pd.DataFrame:
        """Their rows."""
        return self.rows


def _view(frame: pd.DataFrame, runs: Sequence[str]) -> RunsView:
    rows = frame[frame["run"].isin(list(runs))]
    return RunsView(rows=rows, summary=runs_table(rows))


def _picture(theme: Theme) -> WholePicture[RunsView]:
    return WholePicture(
        lambda view, ax: plots.trajectories(view.rows, by="run", ax=ax, theme=theme),
        lambda view: 4.2,
        theme,
    )


class Runs:
    """A table of runs and, below it, what is chosen of them.

    Args:
        frame: Rows of `replay.load`.
        theme: Inks; `neutral` is the page's.

    Attributes:
        widget: The whole as one widget.
        table: One row per run.
    """

    def __init__(self, frame: pd.DataFrame, *, theme: Theme = "neutral") -> None:
        import ipywidgets

        close_previous(self)
        self._frame, self._theme = frame, theme
        self.table = runs_table(frame)
        self._below = ipywidgets.VBox(layout={"width": "100%"})
        self._shown: Explorer | None = None
        self._rows = _rows_widget(self.table, self.show)
        self._words = ipywidgets.HTML(spoken(HELP) + page_script())
        self.widget = ipywidgets.VBox([self._words, self._rows, self._below])
        self.widget.add_class("replay-runs")

    def show(self, numbers: Sequence[int]) -> None:
        """Show the runs in these rows of the table."""
        import ipywidgets

        old, self._shown = self._shown, None
        names = self.table["run"].iloc[list(numbers)[:MOST_OVERLAID]].tolist()
        sources = dict(zip(self._frame["run"], self._frame["source"].map(Path), strict=True))
        there = [path for each in names if (path := sources[each]).is_file()]
        text = {0: HELP, 1: "Below, a run: "}.get(
            len(names), f"Below, {len(names)} runs together: "
        )
        self._words.value = spoken(text + ", ".join(names)) + page_script()
        parts: list[object] = []
        if len(names) == 1 and there:
            self._shown = browse(there[0], theme=self._theme)
        elif names:
            rows = f"{name_of(self._frame)}.loc[lambda f: f['run'].isin({names!r})]"
            subject = Subject(
                name="runs", picture=_picture, theme=self._theme,
                view=lambda settings, coarse: _view(self._frame, names),
                code=lambda settings: f"replay.plots.trajectories({rows}, by='run')",
            )  # fmt: skip
            self._shown = Explorer(subject, {}, help="")
        if len(there) == 2:
            parts.append(ipywidgets.HTML(_programs(*there)))
        self._below.children = [*([self._shown.widget] if self._shown else []), *parts]
        if old is not None:
            old.close()

    def close(self) -> None:
        """Free the widgets."""
        if self._shown is not None:
            self._shown.close()
        close_tree(self.widget)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> JsonObject:
        """The live widget; the table where no kernel runs."""
        bundle = dict(self.widget._repr_mimebundle_(include=include, exclude=exclude))
        return bundle | {"text/plain": self.table.to_string(max_rows=20)}


def _rows_widget(table: pd.DataFrame, chosen: Callable[[Sequence[int]], None]) -> Widget:
    """The table, sortable and searchable where itables is installed; else a list."""
    import ipywidgets

    try:
        from itables.widget import ITable
    except ImportError:
        lines = table.to_string(index=False).splitlines()[1:]
        made = ipywidgets.SelectMultiple(
            options=[(line, k) for k, line in enumerate(lines)], rows=12, layout={"width": "100%"}
        )
        made.observe(lambda change: chosen(change["new"]), names="value")
        return made
    made = ITable(
        table, select="multi", paging=len(table) > 12, pageLength=12, showIndex=False,
        layout={"topStart": "search", "topEnd": None}, style="width:100%",
        maxBytes=0, scrollX=True,
    )  # fmt: skip
    made.observe(lambda change: chosen(change["new"]), names="selected_rows")
    return made


@functools.lru_cache(maxsize=8)
def _programs(one: Path, other: Path) -> str:
    """What tells the best programs of two logs apart, as HTML."""
    try:
        texts = {path: read_log(path).best.program for path in (one, other)}
        if without := [path.name for path, text in texts.items() if text is None]:
            return spoken(
                "Their programs cannot be compared: there is none of the best child in "
                f"{' and '.join(without)}."
            )
        shown, added, removed = markup.difference(*(text or "" for text in texts.values()))
    except ValueError as error:
        return spoken(str(error))
    text = f"From the best program of {one.name} to that of {other.name}: "
    text += f"{markup.counted(added, removed)}."
    return f"<div class='run-browser'>{SHEET}{spoken(text)}{shown}</div>"
