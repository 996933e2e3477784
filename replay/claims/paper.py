"""The paper's claims checked on logs, each against a null that it can fail.

A claim holds if its null does as well in fewer than 5 % of draws, Holm's correction over the whole
ledger included; it fails if the opposite does; it is undetermined otherwise, and beside it stands
the effect that so many runs would detect in four of five repetitions, Holm aside: runs are drawn
again within each N after an effect was put in place of their own. Where the logs do not hold
what a claim is about it does not apply, and `why` says what is missing. Claims are those of
"Compute Allocation in Evolutionary Search" (arXiv 2605.29268); that one holds on some logs says
nothing about other models or tasks.

- The best split is interior (or a corner): the best interior cell less the best corner of one
  budget; null: runs exchanged among the N of that budget.
- The best in sweep rises with the budget, along a smooth curve: what it gains with each doubling of
  C, and the spread of a quadratic fitted to it over log C; null: C permuted.
- A policy beats random allocation: the policy less `random`; null: increments permuted across arms
  at each generation.
- A pool, or a policy, beats one run: less `single`; null: none between disjoint pools.

The best in sweep is chosen among the cells of a budget on half the runs and scored on the others.
`tests/benchmarks/claims_nulls.py` measures how often each passes where it should not and where it
should.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replay.claims.judging import POWER, judge_pools
from replay.logs.frames import distinct_runs, run_lengths
from replay.planning.grid import Cells, FloatArray, IntArray, cells, sweeps
from replay.simulation.pools import Pools

REGIMES = {
    "circle_packing": "corner",
    "min_max_distance": "interior",
    "heilbronn_triangle": "corner",
}
"""Where the paper found the best split of a large budget."""

ALPHA, DRAWS, BOOTSTRAPS = 0.05, 1999, 40
LEAST_SPLITS, LEAST_BUDGETS, LEAST_RUNS = 3, 5, 5

_COLUMNS = (
    "source", "task", "model", "claim", "measure", "value", "low", "high", "n", "p", "p_holm",
    "detectable", "verdict", "why",
)  # fmt: skip

Row = dict[str, Any]


def ledger(
    sources: Mapping[str, pd.DataFrame | str | os.PathLike[str]],
    *,
    regimes: Mapping[str, str] = REGIMES,
    policies: Sequence[str] = ("ucb1", "exp3p", "thompson"),
    seed: int = 0,
) -> pd.DataFrame:
    """All claims on several sources of logs; `replay.plots.verdicts` draws it.

    Generations from which on a run took programs of others (column `mixed`) do not count.

    Args:
        sources: By name, frames of `replay.load`, or what `replay.importers.load` reads: logs of
            ours or of another tool.
        regimes: By task, `interior` or `corner`; other tasks have no such claim.
        policies: Names out of `POLICIES`.
        seed: Key of all draws.

    Returns:
        One row per source, task, model and claim: measure (what `value` is), value, low and high
        (NaN where the null alone decides), n (runs), p (one-sided), p_holm (over all rows),
        detectable, verdict, and why it does not apply.
    """
    from replay.importers import load

    rows: list[Row] = []
    for source, logs in sources.items():
        frame = distinct_runs(logs if isinstance(logs, pd.DataFrame) else load(logs))
        if "mixed" in frame:
            frame = frame[~(frame["generation"] >= frame["mixed"])]
        for (task, model), part in frame.groupby(["task", "model"], sort=False):
            found = [*_sweep_claims(part, regimes.get(str(task)), seed)]
            found += _pool_claims(part, policies, seed)
            head = {"source": source, "task": task, "model": model, "why": ""}
            rows += [{**head, **each} for each in found]
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    table["p_holm"] = holm(table["p"].to_numpy(np.float64))
    opposite = holm(np.array([row["p_opposite"] for row in rows], dtype=np.float64))
    holds, fails = table["p_holm"] <= ALPHA, (opposite <= ALPHA) | (table["high"] < 0)
    table["verdict"] = np.select(
        [table["why"] != "", holds, fails], ["does not apply", "holds", "fails"], "undetermined"
    )
    return table


def holm(p: FloatArray) -> FloatArray:
    """Holm's adjusted p-values; NaN stays and does not count."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    scaled = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def _sweep_claims(frame: pd.DataFrame, regime: str | None, seed: int) -> Iterator[Row]:
    """Of runs of several N: where the best split is, and how the best rises."""
    [sweep] = sweeps(frame)
    grid = cells(sweep)
    n, half = len(sweep.runs), halves(grid, seed)
    budgets = budgets_of(grid, half)
    if regime is not None:
        claim = f"the best split is {regime}"
        splits, C = max(((len(among), C) for C, among in budgets.items()), default=(0, 0))
        if splits < LEAST_SPLITS:
            why = f"needs {LEAST_SPLITS} N with {LEAST_RUNS} runs each of one budget"
            yield _idle(claim, n, why)
        else:
            sign = 1.0 if regime == "interior" else -1.0
            measure = f"best {regime} split less the best other at C = {C}"
            found = regime_test(grid.values[:, budgets[C]], sign, seed)
            yield {"claim": claim, "measure": measure, **found}
    claims = {
        "the best in sweep rises with the budget": ("gain of the held-out best by doubling C", 1),
        "it follows a smooth curve": ("spread of a quadratic through the held-out best", 2),
    }
    for claim, (measure, degree) in claims.items():
        if len(budgets) < LEAST_BUDGETS:
            why = f"needs {LEAST_BUDGETS} budgets of {LEAST_RUNS} runs each, has {len(budgets)}"
            yield _idle(claim, n, why)
        else:
            found = envelope_test(grid, half, degree, seed)
            yield {"claim": claim, "measure": measure, **found, "n": n}


