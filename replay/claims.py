"""The paper's claims checked on logs: each holds, fails, is undetermined, or does not apply there.

A claim says that a number lies above (or below) a bound. It holds if the number's 95 % interval
over runs does, fails if the interval lies on the other side, and is undetermined otherwise. Where
the logs do not hold what the claim is about it does not apply, and `why` says what is missing;
there is then no number. Claims are those of "Compute Allocation in Evolutionary Search"
(arXiv 2605.29268); that one holds on some logs says nothing about other models or tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from replay.bilinear import fit_bilinear, model_scores
from replay.cells import Cells, FloatArray, IntArray, Sweep, cells, sweeps
from replay.depth import Axis, choose_left_out, envelope
from replay.effects import allocation_effect, effect, pool_effect, pool_interval
from replay.intervals import Interval, interval
from replay.logs import COSTS, fitness_matrix
from replay.simulation import Replay, simulate, simulate_many

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
LEAST_SIZES = 3
"""N that make a sweep: with one left out, two must still tell depth from breadth."""

_COLUMNS = ("task", "model", "claim", "measure", "value", "low", "high", "n", "verdict", "why")
Found = tuple[float, float, float, int]
Row = tuple[Any, ...]


def ledger(
    sources: Mapping[str, pd.DataFrame],
    *,
    axis: Axis = "flops",
    ceiling: float = 0.9999,
    replicates: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """All claims on several sources of logs.

    Args:
        sources: Frames of `replay.load` by name.
        axis: Cost of the envelope.
        ceiling: As for `replay.fit_bilinear`.
        replicates: As for `bandit_claims`.
        seed: Likewise.

    Returns:
        As `depth_breadth_claims`, with the source in front.
    """
    import pandas as pd

    tables: list[pd.DataFrame] = []
    for name, frame in sources.items():
        checked = (
            depth_breadth_claims(frame, ceiling=ceiling),
            envelope_claims(frame, axis=axis, ceiling=ceiling),
            bandit_claims(frame, replicates=replicates, seed=seed),
        )
        tables += checked
        for table in checked:
            table.insert(0, "source", name)
    return pd.concat(tables, ignore_index=True)


def depth_breadth_claims(
    frame: pd.DataFrame,
    *,
    calls: int | None = None,
    regimes: Mapping[str, str] = REGIMES,
    ceiling: float = 0.9999,
) -> pd.DataFrame:
    """The bilinear fit and the regimes.

    Args:
        frame: A sweep per task and model, as `replay.load` returns it.
        calls: Budget for which the regime is checked; None: the largest of the sweep.
        regimes: By task, `interior` or `corner`; other tasks have no claim.
        ceiling: As for `replay.fit_bilinear`.

    Returns:
        One row per claim: task, model, claim, measure (what `value` is), value, low, high, n
        (runs), verdict, and why it does not apply. A probability has no interval: it holds from
        0.95 on and fails up to 0.05.
    """
    rows: list[Row] = []
    for sweep, part in _each(frame):
        names, regime = (sweep.task, sweep.model), regimes.get(sweep.task)
        explains = "the bilinear fit explains the grid"
        beats = "the bilinear fit beats the budget alone"
        checked = [f"c says {regime}", f"the optimum is {regime}"] if regime else []
        if why := _no_sweep(sweep):
            rows += [_idle(names, claim, part, why) for claim in (explains, beats, *checked)]
            continue
        r2, gain = _fit_scores(sweep, ceiling)
        rows.append(_row(names, explains, "R2", r2, above=LEAST_R2))
        measure = "R2 less that of the budget alone, each N left out"
        rows.append(_row(names, beats, measure, gain, above=0.0))
        if regime is None:
            continue
        budget = int(cells(sweep).calls.max()) if calls is None else calls
        fit = fit_bilinear(part, ceiling=ceiling)
        c, n = fit.coefficients["c"], fit.n_runs
        found = (c["value"], c["low"], c["high"], n)
        bounds = (-math.inf, -SMALLEST_C) if regime == "interior" else (-SMALLEST_C, SMALLEST_C)
        measure = "c (below -0.03)" if regime == "interior" else "c (within 0.03 of 0)"
        rows.append((*names, checked[0], measure, *found, _inside(found, *bounds), ""))
        interior = fit.optimum(budget).probabilities["interior"]
        p = interior if regime == "interior" else 1 - interior
        verdict = "holds" if p >= SURE else "fails" if p <= 1 - SURE else "undetermined"
        measure = f"probability of {regime} at C = {budget}"
        rows.append((*names, checked[1], measure, p, np.nan, np.nan, n, verdict, ""))
    return _table(rows)


def envelope_claims(
    frame: pd.DataFrame, *, axis: Axis = "flops", ceiling: float = 0.9999
) -> pd.DataFrame:
    """The envelope: it rises, along one smooth curve, on which models collapse.

    Arguments and columns as for `depth_breadth_claims` and `replay.envelope`.
    """
    rows: list[Row] = []
    swept: dict[str, list[str]] = {str(task): [] for task in frame["task"].unique()}
    for sweep, part in _each(frame):
        names = (sweep.task, sweep.model)
        rises = "the best in sweep rises with the budget"
        smooth = "it follows a smooth curve"
        why = _no_sweep(sweep)
        unknown = "" if part[COSTS[axis]].gt(0).any() else f"no run knows its {axis}"
        if why:
            rows.append(_idle(names, rises, part, why))
        else:
            grid = cells(sweep)
            most = int(grid.calls.max())
            measure = f"fitness at C = {most} less at C = {most // 8}, split chosen on other runs"
            rows.append(_row(names, rises, measure, _rise(grid, most), above=0.0))
        if why or unknown:
            rows.append(_idle(names, smooth, part, why or unknown))
            continue
        swept[sweep.task].append(sweep.model)
        found = _without_each_seed(part, lambda rest: _collapse(rest, axis, ceiling))
        measure = f"R2 of log(1 - V) on a quadratic in log {axis}"
        rows.append(_row(names, smooth, measure, found, above=LEAST_COLLAPSE))
    for task, models in swept.items():
        names, claim = (task, f"{len(models)} model(s)"), "models share that curve"
        part = frame[(frame["task"] == task) & frame["model"].isin(models)]
        if len(models) < 2:
            why = f"needs sweeps of two models whose {axis} are known, has {len(models)}"
            rows.append(_idle(names, claim, frame[frame["task"] == task], why))
            continue
        found = _without_each_seed(part, lambda rest: _collapse(rest, axis, ceiling))
        rows.append(_row(names, claim, "R2 of one curve for all", found, above=LEAST_COLLAPSE))
    return _table(rows)


def bandit_claims(
    frame: pd.DataFrame,
    *,
    children: int | None = None,
    arms: int = 5,
    rounds: int | None = None,
    policies: Sequence[str] = ("ucb1", "exp3p", "thompson"),
    reward: str = "best_fitness",
    tau: float | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Pool and allocation effects, threshold times and the size of the pool.

    Args:
        frame: As `replay.load` returns it.
        children: N of the runs that serve as arms; None: the smallest of a task and model.
        arms: K. Claims apply from 2 K runs on, of at least 2 K generations.
        rounds: Pulls; None: the generations of the shortest run.
        policies: Names out of `POLICIES`.
        reward: What they are told.
        tau: Fitness to reach; None: what half the runs reach in the end.
        replicates: Draws of K runs.
        seed: Key of the draws.

    Returns:
        As `depth_breadth_claims`. Threshold times beyond `rounds` count as `rounds` + 1.
    """
    rows: list[Row] = []
    for sweep, whole in _each(frame):
        names = (sweep.task, sweep.model)
        part = whole[whole["children"] == (children or whole["children"].min())]
        fitness = fitness_matrix(part)
        shortest = int(part.groupby("run")["generation"].max().min())
        pulls = shortest if rounds is None else rounds
        level = _median_end(fitness[:, : pulls + 1]) if tau is None else tau
        claims = ["a pool beats one run"]
        for policy in policies:
            claims += [f"{policy} beats random allocation", f"{policy} beats one run"]
        claims += [f"{policy} reaches tau before one run does" for policy in policies]
        common = {
            "rounds": pulls,
            "replicates": replicates,
            "seed": seed,
            "reward": reward,
            "replace": False,
        }
        if why := _no_pool(fitness, shortest, arms, pulls) or _no_level(level):
            rows += [_idle(names, claim, part, why) for claim in claims]
        else:
            found = _contest(fitness, policies, arms, level, common)
            for claim, (measure, gain) in zip(claims, found, strict=True):
                rows.append(_row(names, claim, measure, gain, above=0.0))
        for better, worse in POOLS:
            claim = f"K = {better} beats K = {worse}"
            if why := _no_pool(fitness, shortest, max(better, worse), pulls):
                rows.append(_idle(names, claim, part, why))
            else:
                gain = _pools(fitness, policies[0], better, worse, common)
                measure = f"{policies[0]}, fitness after {pulls} pulls"
                rows.append(_row(names, claim, measure, gain, above=0.0))
    return _table(rows)


