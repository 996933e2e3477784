"""Write a run in the JSON layout of self-evolving-allocation, the code of arXiv 2605.29268."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from evo.cost import TIMEOUT_RULES, TimeoutRule, cost_of_children, lacks_usage
from evo.journal import LogError, file_name, write_new
from evo.log import Log, read_log
from evo.records import Attempt, Outcome
from evo.rounds import read_journal

ALIASES = {
    "circle_packing": "cp",
    "min_max_distance": "mmd",
    "heilbronn_triangle": "ht",
}
"""The paper's short names of the shipped tasks."""


def export_paper(log: Log, folder: Path) -> Path:
    """Writes `<folder>/<task>/<model>/greedy_C<C>_T<T>_N<N>_seed<seed>.json`.

    Complete generations only. The layout has no place for statuses of evaluations, programs,
    replies and protections. Unknown numbers become null.

    Args:
        log: A run.
        folder: Folder of results, made if need be.

    Returns:
        The file.

    Raises:
        LogError: The log has no evaluation of an initial program, or the file exists already.
    """
    _require_initial(log)
    task, header, total = _task(log), log.header, len(log.generations)
    name = f"greedy_C{total * header.children}_T{total}_N{header.children}_seed{header.seed}.json"
    return _write(_result(log, task), folder, task, header.model.name, name)


def export_bandit(journal: Path, folder: Path) -> Path:
    """Writes `<folder>/bandit/<task>/<model>/<algo>_C<C>_T<T>_K<K>_seed<seed>.json`.

    `journal` is the allocation.jsonl of an allocation, whose arms' logs lie where it says.
    """
    found = read_journal(journal)
    header, told = found.header, [found.told[k] for k in sorted(found.told)]
    logs = [read_log(journal.parent / arm.log) for arm in header.arms]
    for log in logs:
        _require_initial(log)
    task, model, n = _task(logs[0]), logs[0].header.model.name, logs[0].header.children
    pulls = [each.arm for each in told]
    result = {
        "algo": header.policy,
        "task": task,
        "model": model,
        "T_total": len(told),
        "N": n,
        "n_arms": len(logs),
        "seed": header.seed,
        "arm_seeds": [arm.seed for arm in header.arms],
        "selections": pulls,
        "rewards": [each.reward for each in told],
        "running_best": [each.best_fitness for each in told],
        "arm_pulls": [pulls.count(arm) for arm in range(len(logs))],
        "arm_results": [_result(log, task) for log in logs],
    }
    name = f"{header.policy}_C{len(told) * n}_T{len(told)}_K{len(logs)}_seed{header.seed}.json"
    return _write(result, folder / "bandit", task, model, name)


def _write(result: dict[str, Any], folder: Path, task: str, model: str, name: str) -> Path:
    target = folder / file_name(task) / file_name(model.replace("/", "_")) / file_name(name)
    write_new(target, json.dumps(result, indent=1, allow_nan=False).encode() + b"\n")
    return target


def _task(log: Log) -> str:
    return ALIASES.get(log.header.task.name, log.header.task.name)


def _require_initial(log: Log) -> None:
    if log.initial is None:
        raise LogError(f"{log.path}: has no generation 0, which the paper's layout begins with")


def _result(log: Log, task: str) -> dict[str, Any]:
    header, total = log.header, len(log.generations)
    members: dict[int, list[Outcome]] = {number: [] for number in range(1, total + 1)}
    for outcome in log.outcomes:
        if outcome.generation in members:
            members[outcome.generation].append(outcome)
    trajectory = [float(value) for value in log.trajectory]
    entries: list[dict[str, Any]] = [
        {
            "generation": 0,
            "best_fitness": _number(trajectory[0]),
            "n_children": 0,
            "n_valid": 0,
            "n_improved": 0,
            "children": [],
            "gen_time_s": 0.0,
        }
    ]
    for generation in log.generations:
        number = generation.generation
        children = [_child(outcome) for outcome in members[number]]
        parent = trajectory[number - 1]
        better = [
            child["valid"] and (math.isnan(parent) or child["fitness"] > parent)
            for child in children
        ]
        entries.append(
            {
                "generation": number,
                "best_fitness": _number(trajectory[number]),
                "parent_fitness": _number(parent),
                "n_children": len(children),
                "n_valid": sum(child["fitness"] is not None for child in children),
                "n_improved": sum(better),
                "children": children,
                "gen_time_s": generation.seconds,
            }
        )
    return {
        "task": task,
        "model": header.model.name,
        "model_name": header.model.id or header.model.name,
        "C": total * header.children,
        "T": total,
        "N": header.children,
        "seed": header.seed,
        "final_fitness": _number(trajectory[-1]),
        "trajectory": entries,
        "wall_time_seconds": log.seconds,
        "flops": {
            "params_active": header.model.active_parameters,
            **{rule: _flops(log, members, rule) for rule in TIMEOUT_RULES},
        },
        "flops_per_generation": [
            cost_of_children(outcomes, header.model, header.sampling).flops
            for outcomes in members.values()
        ],
    }


def _child(outcome: Outcome) -> dict[str, Any]:
    """A child; unparsed ones have no fitness, failed ones 0, as in the paper's code."""
    status, last = outcome.evaluation.status, outcome.attempts[-1:]
    unparsed = status in {"no_reply", "no_program"}
    return {
        "idx": outcome.index,
        "seed": outcome.seed,
        "fitness": None if unparsed else outcome.evaluation.fitness or 0.0,
        "valid": status == "ok",
        "attempts": [_attempt(number, each) for number, each in enumerate(outcome.attempts)],
        "final_status": _status(last[0]) if last else None,
    }


def _attempt(number: int, attempt: Attempt) -> dict[str, Any]:
    entry = {
        "attempt_idx": number,
        "status": _status(attempt),
        "latency_s": attempt.latency,
        "usage": attempt.usage,
        "finish_reason": attempt.finish_reason,
        "timed_out": attempt.status == "timeout",
    }
    return entry if attempt.error is None else entry | {"error": attempt.error}


def _status(attempt: Attempt) -> str:
    if attempt.status != "error":
        return attempt.status
    return "error:Unknown" if attempt.http_status is None else f"error:{attempt.http_status}"


def _flops(log: Log, members: dict[int, list[Outcome]], rule: TimeoutRule) -> dict[str, Any]:
    outcomes = [outcome for group in members.values() for outcome in group]
    attempts = [attempt for outcome in outcomes for attempt in outcome.attempts]
    cost = cost_of_children(outcomes, log.header.model, log.header.sampling, rule=rule)
    return {
        "total_flops": cost.flops,
        "n_ok": sum(attempt.status == "ok" for attempt in attempts),
        "n_timeout": sum(attempt.status == "timeout" for attempt in attempts),
        "n_error": sum(attempt.status == "error" for attempt in attempts),
        "n_without_usage": sum(lacks_usage(attempt) for attempt in attempts),
        "timeout_policy": rule,
        "sum_prompt_tokens": cost.prompt_tokens,
        "sum_completion_tokens": cost.completion_tokens,
        "sum_cached_prompt_tokens": cost.cached_tokens,
        "prefix_cache_hit_rate": cost.cache_hit_rate,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
