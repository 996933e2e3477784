"""The verdict of each pair of configurations over several tasks, by Holm's rule over the pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from replay.claims.decision import decide, still_needed, why_open
from replay.statistics.intervals import FloatArray
from replay.statistics.resampling import holm
from replay.statistics.strata import Stratum, compare_strata, needed_for


def decided(
    rows: pd.DataFrame,
    strata: Sequence[list[Stratum]],
    margin: float,
    level: float,
    seed: int,
    family: int,
) -> pd.DataFrame:
    """The pairs with p, Holm's p, an interval at the level that decides, and the verdicts.

    They share the error with the pairs of a larger family, if there is one.
    """
    first = [compare_strata(each, level=level, seed=seed) for each in strata]
    few = [sum(min(len(s.left), len(s.right)) for s in each) < needed_for(each) for each in strata]
    p = np.array([
        math.nan if small else min(1.0, 2 * min(found.p_greater, found.p_less))
        for found, small in zip(first, few, strict=True)
    ])  # fmt: skip
    shares, known = holm_shares(p, 1 - level, family), ~np.isnan(p)
    made = []
    for each, found, share, small in zip(strata, first, shares, few, strict=True):
        at = 1 - (1 - level) * share
        again = found if share == 1 else compare_strata(each, level=at, seed=seed)
        limits, alone = (
            (math.nan, math.nan) if small or np.isinf(ends).any() else ends
            for ends in ((again.low, again.high), (found.low, found.high))
        )
        verdict = decide(*limits, margin)
        why = why_open(verdict, alone, margin)
        units = sum(len(s.left) + len(s.right) for s in each)
        error = math.nan if small else again.error
        more = still_needed(units, found.value, margin, error, again.freedom, verdict, level=at)
        if not found.error > 0:  # exchanges decide, as in `replay.judge`, and bound nothing
            limits = alone = (math.nan, math.nan)
        made.append((found.value, *limits, at, verdict, why, more, *alone))
    columns = ["effect", "low", "high", "level", "verdict", "why", "runs_needed"]
    table = pd.DataFrame(made, columns=[*columns, "alone_low", "alone_high"])
    adjusted = np.full(len(p), math.nan)
    adjusted[known] = holm(p[known], family)
    table = table.assign(p=p, p_holm=adjusted)
    further = [
        decide(low, high, margin)
        for low, high in zip(rows["further_low"], rows["further_high"], strict=True)
    ]
    columns = ["effect", "low", "high", "level", "p", "p_holm", "verdict", "why", "runs_needed"]
    columns += ["alone_low", "alone_high"]
    about = [name for name in rows if name not in ("spread", "better")]
    joined = pd.concat([rows[about], table[columns]], axis=1).assign(
        further_verdict=further, spread=rows["spread"], better=rows["better"]
    )
    order = ["a", "b", "tasks", "runs", *columns]
    return joined[[*order, *(name for name in joined if name not in order)]]


def holm_shares(p: FloatArray, alpha: float, family: int = 0) -> FloatArray:
    """The share of the error that each pair is decided at by Holm's rule, (pairs,).

    Once a pair is not rejected, all that follow are decided at its share, at which none of them is.
    """
    shares = np.ones(len(p))
    known = np.flatnonzero(~np.isnan(p))
    order, share = known[np.argsort(p[known], kind="stable")], 0.0
    stopped = False
    for rank, i in enumerate(order):
        if not stopped:
            share = 1 / (max(family, len(order)) - rank)
            stopped = bool(p[i] > alpha * share)
        shares[i] = share
    return shares
