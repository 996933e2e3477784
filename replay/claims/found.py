"""From an effect with its limits to a verdict: what a design finds, and what would settle it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from evo.logs.types import JsonObject
from replay.claims.decision import (
    Outcome,
    decide,
    detectable,
    exaggeration,
    power,
    power_band,
    shrunk,
    still_needed,
)
from replay.claims.verdict import Verdict
from replay.logs.frames import COST_COLUMNS, is_stand_in, split_repeats
from replay.simulation.widths import SURE
from replay.statistics.intervals import EQUAL


class Found(NamedTuple):
    """A comparison before its verdict."""

    about: JsonObject  # fields of the verdict that are known already
    limits: tuple[float, float]  # by which it is decided; NaN where nothing can be
    error: float  # standard error of the effect
    freedom: float
    cost: Mapping[str, float]  # of a run, see `cost_of_run`
    per: float  # single runs in a unit of n
    kurtosis: float = 0.0  # of the runs, see `kurtosis_of`
    wider: str = ""  # what the limits are where they are wider than the interval, in words


def verdict_of(found: Found, margin: float, level: float) -> Verdict:
    """The verdict, with the power of such a design and the runs that would settle it."""
    verdict = decide(*found.limits, margin)
    if verdict == "within margin" and math.isnan(found.about["interval"].low):
        verdict = "undetermined"  # without any spread the size of an effect is unknown
    effect, n = found.about["interval"].value, found.about["n"]
    finds = detectable(found.error, found.freedom, level)
    more = still_needed(
        n, effect, margin, found.error, found.freedom, verdict, per=found.per, level=level
    )
    held_back = _held_back(found, verdict, margin)
    if held_back:  # by a rule that ends with so many runs
        more = max(more, (SURE - n) * found.per)
    band = (math.nan, math.nan)
    if more and not margin:
        factor = 1 + more / (n * found.per)
        band = power_band(
            effect, found.error, found.freedom, factor, level, kurtosis=found.kurtosis
        )
    if effect == 0 and (found.error == 0 or found.about["interval"].note == EQUAL):
        more = math.inf  # the values are known, and do not differ
    return Verdict(
        verdict=verdict, effect=effect, margin=margin, detectable=finds, e_value=math.nan,
        power=power(shrunk(effect, found.error), found.error, found.freedom, level),
        exaggeration=exaggeration(effect, found.error, found.freedom, level)
        if verdict in ("greater", "less") else math.nan,
        runs_needed=more, power_then=band,
        cost=cost_of(more, found.cost), held_back=held_back, **found.about,
    )  # fmt: skip


def _held_back(found: Found, verdict: Outcome, margin: float) -> str:
    """Why there is no verdict although the interval that is shown would give one."""
    interval = found.about["interval"]
    alone = decide(interval.low, interval.high, margin)
    if not found.wider or verdict != "undetermined" or alone == verdict:
        return ""
    says = "lies within the margin" if alone == "within margin" else "excludes 0"
    return (
        f"The interval {says}, but there are fewer than {SURE} runs, and {found.wider} does not: "
        "it stays undetermined."
    )


def cost_of(runs: float, each: Mapping[str, float]) -> dict[str, float]:
    """Returns the cost of so many runs by unit, from that of one; empty if they are not known."""
    return {unit: runs * one for unit, one in each.items()} if 0 < runs < math.inf else {}


def cost_of_run(frame: pd.DataFrame, depth: int) -> dict[str, float]:
    """Returns what a run of this depth costs by unit, the mean of these runs, where it is known.

    The FLOPs and dollars of the offline model are invented.
    """
    frame, _ = split_repeats(frame)
    inside = frame[(frame["generation"] > 0) & (frame["generation"] <= depth)]
    stand_in = "model" in frame and frame["model"].map(is_stand_in).any()
    spent = {
        unit: float(inside.groupby("run")[column].sum(min_count=1).mean())
        for unit, column in COST_COLUMNS.items()
        if column in inside and not (stand_in and unit in ("flops", "dollars"))
    }
    return {unit: each for unit, each in spent.items() if math.isfinite(each) and each > 0}


def mean_cost(costs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the mean of the costs of runs of several kinds, by unit that is known of all."""
    return {
        unit: sum(each[unit] for each in costs) / len(costs)
        for unit in costs[0]
        if all(unit in each for each in costs)
    }
