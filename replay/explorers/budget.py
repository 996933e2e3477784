"""The budget explorer: what a split of a budget into depth and breadth is worth and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from replay.explorers.budget_data import (
    UNITS,
    BudgetView,
    CostAxis,
    Outlook,
    axes_of,
    inside,
    known_costs,
    outlook,
)
from replay.explorers.budget_picture import BudgetPicture
from replay.explorers.shell import Explorer, notice
from replay.explorers.subject import Settings, Subject, figure_of, sentence_figure
from replay.explorers.widgets import choice, entry, slider, source_of
from replay.style import Theme

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HELP = (
    "Spend a budget of C = T N calls deep (many generations T) or broad (many children N). "
    "Moving T or N keeps C, to the nearest split of C; moving C keeps N. Point at the picture for "
    "numbers, click on a cell to choose it."
)


class Budgets:
    """All that the explorer needs of a frame: the outlooks of its tasks and models.

    Args:
        frame: Rows of `replay.load`.
        children: Rows of `replay.children` of the same runs; None reads those of a task and model
            from the logs that the frame names. Without them nothing is predicted.

    Raises:
        ValueError: The frame has no complete generation, or lacks a column.
    """

    def __init__(self, frame: pd.DataFrame, children: pd.DataFrame | None) -> None:
        if "generation" not in frame or not (frame["generation"] > 0).any():
            raise ValueError("no run has a complete generation yet: there is no split to show")
        self._children = children
        self._parts = {
            (str(task), str(model)): part
            for (task, model), part in frame.groupby(["task", "model"], sort=False)
            if (part["generation"] > 0).any()
        }
        self.pairs = list(self._parts)
        self._known: dict[tuple[str, str], Outlook] = {}

    def outlook(self, task: str, model: str) -> Outlook:
        """What is known of a task and model; predictions are there after `predict`."""
        key = task, model
        if key not in self._known:
            self._known[key] = outlook(self._parts[key], None)
        return self._known[key]

    def predict(self, task: str, model: str) -> None:
        """Fit what predicts splits that nobody ran, where there are any inside what was logged."""
        key = task, model
        known = self.outlook(task, model)
        if known.kernel is None and self._holes(key):
            from replay.logs import children as read

            part, table = self._parts[key], self._children
            if table is None:
                table = read(*part["source"].unique(), progress=False)
            else:
                table = table[(table["task"] == task) & (table["model"] == model)]
            self._known[key] = outlook(part, table)

    def _holes(self, key: tuple[str, str]) -> bool:
        """Whether there are children to predict from, and a split inside that nobody ran."""
        part = self._parts[key]
        if self._children is None and not _has_logs(part):
            return False
        runs = part.groupby("run", sort=False)[["children", "generation"]].max()
        sizes, depths = runs["children"].to_numpy(), runs["generation"].to_numpy()
        deepest = _deepest(part)
        rows, columns, _ = axes_of(deepest, predicted=True)
        return any(
            deepest.get(N, 0) < T and inside(sizes, depths, T, N) for N in rows for T in columns
        )

    def defaults(self, task: str, model: str) -> Settings:
        """A middling choice for a task and model, and what half the runs reach in the end."""
        known = self.outlook(task, model)
        T, N = max(
            ((2 ** int(math.log2(depth)), N) for N, depth in known.depths.items() if depth),
            key=lambda split: (min(split), split[0] * split[1]),
        )
        final = np.fmax.reduce(known.fitness.values, axis=1)
        final = final[np.isfinite(final)]
        tau = round(math.floor(float(np.median(final)) * 200) / 200, 3) if final.size else 0.9
        return {"generations": T, "children": N, "calls": T * N, "tau": tau}

    def sizes(self) -> tuple[list[int], list[int], list[int]]:
        """Each N, each T and each budget in calls that any task and model may show."""
        rows, columns, largest = set(), set(), 0
        for key, part in self._parts.items():
            found = axes_of(_deepest(part), predicted=self._holes(key))
            rows |= set(found[0])
            columns |= set(found[1])
            largest = max(largest, found[2])
        budgets = sorted({T * N for T in columns for N in rows if largest >= T * N})
        return sorted(rows), sorted(columns), budgets

    def units(self) -> list[CostAxis]:
        """The cost axes that are known of any task and model."""
        known = {unit for part in self._parts.values() for unit in known_costs(part)}
        return [axis for axis in UNITS if axis in {"generation", "calls", *known}]

    def view(
        self, *, task: str, model: str, generations: int, children: int, axis: CostAxis, tau: float
    ) -> BudgetView:
        """One choice, with the splits twice as deep and twice as broad."""
        if (task, model) not in self.pairs:
            raise ValueError(f"no runs of {task} by {model}; there are {self.pairs}")
        if axis not in UNITS:
            raise ValueError(f"expected a cost axis among {[*UNITS]}, got {axis!r}")
        known = self.outlook(task, model)
        T, N = generations, children
        chosen = known.split(T, N, axis=axis, tau=tau)
        if chosen is None:
            why = "it is too far from what was logged to be predicted"
            if known.kernel is None:
                why = "nothing is predicted here, or not yet"
            raise ValueError(f"T = {T}, N = {N} was never run, and {why}")
        deeper = known.split(2 * T, N // 2, axis=axis, tau=tau) if N % 2 == 0 else None
        broader = known.split(T // 2, 2 * N, axis=axis, tau=tau) if T % 2 == 0 else None
        return BudgetView(outlook=known, axis=axis, tau=tau, splits=(chosen, deeper, broader))


def _deepest(frame: pd.DataFrame) -> dict[int, int]:
    """The most generations that were logged, by N."""
    depths = frame.groupby("children")["generation"].max()
    pairs = zip(depths.index.tolist(), depths.tolist(), strict=True)
    return {int(N): int(T) for N, T in pairs if T}


def _has_logs(frame: pd.DataFrame) -> bool:
    """Whether the logs that a frame names are there."""
    sources = list(frame["source"].unique()) if "source" in frame else []
    return bool(sources) and all(source and Path(source).is_file() for source in sources)


def link(moved: str, settings: Settings, rows: Sequence[int], columns: Sequence[int]) -> Settings:
    """Make T, N and C agree after one of them was moved.

    Moving T or N keeps C and goes to the split of C that is closest, if C has another; moving C
    keeps N if it can.
    """
    T, N, C = settings["generations"], settings["children"], settings["calls"]
    if moved in ("generations", "children", "calls") and T * N != C:
        splits = [(C // n, n) for n in rows if C % n == 0 and C // n in columns]
        if moved == "calls" or len(splits) > 1:
            part, want = (0, T) if moved == "generations" else (1, N)
            T, N = min(splits, key=lambda split: abs(math.log(split[part] / want)))
    return {**settings, "generations": T, "children": N, "calls": T * N}


def budget_figure(
    frame: pd.DataFrame,
    *,
    task: str | None = None,
    model: str | None = None,
    generations: int | None = None,
    children: int | None = None,
    calls: int | None = None,
    axis: CostAxis = "calls",
    tau: float | None = None,
    child_table: pd.DataFrame | None = None,
    theme: Theme = "light",
) -> Figure:
    """Draw what `explore_budget` shows of one split.

    Args:
        frame: Rows of `replay.load`.
        task: Which task; None: the first.
        model: Which model; None: the first.
        generations: T; None: calls / children, or a middling split.
        children: N, likewise.
        calls: C; None: T * N. If all three are given they must agree.
        axis: Cost that the curves are drawn against, one of generation, calls, tokens, flops and
            dollars.
        tau: The fitness to reach; None: what half the runs reach.
        child_table: Rows of `replay.children`, for predictions; None reads them from the logs that
            the frame names, where they are still there.
        theme: See `replay.style`.

    Raises:
        ValueError: No such runs, or a split that was not logged and cannot be predicted.
    """
    try:
        budgets = Budgets(frame, child_table)
    except ValueError as error:
        return sentence_figure(error, theme)
    task = budgets.pairs[0][0] if task is None else task
    model = next((m for t, m in budgets.pairs if t == task), "") if model is None else model
    if (task, model) not in budgets.pairs:
        raise ValueError(f"no runs of {task!r} by {model!r}; there are {budgets.pairs}")
    usual = budgets.defaults(task, model)
    if calls is not None:
        generations = calls // children if generations is None and children else generations
        children = calls // generations if children is None and generations else children
    T = usual["generations"] if generations is None else generations
    N = usual["children"] if children is None else children
    if calls is not None and calls != T * N:
        raise ValueError(f"expected C = T * N, got T = {T!r}, N = {N!r} and C = {calls!r}")
    budgets.predict(task, model)
    view = budgets.view(
        task=task, model=model, generations=T, children=N, axis=axis,
        tau=usual["tau"] if tau is None else tau,
    )  # fmt: skip
    return figure_of(BudgetPicture(theme), view)


def explore_budget(
    frame: pd.DataFrame, *, child_table: pd.DataFrame | None = None, theme: Theme = "neutral"
) -> Explorer:
    """Move along budgets with sliders: fitness, probability to reach tau and cost of each split.

    Args:
        frame: Rows of `replay.load`.
        child_table: As for `budget_figure`.
        theme: Inks; `neutral` suits light and dark pages alike.
    """
    try:
        budgets = Budgets(frame, child_table)
    except ValueError as error:
        return notice("budget", "budget_figure", str(error), theme)
    rows, columns, calls = budgets.sizes()
    task, model = budgets.pairs[0]
    tasks, models = (list(dict.fromkeys(part)) for part in zip(*budgets.pairs, strict=True))
    usual = budgets.defaults(task, model)

    def view(settings: Settings, coarse: bool) -> BudgetView:
        given = {name: value for name, value in settings.items() if name != "calls"}
        return budgets.view(**given)

    def adjust(moved: str, settings: Settings) -> Settings:
        if moved in ("task", "model"):
            names = settings["task"], settings["model"]
            return settings | budgets.defaults(*names) if names in budgets.pairs else settings
        return link(moved, settings, rows, columns)

    def along(now: Settings) -> list[int]:
        """Each T of the current budget that can be shown."""
        known = budgets.outlook(now["task"], now["model"])
        splits = [
            (link("generations", {**now, "generations": T}, rows, columns), T) for T in columns
        ]
        return [
            T
            for split, T in splits
            if (split["calls"], split["generations"]) == (now["calls"], T)
            and known.cell(T, split["children"]) is not None
        ]

    subject = Subject(
        name="budget",
        function="budget_figure",
        picture=BudgetPicture,
        theme=theme,
        slow=lambda now: budgets.predict(now["task"], now["model"]),
        data=(frame, source_of(frame)),
        view=view,
        adjust=adjust,
        scrubs={
            "generations": along,
            "tau": lambda now: taus(
                budgets.outlook(now["task"], now["model"]).fitness.values, now["tau"]
            ),
        },
    )
    made = {
        "task": choice("Task", tasks, task, tip="Task of the runs"),
        "model": choice("Model", models, model, tip="Model of the runs"),
        "axis": choice(
            "Cost axis", [(UNITS[axis], axis) for axis in budgets.units()], "calls",
            tip="What curves are drawn against",
        ),
        "tau": entry("τ", usual["tau"], (-1e6, 1e6), 0.005, tip="The fitness to reach"),
        "generations": slider(
            "generations T", columns, usual["generations"], tip="Depth; keeps the budget C"
        ),
        "children": slider(
            "children N", rows, usual["children"], tip="Breadth; keeps the budget C"
        ),
        "calls": slider("calls C", calls, usual["calls"], tip="The budget; keeps N"),
    }  # fmt: skip
    order = ("generations", "children", "calls", "tau", "task", "model", "axis")
    return Explorer(subject, {name: made[name] for name in order}, help=HELP)


def taus(fitness: np.typing.NDArray[np.float64], now: float) -> list[float]:
    """Forty fitness values from low to the best, and the one that is set."""
    known = fitness[:, 1:][np.isfinite(fitness[:, 1:])]
    if not known.size:
        return [now]
    found = np.linspace(np.quantile(known, 0.05), known.max(), 40)
    return sorted({*np.round(found, 4).tolist(), now})
