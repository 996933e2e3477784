"""The budget explorer: what a split of a budget into depth and breadth is worth and costs."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.explorers.budget_data import UNITS, CostAxis, Outlook, Split, outlook
from replay.explorers.budget_picture import NAMES, BudgetPicture
from replay.explorers.canvas import SentencePicture
from replay.explorers.controls import choice, control_style, slider
from replay.explorers.shell import Explorer, Settings, Subject, figure_of, notice
from replay.style import Theme

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from replay.cells import FloatArray
    from replay.statistics import Interval

HELP = (
    "Spend a budget of C = T N calls deep (many generations T) or broad (many children N). "
    "Moving T or N keeps C; moving C keeps N."
)


@dataclass(frozen=True, kw_only=True)
class BudgetView:
    """What the explorer shows of one choice.

    Attributes:
        outlook: The splits of the task and model.
        axis: What curves are drawn against.
        tau: The fitness to reach.
        rows: Each N of the heatmap.
        columns: Each T.
        values: Mean best fitness of each split, (rows, columns); NaN where unknown.
        logged: Whether it was logged, same shape.
        splits: The chosen one, and those twice as deep and twice as broad where they are known.
    """

    outlook: Outlook
    axis: CostAxis
    tau: float
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    values: FloatArray
    logged: Any
    splits: tuple[Split | None, ...]

    @property
    def words(self) -> str:
        """The choice, its costs and its neighbours in sentences."""
        split = self.splits[0]
        assert split is not None
        source = (
            f"n = {split.fitness.n} runs, logged"
            if split.logged
            else f"never run: the kernel's prediction for the mean of {split.fitness.n} runs"
        )
        text = [
            f"{self.outlook.fitness.task}, {self.outlook.fitness.model}: "
            f"T = {split.generations} generations of N = {split.children} children "
            f"(C = {split.generations * split.children} calls) have a mean best fitness of "
            f"{split.fitness.last} ({source}).",
            f"A run reaches τ = {self.tau:g} with probability {split.reached.last}.",
            f"A run costs {_costs(split)}.",
        ]
        for name, other in zip(NAMES[1:], self.splits[1:], strict=True):
            if other is not None:
                kind = "" if other.logged else " (predicted)"
                text.append(
                    f"{name.capitalize()}, T = {other.generations} and N = {other.children}: "
                    f"{other.fitness.last}{kind}."
                )
        return " ".join(text)

    def table(self) -> pd.DataFrame:
        """One row per split and generation."""
        import pandas as pd

        parts = []
        for name, split in zip(NAMES, self.splits, strict=True):
            if split is None:
                continue
            count = split.generations
            parts.append(
                pd.DataFrame(
                    {
                        "split": name,
                        "generations": count,
                        "children": split.children,
                        "generation": np.arange(1, count + 1),
                        self.axis if self.axis != "generation" else "cost": split.fitness.x,
                        "fitness": split.fitness.value,
                        "fitness_low": split.fitness.low,
                        "fitness_high": split.fitness.high,
                        "reached": split.reached.value,
                        "reached_low": split.reached.low,
                        "reached_high": split.reached.high,
                        "logged": np.arange(count) < split.fitness.logged,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)


class Budgets:
    """All that the explorer needs of a frame: the outlooks of its tasks and models.

    Args:
        frame: Rows of `replay.load`.
        children: Rows of `replay.children` of the same runs; None reads them from the logs that
            the frame names. Without them nothing is predicted.

    Raises:
        ValueError: The frame has no complete generation, or lacks a column.
    """

    def __init__(self, frame: pd.DataFrame, children: pd.DataFrame | None) -> None:
        if "generation" not in frame or not (frame["generation"] > 0).any():
            raise ValueError("no run has a complete generation yet: there is no split to show")
        self._frame = frame
        self._children = read_children(frame) if children is None else children
        deep = frame[frame["generation"] > 0]
        names = deep[["task", "model"]].drop_duplicates()
        self.pairs = [(str(task), str(model)) for task, model in names.itertuples(index=False)]
        self.tasks = list(dict.fromkeys(task for task, _ in self.pairs))
        self.models = list(dict.fromkeys(model for _, model in self.pairs))
        self.outlook = functools.lru_cache(maxsize=None)(self._outlook)
        self._grid = functools.lru_cache(maxsize=None)(self._values)

    def defaults(self, task: str, model: str) -> Settings:
        """A middling choice for a task and model."""
        known = self.outlook(task, model)
        T, N = max(
            ((2 ** int(math.log2(depth)), N) for N, depth in known.depths.items()),
            key=lambda split: (min(split), split[0] * split[1]),
        )
        return {"generations": T, "children": N, "calls": T * N, "tau": self.usual_tau(task, model)}

    def usual_tau(self, task: str, model: str) -> float:
        """What half the runs reach in the end, in steps of 0.005."""
        final = np.fmax.reduce(self.outlook(task, model).fitness.values, axis=1)
        known = final[np.isfinite(final)]
        return round(math.floor(float(np.median(known)) * 200) / 200, 3) if known.size else 0.9

    def sizes(self) -> tuple[list[int], list[int]]:
        """Each N and each T that any task and model has."""
        rows, columns = set(), set()
        for pair in self.pairs:
            N, T = axes_of(self.outlook(*pair))
            rows |= set(N)
            columns |= set(T)
        return sorted(rows), sorted(columns)

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
            raise ValueError(
                f"T = {T}, N = {N} was never run, and "
                + (
                    "without the table of children nothing can be predicted"
                    if known.kernel is None
                    else f"its {T * N} calls are more than twice what was logged"
                )
            )
        deeper = known.split(2 * T, N // 2, axis=axis, tau=tau) if N % 2 == 0 else None
        broader = known.split(T // 2, 2 * N, axis=axis, tau=tau) if T % 2 == 0 else None
        rows, columns, values, logged = self._grid(task, model)
        return BudgetView(
            outlook=known, axis=axis, tau=tau, rows=rows, columns=columns, values=values,
            logged=logged, splits=(chosen, deeper, broader),
        )  # fmt: skip

    def _outlook(self, task: str, model: str) -> Outlook:
        parts = [
            table if table is None else table[(table["task"] == task) & (table["model"] == model)]
            for table in (self._frame, self._children)
        ]
        assert parts[0] is not None
        return outlook(parts[0], parts[1])

    def _values(self, task: str, model: str) -> tuple[Any, ...]:
        """Axes and values of the heatmap."""
        known = self.outlook(task, model)
        rows, columns = axes_of(known)
        values = np.full((len(rows), len(columns)), np.nan)
        logged = np.zeros(values.shape, dtype=bool)
        for at, N in enumerate(rows):
            for column, T in enumerate(columns):
                if (split := known.value(T, N)) is not None:
                    values[at, column], logged[at, column] = split
        return tuple(rows), tuple(columns), values, logged


def axes_of(known: Outlook) -> tuple[list[int], list[int]]:
    """Each N and each T of the heatmap: powers of two, and whatever other N was logged."""
    if known.kernel is None:
        deepest = max(known.depths.values())
        return sorted(known.depths), [2**k for k in range(deepest.bit_length())]
    powers = [2**k for k in range(known.largest.bit_length())]
    return sorted({*powers, *known.depths}), powers


def link(moved: str, settings: Settings, rows: Sequence[int], columns: Sequence[int]) -> Settings:
    """Make T, N and C agree after one of them was moved.

    Moving T or N goes along the line of equal budget, to the split whose T and N are closest to
    it; moving C keeps N if it can.
    """
    T, N, C = settings["generations"], settings["children"], settings["calls"]
    if moved == "generations":
        N = _nearest(rows, C / T)
    elif moved == "children":
        T = _nearest(columns, C / N)
    elif moved == "calls" and T * N != C:
        splits = [(C // n, n) for n in rows if C % n == 0 and C // n in columns]
        T, N = min(splits, key=lambda split: abs(math.log(split[1] / N)))
    return {**settings, "generations": T, "children": N, "calls": T * N}


def read_children(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Children of the logs that a frame names; None if it names none or they are gone."""
    from replay.table import children

    sources = list(frame["source"].unique()) if "source" in frame else []
    if not len(sources) or not all(source and Path(source).is_file() for source in sources):
        return None
    return children(*sources, progress=False)


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
        return figure_of(SentencePicture(str(error), theme), None)
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
    task, model = budgets.pairs[0]
    rows, columns = budgets.sizes()
    calls = sorted({T * N for T in columns for N in rows if _largest(budgets) >= T * N})

    def view(settings: Settings, coarse: bool) -> BudgetView:
        given = {name: value for name, value in settings.items() if name != "calls"}
        return budgets.view(**given)

    def adjust(moved: str, settings: Settings) -> Settings:
        if moved in ("task", "model"):
            names = settings["task"], settings["model"]
            if names not in budgets.pairs:
                return settings
            return {**settings, **budgets.defaults(*names)}
        return link(moved, settings, rows, columns)

    subject = Subject(
        name="budget",
        function="budget_figure",
        picture=BudgetPicture(theme),
        view=view,
        adjust=adjust,
        scrubs={
            "generations": lambda now: _along(budgets, now, rows, columns),
            "tau": lambda now: _taus(budgets, now),
        },
    )
    return Explorer(subject, _controls(budgets, task, model, rows, columns, calls), help=HELP)


