"""The paper's claims checked on logs: each holds, fails, or is undetermined there.

A claim says that a number lies above (or below) a bound. It holds if the number's 95 % interval
over runs does, fails if the interval lies on the other side, and is undetermined otherwise, or
where the logs cannot tell. Claims are those of "Compute Allocation in Evolutionary Search"
(arXiv 2605.29268); that one holds on some logs says nothing about other models or tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.bilinear import fit_bilinear, model_scores
from replay.effects import allocation_effect, effect, jackknife_interval, pool_effect
from replay.frontier import Axis, envelope
from replay.grid import choose_left_out
from replay.simulation import Replay, simulate, simulate_many
from replay.statistics import Interval, interval
from replay.sweep import Cells, FloatArray, Sweep, cells, sweeps
from replay.table import fitness_matrix

if TYPE_CHECKING:
    import pandas as pd

REGIMES = {
    "circle_packing": "corner",
    "min_max_distance": "interior",
    "heilbronn_triangle": "corner",
}
"""Where the paper found the best split of a large budget."""
LEAST_R2, LEAST_COLLAPSE, SMALLEST_C = 0.75, 0.93, 0.03
SURE = 0.95
POOLS = ((5, 2), (10, 50))
"""Sizes of pools, the first of which should do better."""

_COLUMNS = ("task", "model", "claim", "measure", "value", "low", "high", "n", "verdict")
Found = tuple[float, float, float, int]
Row = tuple[Any, ...]


def depth_breadth_claims(
    frame: pd.DataFrame,
    *,
    calls: int = 512,
    regimes: Mapping[str, str] = REGIMES,
    ceiling: float = 0.9999,
) -> pd.DataFrame:
    """The bilinear fit and the regimes.

    Args:
        frame: A sweep per task and model, as `replay.load` returns it.
        calls: Budget for which the regime is checked.
        regimes: By task, `interior` or `corner`; other tasks have no claim.
        ceiling: As for `replay.fit_bilinear`.

    Returns:
        One row per claim: task, model, claim, measure (what `value` is), value, low, high, n (runs)
        and verdict. A probability has no interval: it holds from 0.95 on and fails up to 0.05.
    """
    rows: list[Row] = []
    for sweep, part in _each(frame):
        names = (sweep.task, sweep.model)
        r2, gain = _fit_scores(sweep, ceiling)
        rows.append(
            _row(names, "the bilinear fit explains the grid", "R2", r2, above=LEAST_R2),
        )
        measure = "R2 less that of the budget alone, each N left out"
        rows.append(_row(names, "... and better than the budget alone", measure, gain, above=0.0))
        if sweep.task not in regimes:
            continue
        regime = regimes[sweep.task]
        fit = fit_bilinear(part, ceiling=ceiling)
        c, n = fit.coefficients["c"], fit.n_runs
        found = (c["value"], c["low"], c["high"], n)
        bounds = (-math.inf, -SMALLEST_C) if regime == "interior" else (-SMALLEST_C, SMALLEST_C)
        measure = "c (below -0.03)" if regime == "interior" else "c (within 0.03 of 0)"
        rows.append((*names, f"c says {regime}", measure, *found, _inside(found, *bounds)))
        interior = fit.optimum(calls).probabilities["interior"]
        p = interior if regime == "interior" else 1 - interior
        verdict = "holds" if p >= SURE else "fails" if p <= 1 - SURE else "undetermined"
        measure = f"probability of {regime} at C = {calls}"
        rows.append((*names, f"the optimum is {regime}", measure, p, np.nan, np.nan, n, verdict))
    return _table(rows)


def envelope_claims(
    frame: pd.DataFrame, *, axis: Axis = "flops", ceiling: float = 0.9999
) -> pd.DataFrame:
    """The envelope: it rises, along one smooth curve, on which models collapse.

    Arguments and columns as for `depth_breadth_claims` and `replay.envelope`.
    """
    rows: list[Row] = []
    for sweep, part in _each(frame):
        grid = cells(sweep)
        most = int(grid.calls.max())
        claim, measure = (
            "the best in sweep rises with the budget",
            f"fitness at C = {most} less at C = {most // 8}, split chosen on other runs",
        )
        names = (sweep.task, sweep.model)
        rows.append(_row(names, claim, measure, _rise(grid, most), above=0.0))
        found = _without_each_seed(part, lambda rest: _collapse(rest, axis, ceiling))
        measure = f"R2 of log(1 - V) on a quadratic in log {axis}"
        claim = "it follows a smooth curve"
        rows.append(_row(names, claim, measure, found, above=LEAST_COLLAPSE))
    for task, part in frame.groupby("task", sort=False):
        models = part["model"].nunique()
        found = (
            _without_each_seed(part, lambda rest: _collapse(rest, axis, ceiling))
            if models > 1
            else _unknown(part)
        )
        names, claim = (str(task), f"{models} model(s)"), "models share that curve"
        rows.append(_row(names, claim, "R2 of one curve for all", found, above=LEAST_COLLAPSE))
    return _table(rows)


def bandit_claims(
    frame: pd.DataFrame,
    *,
    children: int = 1,
    arms: int = 5,
    rounds: int = 512,
    policies: Sequence[str] = ("ucb1", "exp3p", "thompson"),
    reward: str = "best_fitness",
    tau: float | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Pool and allocation effects, threshold times and the size of the pool.

    Args:
        frame: As `replay.load` returns it.
        children: N of the runs that serve as arms.
        arms: K, at most half the runs.
        rounds: Pulls.
        policies: Names out of `POLICIES`.
        reward: What they are told.
        tau: Fitness to reach; None: what half the runs reach in the end.
        replicates: Draws of K runs.
        seed: Key of the draws.

    Returns:
        As `depth_breadth_claims`. Threshold times beyond `rounds` count as `rounds` + 1.
    """
    rows: list[Row] = []
    for sweep, part in _each(frame[frame["children"] == children]):
        names = (sweep.task, sweep.model)
        fitness = fitness_matrix(part)
        common = {"rounds": rounds, "replicates": replicates, "seed": seed, "reward": reward}
        everyone = ("single", "random", *policies)
        replays = simulate_many(fitness, everyone, arms=arms, **common)
        single, random = replays["single"], replays["random"]
        nothing = float(np.nanmin(fitness))
        pool = _found(pool_effect(single, random, nothing=nothing))
        measure = f"fitness after {rounds} pulls, random less single"
        rows.append(_row(names, f"a pool of {arms} beats one run", measure, pool, above=0.0))
        level = float(np.quantile(fitness[:, -1], 0.5, method="lower")) if tau is None else tau
        for policy in policies:
            gain = _found(allocation_effect(random, replays[policy], nothing=nothing))
            claim = f"{policy} beats random allocation"
            measure = f"fitness after {rounds} pulls"
            rows.append(_row(names, claim, measure, gain, above=0.0))
            both = _found(effect(single, replays[policy], nothing=nothing))
            rows.append(_row(names, f"{policy} beats one run", measure, both, above=0.0))
        for policy in policies:
            saved = _waits(single, level, rounds) - _waits(replays[policy], level, rounds)
            claim = f"{policy} reaches {level:.3f} before one run does"
            found = _found(jackknife_interval(saved, single.arms))
            rows.append(_row(names, claim, "pulls saved", found, above=0.0))
        for better, worse in POOLS:
            found = _pools(fitness, policies[0], better, worse, common)
            measure = f"{policies[0]}, fitness after {rounds} pulls"
            claim = f"K = {better} beats K = {worse}"
            rows.append(_row(names, claim, measure, found, above=0.0))
    return _table(rows)


