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

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from replay.frames import distinct_runs, fitness_matrix, run_lengths
from replay.verdict import POWER, judge

if TYPE_CHECKING:
    import pandas as pd

    FloatArray = NDArray[np.float64]

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


def ledger(
    sources: Mapping[str, pd.DataFrame],
    *,
    regimes: Mapping[str, str] = REGIMES,
    policies: Sequence[str] = ("ucb1", "exp3p", "thompson"),
    seed: int = 0,
) -> pd.DataFrame:
    """All claims on several sources of logs.

    Args:
        sources: Frames of `replay.load` by name.
        regimes: By task, `interior` or `corner`; other tasks have no such claim.
        policies: Names out of `POLICIES`.
        seed: Key of all draws.

    Returns:
        One row per claim: source, task, model, claim, measure (what `value` is), value, low and
        high (NaN where the null alone decides), n (runs), p (one-sided), p_holm, detectable,
        verdict, and why it does not apply.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for source, frame in sources.items():
        for (task, model), part in distinct_runs(frame).groupby(["task", "model"], sort=False):
            found = [*_sweep_claims(part, regimes.get(str(task)), seed)]
            found += _pool_claims(part, policies, seed)
            rows += [{"source": source, "task": task, "model": model, **each} for each in found]
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    table["why"] = table["why"].fillna("")
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


def _sweep_claims(
    frame: pd.DataFrame, regime: str | None, seed: int
) -> Iterator[dict[str, object]]:
    """Of runs of several N: where the best split is, and how the best rises."""
    n, values, sizes = frame["run"].nunique(), _values(frame), _sizes(frame)
    depths = run_lengths(frame)
    if regime is not None:
        claim = f"the best split is {regime}"
        C, rows = _largest_budget(sizes, depths)
        if len(np.unique(sizes[rows])) < LEAST_SPLITS:
            why = f"needs {LEAST_SPLITS} N with {LEAST_RUNS} runs each of one budget"
            yield _idle(claim, n, why)
        else:
            ends = values[rows, C // sizes[rows]]
            sign = 1.0 if regime == "interior" else -1.0
            yield {
                "claim": claim,
                "measure": f"best {regime} split less the best other at C = {C}",
                **regime_test(ends, sizes[rows], sign, seed),
            }
    claims = {
        "the best in sweep rises with the budget": ("gain of the held-out best by doubling C", 1),
        "it follows a smooth curve": ("spread of a quadratic through the held-out best", 2),
    }
    budgets = [C for C, _ in _spent(values, sizes, depths)]
    for claim, (measure, degree) in claims.items():
        if len(budgets) < LEAST_BUDGETS:
            why = f"needs {LEAST_BUDGETS} budgets of {LEAST_RUNS} runs each, has {len(budgets)}"
            yield _idle(claim, n, why)
        else:
            found = envelope_test(values, sizes, depths, degree, seed)
            yield {"claim": claim, "measure": measure, **found}


def regime_test(
    ends: FloatArray, sizes: NDArray[np.int64], sign: float, seed: int, *, detect: bool = True
) -> dict[str, float]:
    """Best interior cell less the best corner, times `sign`; runs exchanged among the N.

    Args:
        ends: Value of each run at one budget, (runs,).
        sizes: N of each run, (runs,); the smallest and the largest are the corners.
        sign: 1 for interior, -1 for a corner.
        seed: Key of the exchanges.
        detect: Find out which effect would be detected; takes a thousand times as long.

    Returns:
        value, low and high (NaN), n, p, detectable.
    """
    labels, place = np.unique(sizes, return_inverse=True)
    weights = (place[:, None] == np.arange(len(labels))) / np.bincount(place)

    def advantage(values: FloatArray) -> FloatArray:
        means = values @ weights
        corner = np.maximum(means[..., 0], means[..., -1])
        return np.asarray(sign * (means[..., 1:-1].max(axis=-1) - corner))

    order = np.random.default_rng([seed, 1]).random((DRAWS, len(ends))).argsort(axis=1)
    means = ends @ weights
    kind = np.isin(np.arange(len(labels)), (0, len(labels) - 1)) == (sign < 0)
    lifted = place == np.where(kind, means, -np.inf).argmax()

    def passes(effect: float, rng: np.random.Generator) -> bool:
        drawn = (ends - means[place])[_again(sizes, rng)] + effect * lifted
        return _p(advantage(drawn), advantage(drawn[order])) <= ALPHA

    null = advantage(ends[order])
    return _against(float(advantage(ends)), null, len(ends), passes if detect else None)


def envelope_test(
    values: FloatArray,
    sizes: NDArray[np.int64],
    depths: NDArray[np.int64],
    degree: int,
    seed: int,
    *,
    detect: bool = True,
) -> dict[str, float]:
    """The held-out best over the logarithm of C against the same with C permuted.

    Args:
        values: Best so far by run and generation, (runs, generations + 1).
        sizes: N of each run, (runs,).
        depths: Generations of each run, (runs,).
        degree: 1: what is gained with each doubling of C; 2: the standard deviation of a quadratic
            fitted to it.
        seed: Key of the halves and of the permutations.
        detect: As for `regime_test`.

    Returns:
        As `regime_test`.
    """
    half, spent = _halves(sizes, seed), _spent(values, sizes, depths)
    best, logs = _envelope(values, sizes, spent, half), np.log2([C for C, _ in spent])
    order = np.random.default_rng([seed, 2]).random((DRAWS, len(best))).argsort(axis=1)
    basis = np.linalg.qr(np.vander(logs - logs.mean(), degree + 1))[0]
    away = logs - logs.mean()

    def statistic(curves: FloatArray) -> FloatArray:
        centred = curves - curves.mean(axis=-1, keepdims=True)
        if degree == 1:
            return np.asarray(centred @ away / (away @ away))
        return np.asarray(np.sqrt(((centred @ basis) ** 2).sum(axis=-1) / len(logs)))

    level = np.full_like(values, np.nan)
    for N in np.unique(sizes):
        level[sizes == N] = values[sizes == N].mean(axis=0)
    calls = np.log2(np.maximum(np.outer(sizes, np.arange(values.shape[1])), 1))
    unit = 1.0 if degree == 1 else float(away.std())

    def passes(effect: float, rng: np.random.Generator) -> bool:
        rows = _again(sizes + len(sizes) * half * (1 + sizes.max()), rng)  # halves stay apart
        with np.errstate(invalid="ignore"):
            world = (values - level)[rows] + effect / unit * calls
        curve = _envelope(world, sizes, spent, half)
        known = bool(np.isfinite(curve).all())
        return known and _p(statistic(curve), statistic(curve[order])) <= ALPHA

    return _against(
        float(statistic(best)), statistic(best[order]), len(sizes), passes if detect else None
    )


def _p(value: FloatArray | float, drawn: FloatArray) -> float:
    """Share of draws, the value itself included, that do at least as well, up to rounding."""
    slack = 1e-12 * (np.abs(drawn).max() + abs(value))
    return float((1 + (drawn >= value - slack).sum()) / (1 + len(drawn)))


def _again(strata: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows drawn with replacement within each stratum, (runs,)."""
    rows = np.empty(len(strata), dtype=np.int64)
    for label in np.unique(strata):
        members = np.flatnonzero(strata == label)
        rows[members] = rng.choice(members, len(members))
    return rows