def _controls(
    budgets: Budgets,
    task: str,
    model: str,
    rows: Sequence[int],
    columns: Sequence[int],
    calls: Sequence[int],
) -> dict[str, Any]:
    import ipywidgets

    usual = budgets.defaults(task, model)
    axes: list[tuple[str, CostAxis]] = [
        (UNITS[axis], axis) for axis in UNITS if axis in ("generation", "calls")
    ]
    costs = {unit for pair in budgets.pairs for unit in budgets.outlook(*pair).costs}
    axes += [(UNITS[axis], axis) for axis in UNITS if axis in costs]
    return {
        "task": choice("Task", budgets.tasks, task, tip="Task of the runs"),
        "model": choice("Model", budgets.models, model, tip="Model of the runs"),
        "axis": choice("Cost axis", axes, "calls", tip="What curves are drawn against"),
        "tau": ipywidgets.BoundedFloatText(
            value=usual["tau"], min=0.0, max=2.0, step=0.005, description="τ",
            tooltip="The fitness to reach; 1 is the best published", **control_style(200),
        ),
        "generations": slider(
            "generations T", columns, usual["generations"], tip="Depth; keeps the budget C"
        ),
        "children": slider(
            "children N", rows, usual["children"], tip="Breadth; keeps the budget C"
        ),
        "calls": slider("calls C", calls, usual["calls"], tip="The budget; keeps N"),
    }  # fmt: skip


