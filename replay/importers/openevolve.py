"""Logs of OpenEvolve: checkpoints, evolution traces and the text log.

One iteration is one call with one child, so N = 1 and a generation is a call, in the order in
which they were made. A checkpoint holds only the programs alive then, and a trace leaves out
children whose parent was already gone: the run is the union of all of them. Iterations found
nowhere are failed calls; where the text log lies beside, it says why, and what tokens they took.
A resumed run makes the iterations after its checkpoint again: all calls were paid, and count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from evo.records import Child, Evaluation
from replay.importers.foreign import (
    NOT_IN_SOURCE,
    Failure,
    Imported,
    LogFormatError,
    answered,
    assemble,
    born,
    failed,
    finite,
    judged,
    named,
    parse_file,
    parse_lines,
    read_text,
    told,
)

NAME = "OpenEvolve"
_CHECKPOINT = re.compile(r"^checkpoint_(\d{1,9})$")
_TRACES = ("evolution_trace.jsonl", "evolution_trace.jsonl.gz", "evolution_trace.json")
_STARTED = re.compile(r"Starting process-based evolution from iteration (\d{1,9}) for")
_LOGGED = re.compile(
    r"Iteration (\d{1,9})(?: error: (.*?)|: Program (\S+) \(parent: \S+\) completed in [\d.]+s)"
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
    prompts: dict[str, Any] | None = None

    @property
    def text(self) -> str | None:
        """Its code."""
        return self.code if self.code is not None else self.solution


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
    prompt: Any = None
    llm_response: str | None = None
    island_id: int | None = None
    metadata: dict[str, Any] | None = None


class _TraceFile(msgspec.Struct):
    traces: list[_Trace]


@dataclass
class Session:
    """What one start of the tool made: iterations from `first` to `last`.

    Attributes:
        made: Ids of the programs by iteration.
        failures: Calls without a program by iteration.
    """

    first: int
    last: int = 0
    made: dict[int, str] = field(default_factory=dict)
    failures: dict[int, Child] = field(default_factory=dict)


@dataclass
class Found:
    """What was found of a run so far.

    Attributes:
        programs: By id; the initial program is the one at iteration 0 without a parent.
        parents: Programs known only as parents, metrics and code, by id.
        copies: Id of the program that a migrant is a copy of, by its own id.
        traces: Lines of the trace by id of the child.
        seconds: Wall time of the iteration by id of the child.
        sessions: In order, where text logs tell them.
        failures: Failed calls by iteration, where no session is told.
        last: Last iteration that was made.
        notes: What went wrong on the way, in words.
    """

    programs: dict[str, Program] = field(default_factory=dict)
    parents: dict[str, tuple[dict[str, Any] | None, str | None]] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    traces: dict[str, _Trace] = field(default_factory=dict)
    seconds: dict[str, float | None] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
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

    Only the newest checkpoint and the last line of a trace may be torn.
    """
    return [finish(gather(path), path, NAME)]


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
                continue
            program = parse_file(file, Program)
            if (program.metadata or {}).get("migrant"):
                found.copies[program.id] = program.parent_id or ""
            else:
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
        found.parents.setdefault(trace.parent_id, (trace.parent_metrics, trace.parent_code))
        found.traces[trace.child_id] = trace
        found.seconds[trace.child_id] = finite(metadata.get("iteration_time"))
        if trace.child_id not in found.programs:
            found.programs[trace.child_id] = Program(
                id=trace.child_id,
                metrics=trace.child_metrics,
                iteration_found=trace.iteration,
                code=trace.child_code,
                parent_id=trace.parent_id,
                timestamp=trace.timestamp,
                metadata={"island": trace.island_id, **metadata},
            )


def _add_log(path: Path, found: Found) -> None:
    session: Session | None = None
    for line in read_text(path).splitlines():
        if match := _STARTED.search(line):
            session = Session(first=int(match[1]))
            found.sessions.append(session)
        elif match := _LOGGED.search(line):
            iteration, message = int(match[1]), match[2]
            if session is None:
                session = Session(first=1)
                found.sessions.append(session)
            session.last = max(session.last, iteration)
            tokens = [None if count is None else int(count) for count in match.groups()[3:]]
            failure: Failure = ("no_program", message or "")
            if message is None:
                session.made[iteration] = match[3]
                failure = (None, _EVICTED)
            elif message.startswith(("LLM generation failed", "LLM returned None")):
                failure = ("no_reply", message)
            session.failures[iteration] = failed(iteration, 0, *failure, attempts=answered(*tokens))


