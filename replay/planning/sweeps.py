"""Sweeps and selections post hoc: what runs of configurations say, and which one wins.

Configurations of a sweep are run on the same seeds, so seeds are what is resampled: a mean over
configurations is taken for each seed first, and its interval is over these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from evo.logs.types import JsonObject
from evo.policies import Draws
from evo.policies.base import Bools, Floats, Ints
from evo.studies.selection import (
    IntervalKind,
    SelectorClass,
    Terms,
    find_selector,
    neighbours,
    selector_name,
)
from evo.studies.selection.race import (
    LoggedSamples,
    Races,
    Selection,
    Standing,
    race,
    rewards_of,
    selection_of,
)
from evo.warning import warn
from replay.logs.columns import settings_that_vary
from replay.logs.frames import counted_once, possible_in
from replay.logs.given import check_loaded
from replay.statistics.intervals import Bounds
from replay.statistics.intervals import interval as interval_of

Missing = Literal["drop", "stop"]

MOST_LEVELS = 8
"""A field with more values is cut into classes."""

COST_LABELS = {
    "tokens": "prompt and completion tokens of a run",
    "n_calls": "LLM calls of a run",
    "flops": "FLOPs of a run",
    "dollars": "dollars of a run",
    "seconds": "wall time of a run (s)",
}
"""Costs of a run, with their labels."""


def swept_fields(frame: pd.DataFrame) -> list[str]:
    """Fields of the space that take more than one value in a frame."""
    if "fields" not in frame.attrs:
        raise ValueError("expected a frame as replay.load_sweep makes it: attrs name no fields")
    return [n for n in frame.attrs["fields"] if frame[n].nunique(dropna=False) > 1]


def completed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows whose run is over; there must be some."""
    if "status" not in frame:
        raise ValueError("expected a frame as replay.load_sweep makes it: no column 'status'")
    rows = frame[frame["status"] == "completed"]
    if rows.empty:
        raise ValueError(
            "none of these runs is completed yet" if len(frame) else "there are no runs here"
        )
    return rows


def by_configuration(
    frame: pd.DataFrame,
    columns: Sequence[str] = ("fitness", "tokens"),
    *,
    level: float = 0.95,
) -> pd.DataFrame:
    """Means of columns of `load_sweep` for each configuration over its seeds, with intervals.

    Returns:
        One row per configuration with a completed run, in order of its trial: configuration, the
        swept fields, n (completed runs with a fitness), and by column `x`, `x_low`, `x_high`; NaN
        limits below five runs.
    """
    rows = completed(frame).sort_values("trial", kind="stable")
    number, names = pd.factorize(rows["configuration"])
    known = rows["fitness"].notna().to_numpy()
    first = np.unique(number, return_index=True)[1]
    made = {"configuration": names, "n": np.bincount(number[known], minlength=len(names))}
    made |= {field: rows[field].iloc[first].array for field in swept_fields(frame)}
    for column in columns:
        values = np.where(known, rows[column].to_numpy(np.float64), np.nan)
        found = interval_of(
            _beside(values, number, len(names)), level=level, missing="omit",
            bounds=_bounds(rows, column),
        )  # fmt: skip
        made |= {column: found.value, f"{column}_low": found.low, f"{column}_high": found.high}
    return pd.DataFrame(made)


def _bounds(rows: pd.DataFrame, column: str) -> Bounds | None:
    """Lowest and highest value of a column that there is: costs are never negative.

    Bounds beyond which a run lies are none, and neither is a best published fitness of 1.
    """
    if column in COST_LABELS:
        return 0.0, math.inf
    within = possible_in(rows) if column == "fitness" else None
    if within is None:
        return None
    values = rows[column]
    low, high = within
    if "unit_scale" not in rows or not rows["unit_scale"].eq(True).all():
        high = math.inf
    return (
        -math.inf if (values < low).any() else low,
        math.inf if (values > high).any() else high,
    )


