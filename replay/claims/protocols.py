"""What the runs of a protocol say: its measures by run, and its claims judged.

A protocol (`evo.studies.protocol`) states conditions, measures, margins and claims before its
first call. Only complete runs count, in claims about policies only those before the first that is
not complete. Claims are decided by the rule of `replay.claims.decision`, and those about conditions
share one error.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evo.logs.log import Log
from evo.logs.types import JsonObject
from evo.studies.protocol import Claim, Protocol, load_protocol, logs_of
from evo.tasks.task import load_task
from replay.claims.decision import decide
from replay.claims.judging import judge
from replay.claims.policies import policy_claim_rows
from replay.statistics.intervals import LEAST, FloatArray
from replay.statistics.resampling import holm, resampled
from replay.statistics.sequential import e_holm

Stated = Protocol | str | os.PathLike[str]
"""A protocol, its file, or the name of a shipped one."""

ALPHA = 0.05
RESAMPLES = 2000
MEASURES = ("final_fitness", "check_fitness", "reach", "improving", "improves", "works")
_RUN = (
    *("condition", "run", "seed", "root", "copy", "task", "model", "children", "generation"),
    *("calls", "ok"),
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


def protocol_runs(
    protocol: Stated, folder: str | os.PathLike[str] | None = None, *, reach: float | None = None
) -> pd.DataFrame:
    """Returns the complete runs of a protocol with its measures.

    Args:
        protocol: A protocol, its file, or the name of a shipped one.
        folder: Where its logs are; None: `logs/local/NAME`.
        reach: Fitness that the measure `reach` asks for; None: of the textbook rule, the first of
            the task's `references`.

    Returns:
        One row a run: condition, run, seed, root and copy (of a fork, else the run itself and -1),
        task, model, children (N), generation (T), calls (that it paid for, as in all below), ok
        (share), final_fitness, check_fitness (of the final program; NaN where the task checks
        nothing), reach (1 or 0), improving (generations that replaced the parent, per call),
        improves (1 if any did, else 0), works (1 if any child was ok, else 0).

    Raises:
        ProtocolError: There is no such protocol.

    Example:
        >>> replay.protocol_runs("local-tsp", new("")).columns.tolist()[:3]
        ['condition', 'run', 'seed']
    """
    protocol = loaded(protocol)
    return _complete_runs(protocol, logs_of(protocol, folder), reach=reach)


def _complete_runs(
    protocol: Protocol, logs: Mapping[str, Sequence[Log]], *, reach: float | None = None
) -> pd.DataFrame:
    """`protocol_runs` of logs that were read."""
    wanted = dict.fromkeys(protocol.tasks, reach)
    if reach is None:
        wanted = {task: next(iter(load_task(task).references.values()), None) for task in wanted}
    rows = [
        {"condition": condition.name, **_measured(log, wanted[log.header.task.name])}
        for condition in protocol.conditions
        for log in logs[condition.name]
        if len(log.generations) >= condition.generations
    ]
    return pd.DataFrame(rows, columns=[*_RUN, *MEASURES])


def protocol_claims(
    protocol: Stated, folder: str | os.PathLike[str] | None = None, **settings: Any
) -> pd.DataFrame:
    """Returns a protocol's claims, judged on its complete runs.

    The verdicts are those of `replay.judge`. All confirmatory claims about conditions share an
    error of 5 %: by Holm's correction, or by e-Holm where the protocol is stopped once it is
    settled. Claims about policies are tested in their order, as the protocol states.

    Args:
        protocol: A protocol, its file, or the name of a shipped one.
        folder: Where its logs are; None: `logs/local/NAME`.
        **settings: See `protocol_runs`.

    Returns:
        One row a claim: claim, text, kind, measure, a, b, n_a, n_b (complete runs), planned_a,
        planned_b, effect (a less b), low, high, level, interval (what it is called), margin, null,
        p (two-sided, or one-sided where a claim about policies states it), e_value (of protocols
        that are stopped once settled), detectable (effect found in four of five repetitions), power
        (for the effect that was seen), runs_needed (further single runs for a power of four in five
        if the true effect is that one), power_low and power_high (80 % band of that power over the
        effects and spreads that these runs leave open; all before the correction), why (no verdict
        is possible), p_holm (over the confirmatory ones; one over the adjusted e-value where there
        is one), verdict: `greater`, `less`, `within margin`, `undetermined`, or `descriptive`,
        which is none.

    Example:
        >>> replay.protocol_claims("local-tsp", new(""))["verdict"].unique().tolist()
        ['undetermined', 'descriptive']
    """
    protocol = loaded(protocol)
    logs = logs_of(protocol, folder)
    runs = _complete_runs(protocol, logs, **settings)
    planned = {each.name: each.runs for each in protocol.conditions}
    follow = protocol.stop == "settled"
    rows = [_judged(claim, runs, planned, follow=follow) for claim in protocol.claims]
    _share_error(rows, follow=follow)
    rows += policy_claim_rows(protocol, logs, planned)
    table = pd.DataFrame(rows)
    return table.drop(columns=["p_within", "e_within"], errors="ignore")


def _share_error(rows: list[JsonObject], *, follow: bool) -> None:
    """Decides all claims together, in place.

    A confirmatory claim has two nulls, no effect and an effect beyond the margin; at most
    one is true. So each null is corrected together with one null of each other claim, the one with
    less against it.
    """
    stated = [row for row in rows if row["kind"] == "confirmatory"]
    kind = "e" if follow else "p"
    apart, inside = (
        np.array([row[name] for row in stated], dtype=np.float64)
        for name in ("e_value" if follow else "p", f"{kind}_within")
    )
    weaker = np.fmin(apart, inside) if follow else np.fmax(apart, inside)
    for row in rows:
        row["p_holm"] = math.nan
    for k, row in enumerate(stated):
        adjusted = []
        for own in (apart, inside):
            family = np.where(np.arange(len(stated)) == k, own, weaker)
            found = e_holm(family)[k] if follow else holm(family)[k]
            adjusted.append(float(1 / np.maximum(found, 1.0) if follow else found))
        row["p_holm"], verdict = adjusted[0], row["verdict"]
        if verdict == "within margin" and not adjusted[1] <= ALPHA:
            verdict = decide(row["low"], row["high"])
        if verdict in ("greater", "less") and not adjusted[0] <= ALPHA:
            verdict = "undetermined"
        row["verdict"] = verdict
    for row in rows:
        if row["kind"] != "confirmatory":
            row["verdict"] = "descriptive"


def best_of(
    protocol: Stated,
    folder: str | os.PathLike[str] | None = None,
    *,
    most: int = 24,
    seed: int = 0,
) -> pd.DataFrame:
    """Returns what the best of n rewrites of the initial program is worth, for n = 1 ... `most`.

    Children of the first generation of every run that was begun are rewrites of the same program;
    the expected best of n of them follows from their order statistics. A child that failed is
    worth the initial program; if that failed, too, the best of so few as may all have failed is
    minus infinity.

    Args:
        protocol: A protocol, its file, or the name of a shipped one.
        folder: Where its logs are; None: `logs/local/NAME`.
        most: Largest n.
        seed: Of the bootstrap over whole runs.

    Returns:
        Columns n, value, low, high (2.5 % and 97.5 % of 2,000 resamples of whole runs, a range
        whose coverage was not measured; NaN below five runs), children, runs.

    Example:
        >>> replay.best_of("local-tsp", new("")).columns.tolist()[:4]
        ['n', 'value', 'low', 'high']
    """
    logs = itertools.chain.from_iterable(logs_of(loaded(protocol), folder).values())
    drawn = [found for found in map(_rewrites, logs) if len(found)]
    pooled = np.concatenate([*drawn, np.empty(0)])
    sizes = np.arange(1, min(most, len(pooled)) + 1)
    low = high = np.full(len(sizes), math.nan)
    if len(drawn) >= LEAST:
        picks = resampled(len(drawn), RESAMPLES, np.random.default_rng([seed, 9]))
        again = [_expected_best(np.concatenate([drawn[k] for k in row]), sizes) for row in picks]
        low, high = np.quantile(again, [ALPHA / 2, 1 - ALPHA / 2], axis=0)
    found = {"n": sizes, "value": _expected_best(pooled, sizes), "low": low, "high": high}
    return pd.DataFrame({**found, "children": len(pooled), "runs": len(drawn)})


def loaded(protocol: Stated) -> Protocol:
    """Returns a protocol, read if need be."""
    return protocol if isinstance(protocol, Protocol) else load_protocol(protocol)


def _measured(log: Log, reach: float | None) -> JsonObject:
    header, best = log.header, log.best.evaluation
    final = -math.inf if best.fitness is None else best.fitness
    own = [outcome for outcome in log.outcomes if not outcome.inherited]
    n_ok = sum(outcome.evaluation.status == "ok" for outcome in own)
    improved = sum(each.improved for each in log.generations if not each.inherited)
    return {
        "run": log.path.name, "seed": header.seed,
        "root": header.fork.root if header.fork else log.path.name,
        "copy": header.fork.copy if header.fork else -1,
        "task": header.task.name, "model": header.model_name, "children": header.children,
        "generation": len(log.generations), "calls": len(own), "ok": n_ok / len(own),
        "final_fitness": final, "check_fitness": best.metrics.get("check_fitness", math.nan),
        "reach": math.nan if reach is None else float(final >= reach),
        "improving": improved / len(own), "improves": float(improved > 0),
        "works": float(n_ok > 0),
    }  # fmt: skip


def _judged(
    claim: Claim, runs: pd.DataFrame, planned: dict[str, int], *, follow: bool
) -> JsonObject:
    """A claim's row: `judge` on frames of one generation that holds the measure."""
    counts = runs["condition"].value_counts()
    row = {
        "claim": claim.name, "text": claim.text, "kind": claim.kind, "measure": claim.measure,
        "a": claim.a, "b": claim.b,
        "n_a": int(counts.get(claim.a, 0)), "n_b": int(counts.get(claim.b, 0)),
        "planned_a": planned[claim.a], "planned_b": planned[claim.b],
    }  # fmt: skip
    why = "" if row["n_a"] and row["n_b"] else "no complete run on one side"
    if claim.measure not in runs or runs[claim.measure].isna().all():
        why = f"no {claim.measure}"
    if why:
        return {**row, **_NOTHING, "margin": claim.margin, "why": why}
    measured = runs.assign(best_fitness=runs[claim.measure])
    frame = pd.concat([measured.assign(generation=number) for number in (0, 1)])
    a, b = ({"condition": name, "generations": 1} for name in (claim.a, claim.b))
    found = judge(frame, a, b, claim.margin, sequential=follow)
    limits = found.interval
    return {
        **row, "effect": found.effect, "low": limits.low, "high": limits.high,
        "level": limits.level, "interval": limits.label, "margin": claim.margin, "null": found.null,
        "p": found.p, "p_within": found.p_within, "e_value": found.e_value,
        "e_within": found.e_within, "detectable": found.detectable, "power": found.power,
        "runs_needed": found.runs_needed, "power_low": found.power_then[0],
        "power_high": found.power_then[1], "why": limits.note, "verdict": found.verdict,
    }  # fmt: skip


