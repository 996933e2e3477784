"""Logs written in the layout of self-evolving-allocation, which `replay.importers.paper` reads.

The name of a file tells its search, budget and seed. What else tells runs apart has no place there:
all targets are therefore compared before the first one is written, and a warning names what the
files lack.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evo.logs.cost import TIMEOUT_RULES, TimeoutRule, cost_of_calls, lacks_usage, wall_time
from evo.logs.journal import LogError, file_name, read_bytes, write_once
from evo.logs.log import TOLERANCE, Log, read_log
from evo.logs.records import Attempt, Header, Outcome
from evo.logs.types import JsonObject
from evo.studies.allocation.journal import Journal, read_journal
from evo.studies.folders import ALLOCATION
from evo.warning import and_more, warn
from replay.logs.decode import find_logs
from replay.logs.frames import GREEDY
from replay.logs.others import lasting_name
from replay.logs.rows import search_of, settings_of

ALIASES = {"circle_packing": "cp", "min_max_distance": "mmd", "heilbronn_triangle": "ht"}
"""The paper's short names of the shipped tasks."""


@dataclass(frozen=True)
class _Planned:
    """One file that is to be written: where, of which logs, and what makes its content."""

    source: str
    target: Path
    seed: int
    logs: Sequence[Log]
    content: Callable[[], JsonObject]


def export(paths: Sequence[Path], folder: Path, journals: Sequence[Path] = ()) -> list[Path]:
    """Writes logs in the paper's layout; of an allocation its arms and choices in one file.

    Args:
        paths: The logs.
        folder: Folder of the files.
        journals: Journals of allocations whose arms lie elsewhere; those beside logs are found.

    Returns:
        The files.

    Raises:
        LogError: There is no log, one cannot be read, two would be written to one file, a file
            exists already, or several are forks of one run. Nothing is written then.
    """
    if not paths and not journals:
        raise LogError("expected the paths of one log or more, got none")
    beside = (path.parent / ALLOCATION for path in paths)
    journals = [*{each.resolve(): each for each in (*beside, *journals) if each.is_file()}.values()]
    # The file of an allocation holds its arms; files of their own would be read as further runs.
    arms = {arm.resolve() for journal in journals for arm in find_logs(journal)}
    single = [read_log(path) for path in paths if path.resolve() not in arms]
    runs = [_planned_run(log, folder) for log in single]
    return _write([*runs, *(_planned_bandit(journal, folder) for journal in journals)])


def export_paper(log: Log, folder: Path) -> Path:
    """Writes `<folder>/<task>/<model>/<search>_C<C>_T<T>_N<N>_seed<seed>.json`.

    Complete generations only. Unknown numbers become null. A warning names what the layout has no
    place for.
    """
    [path] = _write([_planned_run(log, folder)])
    return path


def export_bandit(journal: Path, folder: Path) -> Path:
    """Writes `<folder>/bandit/<task>/<model>/<algo>_C<C>_T<T>_K<K>_seed<seed>.json`.

    `journal` is the allocation.jsonl of an allocation; it names the logs of the arms.
    """
    [path] = _write([_planned_bandit(journal, folder)])
    return path


def _planned_run(log: Log, folder: Path) -> _Planned:
    total, n, seed = len(log.generations), log.header.children, log.header.seed
    name = f"{file_name(search_of(log.header))}_C{total * n}_T{total}_N{n}_seed{seed}.json"
    target = _target(log, folder, name)
    return _Planned(lasting_name(log.path), target, seed, [log], lambda: _result(log))


def _planned_bandit(journal: Path, folder: Path) -> _Planned:
    found = read_journal(journal)
    logs = [read_log(path) for path in find_logs(journal)]  # which may be compressed by now
    header, rounds, n = found.header, len(found.told), logs[0].header.children
    name = f"{header.policy}_C{rounds * n}_T{rounds}_K{len(logs)}_seed{header.seed}.json"
    target = _target(logs[0], folder / "bandit", name)
    return _Planned(str(journal), target, header.seed, logs, lambda: _bandit(found, logs))