def _beside(values: Floats, number: Ints, count: int) -> Floats:
    """The known values of each group in a column of its own, filled up with NaN."""
    kept = np.flatnonzero(~np.isnan(values))
    ordered = kept[np.argsort(number[kept], kind="stable")]
    size = np.bincount(number[kept], minlength=count)
    place = np.arange(len(ordered)) - np.repeat(np.cumsum(size) - size, size)
    made = np.full((max(1, size.max(initial=0)), count), np.nan)
    made[place, number[ordered]] = values[ordered]
    return made


def main_effects(
    frame: pd.DataFrame,
    fields: Iterable[str] | None = None,
    *,
    column: str = "fitness",
    level: float = 0.95,
) -> pd.DataFrame:
    """The mean of all runs with one value of a field, by field and value.

    For each seed the mean over the configurations with that value is taken; value and interval are
    over these means, so that runs of one seed may depend on each other. What else differs between
    the configurations is not adjusted for: in a grid it balances, under a strategy that looks for
    the best it does not. A field of numbers with more than `MOST_LEVELS` values is cut into four
    classes of about equal size. `fields` are by default all that vary.
    """
    check_loaded("main_effects", frame, "replay.load_sweep")
    rows = completed(frame).dropna(subset=[column])
    values, (seed, seeds) = rows[column].to_numpy(np.float64), pd.factorize(rows["seed"])
    (configuration, _), bounds = pd.factorize(rows["configuration"]), _bounds(rows, column)
    made: list[tuple[object, ...]] = []
    for name in swept_fields(frame) if fields is None else fields:
        labels, order = levels(rows[name])
        order = [setting for setting in order if (labels == setting).any()]
        if not order:
            continue
        number = pd.Index(order).get_indexer_for(pd.Index(labels))
        cells = number * len(seeds) + seed
        runs = np.bincount(cells, minlength=len(order) * len(seeds))
        sums = np.bincount(cells, weights=values, minlength=len(order) * len(seeds))
        means = np.where(runs > 0, sums / np.maximum(runs, 1), np.nan)
        by_setting = np.repeat(np.arange(len(order)), len(seeds))
        found = interval_of(
            _beside(means, by_setting, len(order)), level=level, missing="omit", bounds=bounds
        )
        for k, setting in enumerate(order):
            limits = (found.value[k], found.low[k], found.high[k], found.n[k])
            there = np.unique(configuration[number == k]).size
            made.append((name, setting, *limits, there, int((number == k).sum())))
    columns = ["field", "setting", "value", "low", "high", "seeds", "configurations", "runs"]
    return pd.DataFrame(made, columns=columns)


