"""The runs that are chosen in a table or a picture: one opens, two compare, several overlay."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evo.logs.log import read_log
from replay import markup
from replay.explorers.chart_explorer import ChartExplorer
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import ExplorerSpec
from replay.explorers.run_browser import RunBrowser, browse
from replay.explorers.run_text import SHEET
from replay.explorers.widgets import button, close_tree, name_of, page_script, row
from replay.logs.frames import is_stand_in, models_apart
from replay.plots.chart import Chart
from replay.plots.limits import with_room
from replay.plots.marks import Line
from replay.plots.medium import DASHES, palette
from replay.plots.panel import Axis, Panel
from replay.plots.runs import COSTS
from replay.plots.scripts import spoken
from replay.plots.style import Theme, fitness_name
from replay.statistics.numbers import number

if TYPE_CHECKING:
    import pandas as pd

SPLITS = 3
"""Colours that the budget explorer keeps for splits; those after them are of single runs."""
MOST = 12
"""Runs that are chosen at most."""

Split = tuple[str, str, int, int]
"""Task, model, T and N."""


def runs_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per run of `replay.load`'s rows: what it is, how far it came, what it cost.

    The best fitness comes first: what lies to its right is out of sight in a narrow page.
    """
    by = frame.groupby("run", sort=False)
    table = by.agg(
        best_fitness=("best_fitness", "max"), task=("task", "first"), model=("model", "first"),
        N=("children", "first"), T=("generation", "max"), calls=("n_calls", "sum"),
        seed=("seed", "first"),
    )  # fmt: skip
    if "search" in frame:
        table.insert(3, "search", by["search"].first())
    made = frame[frame["generation"] > 0].groupby("run", sort=False)
    if "n_ok" in frame:
        sums = made[["n_ok", "children"]].sum().reindex(table.index, fill_value=0)
        table["ok"], table["failed"] = sums["n_ok"], sums["children"] - sums["n_ok"]
    # Generation 0 is known to cost nothing, which says nothing about what the calls cost.
    cost = made[["tokens", "dollars"]].sum(min_count=1).reindex(table.index, fill_value=0)
    table["tokens"] = cost["tokens"].map(_known)
    dollars = cost["dollars"].where(~table["model"].map(is_stand_in))
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
    order = {run: k for k, run in enumerate(runs)}
    rows = frame[frame["run"].isin(order)]
    rows = rows.sort_values("run", key=lambda names: names.map(order), kind="stable")
    return RunsView(rows=rows, summary=runs_table(rows))