def _target(log: Log, folder: Path, name: str) -> Path:
    if log.initial is None:
        raise LogError(
            f"{lasting_name(log.path)}: has no generation 0, which the paper's layout begins with; "
            "of a table, give the fitness of the initial program in a row of generation 0"
        )
    _require_best_of_children(log)
    parts = (_task(log), log.header.model_name.replace("/", "_"), name)
    return folder.joinpath(*map(file_name, parts))


def _require_best_of_children(log: Log) -> None:
    """Raises LogError of a run that passed over a better child, which reading back would refuse."""
    found = np.full(len(log.trajectory), np.nan)
    found[0] = log.trajectory[0]
    for each in log.outcomes:
        if each.generation < len(found) and each.evaluation.fitness is not None:
            found[each.generation] = np.fmax(found[each.generation], each.evaluation.fitness)
    best = np.fmax.accumulate(found)
    if not np.allclose(best, log.trajectory, rtol=0, atol=TOLERANCE, equal_nan=True):
        raise LogError(
            f"{lasting_name(log.path)}: its best fitness is not that of its best child, as where "
            "min_improvement=, confirm= or a filter passes a child over; the paper's layout holds "
            "runs that take every better child"
        )


def _task(log: Log) -> str:
    return ALIASES.get(log.header.task.name, log.header.task.name)


def _write(planned: Sequence[_Planned]) -> list[Path]:
    """Writes all files, or none where one cannot be told from another."""
    logs = [log for each in planned for log in each.logs]
    _require_unrelated(logs)
    _require_apart(planned)
    warn(f"not carried over: {'; '.join(_lost(logs))}")
    for each in planned:
        write_once(each.target, _text(each))
    return [each.target for each in planned]


def _text(planned: _Planned) -> bytes:
    return json.dumps(planned.content(), indent=1, allow_nan=False).encode() + b"\n"


_APART = "the paper's layout tells runs of one task, model, search, T and N apart by their seeds"


def _require_apart(planned: Sequence[_Planned]) -> None:
    """Raises LogError where two files would have one name, or another is there already."""
    shared = Counter(each.target for each in planned)
    for each in planned:
        seed = "unknown" if each.seed < 0 else str(each.seed)
        if shared[each.target] > 1:
            sources = [other.source for other in planned if other.target == each.target]
            more = sum(count > 1 for count in shared.values()) - 1
            others = f" ({more} other file names are shared, too)" if more else ""
            raise LogError(
                f"{_several(sources)}: {_APART}, and that is {seed} for all of them, so that each "
                f"would be {each.target}{others}; export them to folders of their own"
            )
        if each.target.exists() and read_bytes(each.target) != _text(each):
            raise LogError(
                f"{each.source}: {each.target} exists already and differs, and {_APART}, which is "
                f"{seed} here; export it to a folder of its own, or remove the file"
            )


def _require_unrelated(logs: Sequence[Log]) -> None:
    """Raises LogError where logs share generations: as files they would be independent runs."""
    if not any(log.header.fork for log in logs):
        return
    families: dict[str, list[str]] = {}
    for log in logs:
        families.setdefault(_root(log), []).append(lasting_name(log.path))
    related = [family for family in families.values() if family[1:]]
    if related:
        raise LogError(
            f"{_several(related[0])}: share the generations before a fork, and the paper's layout "
            f"would show all {sum(map(len, related))} such logs as independent runs; export one of "
            "each family"
        )


def _root(log: Log) -> str:
    """Hash of the header of the run that a log began with; its own unless it is a fork."""
    if log.header.fork is not None:
        return log.header.fork.root
    return hashlib.sha256(read_bytes(log.path).partition(b"\n")[0]).hexdigest()


