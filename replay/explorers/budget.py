"""The budget explorer: what a split of a budget into depth and breadth is worth and costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from replay.explorers.browser_explorer import BrowserExplorer, BrowserSpec
from replay.explorers.budget_arrays import pack
from replay.explorers.budget_data import (
    MAPS,
    UNITS,
    CostAxis,
    Outlook,
    axes_of,
    inside,
    known_units,
    outlook,
)
from replay.explorers.budget_picture import draw_budget
from replay.explorers.budget_values import rounded_down
from replay.explorers.budget_view import BudgetView
from replay.explorers.chart_explorer import notice
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import Settings, call
from replay.explorers.widgets import naming
from replay.logs.columns import FAMILY
from replay.logs.frames import distinct_runs, independent_runs, models_apart, unrepeated
from replay.logs.given import check_loaded
from replay.plots.style import Theme

if TYPE_CHECKING:
    import pandas as pd

HELP = (
    "Spend a budget of C = T N calls for children deep (many generations T) or broad (many N). "
    "Moving T or N keeps C, to the nearest split of C; moving C keeps N. Point at the picture for "
    "numbers, click on a cell to choose it and to see its runs; click on a run to draw it. Drag "
    "over the curves to zoom, double-click to see all."
)


MOST_DEPTHS = 64
"""Depths of runs, beside the powers of two, that can be chosen at most."""


class Budgets:
    """All that the explorer needs of a frame: the outlooks of its tasks and models.

    A model stands once for each search, where a task and model have runs of several.
    """

    def __init__(self, frame: pd.DataFrame, children: pd.DataFrame | None) -> None:
        if "generation" not in frame or not (frame["generation"] > 0).any():
            raise ValueError("no run has a complete generation yet: there is no split to show")
        frame = unrepeated(frame)
        self._children = children
        self._parts = {
            (str(task), str(model)): part
            for (task, model), part in frame.groupby(["task", models_apart(frame)], sort=False)
            if (part["generation"] > 0).any()
        }
        self.pairs = list(self._parts)  # each task and model
        self._independent: dict[tuple[str, str], pd.DataFrame] = {}
        self._known: dict[tuple[str, str], Outlook] = {}
        self._packed: tuple[tuple[str, str], float, bool] | None = None  # what the page has
        self.runs = list(dict.fromkeys(map(str, frame["run"].unique())))
        found = [
            axes_of(_deepest(part), predicted=self._holes(part)) for part in self._parts.values()
        ]
        self.rows = sorted({N for rows, *_ in found for N in rows})
        reached = {T for part in self._parts.values() for T in _depths(part)}
        self.columns = sorted(reached.union(*(columns for _, columns, _ in found)))  # each T
        self._largest = max(most for *_, most in found)
        self.calls = self._budgets()  # each budget

    def _budgets(self) -> list[int]:
        every = {T * N for T in self.columns for N in self.rows}
        return sorted(calls for calls in every if calls <= self._largest)

    def offer(self, T: object) -> None:
        """Make a number of generations one to choose, if some run has reached it."""
        reached = max(int(part["generation"].max()) for part in self._parts.values())
        if isinstance(T, int) and 1 <= T <= reached and T not in self.columns:
            self.columns = sorted([*self.columns, T])
            self.calls = self._budgets()

    def outlook(self, now: Settings) -> Outlook:
        """What is known of a task and model; predictions are there after `predict`."""
        key = now["task"], now["model"]
        if key not in self._parts:
            raise ValueError(f"no runs of {key[0]!r} by {key[1]!r}; there are {self.pairs}")
        if key not in self._known:
            self._known[key] = outlook(self._alone(key), None, model=key[1])
        return self._known[key]

    def _alone(self, key: tuple[str, str]) -> pd.DataFrame:
        """The independent runs of a task and model; which others there are is said once."""
        if key not in self._independent:
            runs = independent_runs(distinct_runs(self._parts[key]))
            self._independent[key] = runs.drop(columns="forked_from", errors="ignore")
        return self._independent[key]

    def predict(self, now: Settings) -> None:
        """Fit what predicts splits that nobody ran, where there are any inside what was logged."""
        known, key = self.outlook(now), (now["task"], now["model"])
        if known.kernel is None and self._holes(self._parts[key]):
            from replay.logs.tables import children as read

            part, table = self._parts[key], self._children
            if table is None:
                table = read(*part["source"].unique(), progress=False)
            else:
                for name in (name for name in FAMILY if name != "children"):
                    if name in table and name in part:
                        table = table[table[name] == part[name].iloc[0]]
            self._known[key] = outlook(self._alone(key), table, model=key[1])

    def _holes(self, part: pd.DataFrame) -> bool:
        """Whether there are children to predict from, and a split inside that nobody ran."""
        if self._children is None and not _has_logs(part):
            return False
        runs = part.groupby("run", sort=False)[["children", "generation"]].max()
        sizes, depths = runs["children"].to_numpy(), runs["generation"].to_numpy()
        deepest = _deepest(part)
        rows, columns, _ = axes_of(deepest, predicted=True)
        return any(
            deepest.get(N, 0) < T and inside(sizes, depths, T, N) for N in rows for T in columns
        )

    def defaults(self, now: Settings) -> Settings:
        """A middling choice for a task and model, and what half the runs reach in the end.

        Its budget was split in two ways, if any was.
        """
        known = self.outlook(now)
        rows, columns, _ = axes_of(known.depths, predicted=False)
        splits = [(T, N) for N in rows for T in columns if known.depths[N] >= T]
        ways = Counter(T * N for T, N in splits)
        T, N = max(
            splits,
            key=lambda split: (ways[math.prod(split)] > 1, min(split), math.prod(split)),
        )
        final = np.fmax.reduce(known.fitness.values, axis=1)
        final = final[np.isfinite(final)]
        tau = rounded_down(final) if final.size else 0.9
        return {"generations": T, "children": N, "calls": T * N, "tau": tau}

    def begins(self, given: Settings) -> Settings:
        """What is asked for, with what goes with it."""
        task = given.get("task", self.pairs[0][0])
        model = given.get("model", next((m for t, m in self.pairs if t == task), ""))
        now = {"task": task, "model": model}
        now |= {"axis": "calls", "map": "fitness", "runs": [], **self.defaults(now), **given}
        now["runs"] = list(now["runs"])
        T, N, C = now["generations"], now["children"], now["calls"]
        if "calls" not in given:
            depths = self.outlook(now).depths
            if "children" not in given and depths[N] < T:  # the largest N that is so deep
                N = max((n for n, depth in depths.items() if depth >= T), default=N)
            return now | {"children": N, "calls": T * N}
        if "children" not in given and "generations" not in given:
            return self.adjust("calls", now)
        T, N = (T if "generations" in given else C // N), (N if "children" in given else C // T)
        if T * N != C:
            raise ValueError(f"expected C = T * N, got T = {T!r}, N = {N!r} and C = {C!r}")
        return now | {"generations": T, "children": N}

    def adjust(self, moved: str, settings: Settings) -> Settings:
        """Settings that fit together after one of them was moved."""
        if moved in ("task", "model"):
            place = ("task", "model").index(moved)
            pairs = [pair for pair in self._parts if pair[place] == settings[moved]]
            if not pairs:
                return settings
            if (settings["task"], settings["model"]) not in pairs:  # another one goes with it
                settings = settings | dict(zip(("task", "model"), pairs[0], strict=True))
            runs = [each for each in settings["runs"] if each in self.outlook(settings).names]
            return settings | self.defaults(settings) | {"runs": runs}
        return link(moved, settings, self.rows, self.columns)

    def units(self) -> list[CostAxis]:
        """The cost axes that are known of any task and model."""
        known = {unit for part in self._parts.values() for unit in known_units(part)}
        return [axis for axis in UNITS if axis in {"generation", "calls", *known}]

    def complete(self, now: Settings) -> bool:
        """Predict what is missing; returns whether the page lacks any of it."""
        key = now["task"], now["model"]
        self.predict(now)
        wanted = (key, now["tau"], self.outlook(now).kernel is not None)
        return wanted[2] and self._packed != wanted

    def pack(self, now: Settings, options: Mapping[str, Any], theme: Theme, named: str) -> bytes:
        """Everything that the browser draws of a task and model."""
        known = self.outlook(now)
        fitted = known.kernel is not None
        self._packed = ((now["task"], now["model"]), now["tau"], fitted)
        shown = {**options, "axis": [(UNITS[axis], axis) for axis in options["axis"]]}
        about = {
            "task": now["task"],
            "model": now["model"],
            "theme": theme,
            "named": named,
            "fitted": fitted,
            "options": {name: shown[name] for name in shown if name not in ("tau", "runs")},
        }
        return pack(known, rows=self.rows, columns=self.columns, tau=now["tau"], about=about)

    def view(self, now: Settings) -> BudgetView:
        """One choice, with the splits twice as deep and twice as broad."""
        known, axis, tau = self.outlook(now), now["axis"], now["tau"]
        T, N = now["generations"], now["children"]
        chosen = known.split(T, N, axis=axis, tau=tau)
        if chosen is None:
            why = "it is too far from what was logged to be predicted"
            if known.kernel is None:
                why = "nothing is predicted here, or not yet"
            raise ValueError(f"T = {T}, N = {N} was never run, and {why}")
        deeper = known.split(2 * T, N // 2, axis=axis, tau=tau) if N % 2 == 0 else None
        broader = known.split(T // 2, 2 * N, axis=axis, tau=tau) if T % 2 == 0 else None
        splits = chosen, deeper, broader
        runs = tuple(known.one_run(each, axis) for each in now["runs"] if each in known.names)
        return BudgetView(
            outlook=known, axis=axis, tau=tau, splits=splits, runs=runs, map=now["map"]
        )


def _depths(frame: pd.DataFrame) -> list[int]:
    """The generations that runs have reached, as long as these are not too many to choose from."""
    depths = sorted(set(frame.groupby("run")["generation"].max().tolist()) - {0})
    return depths if len(depths) <= MOST_DEPTHS else depths[-1:]


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

    Moving T or N keeps C and goes to the split of C that is closest, if C has another; a value that
    does not divide C keeps the other one. Moving C keeps N if it can.
    """
    T, N, C = settings["generations"], settings["children"], settings["calls"]
    if moved in ("generations", "children", "calls") and T * N != C:
        splits = [(C // n, n) for n in rows if C % n == 0 and C // n in columns]
        part, want = (0, T) if moved == "generations" else (1, N)
        if moved == "calls" or (len(splits) > 1 and (C % want == 0 or want > C)):
            T, N = min(splits, key=lambda split: abs(math.log(split[part] / want)))
    return {**settings, "generations": T, "children": N, "calls": T * N}


def stated(settings: Settings) -> Settings:
    """Settings without runs where none is chosen, and without the usual map."""
    usual = {"runs": [], "map": "fitness"}
    return {name: value for name, value in settings.items() if usual.get(name) != value}


def explore_budget(
    frame: pd.DataFrame,
    *,
    child_table: pd.DataFrame | None = None,
    theme: Theme = "neutral",
    **begins: Any,
) -> Explorer:
    """Move along budgets with sliders: fitness, probability to reach tau and cost of each split.

    Args:
        frame: Rows of `replay.load`.
        child_table: Rows of `replay.children`, for predictions; None reads them from the logs that
            the frame names, where they are still there.
        theme: Inks; `neutral` suits light and dark pages alike.
        **begins: Where its controls begin: task, model, generations (T), children (N), calls (C =
            T N), axis (what curves are drawn against: generation, calls, tokens, flops or dollars),
            map (what colours mean: fitness, or behind, the mean less that of the best split of the
            same budget), tau (the fitness to reach; otherwise what half the runs reach) and runs
            (drawn one by one beside the means).

    Raises:
        ValueError: No such runs, or a split that was not logged and cannot be predicted.

    Example:
        >>> type(replay.explorers.explore_budget(frame)).__name__
        'BrowserExplorer'
    """
    check_loaded("explore_budget", frame, "replay.load")
    try:
        budgets = Budgets(frame, child_table)
    except ValueError as error:
        return notice("budget", error, theme)
    start = budgets.begins(begins)
    budgets.offer(start["generations"])
    if begins:
        budgets.predict(start)
    tasks, models = (list(dict.fromkeys(part)) for part in zip(*budgets.pairs, strict=True))
    named = naming(frame)
    options: dict[str, Sequence[Any] | None] = {
        "generations": budgets.columns,
        "children": budgets.rows,
        "calls": budgets.calls,
        "tau": None,
        "axis": budgets.units(),
        "map": list(MAPS),
        "task": tasks,
        "model": models,
        "runs": budgets.runs,
    }
    order = {name: start[name] for name in options if name in start}
    spec = BrowserSpec(
        name="budget",
        options=options,
        view=lambda now, coarse: budgets.view(now),
        pack=lambda now: budgets.pack(now, options, theme, named()),
        same=lambda one, other: all(one[name] == other[name] for name in ("task", "model")),
        figure=lambda view, theme: draw_budget(cast("BudgetView", view), theme),
        adjust=budgets.adjust,
        slow=budgets.complete,
        code=lambda now: call("explore_budget", named(), stated(now)),
        lists=("runs",),
        theme=theme,
    )
    return BrowserExplorer(spec, help=HELP, begins={**order, **start})