_NOTHING: JsonObject = {
    **dict.fromkeys(("effect", "low", "high", "level", "p", "p_within", "e_value"), math.nan),
    **dict.fromkeys(("e_within", "detectable", "power", "runs_needed"), math.nan),
    **dict.fromkeys(("power_low", "power_high"), math.nan),
    "interval": "", "null": "", "verdict": "undetermined",
}  # fmt: skip
"""A claim without a possible verdict."""


def _rewrites(log: Log) -> FloatArray:
    initial = log.initial.evaluation.fitness if log.initial else None
    floor = -math.inf if initial is None else initial
    own = [each for each in log.outcomes if each.generation == 1 and not each.inherited]
    found = [None if each.kept_out else each.evaluation.fitness for each in own]
    return np.array([floor if fitness is None else max(floor, fitness) for fitness in found])


def _expected_best(values: FloatArray, sizes: NDArray[np.int64]) -> FloatArray:
    """Mean of the largest of n of the values, over all choices without repetition.

    Minus infinity where all n may be children without any fitness.
    """
    ordered, chances = np.sort(values), _chances(len(values), len(sizes))
    if np.isfinite(ordered[:1]).all():
        return np.asarray(chances @ ordered)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(chances > 0, chances * ordered, 0.0).sum(axis=1))


@functools.lru_cache(maxsize=64)
def _chances(m: int, most: int) -> FloatArray:
    """Probability that the value of each rank is the largest of n = 1 ... `most` of m values.

    Where n is above m, all m are taken.
    """
    from scipy.special import comb

    n = np.minimum(np.arange(1, most + 1), m)[:, None]
    chances = np.asarray(comb(np.arange(m), n - 1) / comb(m, n))
    chances.flags.writeable = False  # it is cached
    return chances