def regime_test(values: FloatArray, sign: float, seed: int, *, detect: bool = True) -> Row:
    """Best interior cell less the best corner, times `sign`; runs exchanged among the cells.

    `values`, (runs, cells), are of one budget, corners first and last, NaN where a cell has fewer
    runs; `sign` is 1 for interior, -1 for a corner. With `detect` it finds, too, which effect
    would be detected, which takes longer.
    """
    known, means = ~np.isnan(values), np.nanmean(values, axis=0)
    ends, place = values[known], np.nonzero(known)[1]
    weights = (place[:, None] == np.arange(values.shape[1])) / known.sum(axis=0)

    def advantage(means: FloatArray) -> FloatArray:
        corner = np.maximum(means[..., 0], means[..., -1])
        return np.asarray(sign * (means[..., 1:-1].max(axis=-1) - corner))

    order = np.random.default_rng([seed, 1]).random((DRAWS, len(ends))).argsort(axis=1)
    kind = np.isin(np.arange(len(means)), (0, len(means) - 1)) == (sign < 0)
    lifted = (place == np.where(kind, means, -np.inf).argmax()).astype(np.float64)
    each = np.arange(values.shape[1])
    worlds = _again(values - means, each, np.zeros_like(values))[:, known] if detect else None
    return _tested(ends, worlds, lifted, order, weights, advantage)


def envelope_test(
    grid: Cells, half: FloatArray, degree: int, seed: int, *, detect: bool = True
) -> Row:
    """The held-out best over the logarithm of C against the same with C permuted.

    Of degree 1 what is gained with each doubling of C, of degree 2 the standard deviation of a
    quadratic fitted to it; otherwise as `regime_test`.
    """
    budgets = budgets_of(grid, half)
    away = np.log2([*budgets]) - np.log2([*budgets]).mean()
    order = np.random.default_rng([seed, 2]).random((DRAWS, len(away))).argsort(axis=1)
    best = held_out(grid.values, budgets, half)
    basis = np.linalg.qr(np.vander(away, degree + 1))[0]
    unit = 1.0 if degree == 1 else float(away.std())
    weights = (away / (away @ away))[:, None] if degree == 1 else basis / np.sqrt(len(away))
    weights -= weights.mean(axis=0)  # of curves about their mean

    def size(parts: FloatArray) -> FloatArray:
        return np.asarray(parts[..., 0] if degree == 1 else np.sqrt((parts**2).sum(axis=-1)))

    worlds = None
    if detect:
        with np.errstate(invalid="ignore"):
            noise = grid.values - grid.means
        worlds = held_out(_again(noise, grid.children, half), budgets, half)
    return _tested(best, worlds, away / unit, order, weights, size)


def halves(grid: Cells, seed: int) -> FloatArray:
    """Which half each run of a cell is in, 0 or 1, the same in all cells of its N, as `values`."""
    half, rng = np.zeros(grid.values.shape), np.random.default_rng([seed, 3])
    for N, part in grid.sweep.strata():
        order = rng.permutation(part.stop - part.start)
        half[np.ix_(order[::2], grid.children == N)] = 1
    return half


def budgets_of(grid: Cells, half: FloatArray) -> dict[int, IntArray]:
    """Cells of each budget in which enough runs have a fitness, in both halves, by calls."""
    known = ~np.isnan(grid.values)
    enough = (grid.counts >= LEAST_RUNS) & np.isfinite(grid.means)
    enough &= (known & (half == 0)).any(axis=0) & (known & (half == 1)).any(axis=0)
    found = {int(C): np.flatnonzero(enough & (grid.calls == C)) for C in np.unique(grid.calls)}
    return {C: among for C, among in found.items() if len(among)}


