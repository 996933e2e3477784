"""Look after logs: check one, copy one without its texts, or ask for the end of its session."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evo.log import Log, LogError, encode_line, read_log, write_new
from evo.records import Child, Line, Outcome

TOLERANCE = 1e-9  # rounding of a mean over instances


@dataclass(frozen=True)
class Verification:
    """What `verify` found: the log itself and the faults in words, none if it is sound."""

    log: Log
    faults: tuple[str, ...]


def verify(path: str | os.PathLike[str]) -> Verification:
    """Checks a log's checksums and that its lines agree with each other.

    Raises:
        LogError: A line is damaged; names file and line.
    """
    log = read_log(path)
    named = [f"{log.path}: {fault}" for fault in _faults(log)]
    if log.torn:
        named.append(f"{log.path}:{log.lines + 1}: the last line is torn; `evo resume` mends that")
    return Verification(log, tuple(named))


def require_whole(log: Log) -> None:
    """Raises LogError if lines are missing from a log or disagree; a torn end is forgiven."""
    for fault in _faults(log):
        raise LogError(f"{log.path}: {fault}")


def _faults(log: Log) -> list[str]:
    """Returns how the lines of a log disagree, in words."""
    header, faults = log.header, list[str]()
    by_generation: dict[int, dict[int, Outcome]] = {}
    for outcome in log.outcomes:
        by_generation.setdefault(outcome.generation, {})[outcome.index] = outcome
    if [g.generation for g in log.generations] != list(range(1, len(log.generations) + 1)):
        faults.append("the generations are not numbered 1, 2, 3, ...")
    best = log.initial.evaluation.fitness if log.initial else None
    for generation in log.generations:
        members = by_generation.get(generation.generation, {})
        if sorted(members) != list(range(header.children)):
            faults.append(
                f"generation {generation.generation} is complete but has children "
                f"{sorted(members)}, expected {header.children} of them"
            )
        fitnesses = [o.evaluation.fitness for o in members.values() if o.evaluation.status == "ok"]
        top = max((f for f in (best, *fitnesses) if f is not None), default=None)
        stated = generation.best_fitness
        slack = header.min_improvement
        if (top is None) != (stated is None) or (
            top is not None and stated is not None and not top - 2 * slack <= stated <= top
        ):
            faults.append(
                f"generation {generation.generation} states best fitness {stated!r}, but its "
                f"children and parent give {top!r}"
            )
        best = stated
    evaluated = [
        (f"child {o.index} of generation {o.generation}", o.evaluation) for o in log.outcomes
    ]
    if log.initial:
        evaluated.append(("the initial program", log.initial.evaluation))
    for who, evaluation in evaluated:
        scores = [each.score or 0.0 for each in evaluation.instances]
        if evaluation.fitness is None or not scores or header.source != "evo":
            continue
        mean = sum(scores) / len(scores)
        if abs(mean - evaluation.fitness) > TOLERANCE:
            faults.append(
                f"{who} has fitness {evaluation.fitness!r}, but the mean over its instances "
                f"is {mean!r}"
            )
    if extra := [g for g in by_generation if g > len(log.generations) + 1]:
        faults.append(f"children of generations {extra} whose predecessors are not complete")
    return faults


def stop_file(path: Path) -> Path:
    """Returns the file whose presence asks the session that writes a log to stop."""
    return path.with_name(f"{path.name}.stop")


def stop(path: str | os.PathLike[str]) -> None:
    """Asks the process that writes a log to stop, resumably, once its next child is logged.

    It does so by a file beside the log, `NAME.stop`, which the session removes when it ends. All
    runs of that session, or arms of that allocation, stop; without a session the request lapses
    when the next one begins. Sweeps are stopped by their folder, with `evo.sweeping.events.request`
    or `evo stop`.

    Args:
        path: Log of a run or of an arm, or an allocation.jsonl.

    Raises:
        LogError: There is no such log.
    """
    path = Path(path)
    if not path.is_file():
        raise LogError(f"{path}: no such log")
    stop_file(path).touch()


def compact(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Log:
    """Writes a copy without replies and programs, which still replays.

    Args:
        path: A log.
        target: New file; `.jsonl.gz` compresses, with the same bytes for the same log.

    Raises:
        LogError: The log cannot be read, or the target exists or cannot be written.
    """
    log, target = read_log(path), Path(target)
    lines: list[Line] = [msgspec.structs.replace(log.header, compact=True)]
    lines += log.sessions
    lines += [log.initial] if log.initial else []
    lines += log.ends
    lines += [msgspec.structs.replace(call, reply=None) for call in log.instance_calls]
    kept = log.replies.values()
    lines += [msgspec.structs.replace(each, reply=None, reasoning=None) for each in kept]
    by_generation = {generation.generation: generation for generation in log.generations}
    for position, outcome in enumerate(log.outcomes):
        lines.append(Child(**{name: getattr(outcome, name) for name in Outcome.__struct_fields__}))
        following = log.outcomes[position + 1 : position + 2]
        if not following or following[0].generation != outcome.generation:
            lines += [by_generation[g] for g in (outcome.generation,) if g in by_generation]
    data = b"".join(encode_line(line) for line in lines)
    write_new(target, data)
    return read_log(target)