def _contest(
    fitness: FloatArray,
    policies: Sequence[str],
    arms: int,
    level: float,
    common: Mapping[str, Any],
) -> Iterator[tuple[str, Found]]:
    """Measure and number of each claim on pools of one size."""
    replays = simulate_many(fitness, ("single", "random", *policies), arms=arms, **common)
    single, random, rounds = replays["single"], replays["random"], common["rounds"]
    nothing = _nothing(fitness)
    measure = f"K = {arms}, fitness after {rounds} pulls"
    yield f"{measure}, random less single", _found(pool_effect(single, random, nothing=nothing))
    for policy in policies:
        yield measure, _found(allocation_effect(random, replays[policy], nothing=nothing))
        yield measure, _found(effect(single, replays[policy], nothing=nothing))
    for policy in policies:
        saved = _waits(single, level, rounds) - _waits(replays[policy], level, rounds)
        measure = f"K = {arms}, pulls saved until tau = {level:.3f}"
        yield measure, _found(pool_interval(saved, single.arms))


def _no_sweep(sweep: Sweep) -> str:
    """Why these runs are no sweep over N, or an empty text."""
    sizes, counts = np.unique(sweep.children[sweep.depth > 1], return_counts=True)
    if len(sizes) < LEAST_SIZES:
        found = ", ".join(map(str, np.unique(sweep.children)))
        return f"needs a sweep of {LEAST_SIZES} or more N that are 2 deep, has N = {found}"
    if counts.min() < 2:
        return f"needs two runs of each N, has one of N = {sizes[counts.argmin()]}"
    return ""