def held_out(values: FloatArray, budgets: Mapping[int, IntArray], half: FloatArray) -> FloatArray:
    """Value of the best split of each budget: chosen on half the runs, scored on the rest.

    Of `values` (..., runs, cells), (..., budgets); NaN where runs drawn are not deep enough.
    """
    sides = []
    for side in (0, 1):
        mine = ~np.isnan(values) & (half == side)
        count = mine.sum(axis=-2)
        total = np.where(mine, values, 0.0).sum(axis=-2)
        sides.append(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    best = []
    for among in budgets.values():
        scores = []
        for chosen, scored in ((0, 1), (1, 0)):
            means = sides[chosen][..., among]
            top = np.where(np.isnan(means), -np.inf, means).argmax(axis=-1)[..., None]
            scores.append(np.take_along_axis(sides[scored][..., among], top, axis=-1)[..., 0])
        best.append((scores[0] + scores[1]) / 2)
    return np.stack(best, axis=-1)


def _again(values: FloatArray, groups: IntArray, half: FloatArray) -> FloatArray:
    """Bootstrap samples of runs within halves, (BOOTSTRAPS, runs, cells).

    They are the same in all cells of a group, whose label `groups` (cells,) gives.
    """
    rng = np.random.default_rng(5)
    rows = np.tile(np.arange(len(values))[:, None], (BOOTSTRAPS, 1, values.shape[1]))
    for label in np.unique(groups):
        columns = np.flatnonzero(groups == label)
        present = ~np.isnan(values[:, columns]).all(axis=1)
        for side in np.unique(half):
            members = np.flatnonzero(present & (half[:, columns[0]] == side))
            if len(members):
                drawn = rng.choice(members, (BOOTSTRAPS, len(members)))
                rows[:, members[:, None], columns] = drawn[:, :, None]
    return np.take_along_axis(values[None], rows, axis=1)


def _tested(
    data: FloatArray,
    worlds: FloatArray | None,
    direction: FloatArray,
    order: IntArray,
    weights: FloatArray,
    size: Callable[[FloatArray], FloatArray],
) -> Row:
    """A permutation test of `size(data @ weights)`, and the effect that it would detect.

    `data` is (m,), `weights` (m, parts), `order` the permutations (DRAWS, m), `worlds` data without
    an effect (worlds, m), and `direction` what an effect of 1 adds to data.
    """
    value, null = size(data @ weights), size(data[order] @ weights)
    slack = 1e-12 * float(np.abs(data).max())  # ties up to rounding
    found = {
        "value": float(value), "low": np.nan, "high": np.nan, "n": len(data),
        "p": float(_p(value, null, slack)), "p_opposite": float(_p(-value, -null, slack)),
        "detectable": np.nan,
    }  # fmt: skip
    unit = float(null.std())
    if worlds is None or not unit > slack:
        return found
    base, lift = worlds @ weights, direction @ weights
    moved, lifted = np.stack([each[order] @ weights for each in worlds]), direction[order] @ weights

    def power(effect: float) -> float:
        ps = _p(size(base + effect * lift), size(moved + effect * lifted), slack)
        return float((ps <= ALPHA).mean())

    low, high = 0.0, unit
    while power(high) < POWER:
        low, high = high, 2 * high
        if high > 2**10 * unit:
            return found | {"detectable": np.inf}
    for _ in range(3):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return found | {"detectable": high}


def _p(value: FloatArray, drawn: FloatArray, slack: float) -> FloatArray:
    """Share of draws (..., draws), the value included, that do as well; 1 where it is NaN."""
    below = (drawn < (value - slack)[..., None]).sum(axis=-1)
    ps = 1 - below / (1 + drawn.shape[-1])
    return np.asarray(np.where(np.isnan(value), 1.0, ps))


def _pool_claims(frame: pd.DataFrame, policies: Sequence[str], seed: int) -> Iterator[Row]:
    """Of the N with the most runs, those as deep as half of them: what a pool, and a choice, give.

    What a run still under way lacks says nothing of how well it does.
    """
    pairs = [("a pool beats one run", "random", "single")]
    pairs += [(f"{name} beats random allocation", name, "random") for name in policies]
    pairs += [(f"{name} beats one run", name, "single") for name in policies]
    counts = frame.groupby("children")["run"].nunique()
    N = int(counts.index[int(counts.to_numpy().argmax())])
    part = frame[frame["children"] == N]
    depths = part.groupby("run")["generation"].transform("max")
    rounds = int(np.median(run_lengths(part)))
    part = part[(depths >= rounds) & (part["generation"] <= rounds)]
    n, why = part["run"].nunique(), ""
    if n < 2 * LEAST_RUNS or rounds < 4:
        why = f"needs {2 * LEAST_RUNS} runs of one N of 4 or more generations, has {n} of {rounds}"
    pools = None if why else Pools(part, seed=seed)
    if pools and any(pools.nothing(name) for name in {"single", "random", *policies}):
        pools, why = None, "a pool found nothing ok, which has no mean"
    for claim, a, b in pairs:
        if pools is None:
            yield _idle(claim, n, why)
            continue
        found = judge_pools(part, pools, a, b, 0.0)
        yield {
            "claim": claim, "measure": f"{a} less {b}, N = {N}, {found.setting}",
            "value": found.effect, "low": found.interval.low, "high": found.interval.high,
            "n": n, "p": found.p, "detectable": found.detectable,
            # That worlds without better arms do better still is not that b beats a.
            "p_opposite": found.p_opposite if b == "single" else np.nan,
        }  # fmt: skip


def _idle(claim: str, n: int, why: str) -> Row:
    """A claim that does not apply to these runs."""
    nothing = dict.fromkeys(("value", "low", "high", "p", "p_opposite", "detectable"), np.nan)
    return {"claim": claim, "measure": "", **nothing, "n": n, "why": why}
