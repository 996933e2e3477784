"""The curves of runs: which are shown, what they are drawn against, and what groups them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, get_args

import numpy as np

from replay.explorers.chart_explorer import ChartExplorer, notice
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import ExplorerSpec, Settings
from replay.explorers.panels import KEPT, PanelView
from replay.explorers.widgets import choice, naming, words
from replay.logs.frames import unrepeated
from replay.logs.given import check_loaded
from replay.plots.runs import COSTS, Cost, trajectories
from replay.plots.style import Theme

if TYPE_CHECKING:
    from typing import Any

    import pandas as pd

HELP = (
    "Group the runs by a column, show some of them, and draw what is missing to a fitness of 1 to "
    "tell runs near the optimum apart."
)
SCALES = {"best fitness": False, "1 - best fitness, by powers of ten": True}
MOST_GROUPS = 40
"""Values of a column by which runs are grouped at most."""
MOST_NAMED = 12
"""Groups whose ends are put into words."""
USUAL = "usual"
"""Groups of the task, model and N that vary."""
ALL = "all tasks"
"""The choice of every task, whose values have little in common."""


class CurvesView(PanelView):
    """The curves of some runs."""

    @property
    def words(self) -> str:
        """Where the median of each group ends."""
        table = self.chart.table()
        if "texts" not in table:
            return self.chart.words
        ends = table.dropna(subset=["texts"]).groupby("label", sort=False)["texts"].last()
        if len(ends) <= MOST_NAMED:
            return f"Where groups end: {'; '.join(ends)}."
        named = "; ".join(ends.iloc[:MOST_NAMED])
        return f"Where {MOST_NAMED} of {len(ends)} groups end: {named}. The table has the others."


def grouping_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that tell runs apart: each run has one value, and there are a few of them."""
    by = frame.groupby("run", sort=False)
    found = []
    for name in frame.columns:
        if name in ("run", "source", "repeat_of") or frame[name].map(_unhashable).any():
            continue
        if 1 < frame[name].nunique() <= MOST_GROUPS and (by[name].nunique(dropna=False) == 1).all():
            found.append(str(name))
    return [*found, *(["run"] if 1 < len(by) <= MOST_GROUPS else [])]


def _unhashable(value: object) -> bool:
    return isinstance(value, list | dict | set | np.ndarray)


def known_costs(frame: pd.DataFrame) -> list[Cost]:
    """Horizontal axes whose numbers every run states."""
    return [
        name
        for name in get_args(Cost)
        if all(
            column in frame and np.isfinite(frame.loc[frame["generation"] > 0, column]).all()
            for column in COSTS[name][1]
        )
    ]


def shown_rows(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """The rows of the runs that a condition on columns keeps.

    Raises:
        ValueError: The condition cannot be read, or keeps no run.
    """
    if not where.strip():
        return frame
    try:
        rows = frame.query(where)
    except Exception as error:  # pandas raises whatever the text leads to
        raise ValueError(
            f"expected a condition on columns, such as children >= 4 and seed < 50, got "
            f"{where!r}: {error}"
        ) from None
    kept = frame[frame["run"].isin(rows["run"].unique())]
    if kept.empty:
        raise ValueError(f"no run has {where}")
    return kept


def explore_curves(frame: pd.DataFrame, *, theme: Theme = "neutral", **begins: Any) -> Explorer:
    """Shows best fitness so far by run: grouped, filtered, against any cost, near the optimum.

    Args:
        frame: Rows of `replay.load`.
        theme: Inks; `neutral` suits light and dark pages alike.
        **begins: Where its controls begin: task (of several; the first, or "all tasks"), by (a
            column that groups and colours runs, or "usual"), where (a condition on columns that
            runs must meet in some row, as `DataFrame.query` takes it), x (see
            `replay.plots.trajectories`), scale (of fitness), together (all groups in one panel).

    Raises:
        ValueError: No such setting or value, or no run meets the condition.

    Example:
        >>> explorer = replay.explorers.explore_curves(frame, by="seed")
    """
    check_loaded("explore_curves", frame, "replay.load")
    from ipywidgets import Checkbox

    frame = unrepeated(frame)
    if frame.empty:
        return notice("curves", "there are no runs", theme)
    named = naming(frame)
    tasks = [str(each) for each in frame["task"].unique()]

    def of_task(task: str) -> pd.DataFrame:
        return frame if task == ALL or len(tasks) == 1 else frame[frame["task"] == task]

    def given(settings: Settings) -> dict[str, Any]:
        """The arguments of `trajectories`."""
        by, gap = settings["by"], SCALES[settings["scale"]]
        chosen = {} if by == USUAL else {"by": by}
        on = [name for name, yes in (("together", settings["together"]), ("gap", gap)) if yes]
        return {"x": settings["x"], **chosen, **dict.fromkeys(on, True)}

    @functools.lru_cache(maxsize=KEPT)
    def view(**settings: Any) -> CurvesView:
        rows = shown_rows(of_task(settings["task"]), settings["where"])
        return CurvesView(trajectories(rows, **given(settings)))

    def code(settings: Settings) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in given(settings).items())
        where, task = settings["where"].strip(), settings.get("task", ALL)
        kept = f".loc[lambda f: f['run'].isin(f.query({where!r})['run'])]" if where else ""
        of = "" if task == ALL else f".loc[lambda f: f['task'] == {task!r}]"
        return f"replay.plots.trajectories({named()}{of}{kept}{arguments})"

    unlike = frame["children"].nunique() > 1
    costs = known_costs(frame)
    controls = {
        "task": choice("Task", [*tasks, *([ALL] if len(tasks) > 1 else [])], tip="Whose runs"),
        "by": choice("Group by", [USUAL, *grouping_columns(frame)], tip="A colour per value"),
        "where": words("Runs where", "children >= 4", tip="A condition on columns of the table"),
        "x": choice("Against", [(COSTS[name][0], name) for name in costs], tip="Horizontal axis"),
        "scale": choice("Scale", list(SCALES), tip="Of the fitness"),
        "together": Checkbox(description="together", indent=False, tooltip="All in one panel"),
    }
    spec = ExplorerSpec(
        name="curves",
        theme=theme,
        view=lambda settings, coarse: view(**settings),
        figure=lambda view, theme: view.figure(theme),
        chart=lambda view: view.chart,
        code=code,
        hidden=lambda settings: {"task"} if len(tasks) == 1 else set(),
        carried=("x", "by", "task", "scale", "together", "where"),
    )
    start = {"x": "calls" if unlike and "calls" in costs else "generation", **begins}
    return ChartExplorer(spec, controls, help=HELP, begins=start)
