"""Logs of self-evolving-allocation, the code of arXiv 2605.29268.

Greedy results, `greedy_C<C>_T<T>_N<N>_seed<seed>.json`, and bandit results,
`<algo>_C<C>_T<T>_K<K>_seed<seed>.json`, whose arms are greedy results inside one file. What counts
as a valid child is its own flag `valid`: `n_valid` counts every parsed child, and fitness 0 may be
a failure or a legal zero. What `replay.importers.paper_export` writes of another search is called
after that, and states it as `search`; seed -1 is an unknown one there.
"""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

import msgspec

from evo.logs.records import Attempt, Child, Model, SearchRecord
from evo.logs.types import JsonObject
from replay.importers import foreign, reading
from replay.importers.foreign import Failure, Imported
from replay.importers.reading import LogFormatError
from replay.logs.frames import GREEDY

_UNSAID = "why a child is not valid; times of evaluations"
_FILE_NAME = re.compile(r"(.*)_C\d+_T\d+_[NK]\d+_seed-?\d+\.json(\.gz)?")
_ENDINGS = (".json", ".json.gz")
_FIRST_KEYS = (b'"C"', b'"T"', b'"seed"')
_ANSWERED = re.compile(r"(?:Error code:|HTTP) (\d{3})\b")  # a refusal: nothing was computed


class _Attempt(msgspec.Struct):
    status: str
    latency_s: float | None = None
    usage: JsonObject | None = None
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
    search: str | None = None


class _Bandit(msgspec.Struct):
    arm_results: list[_Greedy]
    task: str | None = None
    model: str | None = None
    algo: str = "unknown"
    seed: int = foreign.UNKNOWN_SEED
    selections: list[int] = []
    rewards: list[float] = []
    running_best: list[float | None] = []


def recognises(path: Path) -> bool:
    """Whether the path is called like a result, or is a file of JSON that begins as one does."""
    if not path.name.endswith(_ENDINGS) or not path.is_file():
        return False
    return _FILE_NAME.fullmatch(path.name) is not None or _begins_as_a_result(path)


def _begins_as_a_result(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            first = file.read(1000)
    except (OSError, EOFError, zlib.error):
        return False
    return all(key in first for key in _FIRST_KEYS)


def read(path: Path) -> list[Imported]:
    """Reads one result."""
    if path.is_dir():
        raise LogFormatError(
            f"{path}: expected results in this folder, called greedy_C<C>_T<T>_N<N>_seed<seed>.json"
        )
    found = reading.parse_file(path, JsonObject)
    if "arm_results" not in found:
        run, named = reading.convert(found, _Greedy, path), _FILE_NAME.fullmatch(path.name)
        run.search = run.search or (named[1] if named else None)
        return [_imported(run, path, path.stem, None)]
    bandit = reading.convert(found, _Bandit, path)
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
    pool = foreign.Pool(
        name=path.stem,
        policy=bandit.algo,
        seed=bandit.seed,
        picks=bandit.selections,
        rewards=bandit.rewards,
        best=bandit.running_best,
    )
    return [
        _imported(arm, path, f"{path.stem}/arm-{number:02}", pool if rounds else None)
        for number, arm in enumerate(bandit.arm_results)
    ]


def _imported(run: _Greedy, path: Path, name: str, pool: foreign.Pool | None) -> Imported:
    numbers = [entry.generation for entry in run.trajectory]
    if not numbers or numbers != list(range(len(numbers))):
        raise LogFormatError(
            f"{path}: expected a trajectory of generations 0, 1, 2, ..., got {numbers[:8]}"
        )
    if run.N < 1:
        raise LogFormatError(f"{path}: expected N of at least 1, got {run.N!r}")
    first, *later = run.trajectory
    attempts = (a for entry in later for child in entry.children for a in child.attempts)
    # What a timed-out attempt was taken for is max_tokens, if it is one number throughout.
    limit = foreign.common({a.estimated_output_tokens for a in attempts} - {None})
    other = run.search not in (None, "", GREEDY)
    made = foreign.assemble(
        path,
        "self-evolving-allocation",
        name=name,
        task=run.task or "unknown",
        model=Model(
            name=run.model or run.model_name or "unknown",
            id=run.model_name,
            active_parameters=run.flops.params_active if run.flops else None,
        ),
        children=[[_child(child, entry.generation) for child in entry.children] for entry in later],
        initial=foreign.born(0, foreign.judged(first.best_fitness)),
        lost=["programs, replies and sampling settings", _UNSAID, *(["parents"] if other else [])],
        pool=pool,
        search=SearchRecord(name=str(run.search)) if other else None,
        n=run.N,
        seed=run.seed,
        sampling={"max_tokens": limit},
        seconds=[foreign.finite(entry.gen_time_s) for entry in later],
    )
    for entry, ours in zip(later, made.generations, strict=True):
        stated = foreign.finite(entry.best_fitness)
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
    return foreign.born(
        generation,
        foreign.judged(child.fitness, failure=failure),
        index=child.idx,
        seed=child.seed,
        attempts=tuple(map(_attempt, child.attempts)),
    )


def _attempt(attempt: _Attempt) -> Attempt:
    late = attempt.status in {"timeout", "error:APITimeoutError"}  # that of its client, too
    answered = _ANSWERED.match(attempt.error or "")
    known = attempt.status in {"ok", "timeout"}
    return Attempt(
        status="ok" if attempt.status == "ok" else "timeout" if late else "error",
        latency=foreign.finite(attempt.latency_s),
        usage=attempt.usage,
        finish_reason=attempt.finish_reason,
        http_status=int(answered[1]) if answered else None,
        error=attempt.error if known else f"{attempt.status} {attempt.error or ''}".strip(),
    )
