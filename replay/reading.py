"""Finds logs and decodes them, in one go each, without replies and programs."""

from __future__ import annotations

import glob
import gzip
import hashlib
import os
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from evo.cost import usage_tokens
from evo.journal import BODY, PREFIX, LogError, check_line, read_bytes
from evo.log import Log, log_reader
from evo.records import (
    Confirmation,
    End,
    Generation,
    Header,
    Initial,
    Instance,
    InstanceCall,
    Outcome,
    Reply,
    Session,
    Status,
    Tick,
)
from evo.rounds import AllocationHeader

Source = str | os.PathLike[str]

ENDINGS = (".jsonl", ".jsonl.gz")
ALLOCATION = "allocation.jsonl"  # lies beside the logs of a live allocation's arms
EVENTS = "events.jsonl"  # lies beside a sweep's logs and is none


class Details(msgspec.Struct, gc=False):
    """What usage says of a prompt's tokens."""

    cached_tokens: float | None = None


class Usage(msgspec.Struct, gc=False):
    """An endpoint's token counts, under either of the usual names."""

    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: Details | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    input_tokens_details: Details | None = None


class LeanAttempt(msgspec.Struct, gc=False):
    """`evo.records.Attempt` with typed usage."""

    status: str
    latency: float | None
    usage: Usage | None = None
    finish_reason: str | None = None
    http_status: int | None = None
    error: str | None = None
    cached: bool = False
    sent: bool = True


class Metrics(msgspec.Struct, frozen=True, gc=False):
    """The metrics that tables show."""

    objective: float | None = None
    strict_fitness: float | None = None


class LeanEvaluation(msgspec.Struct, gc=False):
    """`evo.records.Evaluation` without its texts."""

    status: Status | None
    fitness: float | None = None
    metrics: Metrics = Metrics()
    seconds: float | None = 0.0
    instances: tuple[Instance, ...] = ()
    draws: int = 1
    fitness_sd: float | None = None


class LeanChild(msgspec.Struct, tag_field="kind", tag="child", gc=False):
    """`evo.records.Outcome` with what tables show."""

    generation: int
    index: int
    attempts: tuple[LeanAttempt, ...]
    evaluation: LeanEvaluation
    parents: tuple[tuple[int, int], ...] = ()
    operator: str = "rewrite"
    draft: int = 0
    inherited: bool = False


class LeanCall(msgspec.Struct, tag_field="kind", tag="instance_call", gc=False):
    """`evo.records.InstanceCall` without its reply."""

    generation: int
    attempts: tuple[LeanAttempt, ...]
    inherited: bool = False


class LeanCriticCall(LeanCall, tag_field="kind", tag="critic_call", gc=False):
    """`evo.records.CriticCall`, likewise."""


class LeanReply(msgspec.Struct, tag_field="kind", tag="reply", gc=False):
    """`evo.records.Reply`: its child has a line of its own, unless it is another draft of it."""

    generation: int
    index: int
    attempts: tuple[LeanAttempt, ...]
    draft: int = 0
    inherited: bool = False


class LeanPlan(msgspec.Struct, tag_field="kind", tag="plan", gc=False):
    """`evo.records.Plan`: its children state what they were asked to be."""


_decoder = msgspec.json.Decoder(
    Header
    | Session
    | Initial
    | LeanChild
    | LeanCall
    | LeanCriticCall
    | LeanReply
    | LeanPlan
    | Confirmation
    | Tick
    | Generation
    | End
)


@dataclass(frozen=True)
class LeanRun:
    """One log, decoded without texts.

    Attributes:
        children: By generation and index, those of a generation under way included.
        generations: Complete generations: 1, 2, 3, ...
        calls: Calls that evaluations made on instances, calls of the critic, and drafts that were
            not evaluated.
        tests: Of rivals against their parents on fresh draws.
        fresh: What the last session said of the first and the final program on draws that no
            decision saw, by name; empty where it said nothing.
        key: Hash of the header's line: with the path, what the run is known by.
    """

    path: Path
    name: str
    header: Header
    initial: Initial | None
    children: list[LeanChild]
    generations: list[Generation]
    calls: list[LeanCall | LeanReply]
    tests: list[Confirmation]
    fresh: dict[str, float]
    key: str