def _several(names: Sequence[str]) -> str:
    return and_more(names, 2) if names[2:] else " and ".join(names)


def _lost(logs: Sequence[Log]) -> Iterator[str]:
    """What the logs hold and the layout has no place for."""
    children = [o for log in logs for o in log.outcomes if o.generation <= len(log.generations)]
    under_way = sum(len(log.outcomes) for log in logs) - len(children)
    failed = sum(each.evaluation.status != "ok" for each in children)
    headers = [log.header for log in logs]
    searches = sorted({search_of(header) for header in headers} - {GREEDY})
    asides = sum(len(log.calls) - sum(not o.inherited for o in log.outcomes) for log in logs)
    renamed = sorted({name for header in headers if (name := header.task.name) in ALIASES})
    yield "settings, times of evaluations, metrics and notes"
    if any(not header.compact for header in headers):
        yield "prompts, replies and programs"
    if failed:
        yield f"the status of {failed:,} failed children, and why they failed"
    if searches:
        yield f"parents, and the settings of {', '.join(searches)} beside the name"
    if (configurations := _configurations(headers)) > 1:
        yield f"which of {configurations} configurations a run is of"
    if forks := sum(header.fork is not None for header in headers):
        yield f"that {forks} of the runs are forks"
    if mixed := sum(header.mixed is not None for header in headers):
        yield f"that {mixed} of the runs may hold programs of other runs, as islands that exchange"
    if any(header.models for header in headers):
        yield "which of several models a child was asked of"
    if asides:
        yield f"{asides} calls that made no child, and what they cost"
    if under_way:
        yield f"{under_way} children of generations under way"
    if renamed:
        yield f"the names of tasks: {', '.join(f'{name} is {ALIASES[name]}' for name in renamed)}"


def _configurations(headers: Sequence[Header]) -> int:
    """How many configurations there are of a task, model, search and N, at most."""
    alike: dict[object, set[str]] = {}
    for header in headers:
        named = (header.task.name, header.model_name, search_of(header), header.children)
        alike.setdefault(named, set()).add(repr(settings_of(header)))
    return max(map(len, alike.values()))


def _bandit(found: Journal, logs: Sequence[Log]) -> JsonObject:
    header, rounds = found.header, [found.told[k] for k in sorted(found.told)]
    pulls = [each.arm for each in rounds]
    arms = [_result(log, pulls.count(arm)) for arm, log in enumerate(logs)]
    n = arms[0]["N"]
    finals = [arm["final_fitness"] for arm in arms]
    best = max((each for each in finals if each is not None), default=None)
    per_round = _flops_by_round(pulls, arms)
    return {
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


def _result(log: Log, pulled: int | None = None) -> JsonObject:
    """A run; of an arm the generations that were pulled, of which its log may hold more."""
    generations = log.generations[:pulled]
    header, total = log.header, len(generations)
    several = header.model_name if header.models else ""
    best = [None if math.isnan(value) else float(value) for value in log.trajectory[: total + 1]]
    groups: list[list[Outcome]] = [[] for _ in generations]
    for outcome in log.outcomes:
        if outcome.generation <= total:
            groups[outcome.generation - 1].append(outcome)
    entries: list[JsonObject] = [
        {"generation": 0, "best_fitness": best[0], "n_children": 0, "n_valid": 0,
         "n_improved": 0, "children": [], "gen_time_s": 0.0}
    ]  # fmt: skip
    for number, (generation, group) in enumerate(zip(generations, groups, strict=True), 1):
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
    search = search_of(header)
    return {
        **({} if search == GREEDY else {"search": search}),
        "task": _task(log), "model": header.model_name,
        "model_name": several or header.model.id or header.model.name, "C": total * header.children,
        "T": total, "N": header.children, "seed": header.seed, "final_fitness": best[-1],
        "trajectory": entries, "wall_time_seconds": wall_time(generations),
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