def runs_chart(view: RunsView) -> Chart:
    """The chart of the runs, with the same lines as in the budget explorer (`view.js`).

    Runs of unlike N are drawn against calls, as a generation of theirs is not the same amount.
    """
    own, lines, heights = palette.get()[SPLITS:], [], []
    unlike = view.summary["N"].nunique() > 1
    for k, run in enumerate(view.summary["run"]):
        rows = view.rows[view.rows["run"] == run].sort_values("generation")
        fitness = rows["best_fitness"].to_numpy(np.float64)
        dash = DASHES[k // len(own) % len(DASHES)]
        spent = rows["n_calls"].cumsum() if unlike else rows["generation"]
        lines.append(
            Line(
                x=spent.to_numpy(np.int64), y=fitness, label=str(run), step=True,
                color=own[k % len(own)], dash=dash,
            )
        )  # fmt: skip
        heights.append(fitness[np.isfinite(fitness)])
    known = np.concatenate(heights)
    if not known.size:
        return Chart(message="No run has a program that is ok.")
    limits = with_room(float(known.min()), float(known.max()))
    last = max(int(view.summary["calls" if unlike else "T"].max()), 1)
    panel = Panel(
        title="Best so far",
        about=f"A line per run{', by calls as they differ in N' if unlike else ''}.",
        x=Axis(domain=(0, last), label=COSTS["calls" if unlike else "generation"][0], whole=True),
        y=Axis(domain=limits, label=fitness_name(view.rows["task"])),
        marks=lines,
        height=260,
        zoom=True,
        legend=True,
    )
    return Chart(panels=[panel])


class ChosenRuns:
    """Runs that are chosen, and what they show: the part that a table and a picture share.

    Args:
        frame: Rows of `replay.load`.
        help: What to do while none is chosen.
        theme: Inks; `neutral` is the page's.
        back: Shows a split where it lies in a picture of all of them; None: there is none.

    Attributes:
        widget: The whole as one widget.
        names: The identifiers of the chosen runs.
        shown: The explorer of them; None while none is chosen.
        below: What is shown of them.
        words: How many there are, as a widget that screen readers announce.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        help: str,  # noqa: A002
        theme: Theme = "neutral",
        back: Callable[[Split], object] | None = None,
    ) -> None:
        import ipywidgets

        self._frame, self._theme, self._help, self._back = frame, theme, help, back
        self._handlers: list[Callable[[list[str]], object]] = []
        self.names: list[str] = []
        self.shown: Explorer | None = None
        self.below = ipywidgets.VBox(layout={"width": "100%"})
        self.words = ipywidgets.HTML(spoken(help) + page_script())
        self._ways = row(
            [
                button(
                    "Show in the budget", "The split of the program that is shown", self.go_back
                ),
                button("Choose none", "Close what is shown of runs", lambda: self.choose([])),
            ]
        )
        self._ways.layout.display = "none"
        self.widget = ipywidgets.VBox([self.words, self._ways, self.below])
        self.widget.layout.width = "100%"
        self.widget.add_class("replay-chosen")

    def observe(self, handler: Callable[[list[str]], object]) -> None:
        """Calls `handler` with the runs whenever others are chosen."""
        self._handlers.append(handler)

    def choose(self, names: Sequence[str]) -> None:
        """Show these runs.

        Raises:
            ValueError: There is no such run.
        """
        known = set(self._frame["run"])
        if unknown := [name for name in names if name not in known]:
            raise ValueError(
                f"expected runs of the frame, such as {self._frame['run'].iloc[0]!r}, got "
                f"{unknown[0]!r}"
            )
        if list(names)[:MOST] == self.names:
            return
        self.names = list(names)[:MOST]
        self._show()
        for handler in self._handlers:
            handler(list(self.names))

    def go_back(self) -> None:
        """Show the split of the run, as deep as the program that is shown or as the run is."""
        mine = self._frame["run"] == self.names[-1]
        rows, model = self._frame[mine], models_apart(self._frame)[mine].iloc[0]
        T, N = int(rows["generation"].max()), int(rows["children"].iloc[0])
        browser = self.shown
        if isinstance(browser, RunBrowser) and browser.place[0]:
            T = browser.place[0]
        if self._back is not None and T:
            self._back((str(rows["task"].iloc[0]), str(model), T, N))

    def close(self) -> None:
        """Free the widgets."""
        if self.shown is not None:
            self.shown.close()
        close_tree(self.widget)

    def _show(self) -> None:
        import ipywidgets

        names, old = self.names, self.shown
        self.shown = None
        self._ways.layout.display = "" if names and self._back is not None else "none"
        sources = dict(zip(self._frame["run"], self._frame["source"].map(Path), strict=True))
        there = [path for each in names if (path := sources[each]).is_file()]
        text = {0: self._help, 1: "Below, a run: "}.get(
            len(names), f"Below, {len(names)} runs together: "
        )
        self.words.value = spoken(text + ", ".join(names)) + page_script()
        parts: list[object] = []
        if len(names) == 1 and there:
            self.shown = browse(there[0], theme=self._theme)
        elif names:
            unlike = self._frame.loc[self._frame["run"].isin(names), "children"].nunique() > 1
            by_calls = ", x='calls'" if unlike else ""
            rows = f"{name_of(self._frame)}.loc[lambda f: f['run'].isin({names!r})]"
            spec = ExplorerSpec(
                name="runs", chart=runs_chart, theme=self._theme,
                view=lambda settings, coarse: _view(self._frame, names),
                code=lambda settings: f"replay.plots.trajectories({rows}, by='run'{by_calls})",
            )  # fmt: skip
            self.shown = ChartExplorer(spec, {}, help="")
        if len(there) == 2:
            parts.append(ipywidgets.HTML(_programs(*there)))
        self.below.children = [*([self.shown.widget] if self.shown else []), *parts]
        if old is not None:
            old.close()


@functools.lru_cache(maxsize=8)
def _programs(one: Path, other: Path) -> str:
    """The differences between the best programs of two logs, as HTML."""
    try:
        logs = {path: read_log(path) for path in (one, other)}
        texts = {path: log.best.program for path, log in logs.items()}
        if without := [path.name for path, text in texts.items() if text is None]:
            return spoken(
                "Their programs cannot be compared: there is none of the best child in "
                f"{' and '.join(without)}."
            )
        before, after = (text or "" for text in texts.values())
        language = logs[other].header.task.language
        shown, added, removed = markup.difference(before, after, language=language)
    except ValueError as error:
        return spoken(str(error))
    text = f"From the best program of {one.name} to that of {other.name}: "
    text += f"{markup.counted(added, removed)}."
    return f"<div class='run-browser'>{SHEET}{spoken(text)}{shown}</div>"