def find_logs(*sources: Source | Log | Iterable[Source | Log]) -> list[Path]:
    """Returns the log files that paths, folders and glob patterns stand for, each once.

    A folder stands for all logs below it; an allocation's folder, and its allocation.jsonl, for
    its arms in their order, wherever they lie. What other tools wrote there is left out, with a
    warning that says how to read it.

    Raises:
        LogError: A path does not exist, or a folder or pattern holds no log.
    """
    found, left = find_all(sources)
    if left:
        warnings.warn(f"{len(left)} files left out: {left[0][0]}: {left[0][1]}", stacklevel=2)
    return found


def find_all(
    sources: Iterable[Source | Log | Iterable[Source | Log]],
) -> tuple[list[Path], list[tuple[str, str]]]:
    """The logs as of `find_logs`, and what other tools wrote beside them with what to do."""
    found: dict[Path, Path] = {}
    left: dict[str, str] = {}
    for source in sources:
        if isinstance(source, Log | str | os.PathLike):
            paths = _expand(os.fspath(source), left)
        else:
            paths, more = find_all(source)
            left.update(more)
        for path in paths:
            found.setdefault(path.resolve(), path)
    return list(found.values()), list(left.items())


def _expand(source: str, left: dict[str, str]) -> list[Path]:
    if not source:
        raise LogError("expected the path of a log, a folder or a pattern, got ''")
    path = Path(source).expanduser()
    if path.is_dir():
        inside = [p for p in sorted(path.rglob("*")) if _looks_like_log(p)]
        ours = [p for p in inside if _is_ours(p, left)]
        if not ours:
            first = f"; {inside[0]}: {_FOREIGN}" if inside else ""
            raise LogError(
                f"{source}: no log in this folder (expected *.jsonl or *.jsonl.gz){first}"
            )
        return [log for each in ours for log in _arms_or_log(each)]
    if path.exists():
        return _arms_or_log(path)
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    found = [p for p in matches if p.is_dir() or (_looks_like_log(p) and _is_ours(p, left))]
    if not found:
        what = "no log matches" if glob.has_magic(source) else "no such file or folder"
        raise LogError(f"{source}: {what}")
    return [log for each in found for log in _expand(str(each), left)]


def _looks_like_log(path: Path) -> bool:
    return path.name.endswith(ENDINGS) and path.name != EVENTS and path.is_file()


_FOREIGN = "not a log of evo; `replay import FORMAT PATH` reads what other tools wrote"


def _is_ours(path: Path, left: dict[str, str]) -> bool:
    """Whether a file begins as our logs do, whole or damaged; another tool's is noted as left."""
    if path.name == ALLOCATION:
        return True
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            head = file.read(80)
    except (OSError, EOFError, zlib.error):
        return True  # reading it says what is wrong
    if head and b'"crc"' not in head[:80]:
        left[str(path)] = _FOREIGN
        return False
    return b'"kind":"header"' in head or b'"kind":"' not in head


def _arms_or_log(path: Path) -> list[Path]:
    """The logs of an allocation's arms, or the log itself."""
    if path.name != ALLOCATION:
        return [path]
    line = read_bytes(path).partition(b"\n")[0]
    fault = check_line(line)
    if fault is None:
        try:
            header = msgspec.json.decode(line, type=AllocationHeader)
        except (msgspec.DecodeError, ValueError) as error:
            fault = str(error)
        else:
            return [Path(os.path.normpath(path.parent / arm.log)) for arm in header.arms]
    raise LogError(f"{path}:1: not the header of an allocation: {fault}")


def name_runs(paths: Sequence[Path]) -> dict[Path, str]:
    """Names runs after their files, with as many folders as it takes to tell them apart."""
    if not paths:
        return {}
    stems = {path: path.name.removesuffix(".gz").removesuffix(".jsonl") for path in paths}
    if len(set(stems.values())) == len(paths):
        return stems
    roots = {path: path.resolve() for path in paths}
    common = os.path.commonpath([root.parent for root in roots.values()])
    folders = {path: root.relative_to(common).parent for path, root in roots.items()}
    names = {path: (folder / stems[path]).as_posix() for path, folder in folders.items()}
    if len(set(names.values())) == len(paths):
        return names
    return {path: (folder / path.name).as_posix() for path, folder in folders.items()}


