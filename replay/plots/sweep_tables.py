"""What the figures of a sweep show: numbers, places and texts, on paper and in the browser alike.

Nothing here draws. Each function makes what one figure shows, or raises `NothingToDrawError` with a
sentence that stands in its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.logs.frames import possible_in
from replay.planning import sweeps
from replay.planning.sweeps import (
    COST_LABELS,
    by_configuration,
    completed,
    pareto_front,
    swept_fields,
)
from replay.plots.limits import held
from replay.plots.style import FITNESS, ranged
from replay.plots.ticks import even_ticks, tick_texts
from replay.statistics.intervals import LEAST, measured
from replay.statistics.numbers import number

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 8
"""Configurations of a Pareto front that are named, the fittest."""

MOST_TICKS = 8
"""Values of a field that are written on its axis of parallel coordinates."""

MOST_ROUND = 5
"""Round values on the axis of mean fitness, at most, and one more."""

MOST_WHOLE = 1e15
"""Below which a whole number is written with all its digits, such as a limit of tokens."""

WIDE = 20
"""Ratio of the largest to the least cost beyond which the axis of cost is logarithmic."""

SHADES = ("#2f6db5", "#5f87a8", "#8f9585", "#c0a54d", "#e3ad00")
"""Colours from the lowest to the highest fitness, which are seen on light and dark pages."""


class NothingToDrawError(ValueError):
    """There is nothing to draw, for the reason that its text gives."""


@dataclass(frozen=True, kw_only=True)
class Effects:
    """The mean of all runs with one value of a field.

    Attributes:
        table: As `replay.planning.sweeps.main_effects` makes it.
        title: A few words.
        about: What is drawn, and from how many seeds.
        x: Label of the axis.
    """

    table: pd.DataFrame
    title: str
    about: str
    x: str


def effects(frame: pd.DataFrame, fields: Sequence[str] | None, column: str) -> Effects:
    """Returns the main effects of fields, by default of all that vary, on a column."""
    table = sweeps.main_effects(frame, fields, column=column)
    if table.empty:
        raise NothingToDrawError("No field of this sweep takes more than one value.")
    return Effects(
        table=table,
        title="Main effects of the swept fields",
        about=f"{seed_means(int(table['seeds'].max())).capitalize()}; n counts runs.",
        x=f"mean {FITNESS if column == 'fitness' else COST_LABELS.get(column, column)}",
    )


@dataclass(frozen=True, kw_only=True)
class Coordinate:
    """One axis of parallel coordinates, of height 1.

    Attributes:
        name: Of the field.
        heights: Where each configuration lies on it.
        ticks: Heights and texts of its values.
    """

    name: str
    heights: list[float]
    ticks: list[tuple[float, str]]


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """Configurations as lines through their values to their mean fitness.

    Attributes:
        table: One row per configuration with a fitness, the fittest first.
        fields: The swept fields, each an axis.
        heights: Columns fitness, fitness_low and fitness_high on the axis of mean fitness.
        ticks: Heights and texts of round values on that axis.
        best: Number of configurations in the best tenth, at least one.
        title: A few words.
        about: What is drawn, and from how many seeds.
    """

    table: pd.DataFrame
    fields: list[Coordinate]
    heights: pd.DataFrame
    ticks: list[tuple[float, str]]
    best: int
    title: str
    about: str


def coordinates(frame: pd.DataFrame) -> Coordinates:
    """Returns the configurations of a sweep as lines through their values."""
    table = by_configuration(frame, ["fitness"]).dropna(subset=["fitness"])
    names = swept_fields(frame)
    if table.empty or not names:
        raise NothingToDrawError("No completed configurations that differ.")
    table = table.sort_values("fitness", ascending=False, kind="stable", ignore_index=True)
    limits, best = table[["fitness", "fitness_low", "fitness_high"]], max(1, len(table) // 10)
    top = limits.iloc[:best]
    shown = held(limits["fitness"], top["fitness_low"], top["fitness_high"], possible_in(frame))
    low, high = float(shown.min()), float(shown.max())
    span = (high - low) or 1.0
    thick = "the best one" if best == 1 else f"the best {best}"
    return Coordinates(
        table=table,
        fields=[_coordinate(name, table[name]) for name in names],
        heights=(limits - low) / span,
        ticks=[((value - low) / span, text) for value, text in even_ticks(low, high, MOST_ROUND)],
        best=best,
        title="Configurations of the sweep",
        about=(
            f"{len(table)} configurations coloured by fitness, {thick} thick; at the right the "
            f"{seed_means(int(table['n'].max()))}. The best of many look better than they are."
        ),
    )


def _coordinate(name: str, values: pd.Series[Any]) -> Coordinate:
    """The axis of a field; few values are evenly spaced."""
    import pandas as pd

    numeric = pd.to_numeric(values, errors="coerce")
    missing = values.isna()
    if numeric.notna().eq(~missing).all() and numeric.nunique() > MOST_TICKS:
        logs = bool((numeric.dropna() > 0).all()) and numeric.max() / numeric.min() > 50
        scaled = np.log(numeric) if logs else numeric
        low, span = scaled.min(), (scaled.max() - scaled.min()) or 1.0
        ticks = [(0.0, number(numeric.min())), (1.0, number(numeric.max()))]
        if missing.any():
            ticks.insert(1, (0.5, "not asked"))
        heights = [0.5 if math.isnan(each) else float(each) for each in (scaled - low) / span]
        return Coordinate(name=name, heights=heights, ticks=ticks)
    known = values.dropna().unique().tolist()
    numbers = all(isinstance(each, int | float) for each in known)
    order = sorted(known) if numbers else sorted(known, key=str)
    labels = [short(each) for each in order]
    if missing.any():
        order, labels = [*order, None], [*labels, "not asked"]
    even = np.linspace(0, 1, len(order)).tolist() if len(order) > 1 else [0.5]
    places = dict(zip(order, even, strict=True))
    return Coordinate(
        name=name,
        heights=[places[None if no else each] for each, no in zip(values, missing, strict=True)],
        ticks=list(zip(even, labels, strict=True))[:: 1 + len(order) // 16],
    )


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Mean fitness by N, with one line per T.

    Attributes:
        table: The main effects of N for each T: columns T (the line's name with its runs), place
            (number of its N among `children`) and those of `replay.planning.sweeps.main_effects`.
        children: Every N, in order.
        title: A few words.
        about: What is drawn, and from how many seeds.
    """

    table: pd.DataFrame
    children: list[int]
    title: str
    about: str


