"""The sweep explorer: a sweep's runs, filtered by the values of their fields."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.explorers.chart_explorer import ChartExplorer, notice
from replay.explorers.explorer import Explorer
from replay.explorers.explorer_spec import ExplorerSpec, Settings, call
from replay.explorers.widgets import choice, name_of, several
from replay.logs.given import check_loaded
from replay.planning.sweeps import (
    COST_LABELS,
    by_configuration,
    completed,
    levels,
    main_effects,
    pareto_front,
    swept_fields,
)
from replay.plots import charts
from replay.plots.chart import Chart
from replay.plots.style import Theme
from replay.plots.sweep_tables import seed_intervals
from replay.plots.sweeps import cost_and_front
from replay.statistics.numbers import with_limits

if TYPE_CHECKING:
    import pandas as pd
    from ipywidgets import Widget
    from numpy.typing import NDArray

HELP = (
    "Choose values of the swept fields to see only their runs; where none is chosen, all count. "
    "The numbers in brackets are the completed runs that the other filters leave."
)
MEASURES = {"fitness": "best fitness", "n_ok": "children with a fitness", **COST_LABELS}
WHERE = "where "
"""Begins the name of a filter's control; the rest is the field's."""

KEPT = 32
"""Views that are kept in memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SweepView:
    """The view for one setting of the controls."""

    whole: pd.DataFrame  # rows of the sweep
    rows: pd.DataFrame  # those that the filters leave
    figure: str  # name in `FIGURES`
    measure: str  # the column whose main effects are shown
    cost: str  # on the horizontal axis, beside fitness

    @functools.cached_property
    def words(self) -> str:
        """Counts, and the best configuration among those chosen."""
        counts = self.rows["status"].value_counts()
        of = self.whole["configuration"].nunique()
        text = [
            f"{self.rows['configuration'].nunique()} of {of} configurations, "
            f"{counts.get('completed', 0)} of {len(self.whole)} runs completed"
            + "".join(f", {n} {name}" for name, n in counts.items() if name != "completed")
            + "."
        ]
        if counts.get("completed", 0):
            table = by_configuration(self.rows, ["fitness"]).dropna(subset=["fitness"])
            none = "No run has a fitness."
            text.append(none if table.empty else _best(table, swept_fields(self.rows)))
        return " ".join(text)

    @functools.cached_property
    def chart(self) -> Chart:
        """The chart, or why there is none."""
        try:
            return FIGURES[self.figure][0](self)
        except ValueError as why:
            return Chart(message=str(why))

    def table(self) -> pd.DataFrame:
        """The numbers that the figure shows; of runs that are not over, the rows."""
        if not (self.rows["status"] == "completed").any():
            return self.rows
        return FIGURES[self.figure][1](self)


def _best(table: pd.DataFrame, fields: list[str]) -> str:
    """The best mean fitness, in words."""
    row = table.iloc[int(table["fitness"].argmax())]
    name = ", ".join(f"{f}={row[f]}" for f in fields if row[f] is not None and row[f] == row[f])
    low, high = row["fitness_low"], row["fitness_high"]
    sure = f"{row['fitness']:z.4f}, no interval, n = {row['n']} seed"
    sure += "s" if row["n"] != 1 else ""
    if np.isfinite(low):
        limits = with_limits(row["fitness"], low, high, "{:z.4f}".format)
        sure = f"{limits}, {seed_intervals(row['n'])}"
    among = f", the best of {len(table)} and so flattered" if len(table) > 1 else ""
    found = f"{name or row['configuration']}, {sure}{among}"
    return f"Best mean fitness: {found}."


def _by_depth(view: SweepView) -> pd.DataFrame:
    """Means by T and N."""
    import pandas as pd

    parts = []
    for T, part in completed(view.rows).groupby("generations"):
        table = main_effects(part, ["children"]).rename(columns={"setting": "children"})
        table.insert(0, "generations", T)
        parts.append(table.drop(columns="field"))
    return pd.concat(parts, ignore_index=True)


def _by_cost(view: SweepView) -> pd.DataFrame:
    table = by_configuration(view.rows, list(dict.fromkeys(["fitness", view.cost])))
    return table.assign(front=table.index.isin(pareto_front(table, view.cost).index))


FIGURES: dict[str, tuple[Callable[[SweepView], Chart], Callable[[SweepView], pd.DataFrame]]] = {
    "main effects": (
        lambda view: charts.main_effects(view.rows, column=view.measure),
        lambda view: main_effects(view.rows, column=view.measure),
    ),
    "configurations": (
        lambda view: charts.parallel_coordinates(view.rows),
        lambda view: by_configuration(view.rows),
    ),
    "depth and breadth": (
        lambda view: charts.depth_breadth_slice(view.rows),
        _by_depth,
    ),
    "cost and fitness": (
        lambda view: cost_and_front(view.rows, cost=view.cost),
        _by_cost,
    ),
}
"""By name: the chart of a view, and the table of what is drawn."""


