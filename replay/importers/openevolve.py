"""Logs of OpenEvolve: checkpoints, evolution traces, the text log; and SkyDiscover's statistics.

One iteration is one call with one child, so N = 1 and a generation is a call, in the order in
which they were made. A checkpoint holds only the programs alive then, and a trace leaves out
children whose parent was already gone: the run is the union of all of them. Iterations found
nowhere are failed calls; a text log beside them states why, and how many tokens they took. It also
tells of the children that no checkpoint holds (yet) the parent and the metrics, to four digits.
A resumed run makes the iterations after its checkpoint again: all calls were paid, and count.
SkyDiscover writes the same checkpoints, in which code is called `solution`, and one line an
iteration into `adaevolve_iteration_stats_<time>.jsonl`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from evo.logs.journal import LogError, read_bytes
from evo.logs.records import Child
from replay.importers import foreign, reading
from replay.importers.foreign import Imported
from replay.importers.openevolve_files import (
    IterationLine,
    StoredMetadata,
    StoredProgram,
    TracedChild,
    TracedFailure,
    TraceFile,
    evaluation,
)
from replay.importers.openevolve_log import (
    EVICTED,
    REJECTED,
    LoggedChild,
    LoggedSession,
    read_log,
    why,
)
from replay.importers.reading import LogFormatError

_CHECKPOINT = re.compile(r"^checkpoint_(\d{1,9})$")
_TRACES = ("evolution_trace.jsonl", "evolution_trace.jsonl.gz", "evolution_trace.json")
_FAILURES = ("evolution_trace_failures.jsonl", "evolution_trace_failures.jsonl.gz")
_STATISTICS = "adaevolve_iteration_stats_*.jsonl"
_TEXT_LOGS = "openevolve_*.log"


@dataclass
class _Found:
    """What was found of a run so far, by id of a program or by iteration."""

    programs: dict[str, StoredProgram] = field(default_factory=dict)
    parents: dict[str, tuple[dict[str, object] | None, str | None]] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)  # migrants: the program each copies
    seconds: dict[str, float | None] = field(default_factory=dict)
    sessions: list[LoggedSession] = field(default_factory=list)  # where text logs tell them
    failures: dict[int, Child] = field(default_factory=dict)  # where no session is known
    traced: dict[int, list[TracedFailure]] = field(default_factory=dict)  # by iteration, in order
    told: dict[str, StoredProgram] = field(default_factory=dict)  # by text logs, without their code
    last: int = 0
    notes: list[str] = field(default_factory=list)  # what went wrong on the way


def recognises(path: Path) -> bool:
    """Whether the path looks like an output folder, a checkpoint or a trace."""
    if path.is_dir():
        names = (*_TRACES, f"logs/{_TEXT_LOGS}")
        return bool(_checkpoints(path)) or any(next(path.glob(name), None) for name in names)
    return path.name.startswith("evolution_trace.")


def recognises_skydiscover(path: Path) -> bool:
    """Whether the path looks like an output folder of SkyDiscover, or its statistics."""
    if not path.is_dir():
        return path.match(_STATISTICS)
    programs = (p for folder in _checkpoints(path) for p in (folder / "programs").glob("*.json"))
    return any(path.glob(_STATISTICS)) or any(
        b'"solution"' in read_bytes(file) for file in itertools.islice(programs, 1)
    )


def read(path: Path) -> list[Imported]:
    """Reads an output folder, its folder of checkpoints, one checkpoint, a trace or statistics.

    Before its first checkpoint a folder has a text log alone.
    Only the newest checkpoint and the last line of a file of lines may be torn.
    """
    found = _Found()
    root = path.parent if path.name == "checkpoints" else path
    checkpoints = _checkpoints(path) if path.is_dir() else []
    traces = [root / name for name in _TRACES if (root / name).is_file()]
    statistics = sorted(root.glob(_STATISTICS))
    if not path.is_dir():
        traces, statistics = ([], [path]) if path.match(_STATISTICS) else ([path], [])
    logs = sorted((root / "logs").glob("*.log"))
    if not (checkpoints or traces or statistics or any(log.match(_TEXT_LOGS) for log in logs)):
        raise LogFormatError(
            f"{path}: expected checkpoints/checkpoint_<n>, evolution_trace.jsonl or {_STATISTICS}"
        )
    for checkpoint in checkpoints:
        _add_checkpoint(checkpoint, found, torn_allowed=checkpoint == checkpoints[-1])
    for trace in traces:
        _add_trace(trace, found)
    for trace in (root / name for name in _FAILURES if traces and (root / name).is_file()):
        for failure in reading.parse_lines(trace, TracedFailure, found.notes):
            found.traced.setdefault(failure.iteration, []).append(failure)
    for log in logs:
        sessions, told = read_log(log)
        found.sessions += sessions
        found.told |= {child.id: _of_log(child) for child in told}
    for file in statistics:
        _add_statistics(file, found)
    other = statistics or any(p.solution is not None for p in found.programs.values())
    return [_finish(found, path, "SkyDiscover" if other else "OpenEvolve")]


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


def _add_checkpoint(folder: Path, found: _Found, *, torn_allowed: bool) -> None:
    torn = 0
    for file in [*sorted((folder / "programs").glob("*.json")), folder / "metadata.json"]:
        try:
            if file.name == "metadata.json":
                found.last = max(
                    found.last, reading.parse_file(file, StoredMetadata).last_iteration
                )
                continue
            program = reading.parse_file(file, StoredProgram)
            if program.known.get("migrant"):
                found.copies[program.id] = program.parent_id or ""
            else:
                found.programs[program.id] = program
        except LogError:
            if not torn_allowed:
                raise
            torn += 1
        else:
            foreign.require_in_reach(evaluation(program.metrics).fitness, file)
    if torn:
        found.notes.append(f"{torn} torn file{'s' * (torn > 1)} of the newest checkpoint")


def _add_trace(path: Path, found: _Found) -> None:
    if path.suffix in {".hdf5", ".h5"}:
        raise LogFormatError(f"{path}: HDF5 traces are not read; export the trace as jsonl")
    if path.suffix == ".json":
        traces = reading.parse_file(path, TraceFile).traces
    else:
        traces = reading.parse_lines(path, TracedChild, found.notes)
    for trace in traces:
        metadata = {"island": trace.island_id, **(trace.metadata or {})}
        found.parents.setdefault(trace.parent_id, (trace.parent_metrics, trace.parent_code))
        found.seconds[trace.child_id] = foreign.finite(metadata.get("iteration_time"))
        made = StoredProgram(
            trace.child_id, trace.child_metrics, trace.iteration, trace.child_code,
            parent_id=trace.parent_id, timestamp=trace.timestamp, metadata=metadata,
        )  # fmt: skip
        child = found.programs.setdefault(trace.child_id, made)
        responses = {} if trace.llm_response is None else {"responses": [trace.llm_response]}
        child.artifacts_json = child.artifacts_json or trace.artifacts
        child.prompts = {"": {**child.asked, **foreign.mapping(trace.prompt), **responses}}


def _of_log(child: LoggedChild) -> StoredProgram:
    known: dict[str, object] = {"token_usage": child.usage}
    return StoredProgram(
        child.id, child.metrics, child.iteration, parent_id=child.parent, metadata=known
    )


def _add_statistics(path: Path, found: _Found) -> None:
    for line in reading.parse_lines(path, IterationLine, found.notes):
        result = line.iteration_result
        found.last = max(found.last, line.iteration)
        if (child := result.child_program) is None:
            failure = foreign.failed(line.iteration, why(result.error or "failed"))
            found.failures[line.iteration] = failure
            continue
        found.seconds[child.id] = foreign.finite(result.iteration_time_seconds)
        child.iteration_found, child.parent_id = line.iteration, child.parent_id or "unknown"
        found.programs.setdefault(child.id, child)


def _sessions(found: _Found, children: list[StoredProgram]) -> list[LoggedSession]:
    """The sessions, each with the ids of what it made."""
    sessions = found.sessions
    if not sessions:  # an iteration that was made before begins another session
        # A run may count its calls from 0 or, after the initial program, from 1.
        sessions = [
            LoggedSession(first=min([1, *(program.iteration_found for program in children)]))
        ]
        for program in sorted(children, key=lambda program: program.when):
            if program.iteration_found in sessions[-1].made:
                sessions.append(LoggedSession(first=program.iteration_found))
            sessions[-1].made[program.iteration_found] = program.id
            sessions[-1].first = min(sessions[-1].first, program.iteration_found)
    placed = {key for session in sessions for key in session.made.values()}
    for program in children:  # what the text log does not name belongs where there is room
        if program.id not in placed:
            free = [s for s in sessions if program.iteration_found not in s.made] or sessions[-1:]
            free[-1].made[program.iteration_found] = program.id
    return sessions


def _traced(found: _Found, iteration: int, failure: Child | None) -> TracedFailure | None:
    """What a trace holds of a failed iteration, if it is the failure that the text log tells."""
    left = found.traced.get(iteration)
    told = "" if failure is None else failure.evaluation.error or ""
    return left.pop(0) if left and told in left[0].error else None


def _calls(found: _Found, path: Path) -> Iterator[StoredProgram | TracedFailure | Child]:
    """The calls in the order in which they were made."""
    children = [program for program in found.programs.values() if not program.is_initial]
    sessions = _sessions(found, children)
    for program in children:
        foreign.within(program.iteration_found, path, "iterations")
    for session in sessions:
        rest = (found.last, *found.failures, *found.traced) if session is sessions[-1] else ()
        last = max([session.last, *session.made, *rest])
        for iteration in range(session.first, foreign.within(last, path, "iterations") + 1):
            made = session.made.get(iteration, "")
            failure = session.failures.get(iteration) or found.failures.get(iteration)
            yield (
                found.programs.get(made)
                or found.told.get(made)
                or _traced(found, iteration, failure)
                or failure
                or foreign.failed(iteration, (None, foreign.NOT_IN_SOURCE))
            )


def _finish(found: _Found, path: Path, tool: str) -> Imported:
    calls = list(_calls(found, path))
    places = dict.fromkeys(_roots(found), (0, 0))
    places |= {c.id: (k, 0) for k, c in enumerate(calls, start=1) if isinstance(c, StoredProgram)}
    children = [
        msgspec.structs.replace(call, generation=number)
        if isinstance(call, Child)
        else _child(call, number, found, places)
        for number, call in enumerate(calls, start=1)
    ]
    return foreign.assemble(
        path,
        tool,
        name=path.resolve().name,
        model=foreign.named(program.usage.get("model") for program in found.programs.values()),
        children=[[child] for child in children],
        initial=_initial(found),
        lost=_lost(found, calls, children),
        seconds=[found.seconds.get(c.id) if isinstance(c, StoredProgram) else None for c in calls],
    )


def _lost(
    found: _Found, calls: list[StoredProgram | TracedFailure | Child], children: list[Child]
) -> list[str]:
    """What the run does not hold, each in a few words."""
    errors = [child.evaluation.error for child in children]
    lost = ["sampling settings, seeds and times of calls and evaluations"]
    roots = _initials(found)
    if others := [root for root in roots if root.text != roots[0].text]:
        known = [root.judged.fitness for root in others if root.judged.fitness is not None]
        reached = f", with a fitness of up to {max(known):.4g}" if known else ""
        lost.append(f"{len(others)} other initial program{'s' * (len(others) > 1)}{reached}")
    if told := sum(
        isinstance(call, StoredProgram) and call.id not in found.programs for call in calls
    ):
        lost.append(f"{told} of {len(calls)} programs, whose fitness is known to four decimals")
    if evicted := errors.count(EVICTED):
        lost.append(f"the fitness of {evicted} of {len(calls)} children, counted as failed")
    if refused := errors.count(REJECTED):
        lost.append(
            f"{refused} of {len(calls)} programs, which the tool refused, and their fitness"
        )
    if absent := errors.count(foreign.NOT_IN_SOURCE):
        lost.append(f"{absent} of {len(calls)} iterations, counted as failed calls")
    if len(found.sessions) > 1:
        lost.append(f"{len(found.sessions)} sessions follow one another")
    return [*lost, *found.notes]


def _initials(found: _Found) -> list[StoredProgram]:
    """The initial programs by age: the first is that of the run, others islands may begin with."""
    initial = [program for program in found.programs.values() if program.is_initial]
    return sorted(initial, key=lambda each: ("seeded_to_island" in each.known, each.when))


def _roots(found: _Found) -> list[str]:
    """Ids of the initial program; before the first checkpoint, the parent of the first child."""
    roots = _initials(found)
    initial = [program.id for program in roots if program.text == roots[0].text]
    first = next((child.parent_id for child in found.told.values()), None)
    return initial or ([] if first is None else [first])


def _initial(found: _Found) -> Child | None:
    """The initial program, as a child of generation 0."""
    roots = [(program.metrics, program.text) for program in _initials(found)]
    stated = [known for key, known in found.parents.items() if key not in found.programs]
    if not roots and not stated:
        return None
    metrics, code = (roots or stated)[0]
    return foreign.born(0, evaluation(metrics), program=code)


def _child(
    call: StoredProgram | TracedFailure,
    generation: int,
    found: _Found,
    places: Mapping[str, tuple[int, int]],
) -> Child:
    """A child; `places` tells where its parent stands, the initial program and copies at 0."""
    parent = call.parent_id or ""
    for _ in found.copies:
        parent = found.copies.get(parent, parent)
    tokens = (call.usage.get(f"{which}_tokens") for which in ("prompt", "completion"))
    return foreign.born(
        generation,
        call.judged,
        attempts=foreign.answered(*tokens),
        parent=places.get(parent),
        island=call.island,
        program=call.text,
        reply=call.reply,
        prompt=[(role, call.asked.get(role)) for role in ("system", "user")],
    )
