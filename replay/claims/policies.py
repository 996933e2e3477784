"""Policy claims of a protocol, judged by replaying its complete runs.

    table = policy_claims("local-tsp-policies", "logs/corpus/local-tsp-policies")

The estimator is the one that the protocol states: the mean difference between two policies over
pools of runs drawn without replacement, with the variance of `replay.statistics.jackknife` and
Student's t with n - 1 degrees of freedom.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Iterator

import pandas as pd
from scipy import stats

from evo.logs.log import Log
from evo.policies import PolicyClass, find_policy
from evo.policies.base import Ints
from evo.studies.protocol import PolicyClaim, Protocol, load_protocol, logs_of
from replay.logs.frames import fitness_matrix
from replay.logs.tables import load
from replay.simulation.simulate import simulate
from replay.statistics.intervals import FloatArray
from replay.statistics.jackknife import jackknife

COLUMNS = (
    *("claim", "text", "role", "condition", "policy", "against", "alternative", "alpha"),
    *("arms", "pulls", "replicates", "n", "planned", "effect", "standard_error", "low", "high"),
    *("p", "verdict", "expected", "why"),
)


def policy_claims(
    protocol: Protocol | str | os.PathLike[str], folder: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """Judges a protocol's claims about policies, in the order in which they are tested.

    Only complete runs count, and of these the longest beginning of the written order: a run that
    was completed while an earlier one was not is left out.

    Args:
        protocol: A protocol, its file, or the name of a shipped one.
        folder: Folder of its logs (default: `logs/local/NAME`).

    Returns:
        One row per claim: claim, text, role, condition, policy, against, alternative, alpha, arms
        (K), pulls, replicates, n (runs used), planned (runs), effect (policy less against),
        standard_error (over runs), low and high (limits at level 1 - 2 alpha of a one-sided claim
        and 1 - alpha of a two-sided one), p, verdict (`greater`, `less` or `undetermined`;
        `descriptive` where the claim asks for none), expected, and why nothing was decided.

    Raises:
        ProtocolError: There is no such protocol.
    """
    stated = protocol if isinstance(protocol, Protocol) else load_protocol(protocol)
    logs = logs_of(stated, folder)
    rows = list[dict[str, object]]()
    blocked = ""
    for claim in stated.policy_claims:
        condition = next(each for each in stated.conditions if each.name == claim.condition)
        begun = {log.header.seed: log for log in logs[condition.name]}
        in_order = (begun.get(seed) for seed in condition.numbers)
        complete = list(_complete(in_order, condition.generations))
        row = {**_stated(claim), "planned": condition.runs, **judge_policies(claim, complete)}
        if claim.role == "descriptive":
            row["verdict"] = "descriptive"
        elif blocked:
            row |= {"verdict": "undetermined", "why": f"not tested, because {blocked} was not accepted"}
        elif row["verdict"] == "undetermined":
            blocked = repr(claim.name)
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def judge_policies(claim: PolicyClaim, logs: list[Log]) -> dict[str, object]:
    """Judges one policy claim on complete runs; returns the columns from `n` on."""
    n = len(logs)
    unknown: dict[str, object] = dict.fromkeys(
        ("effect", "standard_error", "low", "high", "p"), math.nan
    )
    if n <= claim.arms:
        why = f"needs more than {claim.arms} complete runs, got {n}"
        return {"n": n, **unknown, "verdict": "undetermined", "why": why}
    fitness = fitness_matrix(load([log.path for log in logs], progress=False))
    ends, arms = _replay(claim, claim.policy, fitness)
    baseline, _ = _replay(claim, claim.against, fitness)
    found = jackknife((ends - baseline)[:, None], arms, n)
    effect, variance = float(found.mean[0]), float(found.variance[0])
    if not variance > 0.0:
        why = "the estimated variance over runs is not positive"
        return {"n": n, **unknown, "effect": effect, "verdict": "undetermined", "why": why}
    error, law = math.sqrt(variance), stats.t(n - 1)
    one_sided = claim.alternative == "greater"
    half = error * float(law.isf(claim.alpha if one_sided else claim.alpha / 2))
    tail = float(law.sf(effect / error))
    p = tail if one_sided else 2 * min(tail, 1.0 - tail)
    apart = "undetermined" if p >= claim.alpha else "greater" if effect > 0 else "less"
    return {
        "n": n, "effect": effect, "standard_error": error, "low": effect - half,
        "high": effect + half, "p": p, "verdict": apart, "why": "",
    }  # fmt: skip


def _replay(claim: PolicyClaim, policy: str, fitness: FloatArray) -> tuple[FloatArray, Ints]:
    """Returns the best fitness at the end of each replicate, and the runs that it drew."""
    chosen: PolicyClass = find_policy(policy)
    if policy in claim.parameters:
        chosen = functools.partial(chosen, **claim.parameters[policy])
    replay = simulate(
        fitness, chosen, arms=claim.arms, rounds=claim.pulls, replicates=claim.replicates,
        seed=claim.seed, reward=claim.reward, replace=False,
    )  # fmt: skip
    return replay.best_fitness[:, -1], replay.arms


def _complete(logs: Iterator[Log | None], generations: int) -> Iterator[Log]:
    """The runs in order, up to the first one that is missing or too short."""
    return (
        log
        for log in itertools.takewhile(
            lambda log: log is not None and len(log.generations) >= generations, logs
        )
        if log is not None
    )


def _stated(claim: PolicyClaim) -> dict[str, object]:
    """The columns that the protocol states."""
    return {
        "claim": claim.name, "text": claim.text, "role": claim.role, "condition": claim.condition,
        "policy": claim.policy, "against": claim.against, "alternative": claim.alternative,
        "alpha": claim.alpha, "arms": claim.arms, "pulls": claim.pulls,
        "replicates": claim.replicates, "expected": claim.expected,
    }  # fmt: skip
