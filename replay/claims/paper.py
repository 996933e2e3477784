"""The paper's claims checked on logs, each against a null distribution that it can fail.

Each claim is that an effect is above 0. Its verdict is `greater` (the claim holds) if fewer than
5 % of null worlds show as much, `less` if fewer than 5 % show as little, both after Holm's
correction within their family, and `undetermined` otherwise. A family is what is asked of the same
runs, see `FAMILIES`; claims about other tasks, models or sources are not in it, so that a claim has
the same verdict in every ledger that it is in. Beside it stands the effect that so many runs would
detect in four of five repetitions, before Holm's correction. Where the logs do not hold what a
claim is about, it does not apply, and `why` states what is missing. The claims are those of
"Compute Allocation in Evolutionary Search" (arXiv 2605.29268). That one holds on some logs shows
nothing about other models or tasks.

- The best split is interior (or a corner): the mean of the best interior cell less that of the best
  corner of one budget.
- The best in sweep rises with the budget, along a smooth curve: the gain with each doubling of C,
  and the standard deviation of a quadratic over log C. The best split of a budget is chosen on half
  of the runs and scored on the others.
- A policy beats random allocation: the policy less `random`, see `judge`.
- A pool, or a policy, beats one run: less `single`, see `judge`. These verdicts are two-sided, and
  that of a claim alone in its family is the verdict of `judge`.

The null distributions of the first two (`replay.claims.contrasts`) keep the variance of each cell,
the runs that budgets share, and plateaus. `tests/benchmarks/claims_nulls.py` measures how often
each claim is called greater where it is false.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from evo.logs.types import JsonObject
from evo.plugins import MistakenType
from replay.claims.contrasts import ALPHA, HalvedEnvelope, NullWorlds, Tested, best_above_best
from replay.claims.decision import p_above
from replay.claims.judging import judge_pools
from replay.claims.questions import answer, question
from replay.logs.frames import begun_runs, counted_once, distinct_runs, models_apart, run_lengths
from replay.logs.given import named
from replay.planning.grid import FloatArray, IntArray, SplitCells, cells, sweeps
from replay.simulation.pools import Pools
from replay.simulation.sizes import usual_runs
from replay.simulation.widths import deciding_limits
from replay.statistics.resampling import holm

REGIMES = {
    "circle_packing": "corner",
    "min_max_distance": "interior",
    "heilbronn_triangle": "corner",
}
"""Where the paper found the best split of a large budget."""

FAMILIES = ("splits", "pool", "policies")
"""Claims that share one error of 5 %: those about the splits of a sweep, that about a pool of runs,
and those about all policies that are asked for; each for one task and model of a source."""

LEAST_SPLITS, LEAST_BUDGETS, LEAST_RUNS = 3, 5, 5

_COLUMNS = (
    "source", "task", "model", "family", "claim", "question", "answer", "measure", "value", "low",
    "high", "n", "p", "p_holm", "detectable", "runs_needed", "verdict", "why", "p_opposite",
    "null_p", "held_back",
)  # fmt: skip

Row = JsonObject


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
        One row per source, task, model and claim: family (out of `FAMILIES`), question and answer
        (the claim in plain words), measure (what `value` is), value, low and high (95 % interval,
        not corrected; NaN where there is none), n (runs), p (one-sided; of claims about policies
        two-sided, as `judge` decides), p_holm (over the family), detectable, runs_needed (of claims
        about pools, as of `judge`), verdict, why the claim does not apply, p_opposite (of the
        opposite claim, over the family), null_p (the probability of at least this effect where
        nothing can be chosen, where p is it; see `judge`), and held_back (whether few runs alone
        keep a verdict back, as of `judge`).

    Example:
        >>> claims = replay.ledger({"runs": frame})
        >>> "claim" in claims.columns
        True
    """
    from replay.importers import load

    if not isinstance(sources, Mapping):
        raise MistakenType(f"expected logs or frames by name, in a dict, got {named(sources)}")
    rows: list[Row] = []
    for source, logs in sources.items():
        frame = logs if isinstance(logs, pd.DataFrame) else load(logs)
        frame = begun_runs(counted_once(distinct_runs(frame)))
        if "mixed" in frame:
            frame = frame[~(frame["generation"] >= frame["mixed"])]
        for (task, model), part in frame.groupby(["task", models_apart(frame)], sort=False):
            pool, *chosen = _pool_claims(part, policies, seed)
            families = [[*sweep_claims(part, regimes.get(str(task)), seed)], [pool], chosen]
            head = {"source": source, "task": task, "model": model, "why": ""}
            for name, family in zip(FAMILIES, families, strict=True):
                rows += [{**head, "family": name, **each} for each in _decided(family)]
    for row in rows:
        row |= {"question": question(str(row["claim"])), "answer": answer(row)}
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _decided(family: Sequence[Row]) -> Iterator[Row]:
    """The claims of a family with their corrected p and verdicts."""
    greater, less = (
        holm(np.array([row[name] for row in family], dtype=np.float64))
        for name in ("p", "p_opposite")
    )
    for row, p, opposite in zip(family, greater, less, strict=True):
        verdict = "greater" if p <= ALPHA else "less" if opposite <= ALPHA else "undetermined"
        yield row | {
            "p_holm": p,
            "p_opposite": opposite,
            "verdict": "does not apply" if row.get("why") else verdict,
        }