def _against(
    value: float,
    drawn: FloatArray,
    n: int,
    passes: Callable[[float, np.random.Generator], bool] | None,
) -> dict[str, float]:
    return {
        "value": value, "low": np.nan, "high": np.nan, "n": n, "p": _p(value, drawn),
        "p_opposite": _p(-value, -drawn),
        "detectable": _detectable(passes, float(drawn.std())) if passes else np.nan,
    }  # fmt: skip


def _detectable(passes: Callable[[float, np.random.Generator], bool], unit: float) -> float:
    """Least effect, from `unit` on, with which POWER of bootstrapped data sets pass."""

    def power(effect: float) -> float:
        found = [passes(effect, np.random.default_rng([5, k])) for k in range(BOOTSTRAPS)]
        return float(np.mean(found))

    low, high = 0.0, unit
    while unit > 0 and power(high) < POWER:
        low, high = high, 2 * high
        if high > 2**10 * unit:
            return float("inf")
    for _ in range(3 if unit > 0 else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high if unit > 0 else float("nan")


def _pool_claims(
    frame: pd.DataFrame, policies: Sequence[str], seed: int
) -> Iterator[dict[str, object]]:
    """Of the N with the most runs: what a pool and a choice among its arms are worth."""
    pairs = [("a pool beats one run", "random", "single")]
    pairs += [(f"{name} beats random allocation", name, "random") for name in policies]
    pairs += [(f"{name} beats one run", name, "single") for name in policies]
    counts = frame.groupby("children")["run"].nunique()
    N = int(counts.index[int(counts.to_numpy().argmax())])
    part, n = frame[frame["children"] == N], int(counts.max())
    rounds = int(run_lengths(part).min())
    why = ""
    if n < 2 * LEAST_RUNS or rounds < 4:
        why = f"needs {2 * LEAST_RUNS} runs of one N of 4 or more generations, has {n} of {rounds}"
    elif not np.isfinite(_values(part)[:, -1]).all():
        why = "a run found nothing ok, which has no mean"
    for claim, a, b in pairs:
        if why:
            yield _idle(claim, n, why)
            continue
        found = judge(part, a, b, 0.0, seed=seed)
        yield {
            "claim": claim,
            "measure": f"{a} less {b}, N = {N}, {found.setting}",
            "value": found.effect,
            "low": found.interval.low,
            "high": found.interval.high,
            "n": n,
            "p": found.p,
            "p_opposite": found.p_opposite,
            "detectable": found.detectable,
            "why": "",
        }


def _values(frame: pd.DataFrame) -> FloatArray:
    """Best so far by run and generation; minus infinity while nothing is ok, NaN after the end."""
    matrix = fitness_matrix(frame)
    inside = np.arange(matrix.shape[1]) <= run_lengths(frame)[:, None]
    return np.where(inside & np.isnan(matrix), -np.inf, matrix)


def _sizes(frame: pd.DataFrame) -> NDArray[np.int64]:
    return frame.groupby("run", sort=False)["children"].first().to_numpy(np.int64)


def _at(sizes: NDArray[np.int64], depths: NDArray[np.int64], C: int) -> NDArray[np.int64]:
    """Runs whose N divides C and that are deep enough for it, where their N has enough of them."""
    rows = np.flatnonzero((C % sizes == 0) & (C // sizes <= depths) & (C // sizes > 0))
    labels, counts = np.unique(sizes[rows], return_counts=True)
    return rows[np.isin(sizes[rows], labels[counts >= LEAST_RUNS])]


def _largest_budget(
    sizes: NDArray[np.int64], depths: NDArray[np.int64]
) -> tuple[int, NDArray[np.int64]]:
    """The largest budget that most N can spend, and the runs that did."""
    found = [(len(np.unique(sizes[_at(sizes, depths, C)])), C) for C in _budgets(sizes, depths)]
    C = max(found)[1] if found else 1
    return C, _at(sizes, depths, C)


def _budgets(sizes: NDArray[np.int64], depths: NDArray[np.int64]) -> list[int]:
    """Powers of two times the smallest N, up to what the longest run spent."""
    most = int((sizes * depths).max(initial=0))
    return [int(sizes.min()) * 2**k for k in range(40) if int(sizes.min()) * 2**k <= most]


def _halves(sizes: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Half the runs of each N."""
    order = np.random.default_rng([seed, 3]).permutation(len(sizes))
    half = np.zeros(len(sizes), dtype=bool)
    for N in np.unique(sizes):
        half[order[sizes[order] == N][::2]] = True
    return half


def _spent(
    values: FloatArray, sizes: NDArray[np.int64], depths: NDArray[np.int64]
) -> list[tuple[int, NDArray[np.int64]]]:
    """Budgets that enough runs spent, each with a fitness by then, and these runs."""
    found = [(C, _at(sizes, depths, C)) for C in _budgets(sizes, depths)]
    return [
        (C, rows)
        for C, rows in found
        if len(rows) >= LEAST_RUNS and np.isfinite(values[rows, C // sizes[rows]]).all()
    ]


def _envelope(
    values: FloatArray,
    sizes: NDArray[np.int64],
    spent: list[tuple[int, NDArray[np.int64]]],
    half: NDArray[np.bool_],
) -> FloatArray:
    """Value of the best split of each budget: chosen on half the runs, scored on the rest."""
    best = []
    for C, rows in spent:
        ends, scores = values[rows, C // sizes[rows]], []
        place = np.unique(sizes[rows], return_inverse=True)[1]
        sums, counts = (
            [np.bincount(place, weights * part) for part in (half[rows], ~half[rows])]
            for weights in (ends, np.ones(len(rows)))
        )
        for chosen in (0, 1):
            means = np.where(counts[chosen] > 0, sums[chosen], -np.inf)
            top = int((means / np.maximum(counts[chosen], 1)).argmax())
            scores.append(sums[1 - chosen][top] / counts[1 - chosen][top])
        best.append(float(np.mean(scores)))
    return np.array(best)


def _idle(claim: str, n: int, why: str) -> dict[str, object]:
    """A claim that does not apply to these runs."""
    nothing = dict.fromkeys(("value", "low", "high", "p", "p_opposite", "detectable"), np.nan)
    return {"claim": claim, "measure": "", **nothing, "n": n, "why": why}