def _no_pool(fitness: FloatArray, shortest: int, arms: int, rounds: int) -> str:
    """Why these runs make no pools of so many arms, or an empty text."""
    if len(fitness) < 2 * arms:
        return f"needs {2 * arms} runs of one N for pools of {arms}, has {len(fitness)}"
    if rounds < 2 * arms:
        return f"needs {2 * arms} pulls for a choice among {arms} arms, has {rounds}"
    if shortest < rounds:
        return f"needs runs of {rounds} generations, the shortest has {shortest}"
    return ""


def _no_level(level: float) -> str:
    return "" if math.isfinite(level) else "half the runs have no fitness at all"


def _median_end(fitness: FloatArray) -> float:
    """Fitness that half the runs reach in the end; -inf if half have none."""
    ends = np.fmax.accumulate(fitness, axis=1)[:, -1]
    return float(np.quantile(np.nan_to_num(ends, nan=-np.inf), 0.5, method="lower"))


def _nothing(fitness: FloatArray) -> float:
    """What counts as fitness while nothing is ok: 0, or the lowest logged if that is lower."""
    return float(np.fmin.reduce(fitness, axis=None, initial=0.0))


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
        dict(zip(*choose_left_out(grid, _within(grid, C)), strict=True)) for C in (most, most / 8)
    )
    gains = np.array([much[k] - little[k] for k in much if k in little])
    if len(gains) < 2:
        return np.nan, np.nan, np.nan, len(gains)
    return _found(interval(gains))


def _within(grid: Cells, calls: float) -> IntArray:
    """Cells of this budget: powers of two spend all of it, other N more than half."""
    return np.flatnonzero((grid.calls > calls / 2) & (grid.calls <= calls))


def _waits(replay: Replay, tau: float, rounds: int) -> FloatArray:
    """Pulls until each replicate reaches tau, (replicates,); rounds + 1 if it never does."""
    reached = replay.best_fitness >= tau
    return np.where(reached.any(axis=1), 1.0 + reached.argmax(axis=1), rounds + 1.0)


def _pools(
    fitness: FloatArray, policy: str, better: int, worse: int, common: Mapping[str, Any]
) -> Found:
    """Fitness with one size of the pool less that with another; the larger contains the smaller."""
    most, nothing = max(better, worse), _nothing(fitness)
    large = simulate(fitness, policy, arms=most, **common)
    small = simulate(fitness, policy, arms=large.arms[:, : min(better, worse)], **common)
    more = np.nan_to_num(large.best_fitness[:, -1], nan=nothing) - np.nan_to_num(
        small.best_fitness[:, -1], nan=nothing
    )
    return _found(pool_interval(more if better > worse else -more, large.arms))


def _found(found: Interval) -> Found:
    return float(found.value), float(found.low), float(found.high), int(found.n)


def _inside(found: Found, least: float, most: float) -> str:
    """Verdict on the claim that a number lies between two bounds."""
    _, low, high, _ = found
    if least < low and high < most:
        return "holds"
    return "fails" if high < least or low > most else "undetermined"


def _row(names: tuple[str, str], claim: str, measure: str, found: Found, *, above: float) -> Row:
    verdict = _inside(found, above, math.inf)
    bound = f" (above {above:g})"
    return (*names, claim, measure + bound, *found, verdict, "")


def _idle(names: tuple[str, str], claim: str, frame: pd.DataFrame, why: str) -> Row:
    """A claim that does not apply to these runs."""
    n = frame["run"].nunique()
    return (*names, claim, "", np.nan, np.nan, np.nan, n, "does not apply", why)


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=_COLUMNS)
