"""Logs of self-evolving-allocation, the code of arXiv 2605.29268.

Reads greedy results, `greedy_C<C>_T<T>_N<N>_seed<seed>.json`, and bandit results,
`<algo>_C<C>_T<T>_K<K>_seed<seed>.json`, whose arms are greedy results inside one file. What counts
as a valid child is its own flag `valid`: `n_valid` counts every parsed child, and fitness 0 may be
a failure or a legal zero.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from evo.records import Attempt, Child, Model, Sampling
from replay.importers.foreign import (
    UNKNOWN_SAMPLING,
    UNKNOWN_SEED,
    Failure,
    Imported,
    LogFormatError,
    Pool,
    assemble,
    born,
    common,
    convert,
    finite,
    judged,
    parse_file,
)

NAME = "self-evolving-allocation"
FILE_NAME = re.compile(r"_C\d+_T\d+_[NK]\d+_seed\d+\.json$")
_ANSWERED = re.compile(r"Error code: (\d{3})\b")  # an endpoint that refuses computes nothing


class _Attempt(msgspec.Struct):
    status: str
    latency_s: float | None = None
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    estimated_output_tokens: float | None = None
    error: str | None = None


class _Child(msgspec.Struct):
    idx: int
    seed: int
    fitness: float | None
    valid: bool
    attempts: list[_Attempt] = []


class _Generation(msgspec.Struct):
    generation: int
    best_fitness: float | None
    children: list[_Child] = []
    gen_time_s: float | None = None


class _Flops(msgspec.Struct):
    params_active: int | None = None


class _Greedy(msgspec.Struct):
    N: int
    seed: int
    trajectory: list[_Generation]
    task: str | None = None
    model: str | None = None
    model_name: str | None = None
    flops: _Flops | None = None


class _Bandit(msgspec.Struct):
    arm_results: list[_Greedy]
    task: str | None = None
    model: str | None = None
    algo: str = "unknown"
    seed: int = UNKNOWN_SEED
    selections: list[int] = []
    rewards: list[float] = []
    running_best: list[float | None] = []


def recognises(path: Path) -> bool:
    """Whether the path is called like a result."""
    return FILE_NAME.search(path.name) is not None and path.is_file()


def read(path: Path) -> list[Imported]:
    """Reads one result."""
    found = parse_file(path, dict[str, Any])
    if "arm_results" not in found:
        return [_imported(convert(found, _Greedy, path), path, path.stem, None)]
    bandit = convert(found, _Bandit, path)
    rounds, arms = len(bandit.selections), len(bandit.arm_results)
    if not len(bandit.rewards) == len(bandit.running_best) == rounds:
        raise LogFormatError(f"{path}: expected as many rewards and running_best as selections")
    for number, arm in enumerate(bandit.arm_results):
        arm.task, arm.model = arm.task or bandit.task, arm.model or bandit.model
        pulled, made = bandit.selections.count(number), len(arm.trajectory) - 1
        if rounds and pulled != made:
            raise LogFormatError(
                f"{path}: arm {number} was selected {pulled} times but has {made} generations"
            )
    if rounds and not 0 <= min(bandit.selections) <= max(bandit.selections) < arms:
        raise LogFormatError(f"{path}: expected selections among {arms} arms")
    pool = None
    if rounds:
        pool = Pool(
            name=path.stem,
            policy=bandit.algo,
            seed=bandit.seed,
            picks=bandit.selections,
            rewards=bandit.rewards,
            best=bandit.running_best,
        )
    return [
        _imported(arm, path, f"{path.stem}/arm-{number:02}", pool)
        for number, arm in enumerate(bandit.arm_results)
    ]


def _imported(run: _Greedy, path: Path, name: str, pool: Pool | None) -> Imported:
    numbers = [entry.generation for entry in run.trajectory]
    if not numbers or numbers != list(range(len(numbers))):
        raise LogFormatError(
            f"{path}: expected a trajectory of generations 0, 1, 2, ..., got {numbers[:8]}"
        )
    if run.N < 1:
        raise LogFormatError(f"{path}: expected N of at least 1, got {run.N!r}")
    first, *later = run.trajectory
    estimates = {
        attempt.estimated_output_tokens
        for entry in later
        for child in entry.children
        for attempt in child.attempts
    }
    # What a timed-out attempt was taken for is max_tokens, if it is one number throughout.
    limit = common(estimates - {None})
    made = assemble(
        path,
        NAME,
        name=name,
        task=run.task or "unknown",
        model=Model(
            name=run.model or run.model_name or "unknown",
            id=run.model_name,
            active_parameters=run.flops.params_active if run.flops else None,
        ),
        children=[[_child(child, entry.generation) for child in entry.children] for entry in later],
        initial=judged(first.best_fitness),
        lost=(
            "programs, replies and sampling settings",
            "why a child is not valid",
            "times of evaluations",
        ),
        pool=pool,
        n=run.N,
        seed=run.seed,
        sampling=UNKNOWN_SAMPLING
        if limit is None
        else Sampling(temperature=None, top_p=None, max_tokens=int(limit)),
        seconds=[finite(entry.gen_time_s) for entry in later],
    )
    for entry, ours in zip(later, made.generations, strict=True):
        stated = finite(entry.best_fitness)
        if stated is not None and (
            ours.best_fitness is None or abs(stated - ours.best_fitness) > 1e-9
        ):
            raise LogFormatError(
                f"{path}: generation {entry.generation} states best fitness {stated!r}, but its "
                f"children give {ours.best_fitness!r}"
            )
    return made


def _child(child: _Child, generation: int) -> Child:
    failure: Failure | None = None
    if not child.valid:
        if child.attempts and all(attempt.status != "ok" for attempt in child.attempts):
            failure = ("no_reply", f"attempts: {', '.join(a.status for a in child.attempts)}")
        elif child.fitness is None:  # what was not parsed has none, what failed has 0
            failure = ("no_program", "no fitness in the source")
        else:
            failure = (None, "not valid; the source does not say why")
    return born(
        generation,
        judged(child.fitness, failure=failure),
        index=child.idx,
        seed=child.seed,
        attempts=tuple(_attempt(attempt) for attempt in child.attempts),
    )


def _attempt(attempt: _Attempt) -> Attempt:
    known = attempt.status in {"ok", "timeout"}
    late = attempt.status in {"timeout", "error:APITimeoutError"}  # that of its client, too
    answered = _ANSWERED.match(attempt.error or "")
    return Attempt(
        status="ok" if attempt.status == "ok" else "timeout" if late else "error",
        latency=finite(attempt.latency_s),
        usage=attempt.usage,
        finish_reason=attempt.finish_reason,
        http_status=int(answered[1]) if answered else None,
        error=attempt.error if known else f"{attempt.status} {attempt.error or ''}".strip(),
    )