def _calls(found: Found, children: list[Program]) -> Iterator[Program | Child | None]:
    """The calls in the order in which they were made; None for one of which nothing is known."""
    # A run may count its calls from 0 or, after the initial program, from 1.
    least = min((program.iteration_found for program in children), default=1)
    first = min(1, least)
    left = {program.id: program for program in children}
    sessions = found.sessions
    if not sessions:  # an iteration that was made before begins another session
        sessions = [Session(first=first)]
        for program in sorted(children, key=lambda p: (finite(p.timestamp) or 0.0, p.id)):
            if program.iteration_found in sessions[-1].made:
                sessions.append(Session(first=program.iteration_found))
            sessions[-1].made[program.iteration_found] = program.id
            sessions[-1].first = min(sessions[-1].first, program.iteration_found)
    for program in children:  # what the text log does not name belongs where there is room
        if not any(program.id in session.made.values() for session in sessions):
            free = [s for s in sessions if program.iteration_found not in s.made] or sessions[-1:]
            free[-1].made[program.iteration_found] = program.id
    for number, session in enumerate(sessions, start=1):
        final = number == len(sessions)
        ends = [session.last, *session.made, *(found.failures if final else ())]
        last = max([*ends, found.last] if final else ends)
        if not 0 <= session.first <= last + 1 <= _MOST_ITERATIONS or least < 0:
            raise LogFormatError(
                f"expected iterations from 0 to {_MOST_ITERATIONS}, got up to {last} from "
                f"{min(session.first, least)}"
            )
        for iteration in range(session.first, last + 1):
            program_found = left.get(session.made.get(iteration, ""))
            failure = session.failures.get(iteration) or found.failures.get(iteration)
            yield program_found or failure


def finish(found: Found, path: Path, tool: str) -> Imported:
    """The run that was found."""
    first = _initial(found)
    children = [p for p in found.programs.values() if not _is_initial(p)]
    try:
        calls = list(_calls(found, children))
    except LogFormatError as error:
        raise LogFormatError(f"{path}: {error}") from None
    places = {
        call.id: (number, 0)
        for number, call in enumerate(calls, start=1)
        if isinstance(call, Program)
    }
    generations: list[list[Child]] = []
    for number, call in enumerate(calls, start=1):
        if isinstance(call, Program):
            generations.append([_child(call, number, found, places)])
        elif call is not None:
            generations.append([msgspec.structs.replace(call, generation=number)])
        else:
            generations.append([failed(number, 0, None, NOT_IN_SOURCE)])
    errors = [group[0].evaluation.error for group in generations]
    lost = ["sampling settings, seeds and times of calls and evaluations"]
    if evicted := errors.count(_EVICTED):
        lost.append(f"the fitness of {evicted} of {len(calls)} children, counted as failed")
    if absent := errors.count(NOT_IN_SOURCE):
        lost.append(f"{absent} of {len(calls)} iterations, counted as failed calls")
    if len(found.sessions) > 1:
        found.notes.append(f"{len(found.sessions)} sessions follow one another")
    return assemble(
        path,
        tool,
        name=path.resolve().name,
        model=named(_usage(p).get("model") for p in children),
        children=generations,
        initial=None if first is None else evaluation(first[0]),
        program=None if first is None else first[1],
        lost=(*lost, *found.notes),
        seconds=[found.seconds.get(c.id) if isinstance(c, Program) else None for c in calls],
    )


def _is_initial(program: Program) -> bool:
    return program.parent_id is None and program.iteration_found == 0


def _initial(found: Found) -> tuple[dict[str, Any] | None, str | None] | None:
    """Metrics and code of the initial program."""
    roots = [
        program
        for program in found.programs.values()
        if _is_initial(program) and "seeded_to_island" not in (program.metadata or {})
    ]
    if roots:
        root = min(roots, key=lambda p: (finite(p.timestamp) or 0.0, p.id))
        return root.metrics, root.text
    unseen = [known for key, known in found.parents.items() if key not in found.programs]
    return unseen[0] if unseen else None


def _child(
    program: Program, generation: int, found: Found, places: Mapping[str, tuple[int, int]]
) -> Child:
    """A child; `places` tells where its parent stands, the initial program and copies at 0."""
    usage, trace = _usage(program), found.traces.get(program.id)
    parent = program.parent_id or ""
    for _ in found.copies:
        parent = found.copies.get(parent, parent)
    root = parent in found.programs and _is_initial(found.programs[parent])
    island = (program.metadata or {}).get("island")
    asked = next((p for p in (program.prompts or {}).values() if isinstance(p, Mapping)), {})
    prompt: Mapping[str, Any] = asked
    if trace and isinstance(trace.prompt, Mapping):
        prompt = trace.prompt
    answers = asked.get("responses")
    reply = trace.llm_response if trace else None
    if reply is None and isinstance(answers, list) and answers:
        reply = answers[-1]
    return born(
        generation,
        evaluation(program.metrics),
        attempts=answered(usage.get("prompt_tokens"), usage.get("completion_tokens")),
        parent=places.get(parent, (0, 0) if root else None),
        island=island if type(island) is int else None,
        program=program.text,
        reply=reply,
        prompt=[(role, prompt.get(role)) for role in ("system", "user")],
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
    failure: Failure | None = None
    if metrics.get("timeout") is True:
        failure = ("timeout", "timed out")
    elif isinstance(metrics.get("error"), str) and metrics["error"]:
        failure = (told(metrics["error"]) or "error", metrics["error"])
    elif "combined_score" not in metrics and "error" in metrics:
        failure = ("error", "the source does not say why")
    elif not metrics:
        failure = (None, "no metrics in the source")
    score = metrics.get("combined_score", mean(metrics.values()))
    others = {key: value for key, value in metrics.items() if key != "combined_score"}
    return judged(score, failure=failure, metrics=others)


def mean(values: Iterable[object]) -> float | None:
    """Mean of those values that are numbers; None without any, or if one is not finite."""
    given = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    known = [number for number in map(finite, given) if number is not None]
    return sum(known) / len(given) if given and len(known) == len(given) else None