def read_run(path: Path, name: str) -> LeanRun:
    """Decodes a log; on any doubt `evo.log.log_reader` finds the line to blame.

    Raises:
        LogError: It cannot be read; names file and line.
    """
    data = read_bytes(path)
    lines = data[: data.rfind(b"\n") + 1]
    try:
        records: list[Any] = _decoder.decode_lines(lines)
        sound = len(records) == lines.count(b"\n") and _checksums_match(lines)
    except (msgspec.DecodeError, ValueError):
        sound = False
    if not sound:
        records = [_lean(decoded.record) for decoded in log_reader(path).take(data)]
    if not records or not isinstance(records[0], Header):
        for _ in log_reader(path).take(lines):
            pass
        raise LogError(f"{path}:1: not a log of evo: expected a header line, got {data[:40]!r}")
    drafts = {_place(record): record.draft for record in records if isinstance(record, LeanChild)}
    run = LeanRun(
        path=path,
        name=name,
        header=records[0],
        initial=next((record for record in records if isinstance(record, Initial)), None),
        children=[record for record in records if isinstance(record, LeanChild)],
        generations=[record for record in records if isinstance(record, Generation)],
        calls=[
            record
            for record in records
            if isinstance(record, LeanCall)
            or (isinstance(record, LeanReply) and record.draft != drafts.get(_place(record)))
        ],
        tests=[record for record in records if isinstance(record, Confirmation)],
        fresh=next((e.stats for e in reversed(records) if isinstance(e, End)), {}),
        key=hashlib.sha256(data[: data.find(b"\n")]).hexdigest()[:12],
    )
    _check_order(run, records)
    run.children.sort(key=lambda child: (child.generation, child.index))
    return run


def _place(record: LeanChild | LeanReply) -> tuple[int, int]:
    return record.generation, record.index


def _checksums_match(lines: bytes) -> bool:
    crc32, body, digits = zlib.crc32, BODY, slice(len(PREFIX), len(PREFIX) + 8)
    return all(
        line[digits] == b"%08x" % crc32(line[body:]) and line.startswith(PREFIX)
        for line in lines.split(b"\n")[:-1]
    )


def _lean(record: Any) -> Any:
    """A call of `evo.log.log_reader` as it is wanted here; usage that is no count is unknown."""
    if not isinstance(record, Outcome | InstanceCall | Reply):
        return record
    raw = msgspec.to_builtins(record)
    for attempt, of in zip(raw["attempts"], record.attempts, strict=True):
        tokens = usage_tokens(of.usage)
        attempt["usage"] = tokens and {
            "prompt_tokens": tokens.prompt,
            "completion_tokens": tokens.completion,
            "prompt_tokens_details": {"cached_tokens": tokens.cached},
        }
    return msgspec.convert(raw, LeanChild | LeanCall | LeanCriticCall | LeanReply)


def _check_order(run: LeanRun, records: Sequence[Any]) -> None:
    """Raises a LogError at the first line that contradicts the others, or itself."""
    beyond, n = len(run.generations) + 1, run.header.children
    complete = 0
    seen: set[tuple[int, int]] = set()
    for number, record in enumerate(records, start=1):
        fault = None
        if type(record) is LeanChild:
            place = (record.generation, record.index)
            evaluation = record.evaluation
            if not (0 < record.generation <= beyond and 0 <= record.index < n):
                fault = f"expected a child of generations 1 to {beyond} and N = {n}, got {place}"
            elif (evaluation.status == "ok") != (evaluation.fitness is not None):
                fault = (
                    f"child {place} has status {evaluation.status!r} and "
                    f"fitness {evaluation.fitness!r}"
                )
            elif place in seen:
                fault = f"child {place} was logged twice"
            seen.add(place)
        elif type(record) is Generation:
            complete += 1
            if record.generation != complete:
                fault = f"expected generation {complete}, got {record.generation}"
        elif type(record) is Header and number > 1:
            fault = "expected one header, on line 1; got a header here"
        if fault:
            raise LogError(f"{run.path}:{number}: {fault}")
