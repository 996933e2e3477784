"""The paper's claims checked on logs, each against a null that it can fail.

A claim holds if its null does as well in fewer than 5 % of draws, Holm's correction over the whole
ledger included; it fails if the opposite does; it is undetermined otherwise, and beside it stands
the effect that so many runs would detect in four of five repetitions. Where the logs do not hold
what a claim is about it does not apply, and `why` says what is missing. Claims are those of
"Compute Allocation in Evolutionary Search" (arXiv 2605.29268); that one holds on some logs says
nothing about other models or tasks.

- The best split is interior (or a corner): the best interior cell less the best corner of one
  budget; null: runs exchanged among the N of that budget.
- The best in sweep rises with the budget, along a smooth curve: correlation of its value with
  log C, and R2 of a quadratic; null: C permuted.
- A policy beats random allocation: the policy less `random`; null: increments permuted across arms
  at each generation.
- A pool, or a policy, beats one run: less `single`; null: none between disjoint pools.

The best in sweep is chosen among the cells of a budget on half the runs and scored on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

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

ALPHA, DRAWS = 0.05, 1999
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

    rows = []
    for source, frame in sources.items():
        for (task, model), part in distinct_runs(frame).groupby(["task", "model"], sort=False):
            found = [*_sweep_claims(part, regimes.get(str(task)), seed)]
            found += _pool_claims(part, policies, seed)
            rows += [{"source": source, "task": task, "model": model, **each} for each in found]
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    table["why"] = table["why"].fillna("")
    table["p_holm"] = holm(table["p"].to_numpy(np.float64))
    opposite = holm(1 - table["p"].to_numpy(np.float64) + 1 / (DRAWS + 1))
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
    budgets, best = _envelope(values, sizes, depths, seed)
    rises, smooth = "the best in sweep rises with the budget", "it follows a smooth curve"
    if len(budgets) < LEAST_BUDGETS:
        why = f"needs {LEAST_BUDGETS} budgets of {LEAST_RUNS} runs each, has {len(budgets)}"
        yield from (_idle(claim, n, why) for claim in (rises, smooth))
        return
    logs = np.log(budgets)
    correlation = "correlation of the held-out best with log C"
    found = envelope_test(logs, best, _correlation, seed)
    yield {"claim": rises, "measure": correlation, "n": n, **found}
    found = envelope_test(logs, best, _smoothness, seed)
    yield {"claim": smooth, "measure": "R2 of a quadratic in log C, held out", "n": n, **found}


def regime_test(
    ends: FloatArray, sizes: NDArray[np.int64], sign: float, seed: int
) -> dict[str, float]:
    """Best interior cell less the best corner, times `sign`; runs exchanged among the N.

    Args:
        ends: Value of each run at one budget, (runs,).
        sizes: N of each run, (runs,); the smallest and the largest are the corners.
        sign: 1 for interior, -1 for a corner.
        seed: Key of the exchanges.

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
    return _against(float(advantage(ends)), advantage(ends[order]), len(ends))


def envelope_test(
    logs: FloatArray,
    best: FloatArray,
    statistic: Callable[[FloatArray, FloatArray], FloatArray],
    seed: int,
) -> dict[str, float]:
    """A statistic of values over log C against the same with C permuted; see `regime_test`."""
    order = np.random.default_rng([seed, 2]).random((DRAWS, len(best))).argsort(axis=1)
    value = float(statistic(logs, best[None])[0])
    return _against(value, statistic(logs, best[order]), len(best))


def _correlation(logs: FloatArray, values: FloatArray) -> FloatArray:
    return _explained(np.vander(logs, 2), values)[1]


def _smoothness(logs: FloatArray, values: FloatArray) -> FloatArray:
    return _explained(np.vander(logs, 3), values)[0]


def _explained(design: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """R2 of least squares of each row of values, and its root with the sign of the slope."""
    basis, _ = np.linalg.qr(design)
    centred = values - values.mean(axis=1, keepdims=True)
    total = (centred**2).sum(axis=1)
    share = ((centred @ basis) ** 2).sum(axis=1) / np.where(total > 0, total, 1.0)
    slope = centred @ (design[:, -2] - design[:, -2].mean())
    return share, np.sign(slope) * np.sqrt(np.clip(share, 0, 1))


def _against(value: float, drawn: FloatArray, n: int) -> dict[str, float]:
    from replay.intervals import student

    slack = 1e-12 * (np.abs(drawn).max() + abs(value))
    factor = student(1 - 2 * ALPHA, np.inf) + student(2 * POWER - 1, np.inf)
    return {
        "value": value, "low": np.nan, "high": np.nan, "n": n,
        "p": float((1 + (drawn >= value - slack).sum()) / (1 + len(drawn))),
        "detectable": float(factor * drawn.std()),
    }  # fmt: skip


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


def _envelope(
    values: FloatArray, sizes: NDArray[np.int64], depths: NDArray[np.int64], seed: int
) -> tuple[FloatArray, FloatArray]:
    """Budgets, and the value of the best split of each: chosen on half the runs, scored on rest."""
    order = np.random.default_rng([seed, 3]).permutation(len(sizes))
    half = np.zeros(len(sizes), dtype=bool)
    for N in np.unique(sizes):
        half[order[sizes[order] == N][::2]] = True
    budgets, best = [], []
    for C in _budgets(sizes, depths):
        rows = _at(sizes, depths, C)
        ends = values[rows, C // sizes[rows]]
        if len(rows) < LEAST_RUNS or not np.isfinite(ends).all():
            continue
        scores = []
        for chosen in (half[rows], ~half[rows]):
            means = {N: ends[chosen & (sizes[rows] == N)].mean() for N in np.unique(sizes[rows])}
            N = max(means, key=lambda size: means[size])
            scores.append(ends[~chosen & (sizes[rows] == N)].mean())
        budgets.append(float(C))
        best.append(float(np.mean(scores)))
    return np.array(budgets), np.array(best)


def _idle(claim: str, n: int, why: str) -> dict[str, object]:
    """A claim that does not apply to these runs."""
    nothing = dict.fromkeys(("value", "low", "high", "p", "detectable"), np.nan)
    return {"claim": claim, "measure": "", **nothing, "n": n, "why": why}