def _largest(budgets: Budgets) -> int:
    return max(budgets.outlook(*pair).largest for pair in budgets.pairs)


def _along(
    budgets: Budgets, now: Settings, rows: Sequence[int], columns: Sequence[int]
) -> list[int]:
    """Each T of the current budget that can be shown."""
    known = budgets.outlook(now["task"], now["model"])
    found = []
    for T in columns:
        split = link("generations", {**now, "generations": T}, rows, columns)
        if split["calls"] == now["calls"] and known.value(T, split["children"]) is not None:
            found.append(T)
    return found


def _taus(budgets: Budgets, now: Settings) -> list[float]:
    """Forty fitness values from low to the best."""
    values = budgets.outlook(now["task"], now["model"]).fitness.values[:, 1:]
    known = values[np.isfinite(values)]
    if not known.size:
        return [now["tau"]]
    found = np.linspace(np.quantile(known, 0.05), known.max(), 40)
    return sorted({*np.round(found, 4).tolist(), now["tau"]})


def _nearest(options: Sequence[int], wanted: float) -> int:
    return min(options, key=lambda option: abs(math.log(option / wanted)))


def _costs(split: Split) -> str:
    """Costs in words; units that are not known are named as such."""
    parts, unknown = [f"{split.generations * split.children} calls"], []
    for unit, name in (("tokens", "tokens"), ("flops", "FLOPs"), ("dollars", "dollars")):
        found: Interval | None = split.costs.get(unit)
        if found is None or math.isnan(found.value):
            unknown.append(name)
        elif math.isfinite(found.low):
            value, low, high = map(_number, (found.value, found.low, found.high))
            parts.append(f"{value} {name} [{low}, {high}]")
        else:
            parts.append(f"about {_number(found.value)} {name}")
    return ", ".join(parts) + (f" ({' and '.join(unknown)} unknown)" if unknown else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"
