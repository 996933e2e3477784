"""Logs of OpenEvolve: checkpoints, evolution traces and the text log.

One iteration is one call with one child, so N = 1 and a generation is an iteration. A checkpoint
holds only the programs alive then, and a trace leaves out children whose parent was already gone:
the run is the union of all of them. Iterations found nowhere are failed calls; where the text log
lies beside, it says why, and what tokens they took.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from evo.records import Child, Evaluation, Model, Status
from replay.importers.foreign import (
    NOT_IN_SOURCE,
    UNKNOWN_SEED,
    Imported,
    LogFormatError,
    answered,
    assemble,
    failed,
    finite,
    judged,
    parse_file,
    parse_lines,
    read_text,
)

NAME = "OpenEvolve"
_CHECKPOINT = re.compile(r"checkpoint_(\d+)$")
_TRACES = ("evolution_trace.jsonl", "evolution_trace.jsonl.gz", "evolution_trace.json")
_LOGGED = re.compile(
    r"Iteration (\d{1,9})(?: error: (.*?)|: Program \S+ \(parent: \S+\) completed in [\d.]+s)"
    r"(?: \| tokens: \d+ \(prompt: (\d{1,12}), completion: (\d{1,12})\))?$"
)
_EVICTED = "completed, but in no checkpoint and no trace: fitness not in the source"
_MOST_ITERATIONS = 100_000


class Program(msgspec.Struct):
    """A program of a checkpoint; SkyDiscover calls its code `solution`."""

    id: str
    metrics: dict[str, Any] | None
    iteration_found: int
    code: str | None = None
    solution: str | None = None
    parent_id: str | None = None
    timestamp: float | None = None
    metadata: dict[str, Any] | None = None


class _Metadata(msgspec.Struct):
    last_iteration: int = 0


class _Trace(msgspec.Struct):
    iteration: int
    parent_id: str
    child_id: str
    parent_metrics: dict[str, Any] | None
    child_metrics: dict[str, Any] | None
    timestamp: float | None = None
    child_code: str | None = None
    parent_code: str | None = None
    llm_response: str | None = None
    metadata: dict[str, Any] | None = None


class _TraceFile(msgspec.Struct):
    traces: list[_Trace]


@dataclass
class Found:
    """What was found of a run so far.

    Attributes:
        programs: By id; the initial program is the one at iteration 0 without a parent.
        parents: Metrics of programs known only as parents, by id.
        replies: Model's text by id of the child.
        seconds: Wall time of the iteration by id of the child.
        failures: Failed calls by iteration.
        last: Last iteration that was made.
        notes: What went wrong on the way, in words.
    """

    programs: dict[str, Program] = field(default_factory=dict)
    parents: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    replies: dict[str, str | None] = field(default_factory=dict)
    seconds: dict[str, float | None] = field(default_factory=dict)
    failures: dict[int, Child] = field(default_factory=dict)
    last: int = 0
    notes: list[str] = field(default_factory=list)


def recognises(path: Path) -> bool:
    """Whether the path looks like an output folder, a checkpoint or a trace of OpenEvolve."""
    if path.is_dir():
        return bool(_checkpoints(path)) or any((path / name).is_file() for name in _TRACES)
    return path.name.startswith("evolution_trace.")


def read(path: Path) -> list[Imported]:
    """Reads an output folder, its folder of checkpoints, one checkpoint, or a trace.

    Raises:
        LogFormatError: There is none of these, or a file is damaged. Only the newest checkpoint
            and the last line of a trace may be torn.
    """
    found = gather(path)
    return [finish(found, path, NAME)]


def gather(path: Path) -> Found:
    """Collects what checkpoints, trace and text log say."""
    found = Found()
    checkpoints = _checkpoints(path) if path.is_dir() else []
    if path.is_dir():
        root = path.parent if path.name == "checkpoints" else path
        traces = [root / name for name in _TRACES if (root / name).is_file()]
        logs = sorted((root / "logs").glob("*.log"))
    else:
        traces, logs = [path], []
    if not checkpoints and not traces:
        raise LogFormatError(
            f"{path}: expected checkpoints/checkpoint_<n> or evolution_trace.jsonl"
        )
    for checkpoint in checkpoints:
        _add_checkpoint(checkpoint, found, torn_allowed=checkpoint == checkpoints[-1])
    for trace in traces:
        _add_trace(trace, found)
    for log in logs:
        _add_log(log, found)
    return found


def _checkpoints(path: Path) -> list[Path]:
    """Checkpoint folders at or below a folder, by number."""
    if _CHECKPOINT.search(path.name):
        return [path]
    inside = [
        folder
        for parent in (path, path / "checkpoints")
        for folder in (parent.iterdir() if parent.is_dir() else ())
        if folder.is_dir() and _CHECKPOINT.search(folder.name)
    ]
    return sorted(inside, key=lambda folder: int(folder.name.rpartition("_")[2]))


def _add_checkpoint(folder: Path, found: Found, *, torn_allowed: bool) -> None:
    files = [*sorted((folder / "programs").glob("*.json")), folder / "metadata.json"]
    torn = 0
    for file in files:
        try:
            if file.name == "metadata.json":
                found.last = max(found.last, parse_file(file, _Metadata).last_iteration)
            else:
                program = parse_file(file, Program)
                if not (program.metadata or {}).get("migrant"):
                    found.programs[program.id] = program
        except LogFormatError:
            if not torn_allowed:
                raise
            torn += 1
    if torn:
        found.notes.append(f"{torn} torn files of the newest checkpoint")


def _add_trace(path: Path, found: Found) -> None:
    if path.suffix in {".hdf5", ".h5"}:
        raise LogFormatError(f"{path}: HDF5 traces are not read; export the trace as jsonl")
    if path.suffix == ".json":
        traces = parse_file(path, _TraceFile).traces
    else:
        traces, torn = parse_lines(path, _Trace)
        if torn:
            found.notes.append("a torn last line of the trace")
    for trace in traces:
        metadata = trace.metadata or {}
        found.parents.setdefault(trace.parent_id, trace.parent_metrics)
        found.replies[trace.child_id] = trace.llm_response
        found.seconds[trace.child_id] = finite(metadata.get("iteration_time"))
        if trace.child_id not in found.programs:
            found.programs[trace.child_id] = Program(
                id=trace.child_id,
                metrics=trace.child_metrics,
                iteration_found=trace.iteration,
                code=trace.child_code,
                parent_id=trace.parent_id,
                timestamp=trace.timestamp,
                metadata=metadata,
            )


def _add_log(path: Path, found: Found) -> None:
    for line in read_text(path).splitlines():
        if match := _LOGGED.search(line):
            iteration, message, prompt, completion = match.groups()
            tokens = [None if count is None else int(count) for count in (prompt, completion)]
            status: Status = "no_program"
            if message is None:
                status = "error"
            elif message.startswith(("LLM generation failed", "LLM returned None")):
                status = "no_reply"
            found.failures[int(iteration)] = failed(
                int(iteration), 0, status, message or _EVICTED, attempts=answered(*tokens)
            )


def finish(found: Found, path: Path, tool: str) -> Imported:
    """Orders what was found by iteration and puts the run together."""
    initial = _initial(found)
    children = [p for p in found.programs.values() if p.parent_id is not None or p.iteration_found]
    # A run may count its calls from 0 or, after the initial program, from 1.
    shift = 1 if any(program.iteration_found == 0 for program in children) else 0
    latest: dict[int, Program] = {}
    for program in sorted(children, key=lambda p: (finite(p.timestamp) or 0.0, p.id)):
        latest[program.iteration_found + shift] = program
    if (repeated := len(children) - len(latest)) > 0:
        found.notes.append(f"{repeated} children of iterations that a resumed run made again")
    last = max(found.last + shift, *latest, *(i + shift for i in found.failures), 0)
    if min(latest, default=1) < 1 or last > _MOST_ITERATIONS:
        raise LogFormatError(
            f"{path}: expected iterations from 0 to {_MOST_ITERATIONS}, got up to {last} from "
            f"{min(latest, default=1) - shift}"
        )
    places = {program.id: (number, 0) for number, program in latest.items()}
    generations: list[list[Child]] = []
    for number in range(1, last + 1):
        if number in latest:
            generations.append([_child(latest[number], number, found, places)])
        elif (missing := found.failures.get(number - shift)) is not None:
            generations.append([msgspec.structs.replace(missing, generation=number)])
        else:
            generations.append([failed(number, 0, "no_reply", NOT_IN_SOURCE)])
    absent = sum(group[0].evaluation.error == NOT_IN_SOURCE for group in generations)
    evicted = sum(group[0].evaluation.error == _EVICTED for group in generations)
    lost = ["sampling settings, seeds and times of calls and evaluations"]
    if evicted:
        lost.append(f"the fitness of {evicted} of {last} children, counted as failed")
    if absent:
        lost.append(f"{absent} of {last} iterations, counted as failed calls")
    models = sorted({model for p in children if (model := _usage(p).get("model"))}, key=str)
    return assemble(
        path,
        tool,
        name=path.resolve().name,
        task="unknown",
        model=Model(name="+".join(str(model) for model in models) or "unknown"),
        children=generations,
        initial=initial,
        lost=(*lost, *found.notes),
        seconds=[
            found.seconds.get(latest[number].id) if number in latest else None
            for number in range(1, last + 1)
        ],
    )


def _is_initial(program: Program) -> bool:
    return program.parent_id is None and program.iteration_found == 0


def _initial(found: Found) -> Evaluation | None:
    roots = [
        program
        for program in found.programs.values()
        if _is_initial(program) and "seeded_to_island" not in (program.metadata or {})
    ]
    if roots:
        return evaluation(min(roots, key=lambda p: (finite(p.timestamp) or 0.0, p.id)).metrics)
    unseen = [metrics for key, metrics in found.parents.items() if key not in found.programs]
    return evaluation(unseen[0]) if unseen else None


def _child(
    program: Program, generation: int, found: Found, places: Mapping[str, tuple[int, int]]
) -> Child:
    """A child; `places` tells where its parent stands, the initial program and copies at 0."""
    usage = _usage(program)
    parent, known = program.parent_id or "", program.parent_id in found.programs
    place = places.get(parent, (0, 0) if known and _is_initial(found.programs[parent]) else None)
    return Child(
        generation=generation,
        index=0,
        seed=UNKNOWN_SEED,
        prompt_hash="",
        attempts=answered(usage.get("prompt_tokens"), usage.get("completion_tokens")),
        evaluation=evaluation(program.metrics),
        parents=() if place is None else (place,),
        reply=found.replies.get(program.id),
        program=program.code if program.code is not None else program.solution,
    )


def _usage(program: Program) -> Mapping[str, Any]:
    usage = (program.metadata or {}).get("token_usage")
    return usage if isinstance(usage, Mapping) else {}


def evaluation(metrics: Mapping[str, Any] | None) -> Evaluation:
    """An evaluation from a program's metrics, where failures are numbers as well.

    The fitness is `combined_score`, otherwise the mean of the numbers. A timeout is
    `{"error": 0.0, "timeout": true}`; an `error` that is text is one, too.
    """
    metrics = metrics or {}
    failure: tuple[Status, str] | None = None
    if metrics.get("timeout") is True:
        failure = ("timeout", "timed out")
    elif isinstance(metrics.get("error"), str) and metrics["error"]:
        failure = ("error", metrics["error"])
    elif "combined_score" not in metrics and "error" in metrics:
        failure = ("error", "the source does not say why")
    elif not metrics:
        failure = ("error", "no metrics in the source")
    score = metrics.get("combined_score", mean(metrics.values()))
    others = {key: value for key, value in metrics.items() if key != "combined_score"}
    return judged(score, failure=failure, metrics=others)


def mean(values: Iterable[object]) -> float | None:
    """Mean of those values that are numbers; None without any, or if one is not finite."""
    given = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    known = [number for number in map(finite, given) if number is not None]
    return sum(known) / len(given) if given and len(known) == len(given) else None