class Filters:
    """The fields by which a sweep's rows can be chosen."""

    def __init__(self, frame: pd.DataFrame) -> None:
        fields = swept_fields(frame)
        completed(frame)
        self.frame = frame
        self._done = (frame["status"] == "completed").to_numpy()
        self.labels: dict[str, NDArray[np.object_]] = {}
        self.order: dict[str, list[str]] = {}  # likewise: the labels there are, in order
        for name in fields:
            labels, order = levels(frame[name])
            self.labels[name] = labels.to_numpy()
            self.order[name] = [each for each in order if (labels == each).any()]
        if frame["seed"].nunique() > 1:
            self.labels["seed"] = frame["seed"].map(str).to_numpy()
            self.order["seed"] = [str(seed) for seed in sorted(frame["seed"].unique())]

    def chosen(self, where: Mapping[str, Iterable[object]]) -> NDArray[np.bool_]:
        """Which rows have one of the chosen values of each field, (rows,) bool."""
        kept = np.ones(len(self.frame), dtype=bool)
        for name, values in where.items():
            if name not in self.labels:
                raise ValueError(
                    f"where: expected fields among {', '.join(self.labels) or 'none'}, got {name!r}"
                )
            wanted = [_label(value) for value in values]
            if unknown := [label for label in wanted if label not in self.order[name]]:
                raise ValueError(
                    f"where: {name} is among {', '.join(self.order[name])}, got {unknown[0]!r}"
                )
            if wanted:
                kept &= np.isin(self.labels[name], wanted)
        return kept

    def options(
        self, name: str, where: Mapping[str, Iterable[object]]
    ) -> tuple[tuple[str, str], ...]:
        """Values of a field for its control, with the completed runs that other filters leave."""
        others = {field: values for field, values in where.items() if field != name}
        rows = self.labels[name][self.chosen(others) & self._done]
        return tuple((f"{each}  ({(rows == each).sum()})", each) for each in self.order[name])

    def values_of(self, configuration: str) -> dict[str, tuple[str, ...]]:
        """The value of each field, and any seed, of a configuration."""
        rows = (self.frame["configuration"] == configuration).to_numpy()
        return {
            name: () if name == "seed" else (str(labels[rows][0]),)
            for name, labels in self.labels.items()
        }

    def known(self, names: Iterable[str]) -> list[str]:
        """Those of some columns that are known of any run."""
        return [name for name in names if name in self.frame and self.frame[name].notna().any()]


def _label(value: object) -> str:
    """A value of a field as `levels` names it."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def explore_sweep(
    frame: pd.DataFrame,
    *,
    where: Mapping[str, Iterable[object]] | None = None,
    theme: Theme = "neutral",
    **begins: Any,
) -> Explorer:
    """Shows what a sweep found, for the values of its fields that one chooses.

    Args:
        frame: Of `replay.load_sweep`.
        where: By field, or `seed`: the values to keep at first, such as {"children": [4, 8]}.
            Fields of many numbers are in classes, which go by their names.
        theme: Inks; `neutral` suits light and dark pages alike.
        **begins: Where its controls begin: figure (main effects, configurations, depth and breadth,
            or cost and fitness), measure (of main effects: fitness, n_ok, or a cost) and cost (one
            of `replay.planning.sweeps.COST_LABELS`).

    Raises:
        ValueError: There is no such figure, field, value, measure or cost.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1], **settings)
        >>> type(replay.explorers.explore_sweep(replay.load_sweep(made))).__name__
        'ChartExplorer'
    """
    check_loaded("explore_sweep", frame, "replay.load_sweep")
    try:
        filters = Filters(frame)
    except ValueError as error:
        return notice("sweep", error, theme)
    filters.chosen(where or {})
    for name, values in (where or {}).items():
        begins[WHERE + name] = tuple(map(_label, values))

    @functools.lru_cache(maxsize=KEPT)
    def view(**settings: Any) -> SweepView:
        where, rest = _split(settings)
        return SweepView(whole=frame, rows=frame[filters.chosen(where)], **rest)

    def fit(controls: Mapping[str, Widget], settings: Settings) -> None:
        """Counts anew what each value of a field would leave."""
        where, _ = _split(settings)
        for name in filters.order:
            options = filters.options(name, where)
            if controls[WHERE + name].options != options:
                controls[WHERE + name].options = options

    spec = ExplorerSpec(
        name="sweep",
        chart=lambda view: view.chart,
        theme=theme,
        view=lambda settings, coarse: view(**settings),
        code=lambda now: call("explore_sweep", name_of(frame, "frame"), _arguments(now)),
        fit=fit,
        clicked=lambda name: {WHERE + n: v for n, v in filters.values_of(name).items()},
        hidden=_hidden,
        carried=("figure", "measure", "cost", *(WHERE + name for name in filters.order)),
    )
    swept = {"generations", "children"} & set(filters.order)
    drawings = [name for name in FIGURES if name != "depth and breadth" or swept]
    controls = {
        "figure": choice("Figure", drawings, tip="What is drawn"),
        "measure": choice("Mean of", filters.known(MEASURES), tip="What main effects are of"),
        "cost": choice("Cost", filters.known(COST_LABELS), tip="Fitness is drawn against it"),
    }
    for name, order in filters.order.items():
        controls[WHERE + name] = several(
            name, filters.options(name, {}), min(5, max(2, len(order))),
            tip="Ctrl or Shift chooses several; none chosen: all",
        )  # fmt: skip
    return ChartExplorer(spec, controls, help=HELP, begins=begins)


def _split(settings: Settings) -> tuple[Settings, Settings]:
    """The filters by field, and the rest."""
    where = {n.removeprefix(WHERE): v for n, v in settings.items() if n.startswith(WHERE)}
    return where, {n: v for n, v in settings.items() if not n.startswith(WHERE)}


def _arguments(settings: Settings) -> Settings:
    """Arguments of `explore_sweep`."""
    where, rest = _split(settings)
    chosen = {name: values for name, values in where.items() if values}
    return {**rest, **({"where": chosen} if chosen else {})}


def _hidden(settings: Settings) -> set[str]:
    """The measure and the cost matter to one figure each."""
    wanted = {"main effects": "measure", "cost and fitness": "cost"}.get(settings["figure"])
    return {"measure", "cost"} - {wanted}