def _each(frame: pd.DataFrame) -> Iterator[tuple[Sweep, pd.DataFrame]]:
    """The runs of each task and model, as arrays and as rows."""
    for sweep in sweeps(frame):
        yield sweep, frame[(frame["task"] == sweep.task) & (frame["model"] == sweep.model)]


def _fit_scores(sweep: Sweep, ceiling: float) -> tuple[Found, Found]:
    """R2 of the bilinear fit, and what it gains on each N left out over the budget alone.

    The intervals are jackknifes over whole runs within each N.
    """
    logs = np.log(1 - np.minimum(sweep.values, ceiling))
    grid = cells(replace(sweep, values=logs))
    kept = np.isfinite(grid.means)
    means, without = grid.means[kept], grid.left_out()[:, kept]
    sizes = grid.children[kept]

    def scores(target: FloatArray) -> FloatArray:
        table = model_scores(grid.generations[kept], sizes, target)
        left_out = table["r2_cv"]
        return np.array([table["r2"]["bilinear"], left_out["bilinear"] - left_out["budget"]])

    groups = []
    for N, rows in sweep.strata():
        mine = sizes == N
        count = rows.stop - rows.start
        groups.append([scores(np.where(mine, without[k], means)) for k in range(count)])
    value = scores(means)
    low, high = _jackknife(value, [np.array(group) for group in groups])
    n = len(sweep.runs)
    return (value[0], low[0], min(high[0], 1.0), n), (value[1], low[1], high[1], n)


