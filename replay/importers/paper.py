"""Logs of self-evolving-allocation, the code of arXiv 2605.29268: read, and written.

Greedy results, `greedy_C<C>_T<T>_N<N>_seed<seed>.json`, and bandit results,
`<algo>_C<C>_T<T>_K<K>_seed<seed>.json`, whose arms are greedy results inside one file. What counts
as a valid child is its own flag `valid`: `n_valid` counts every parsed child, and fitness 0 may be
a failure or a legal zero.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import msgspec

from evo.logs.cost import TIMEOUT_RULES, TimeoutRule, cost_of_calls, lacks_usage
from evo.logs.journal import LogError, file_name, write_new
from evo.logs.log import Log, read_log
from evo.logs.records import Attempt, Child, Model, Outcome
from evo.logs.types import JsonObject
from evo.studies.allocation.journal import read_journal
from replay.importers import foreign, reading
from replay.importers.foreign import Failure, Imported
from replay.importers.reading import LogFormatError
from replay.logs.others import lasting_name

ALIASES = {"circle_packing": "cp", "min_max_distance": "mmd", "heilbronn_triangle": "ht"}
"""The paper's short names of the shipped tasks."""

_UNSAID = "why a child is not valid; times of evaluations"
_FILE_NAME = re.compile(r"_C\d+_T\d+_[NK]\d+_seed\d+\.json$")
_ANSWERED = re.compile(r"Error code: (\d{3})\b")  # an endpoint that refuses computes nothing


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
    """Whether the path is called like a result."""
    return _FILE_NAME.search(path.name) is not None and path.is_file()


def read(path: Path) -> list[Imported]:
    """Reads one result."""
    found = reading.parse_file(path, JsonObject)
    if "arm_results" not in found:
        return [_imported(reading.convert(found, _Greedy, path), path, path.stem, None)]
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
        lost=["programs, replies and sampling settings", _UNSAID],
        pool=pool,
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


def export_paper(log: Log, folder: Path) -> Path:
    """Writes `<folder>/<task>/<model>/greedy_C<C>_T<T>_N<N>_seed<seed>.json`.

    Complete generations only. The layout has no place for statuses of evaluations, programs,
    replies and protections. Unknown numbers become null.
    """
    run = _greedy(log)
    name = "greedy_C{C}_T{T}_N{N}_seed{seed}.json".format(**run)
    if run["seed"] < 0 and (there := _place(run, folder, name)).exists():
        raise LogError(
            f"{lasting_name(log.path)}: its seed is unknown, and the paper's layout tells runs of "
            f"one task, model, T and N apart by their seeds alone: {there} exists already; export "
            "each such run to a folder of its own"
        )
    return _write(run, folder, name)


def export_bandit(journal: Path, folder: Path) -> Path:
    """Writes `<folder>/bandit/<task>/<model>/<algo>_C<C>_T<T>_K<K>_seed<seed>.json`.

    `journal` is the allocation.jsonl of an allocation; it names the logs of the arms.
    """
    found = read_journal(journal)
    header, rounds = found.header, [found.told[k] for k in sorted(found.told)]
    arms = [_greedy(read_log(journal.parent / arm.log)) for arm in header.arms]
    pulls, n = [each.arm for each in rounds], arms[0]["N"]
    finals = [arm["final_fitness"] for arm in arms]
    best = max((each for each in finals if each is not None), default=None)
    per_round = _flops_by_round(pulls, arms)
    bandit = {
        "algo": header.policy, "task": arms[0]["task"], "model": arms[0]["model"],
        "T_total": len(rounds), "N": n, "n_arms": len(arms), "seed": header.seed,
        "arm_seeds": [arm.seed for arm in header.arms], "selections": pulls,
        "rewards": [each.reward for each in rounds],
        "running_best": [each.best_fitness for each in rounds],
        "arm_pulls": [pulls.count(arm) for arm in range(len(arms))], "C": len(rounds) * n,
        "final_best_fitness": best, "arm_final_fitness": finals,
        "best_arm_seed": None if best is None else header.arms[finals.index(best)].seed,
        "flops_per_round": per_round, "cumulative_flops": _running_sum(per_round),
        "total_flops_worst_case": _running_sum([_worst(arm) for arm in arms])[-1],
        "arm_results": arms,
    }  # fmt: skip
    name = f"{header.policy}_C{len(rounds) * n}_T{len(rounds)}_K{len(arms)}_seed{header.seed}.json"
    return _write(bandit, folder / "bandit", name)


def _worst(arm: JsonObject) -> float | None:
    total: float | None = arm["flops"]["worst_case"]["total_flops"]
    return total


