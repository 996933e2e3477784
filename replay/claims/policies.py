"""Claims of a protocol about allocation policies, by the estimator that the protocol states.

Both policies are replayed on the same pools of a condition's complete runs. The effect is the mean
difference over replicates; its variance over runs is V of `replay.statistics.jackknife`, and
interval and p are those of Student's t with n - 1 degrees of freedom. Where V is not positive,
nothing is decided. Claims are tested in the order of the file: one is tested only if all before it
were accepted.

Runs enter in the order in which the protocol writes their seeds, up to the first that is not
complete. Which runs enter a finished part is therefore settled beforehand, and n is theirs.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evo.logs.log import Log
from evo.logs.types import JsonObject
from evo.policies import find_policy
from evo.studies.protocol import Condition, PolicyClaim, Protocol
from replay.claims.decision import Outcome, detectable, power, power_band, still_needed
from replay.simulation.simulate import Replay, simulate
from replay.simulation.sizes import pool_kind
from replay.statistics.intervals import FloatArray, measured, name_of, student
from replay.statistics.jackknife import jackknife


def policy_claim_rows(
    protocol: Protocol, logs: Mapping[str, Sequence[Log]], planned: Mapping[str, int]
) -> list[JsonObject]:
    """Rows of `replay.protocol_claims` for a protocol's claims about policies, in their order."""
    wanted = {claim.condition for claim in protocol.policy_claims}
    stated = {each.name: each for each in protocol.conditions if each.name in wanted}
    fitness, notes = {}, {}
    for name, condition in stated.items():
        entering = first_complete(condition, logs[name])
        curves = [log.trajectory[: condition.generations + 1] for log in entering]
        shape = (-1, condition.generations + 1)
        fitness[name] = np.array(curves, dtype=np.float64).reshape(shape)
        left = sum(is_complete(condition, log) for log in logs[name]) - len(entering)
        notes[name] = (
            f"{left} complete runs do not enter: in the written order of the seeds they come after "
            "one that is not complete"
            if left
            else ""
        )
    cached = functools.cache(functools.partial(_replayed, fitness))
    rows, accepted = [], True
    for claim in protocol.policy_claims:
        row = _estimated(claim, fitness[claim.condition], cached, planned[claim.condition])
        if claim.role != "descriptive":
            if not accepted:
                why = row["why"] or "not tested: a claim before it was not accepted"
                row |= {"verdict": "undetermined", "why": why}
            accepted &= row["verdict"] in ("greater", "less")
        row["why"] = "; ".join(filter(None, [row["why"], notes[claim.condition]]))
        rows.append(row)
    return rows


def first_complete(condition: Condition, logs: Sequence[Log]) -> list[Log]:
    """The complete runs of a condition, in the written order, before the first that is not."""
    copies = range(condition.copies) if condition.forks else (-1,)
    known = {
        (log.header.seed, log.header.fork.copy if log.header.fork else -1): log for log in logs
    }
    found: list[Log] = []
    for place in itertools.product(condition.numbers, copies):
        log = known.get(place)
        if log is None or not is_complete(condition, log):
            break
        found.append(log)
    return found


def is_complete(condition: Condition, log: Log) -> bool:
    """Whether a run of a condition has all its generations."""
    return len(log.generations) >= condition.generations


def _replayed(
    fitness: Mapping[str, FloatArray],
    condition: str,
    policy: str,
    parameters: tuple[tuple[str, float], ...],
    setting: tuple[int, int, int, int, str],
) -> Replay:
    arms, pulls, replicates, seed, reward = setting
    return simulate(
        fitness[condition], find_policy(policy, **dict(parameters)) if parameters else policy,
        rounds=pulls, arms=arms, replicates=replicates, seed=seed, reward=reward, replace=False,
    )  # fmt: skip


def _estimated(
    claim: PolicyClaim, fitness: FloatArray, replayed: Callable[..., Replay], planned: int
) -> JsonObject:
    """The row of one claim, tested as if it stood alone."""
    from scipy.special import nctdtr, stdtr

    n, level = len(fitness), 1 - claim.alpha * (2 if claim.alternative == "greater" else 1)
    row: JsonObject = {
        "claim": claim.name, "text": claim.text, "measure": "final_fitness",
        "kind": "descriptive" if claim.role == "descriptive" else "confirmatory",
        "a": claim.policy, "b": claim.against, "n_a": n, "n_b": n,
        "planned_a": planned, "planned_b": planned, "margin": 0.0, "level": level,
        **dict.fromkeys(("effect", "low", "high", "p", "e_value", "p_holm"), math.nan),
        **dict.fromkeys(("detectable", "power", "runs_needed"), math.nan), "interval": "",
        "power_low": math.nan, "power_high": math.nan,
        "null": f"no effect over runs, Student's t with {n - 1} degrees of freedom",
        "verdict": "descriptive" if claim.role == "descriptive" else "undetermined", "why": "",
    }  # fmt: skip
    if n <= claim.arms:
        return row | {"why": f"{n} complete runs, pools of {claim.arms} need more"}
    setting = (claim.arms, claim.pulls, claim.replicates, claim.seed, claim.reward)
    one, other = (
        replayed(
            claim.condition, name, tuple(sorted(claim.parameters.get(name, {}).items())), setting
        )
        for name in (claim.policy, claim.against)
    )
    gain = one.best_fitness[:, -1] - other.best_fitness[:, -1]
    found = jackknife(gain[:, None], one.arms, n)
    effect, variance = float(found.mean[0]), float(found.variance[0])
    row["effect"] = effect
    if not variance > 0:
        return row | {"why": "the estimated variance over runs is not positive: nothing is decided"}
    error, freedom = math.sqrt(variance), float(n - 1)
    greater = float(stdtr(freedom, -effect / error))
    p = greater if claim.alternative == "greater" else 2 * min(greater, 1 - greater)
    limit, finds = float(student(level, freedom)), detectable(error, freedom, level)
    half = limit * error
    verdict = row["verdict"]
    if verdict != "descriptive" and p < claim.alpha:
        verdict = "greater" if effect > 0 else "less"
    coverage = measured(pool_kind("effect", n, claim.arms), n, level)
    decided: Outcome = "undetermined" if p >= claim.alpha else "greater"
    needed = still_needed(n, effect, 0.0, error, freedom, decided, level=level)
    seen = power(effect, error, freedom, level)
    if claim.alternative == "greater" and effect <= 0:  # more runs would not accept the claim
        needed = math.inf
        seen = float(np.nan_to_num(1 - nctdtr(freedom, effect / error, limit)))
    if needed:
        band = power_band(effect, error, freedom, 1 + needed / n, level)
        row |= {"power_low": band[0], "power_high": band[1]}
    return row | {
        "low": effect - half, "high": effect + half, "p": p, "verdict": verdict,
        "interval": f"{100 * level:g} % interval by the stated formula ({name_of(coverage, level)} "
        "as measured)" if math.isfinite(coverage) else f"{100 * level:g} % interval",
        "detectable": finds, "power": seen, "runs_needed": needed,
    }  # fmt: skip