def levels(values: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Labels of a column's values, and their order; many numbers are cut into four classes."""
    numeric = pd.to_numeric(values, errors="coerce")
    numbers = bool(numeric.notna().eq(values.notna()).all()) and bool(numeric.notna().any())
    if numbers and numeric.nunique() > MOST_LEVELS:
        edges = np.unique(np.nanquantile(numeric, [0, 0.25, 0.5, 0.75, 1]))
        cut = np.clip(np.searchsorted(edges, numeric, side="right") - 1, 0, len(edges) - 2)
        brief = [f"{edge:,.0f}" if abs(edge) >= 100 else f"{edge:.3g}" for edge in edges]
        names = [f"{low} to {high}" for low, high in itertools.pairwise(brief)]
        labels = pd.Series([names[k] for k in cut], index=values.index)
    elif numbers:
        names = [f"{value:g}" for value in np.sort(numeric.dropna().unique())]
        labels = numeric.map(lambda value: f"{value:g}", na_action="ignore")
    else:
        names = sorted(map(str, values.dropna().unique()))
        labels = values.map(str, na_action="ignore")
    labels = labels.where(values.notna(), "not asked")
    return labels, [*names, "not asked"]


def pareto_front(table: pd.DataFrame, cost: str) -> pd.DataFrame:
    """Rows that no other row beats in both: cheaper or as cheap, and fitter, or the reverse.

    By cost; rows where either is NaN are left out. Being the best of many, their means flatter.
    """
    known = table.dropna(subset=[cost, "fitness"])
    ordered = known.sort_values([cost, "fitness"], ascending=[True, False], kind="stable")
    best = ordered["fitness"].cummax().shift(fill_value=-np.inf)
    return ordered[ordered["fitness"] > best]


_PAIRS = 2_000_000
"""Pairs of configurations, over replicates, that are raced at once; only memory depends on it."""


def select(
    data: pd.DataFrame | npt.ArrayLike,
    *,
    selector: str | SelectorClass = "arm_elimination",
    parameters: Mapping[str, object] | None = None,
    delta: float = 0.05,
    batch: int = 1,
    bounds: tuple[float, float] | None = None,
    failure_value: float | None = None,
    interval: IntervalKind = "anytime",
    c: float = 1.0,
    fields: Sequence[str] | None = None,
    value: str | None = None,
    sample: str = "seed",
    orders: Mapping[str, Sequence[object]] | None = None,
    missing: Missing = "drop",
    shuffles: int = 0,
    seed: int = 0,
) -> Selection:
    """Plays a selection over samples that were logged: who wins, and after how many samples.

    Sample i of every configuration is paired: the same seed, or the same problem of a data set.
    With `shuffles`, the same is done under other orders of the samples, since what suffices
    depends on which came first.

    Args:
        data: (configurations, samples), NaN for a failure; or a frame, such as `replay.load` makes,
            in which a run counts with its last generation and a missing value is a failure; of a
            sweep's (`replay.load_sweep`) the runs that are completed or failed count.
        selector: Name, or a callable (shape, terms, *, rng) -> selector.
        parameters: Of the selector, such as {"threshold": 0.9} or {"epsilon": 0.01}.
        delta: Probability with which the winner may be wrong.
        batch: Samples of a configuration in a round, at least.
        bounds: Least and largest reward there is; what lies outside is clipped and counted. None:
            [0, 1], in which most outcomes then have to lie.
        failure_value: What a failure counts; None: the lower bound.
        interval: `anytime`, or `compat` for mean +- c * SE, which is wrong far more often.
        c: Standard errors, for `compat`.
        fields: Columns that name a configuration; None: all that vary and are no measure.
        value: Column of the reward; None: best_fitness, else fitness.
        sample: Column that pairs samples.
        orders: Of the values of a field, for `hill_climbing`; otherwise numbers go by size.
        missing: What to do about seeds that some configurations lack. `drop`: leave them out and
            warn. `stop`: end the race where one is asked for (logs of live selections).
        shuffles: Other orders of the samples to try.
        seed: Of the selector and the shuffles.

    Raises:
        ValueError: An argument out of range, a frame without what it needs, or no common samples.

    Example:
        >>> scores = np.array([[1.0] * 200, [0.0] * 200])
        >>> replay.select(scores).winner
        0
    """
    check_loaded("select", data, "replay.load_sweep", numbers=True)
    outcomes, sizes, costs, configurations = _samples(data, fields, value, sample, missing)
    low, high = (0.0, 1.0) if bounds is None else bounds
    terms = Terms(
        size=outcomes.shape[1], batch=batch, delta=delta, low=float(low), high=float(high),
        interval=interval, c=c,
        neighbours=neighbours(configurations, orders) if configurations else None,
    )  # fmt: skip
    if shuffles and (sizes < outcomes.shape[1]).any():
        raise ValueError("shuffles: some configurations lack samples, leave them out (missing)")
    build = find_selector(selector, **(parameters or {}))
    rewards = rewards_of(outcomes, terms, failure_value, stated=bounds is not None)
    shuffler = np.random.default_rng([seed, 1])
    size, count = terms.size, 1 + shuffles
    ranks = np.stack([np.arange(size), *(shuffler.permutation(size) for _ in range(shuffles))])
    piece = max(1, _PAIRS // len(outcomes) ** 2)
    parts: list[Races] = []
    rounds: list[Standing] = []
    for first in range(0, count, piece):
        ordered = np.moveaxis(rewards[:, ranks[first : first + piece]], 1, 0)
        chooser = build(ordered.shape[:2], terms, rng=Draws(seed + first, len(ordered)))
        logged = LoggedSamples(ordered, sizes=sizes, costs=costs)
        parts.append(race(chooser, logged, watcher=None if first else rounds.append))
    labels = [
        ", ".join(f"{k}={v}" for k, v in each.items() if not pd.isna(v)) for each in configurations
    ] or [f"configuration {k}" for k in range(len(outcomes))]
    return selection_of(
        parts[0], rounds, outcomes, terms, labels=tuple(labels), selector=selector_name(build),
        more=parts[1:],
    )  # fmt: skip


def _samples(
    data: pd.DataFrame | npt.ArrayLike,
    fields: Sequence[str] | None,
    value: str | None,
    sample: str,
    missing: Missing,
) -> tuple[Floats, Ints, dict[str, Floats], list[JsonObject]]:
    """Outcomes (configurations, samples), samples of each, costs, and configurations' fields."""
    if missing not in ("drop", "stop"):
        raise ValueError(f"expected missing to be 'drop' or 'stop', got {missing!r}")
    if not isinstance(data, pd.DataFrame):
        matrix = np.asarray(data, dtype=np.float64)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(
                f"expected rewards of shape (configurations, samples), got shape {matrix.shape!r}"
            )
        return matrix, np.full(len(matrix), matrix.shape[1]), {}, []  # no costs, no fields
    frame = counted_once(data)
    value = value or ("best_fitness" if "best_fitness" in frame else "fitness")
    if fields is None and "fields" in frame.attrs:  # a sweep's
        frame = frame[frame["status"].isin(["completed", "failed"])]
        fields = swept_fields(frame)
    if fields is None:
        fields = settings_that_vary(frame, beside=(value, sample))
    if absent := [name for name in (sample, value, *fields) if name not in frame]:
        known = ", ".join(map(str, frame))
        raise ValueError(f"expected a column {absent[0]!r}, got columns {known}")
    if not fields:
        raise ValueError("fields: no column tells configurations apart; name some")
    keys = [*fields, sample]
    frame = frame.reset_index(drop=True)
    last = _last_rows(frame, keys)
    if last.duplicated(keys).any():
        twice = last.loc[last.duplicated(keys), keys].iloc[0].to_dict()
        raise ValueError(f"two rows of {twice}; name all fields that differ, got {list(fields)}")
    place = last.groupby(list(fields), sort=False, dropna=False).ngroup().to_numpy()
    index = pd.MultiIndex.from_arrays([place, last[sample]])

    def table(column: pd.Series[Any]) -> Floats:
        return column.set_axis(index).unstack().to_numpy(np.float64)

    distinct = last[list(fields)].drop_duplicates().rename(columns=str)
    configurations: list[JsonObject] = distinct.to_dict("records")  # type: ignore[assignment]
    kept, sizes = _common(table(pd.Series(1.0, last.index)) == 1, missing)
    costs: dict[str, Floats] = {}
    if "n_calls" in frame:
        total = frame.groupby(keys, dropna=False)["n_calls"].sum(min_count=1)
        costs["calls"] = table(last.join(total.rename("calls_"), on=keys)["calls_"])[:, kept]
    return table(last[value])[:, kept], sizes, costs, configurations


def _last_rows(frame: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The last generation of each run, in the order of the frame; all rows if it has none."""
    if "generation" not in frame:
        return frame
    ordered = frame.sort_values("generation", kind="stable")
    return ordered.groupby(list(keys), dropna=False).tail(1).sort_index()


def _common(present: Bools, missing: Missing) -> tuple[Bools, Ints]:
    """Which samples are used, and how many each configuration has of them."""
    common: Bools = np.asarray(present.all(axis=0))
    sizes: Ints = np.full(len(present), common.sum())
    if missing == "stop":
        sizes, common = np.cumprod(present, axis=1).sum(axis=1), np.ones_like(common)
    if (sizes == 0).any():
        raise ValueError(
            "no sample is common to all configurations; leave out those of few samples"
        )
    if lost := int((~common).sum()):
        message = f"{lost} of {common.size} samples are not of all configurations and are left out"
        warn(message)
    return common, sizes
