"""Sweeps post hoc: one row per configuration and seed, and what the rows say of each field.

Configurations of a sweep are run on the same seeds, so seeds are what is resampled: a mean over
configurations is taken for each seed first, and its interval is over these.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evo.handle import read_begun
from evo.sweeping.design import read_design
from evo.sweeping.events import EventLog, Run, State
from evo.sweeping.fields import GENERATIONS, canonical
from evo.sweeping.summary import measure
from replay.intervals import interval

CHILDREN = 16
"""N where nothing says otherwise, as in `evo.run`."""

MOST_LEVELS = 8
"""A field with more values is cut into classes."""

FIGURES = (
    "fitness",
    "initial_fitness",
    "n_calls",
    "n_ok",
    "prompt_tokens",
    "completion_tokens",
    "flops",
    "dollars",
    "seconds",
)
"""Columns of a run's figures, see `evo.sweeping.summary.measure`."""

COSTS = {
    "tokens": "prompt and completion tokens of a run",
    "n_calls": "LLM calls of a run",
    "flops": "FLOPs of a run",
    "dollars": "dollars of a run",
    "seconds": "wall time of a run (s)",
}
"""Costs of a run, with their labels."""


def load_sweep(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Reads a sweep, as far as it has come: one row per configuration and seed.

    Args:
        folder: Of the sweep, or an `evo.Sweep`.

    Returns:
        Columns: configuration (a short hash), trial (the first that proposed it), seed, task,
        model, status (completed, failed, cancelled or pending), done (generations so far),
        generations, children; each field of the space by its own name, NaN or None where its
        condition does not hold; `FIGURES`, NaN unless completed, and `tokens`; log (path) and
        error. `attrs["fields"]` names the fields of the space, `attrs["folder"]` the folder. The
        figures are those of the configuration's own T, though the log may hold more.

    Raises:
        LogError: Not the folder of a sweep, or damaged.
    """
    place = Path(folder)
    design, events = read_design(place), EventLog(place)
    events.refresh()
    state = events.state
    first = {hash_: trial for trial, (_, hash_) in reversed([*enumerate(state.trials)])}
    fields = sorted(dimension.name for dimension in design.parsed_space().dimensions)
    rows = []
    for hash_, values in state.configurations.items():
        known = {canonical(name): value for name, value in {**design.base, **values}.items()}
        T = int(known.get("generations", GENERATIONS))
        for seed in design.seeds:
            row = {
                "configuration": hash_,
                "trial": first[hash_],
                "seed": seed,
                "task": known["task"],
                "model": _shown(known.get("model", "offline")),
                "generations": T,
                "children": known.get("children", CHILDREN),
                **{name: _shown(values.get(name)) for name in fields if name not in OWN},
            }
            rows.append(row | _run(place, state, (hash_, seed), T))
    columns = ["configuration", "trial", "seed", "task", "model", "status", "done"]
    columns += ["generations", "children", *(name for name in fields if name not in OWN)]
    frame = pd.DataFrame(rows, columns=[*columns, *FIGURES, "log", "error"])
    for name in FIGURES:
        frame[name] = frame[name].astype(float)
    at = frame.columns.get_loc("flops")
    assert isinstance(at, int)
    frame.insert(at, "tokens", frame["prompt_tokens"] + frame["completion_tokens"])
    frame.attrs = {"fields": fields, "folder": str(place)}
    return frame


def _run(place: Path, state: State, run: Run, T: int) -> dict[str, Any]:
    """What is known of one run of a sweep."""
    path = place / state.logs[run] if run in state.logs else None
    log = read_begun(path) if path is not None and path.is_file() else None
    rest = "cancelled" if state.ended == "stopped" else "pending"
    status = "failed" if run in state.failed else rest
    row: dict[str, Any] = {"status": status, "done": 0, "error": state.failed.get(run)}
    if log is None:
        return row
    row |= {
        "task": log.header.task.name,
        "model": log.header.model.name,
        "children": log.header.children,
        "done": min(len(log.generations), T),
        "log": str(log.path),
    }
    if row["done"] == T:
        row |= {"status": "completed", "error": None, **measure(log, T)}
    return row


OWN = ("generations", "children", "model", "task")
"""Fields that every row has, whether they are swept or not."""


def _shown(value: Any) -> Any:
    """A value as a cell: of a model its name."""
    if isinstance(value, dict) and "name" in value:
        return value["name"]
    return str(value) if isinstance(value, dict | list) else value


def swept_fields(frame: pd.DataFrame) -> list[str]:
    """Fields of the space that take more than one value in a frame."""
    fields = frame.attrs.get("fields")
    if fields is None:
        raise ValueError("expected a frame as replay.load_sweep makes it: attrs name no fields")
    return [name for name in fields if frame[name].nunique(dropna=False) > 1]


def completed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows whose run is over.

    Raises:
        ValueError: There are none.
    """
    rows = frame[frame["status"] == "completed"]
    if rows.empty:
        raise ValueError("no run of this sweep is completed yet")
    return rows


def by_configuration(
    frame: pd.DataFrame,
    columns: Sequence[str] = ("fitness", "tokens"),
    *,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Means of each configuration over its seeds, with intervals.

    Args:
        frame: Of `load_sweep`.
        columns: What to take the mean of.
        level: Nominal coverage.
        seed: Key of the resampling.

    Returns:
        One row per configuration with a completed run, in order of its trial: configuration, the
        swept fields, n (completed runs with a fitness), and by column `x`, `x_low`, `x_high`; NaN
        limits where n < 2.
    """
    rows = completed(frame)
    fields = swept_fields(frame)
    made = []
    for name, part in rows.sort_values("trial").groupby("configuration", sort=False):
        known = part.dropna(subset=["fitness"])
        row: dict[str, Any] = {"configuration": name, "n": len(known)}
        row |= {field: part.iloc[0][field] for field in fields}
        for column in columns:
            row |= _estimate(column, known[column].to_numpy(np.float64), level, seed)
        made.append(row)
    return pd.DataFrame(made)


def _estimate(name: str, values: np.ndarray, level: float, seed: int) -> dict[str, float]:
    values = values[~np.isnan(values)]
    if not len(values):
        return {name: np.nan, f"{name}_low": np.nan, f"{name}_high": np.nan}
    found = interval(values, level=level)
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def main_effects(
    frame: pd.DataFrame,
    fields: Iterable[str] | None = None,
    *,
    column: str = "fitness",
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """The mean of all runs with one value of a field, by field and value.

    For each seed the mean over the configurations with that value is taken; value and interval are
    over these means, so that runs of one seed may depend on each other. What else differs between
    the configurations is not adjusted for: in a grid it balances, under a strategy that looks for
    the best it does not.

    Args:
        frame: Of `load_sweep`.
        fields: Which; None: all that vary.
        column: What the mean is of.
        level: Nominal coverage.
        seed: Key of the resampling.

    Returns:
        Columns field, setting, value, low, high, seeds, configurations, runs. A field of numbers
        with more than `MOST_LEVELS` values is cut into four classes of about equal size.
    """
    rows = completed(frame).dropna(subset=[column])
    made = []
    for name in swept_fields(frame) if fields is None else fields:
        labels, order = levels(rows[name])
        for setting in order:
            part = rows[(labels == setting).to_numpy()]
            if part.empty:
                continue
            means = part.groupby("seed")[column].mean().to_numpy(np.float64)
            found = _estimate("value", means, level, seed)
            made.append(
                {
                    "field": name,
                    "setting": setting,
                    "value": found["value"],
                    "low": found["value_low"],
                    "high": found["value_high"],
                    "seeds": len(means),
                    "configurations": part["configuration"].nunique(),
                    "runs": len(part),
                }
            )
    return pd.DataFrame(made)


def levels(values: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Labels of a column's values, and their order.

    More than `MOST_LEVELS` numbers are cut into four classes of about equal size; where a field is
    not asked for, the label says so.
    """
    numeric = pd.to_numeric(values, errors="coerce")
    numbers = bool(numeric.notna().eq(values.notna()).all()) and bool(numeric.notna().any())
    if numbers and numeric.nunique() > MOST_LEVELS:
        edges = np.unique(np.nanquantile(numeric, [0, 0.25, 0.5, 0.75, 1]))
        cut = np.clip(np.searchsorted(edges, numeric, side="right") - 1, 0, len(edges) - 2)
        names = [f"{_brief(a)} to {_brief(b)}" for a, b in itertools.pairwise(edges)]
        labels = pd.Series([names[k] for k in cut], index=values.index)
    elif numbers:
        names = [f"{value:g}" for value in np.sort(numeric.dropna().unique())]
        labels = numeric.map(lambda value: f"{value:g}", na_action="ignore")
    else:
        names = sorted(map(str, values.dropna().unique()))
        labels = values.map(str, na_action="ignore")
    labels = labels.where(values.notna(), "not asked")
    return labels, [*names, "not asked"]


def _brief(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def pareto_front(table: pd.DataFrame, cost: str, fitness: str = "fitness") -> pd.DataFrame:
    """Rows that no other row beats in both: cheaper or as cheap, and fitter, or the reverse.

    Args:
        table: For instance of `by_configuration`; rows where either is NaN are left out.
        cost: Column to be low.
        fitness: Column to be high.

    Returns:
        The rows, by cost. Being the best of many, their means flatter them.
    """
    known = table.dropna(subset=[cost, fitness])
    ordered = known.sort_values([cost, fitness], ascending=[True, False], kind="stable")
    best = ordered[fitness].cummax().shift(fill_value=-np.inf)
    return ordered[ordered[fitness] > best]