def _flops_by_round(pulls: list[int], arms: list[JsonObject]) -> list[float | None]:
    """Returns the FLOPs of the generation that each round revealed; None where unknown."""
    left = [iter(arm["flops_per_generation"]) for arm in arms]
    return [next(left[arm], None) for arm in pulls]


def _running_sum(values: list[float | None]) -> list[float | None]:
    """Returns sums of the first values; None from the first unknown value on."""
    known = (math.nan if value is None else value for value in values)
    return [None if math.isnan(each) else each for each in itertools.accumulate(known)]


def _place(result: JsonObject, folder: Path, name: str) -> Path:
    parts = (result["task"], result["model"].replace("/", "_"), name)
    return folder.joinpath(*map(file_name, parts))


def _write(result: JsonObject, folder: Path, name: str) -> Path:
    target = _place(result, folder, name)
    write_new(target, json.dumps(result, indent=1, allow_nan=False).encode() + b"\n")
    return target


def _greedy(log: Log) -> JsonObject:
    if log.initial is None:
        raise LogError(
            f"{lasting_name(log.path)}: has no generation 0, which the paper's layout begins with"
        )
    header, total = log.header, len(log.generations)
    several = header.model_name if header.models else ""
    best = [None if math.isnan(value) else float(value) for value in log.trajectory]
    groups: list[list[Outcome]] = [[] for _ in log.generations]
    for outcome in log.outcomes:
        if outcome.generation <= total:
            groups[outcome.generation - 1].append(outcome)
    entries: list[JsonObject] = [
        {"generation": 0, "best_fitness": best[0], "n_children": 0, "n_valid": 0,
         "n_improved": 0, "children": [], "gen_time_s": 0.0}
    ]  # fmt: skip
    for number, (generation, group) in enumerate(zip(log.generations, groups, strict=True), 1):
        children, parent = [_stated(outcome) for outcome in group], best[number - 1]
        found = [child["fitness"] for child in children if child["valid"]]
        entries.append({
            "generation": number, "best_fitness": best[number], "parent_fitness": parent,
            "n_children": len(children),
            "n_valid": sum(child["fitness"] is not None for child in children),
            "n_improved": sum(parent is None or fitness > parent for fitness in found),
            "children": children, "gen_time_s": generation.seconds,
        })  # fmt: skip
    outcomes = [outcome for group in groups for outcome in group]
    flops = {rule: _flops(log, outcomes, rule) for rule in TIMEOUT_RULES}
    return {
        "task": ALIASES.get(header.task.name, header.task.name), "model": header.model_name,
        "model_name": several or header.model.id or header.model.name, "C": total * header.children,
        "T": total, "N": header.children, "seed": header.seed, "final_fitness": best[-1],
        "trajectory": entries, "wall_time_seconds": log.seconds,
        "flops": {"params_active": None if several else header.model.active_parameters, **flops},
        "flops_per_generation": [
            cost_of_calls(group, header).flops for group in groups
        ],
    }  # fmt: skip


def _stated(outcome: Outcome) -> JsonObject:
    """A child; unparsed ones have no fitness, failed ones 0, as in the paper's code."""
    status, unparsed = outcome.evaluation.status, {"no_reply", "no_program"}
    attempts = [
        {"attempt_idx": number, "status": _status(attempt), "latency_s": attempt.latency,
         "usage": attempt.usage, "finish_reason": attempt.finish_reason,
         "timed_out": attempt.status == "timeout"}
        | ({} if attempt.error is None else {"error": attempt.error})
        for number, attempt in enumerate(outcome.attempts)
    ]  # fmt: skip
    return {
        "idx": outcome.index, "seed": outcome.seed,
        "fitness": None if status in unparsed else outcome.evaluation.fitness or 0.0,
        "valid": status == "ok", "attempts": attempts,
        "final_status": attempts[-1]["status"] if attempts else None,
    }  # fmt: skip


def _status(attempt: Attempt) -> str:
    if attempt.status != "error":
        return attempt.status
    return f"error:{attempt.http_status or 'Unknown'}"


def _flops(log: Log, outcomes: list[Outcome], rule: TimeoutRule) -> JsonObject:
    attempts = [attempt for outcome in outcomes for attempt in outcome.attempts]
    cost = cost_of_calls(outcomes, log.header, rule=rule)
    return {
        "total_flops": cost.flops,
        **{f"n_{s}": sum(a.status == s for a in attempts) for s in ("ok", "timeout", "error")},
        "n_without_usage": sum(lacks_usage(attempt) for attempt in attempts),
        "timeout_policy": rule, "sum_prompt_tokens": cost.prompt_tokens,
        "sum_completion_tokens": cost.completion_tokens,
        "sum_cached_prompt_tokens": cost.cached_tokens,
        "prefix_cache_hit_rate": cost.cache_hit_rate,
    }  # fmt: skip