def _jackknife(value: FloatArray, groups: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """95 % interval from the values without each run, (runs of a stratum, m) per stratum."""
    from scipy.special import stdtrit

    variance = sum(
        (len(group) - 1) / len(group) * ((group - group.mean(axis=0)) ** 2).sum(axis=0)
        for group in groups
    )
    degrees = sum(len(group) - 1 for group in groups)
    half = float(stdtrit(degrees, 0.975)) * np.sqrt(variance)
    return value - half, value + half


def _without_each_seed(frame: pd.DataFrame, of: Callable[[pd.DataFrame], float]) -> Found:
    """R2 of a frame, with its jackknife interval over seeds, each with all its runs."""
    found = np.array([[of(frame[frame["seed"] != seed])] for seed in frame["seed"].unique()])
    value = np.array([of(frame)])
    low, high = _jackknife(value, [found])
    return float(value[0]), float(low[0]), min(float(high[0]), 1.0), frame["run"].nunique()


def _collapse(frame: pd.DataFrame, axis: Axis, ceiling: float) -> float:
    return float(envelope(frame, axis=axis, ceiling=ceiling).collapse["r2"].iloc[0])


def _rise(grid: Cells, most: int) -> Found:
    """What eight times the budget adds, the split of either chosen on the other runs."""
    much, little = (
        dict(zip(*choose_left_out(grid, np.flatnonzero(grid.calls == C)), strict=True))
        for C in (most, most // 8)
    )
    gains = np.array([much[k] - little[k] for k in much if k in little])
    return _found(interval(gains))


def _waits(replay: Replay, tau: float, rounds: int) -> FloatArray:
    """Pulls until each replicate reaches tau, (replicates,); rounds + 1 if it never does."""
    reached = replay.best_fitness >= tau
    return np.where(reached.any(axis=1), 1.0 + reached.argmax(axis=1), rounds + 1.0)


def _pools(
    fitness: FloatArray, policy: str, better: int, worse: int, common: Mapping[str, Any]
) -> Found:
    """Fitness with one size of the pool less that with another; the larger contains the smaller."""
    most = max(better, worse)
    if 2 * most > len(fitness):
        return np.nan, np.nan, np.nan, len(fitness)
    large = simulate(fitness, policy, arms=most, **common)
    small = simulate(fitness, policy, arms=large.arms[:, : min(better, worse)], **common)
    more = large.best_fitness[:, -1] - small.best_fitness[:, -1]
    return _found(jackknife_interval(more if better > worse else -more, large.arms))


def _found(found: Interval) -> Found:
    return float(found.value), float(found.low), float(found.high), int(found.n)


def _unknown(frame: pd.DataFrame) -> Found:
    return np.nan, np.nan, np.nan, frame["run"].nunique()


def _inside(found: Found, least: float, most: float) -> str:
    """Verdict on the claim that a number lies between two bounds."""
    _, low, high, _ = found
    if least < low and high < most:
        return "holds"
    return "fails" if high < least or low > most else "undetermined"


def _row(names: tuple[str, str], claim: str, measure: str, found: Found, *, above: float) -> Row:
    verdict = _inside(found, above, math.inf)
    bound = f" (above {above:g})"
    return (*names, claim, measure + bound, *found, verdict)


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=_COLUMNS)