def sweep_claims(frame: pd.DataFrame, regime: str | None, seed: int) -> Iterator[Row]:
    """Claims about runs of several N: where the best split is, and how the best rises.

    Rows are those of `ledger` before Holm's correction, with `p_opposite`, the p of the opposite
    claim; without a regime nothing is claimed about the split.
    """
    [sweep] = sweeps(frame)
    grid = cells(sweep)
    half, worlds = halves(grid, seed), NullWorlds.of(grid, seed=seed)
    budgets = budgets_of(grid, half)
    if regime is not None:
        yield _regime_claim(worlds, budgets, regime)
    envelope = HalvedEnvelope(worlds=worlds, budgets=budgets, half=half)
    claims = {
        "the best in sweep rises with the budget": (
            "gain of the held-out best by doubling C", envelope.rise,
        ),
        "it follows a smooth curve": (
            "spread of a quadratic through the held-out best", envelope.curve,
        ),
    }  # fmt: skip
    for claim, (measure, test) in claims.items():
        if len(budgets) < LEAST_BUDGETS:
            why = f"needs {LEAST_BUDGETS} budgets of {LEAST_RUNS} runs each, has {len(budgets)}"
            yield _idle(claim, len(sweep.runs), why)
        else:
            yield _row(claim, measure, test(), len(sweep.runs))


def _regime_claim(worlds: NullWorlds, budgets: Mapping[int, IntArray], regime: str) -> Row:
    """The claim about the best split, at the largest of the budgets with the most splits."""
    claim, sweep = f"the best split is {regime}", worlds.cells.sweep
    splits, C = max(((len(among), C) for C, among in budgets.items()), default=(0, 0))
    if splits < LEAST_SPLITS:
        why = f"needs {LEAST_SPLITS} N with {LEAST_RUNS} runs each of one budget"
        return _idle(claim, len(sweep.runs), why)
    inner, corners = budgets[C][1:-1], budgets[C][[0, -1]]
    ahead, behind = (inner, corners) if regime == "interior" else (corners, inner)
    measure = f"best {regime} split less the best other at C = {C}"
    runs = int(worlds.cells.counts[budgets[C]].sum())
    return _row(claim, measure, best_above_best(worlds, ahead, behind), runs)


def _row(claim: str, measure: str, found: Tested, runs: int) -> Row:
    return {"claim": claim, "measure": measure, "n": runs, **asdict(found)}


def halves(grid: SplitCells, seed: int) -> FloatArray:
    """Which half each run of a cell is in, 0 or 1, the same in all cells of its N, as `values`."""
    half, rng = np.zeros(grid.values.shape), np.random.default_rng([seed, 3])
    for N, part in grid.sweep.strata():
        order = rng.permutation(part.stop - part.start)
        half[np.ix_(order[::2], grid.children == N)] = 1
    return half


def budgets_of(grid: SplitCells, half: FloatArray) -> dict[int, IntArray]:
    """Cells of each budget in which enough runs have a fitness, in both halves, by calls."""
    known = ~np.isnan(grid.values)
    enough = (grid.counts >= LEAST_RUNS) & np.isfinite(grid.means)
    enough &= (known & (half == 0)).any(axis=0) & (known & (half == 1)).any(axis=0)
    found = {int(C): np.flatnonzero(enough & (grid.calls == C)) for C in np.unique(grid.calls)}
    return {C: among for C, among in found.items() if len(among)}


def _pool_claims(frame: pd.DataFrame, policies: Sequence[str], seed: int) -> Iterator[Row]:
    """Of the N with the most runs, those as deep as half of them: what a pool, and a choice, give.

    The generations that an unfinished run lacks are no evidence of how well it does.
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
    if n < (least := usual_runs(2)) or rounds < 4:
        why = f"needs {least} runs of one N of 4 or more generations, has {n} of {rounds}"
    pools = None if why else Pools(part, seed=seed)
    if pools and any(pools.nothing(name) for name in {"single", "random", *policies}):
        pools, why = None, "a pool found nothing ok, which has no mean"
    for claim, a, b in pairs:
        if pools is None:
            yield _idle(claim, n, why)
            continue
        found = judge_pools(part, pools, a, b, 0.0)
        decides = deciding_limits(found.interval, pools.K)
        above = p_above(found.effect, decides, n, found.interval.level)
        p, opposite = np.minimum(2 * np.array([above, 1 - above]), 1.0)
        null_p = np.nan
        if b == "random":  # worlds without better arms must not do as well
            chance = pools.null_p(a, b, above=float(p))
            null_p, p = (chance if chance > p else np.nan), max(p, chance)
        yield {
            "claim": claim, "measure": f"{a} less {b}, N = {N}, {found.setting}",
            "value": found.effect, "low": found.interval.low, "high": found.interval.high,
            "n": n, "detectable": found.detectable, "runs_needed": found.runs_needed,
            "p": p, "p_opposite": opposite, "null_p": null_p, "held_back": bool(found.held_back),
        }  # fmt: skip


def _idle(claim: str, n: int, why: str) -> Row:
    """A claim that does not apply to these runs."""
    nothing = dict.fromkeys(("value", "low", "high", "p", "p_opposite", "detectable"), np.nan)
    return {"claim": claim, "measure": "", **nothing, "n": n, "why": why}