def depth_breadth(frame: pd.DataFrame) -> Slice:
    """Returns mean fitness by T and N, over all values of the other fields."""
    import pandas as pd

    rows = completed(frame).dropna(subset=["fitness"])
    if rows["generations"].nunique() * rows["children"].nunique() < 2:
        raise NothingToDrawError("The sweep has one T and one N.")
    every_n = sorted(rows["children"].unique().tolist())
    parts = []
    for T, part in rows.groupby("generations"):
        one = part.copy()
        one.attrs = {"fields": ["children"]}
        table = sweeps.main_effects(one, ["children"])
        place = [every_n.index(float(setting)) for setting in table["setting"]]
        parts.append(table.assign(T=f"T = {T} (n = {len(part)})", place=place))
    table = pd.concat(parts, ignore_index=True)
    others = [name for name in swept_fields(frame) if name not in ("generations", "children")]
    over = f", over all values of {', '.join(others)}" if others else ""
    return Slice(
        table=table,
        children=every_n,
        title="Depth and breadth",
        about=f"{seed_means(int(table['seeds'].max())).capitalize()}{over}; n counts runs.",
    )


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Mean cost and fitness of configurations.

    Attributes:
        table: One row per configuration whose fitness and cost are known.
        front: Those of the Pareto front, by cost.
        names: Values of those of the front that are named, the last ones, with their numbers.
        ratios: Limits of a logarithmic axis of cost; None: the axis is linear.
        title: A few words.
        about: What is drawn, and from how many seeds.
    """

    table: pd.DataFrame
    front: pd.DataFrame
    names: list[str]
    ratios: tuple[float, float] | None
    title: str
    about: str


def costs(frame: pd.DataFrame, cost: str) -> Costs:
    """Returns cost and fitness of each configuration, and the Pareto front.

    Raises:
        ValueError: The cost is not one of `COST_LABELS`, or is unknown for every run.
    """
    if cost not in COST_LABELS:
        raise ValueError(f"expected a cost among {', '.join(COST_LABELS)}, got {cost!r}")
    table = by_configuration(frame, ["fitness", cost])
    if table[cost].isna().all():
        raise ValueError(f"{cost}: unknown for every run; costs: {', '.join(COST_LABELS)}")
    known = table.dropna(subset=["fitness", cost])
    front, fields = pareto_front(known, cost), swept_fields(frame)
    names = []
    for at, row in enumerate(front.tail(MOST_NAMED).to_dict("records"), start=1):
        names.append(f"{at}:  {', '.join(short(row[name]) for name in asked_of(row, fields))}")
    named = f", named by {', '.join(fields)}" if fields else ""
    return Costs(
        table=known,
        front=front,
        names=names,
        ratios=_ratios(known[cost], known[f"{cost}_low"], known[f"{cost}_high"]),
        title="What fitness costs",
        about=(
            f"{len(known)} configurations, {seed_means(int(known['n'].max()), ' of both')}; "
            f"dashed: no other is fitter for as little{named}. The front is chosen from all and "
            "looks better than it is."
        ),
    )


def _ratios(
    means: pd.Series[float], lows: pd.Series[float], highs: pd.Series[float]
) -> tuple[float, float] | None:
    """The limits of a logarithmic axis, if the largest mean is many times the least.

    An interval that reaches zero or less is cut off at a third of the least mean.
    """
    least, most = float(means.min()), float(means.max())
    if least <= 0 or most <= WIDE * least:
        return None
    low = max(least / 3, float(np.nanmin([least, *lows])))
    high = float(np.nanmax([most, *highs]))
    room = (high / low) ** 0.04
    return low / room, high * room


def asked_of(row: Mapping[Any, Any], fields: Sequence[str]) -> list[str]:
    """Fields that a configuration has a value of."""
    return [name for name in fields if row[name] is not None and row[name] == row[name]]


def words_of(row: Mapping[Any, Any], fields: Sequence[str]) -> str:
    """The tooltip of a configuration."""
    asked = [f"{name} = {short(row[name])}" for name in asked_of(row, fields)]
    mean = ranged(row["fitness"], row["fitness_low"], row["fitness_high"])
    return "\n".join([*asked, f"mean fitness {mean}, n = {row['n']}"])


def short(value: object) -> str:
    """A value of a field."""
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    whole = value.is_integer() and abs(value) < MOST_WHOLE
    return str(int(value)) if whole else tick_texts([float(f"{value:.6g}")])[0]


def seed_intervals(seeds: int) -> str:
    """Names the intervals over so many seeds."""
    return f"{100 * measured('mean', seeds):.0f} % interval over {seeds} seeds"


def seed_means(seeds: int, of: str = "") -> str:
    """Names the means over so many seeds and their intervals, or says why there are none."""
    if seeds < LEAST:
        there = "there is 1 seed" if seeds == 1 else f"there are {seeds} seeds"
        return f"mean{of} without an interval, as {there} and intervals need {LEAST}"
    return f"mean{of} and {seed_intervals(seeds)}"
