"""Finds logs and decodes them, in one go each, without replies and programs."""

from __future__ import annotations

import glob
import gzip
import hashlib
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from evo.gate.log import is_gate_log, without_engines
from evo.logs.calls import generations_of_calls, joined
from evo.logs.journal import GATE, LogError, read_bytes
from evo.logs.lines import BODY, PREFIX, check_line
from evo.logs.log import LeanLine, Log, log_reader
from evo.logs.records import (
    SCHEMA,
    Advice,
    Confirmation,
    CriticCall,
    EmbeddingCall,
    Generation,
    Header,
    Initial,
    InstanceCall,
    LoggedCall,
    Outcome,
    RunEnd,
    Session,
)
from evo.plugins import MistakenType
from evo.studies.allocation.journal import AllocationHeader
from evo.studies.folders import AGENT, ALLOCATION, EVENTS
from evo.warning import warn
from replay.logs.frames import ReplayWarning
from replay.logs.others import (
    LEAVES_OUT,
    Foreign,
    NothingYetError,
    Source,
    in_words,
    note_others,
    of_another_tool,
    read_of,
    what_to_do_with,
    why_gone,
)

MOST_FITNESS = 1e100
"""Cubes of larger numbers have no place in a float."""

ENDINGS = (".jsonl", ".jsonl.gz")

_decoder: msgspec.json.Decoder[LeanLine] = msgspec.json.Decoder(LeanLine)


@dataclass(frozen=True)
class LeanRun:
    """One log, decoded without texts.

    Attributes:
        children: By generation and index, those of a generation under way included.
        generations: Complete generations: 1, 2, 3, ...
        calls: Calls that evaluations made on instances, calls of the critic, for embeddings and for
            advice, and drafts that were not evaluated.
        tests: Of rivals against their parents on fresh draws.
        fresh: The last session's values of the first and the final program on draws that no
            decision saw, by name; empty without any.
        key: Hash of the header's line: with the path, what the run is known by.
        ending: What the file's end lacks, in words; empty of a session that ended.
    """

    path: Path
    name: str
    header: Header
    initial: Initial | None
    children: list[Outcome]
    generations: list[Generation]
    calls: list[InstanceCall | LoggedCall | Advice]
    tests: list[Confirmation]
    fresh: dict[str, float]
    key: str
    ending: str = ""


def find_logs(*sources: Source | Log | Iterable[Source | Log]) -> list[Path]:
    """Returns the log files that paths, folders and glob patterns stand for, each once.

    A folder stands for all logs below it; an allocation's folder, and its allocation.jsonl, for
    its arms in their order, wherever they lie. What other tools wrote beside logs of evo is left
    out, with a warning that names it.

    Raises:
        LogError: A path does not exist, or a folder or pattern holds no log.

    Example:
        >>> [each.name for each in replay.find_logs(path)]
        ['log.jsonl']
    """
    found, left = find_all(sources)
    if left:
        warn(f"{len(left)} file{'s' * (len(left) > 1)} left out: {in_words(left)}")
    return found


def find_own(source: Source) -> list[Path]:
    """The logs of this package at a path that exists, other tools' left out without a word."""
    path = Path(source)
    if path.is_file() and not (path.name == ALLOCATION or _is_ours(path, {})):
        return []
    try:
        found = _expand(os.fspath(path), {}, None)
    except LogError:
        return []
    return list({each.resolve(): each for each in found}.values())


def find_all(
    sources: Iterable[Source | Log | Iterable[Source | Log]], *, strict: bool = True
) -> tuple[list[Path], list[tuple[str, str]]]:
    """The logs as of `find_logs`, and what other tools wrote beside them with what to do.

    Runs of other tools that cannot be read are an error, or if not `strict` among what is left out,
    as is one that has just begun, beside others.
    """
    found: dict[Path, Path] = {}
    left: dict[str, str] = {}
    foreign: list[Foreign] = []
    for path in _paths(sources, left, foreign):
        found.setdefault(path.resolve(), path)
    damaged = {place: error for read in foreign for place, error in read.damaged.items()}
    wrong = [e for e in damaged.values() if not (found and isinstance(e, NothingYetError))]
    if strict and wrong:
        error = wrong[0]
        others = found or len(damaged) > 1
        raise type(error)(f"{error}; {LEAVES_OUT}" if others else str(error))
    for place, error in damaged.items():
        left[str(place)] = str(error).removeprefix(f"{place}: ")
    foreign = [read for read in foreign if read.logs]
    for message in read_of(foreign):
        warn(message, ReplayWarning)
    return list(found.values()), list(left.items())


def _paths(
    sources: Iterable[Source | Log | Iterable[Source | Log]],
    left: dict[str, str],
    foreign: list[Foreign],
) -> Iterator[Path]:
    for source in sources:
        if isinstance(source, Log | str | os.PathLike):
            yield from _expand(os.fspath(source), left, foreign)
        elif isinstance(source, pd.DataFrame):
            raise MistakenType(what_to_do_with(source))
        elif isinstance(source, Iterable):
            yield from _paths(source, left, foreign)
        else:
            raise MistakenType(
                "expected logs, their paths, folders or patterns, such as 'logs/local', got "
                f"{source!r:.80}"
            )


def _expand(source: str, left: dict[str, str], foreign: list[Foreign] | None) -> list[Path]:
    if not source:
        raise LogError("expected the path of a log, a folder or a pattern, got ''")
    path = Path(source).expanduser()
    if path.is_dir():
        everything = sorted(path.rglob("*"))
        inside = without_engines([p for p in everything if _looks_like_log(p)])
        ours = [p for p in inside if _is_ours(p, left)]
        if not ours and (read := of_another_tool(path, foreign)):
            note_others(path, left, own=ours, read=True)
            return read.logs
        linked = {str(p): _LINKED for p in everything if _leads_to_logs(p, path.resolve())}
        if not ours:
            first = f"; {inside[0]}: {_what_it_is(inside[0])}" if inside else ""
            others = linked
            if foreign is not None and not first:
                note_others(path, others, own=ours, read=True)
                first = "".join(f"; {each}: {why}" for each, why in list(others.items())[:1])
            raise LogError(
                f"{source}: no log in this folder (expected *.jsonl or *.jsonl.gz, or files of "
                f"another tool that `replay import --help` names){first}"
            )
        left |= linked
        if foreign is not None:
            note_others(path, left, own=ours, read=False)
        return [log for each in ours for log in _arms_or_log(each)]
    if path.exists():
        is_own = path.name == ALLOCATION or (_looks_like_log(path) and _is_ours(path, {}))
        theirs = path.is_file() and not is_own
        read = of_another_tool(path, foreign) if theirs else None
        return read.logs if read else _arms_or_log(path)
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    found = [p for p in matches if p.is_dir() or (_looks_like_log(p) and _is_ours(p, left))]
    if not found:
        what = "no log matches" if glob.has_magic(source) else "no such file or folder"
        raise LogError(f"{source}: {what}{why_gone(source)}")
    return [log for each in found for log in _expand(str(each), left, foreign)]


_LINKED = "a symbolic link to a folder with logs, which is not followed; name it"


def _leads_to_logs(path: Path, folder: Path) -> bool:
    """Whether a path is a link to logs outside a folder, which `rglob` passes over."""
    if not (path.is_symlink() and path.is_dir()):
        return False
    there = path.resolve()
    apart = not (there.is_relative_to(folder) or folder.is_relative_to(there))
    near = itertools.chain(path.glob("*"), path.glob("*/*"))
    return apart and any(each.name.endswith(ENDINGS) for each in near)


def _looks_like_log(path: Path) -> bool:
    return path.name.endswith(ENDINGS) and path.name not in {EVENTS, AGENT} and path.is_file()


def is_own_log(path: Path) -> bool:
    """Whether a path is a file that begins as our logs do."""
    return _looks_like_log(path) and _is_ours(path, {})


_FOREIGN = "not a log of evo; `replay import FORMAT PATH` reads what other tools wrote"


def _what_it_is(path: Path) -> str:
    """Says what a file is that is no log of a run."""
    return GATE if is_gate_log(path) else _FOREIGN


def _is_ours(path: Path, left: dict[str, str]) -> bool:
    """Whether a file begins as our logs do, whole or damaged; another tool's is noted as left."""
    if path.name == ALLOCATION:
        return True
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            head = file.read(80)
    except (OSError, EOFError, zlib.error):
        return True  # reading it reports what is wrong
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
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            fault = str(error)
        else:
            return [_or_compressed(path.parent / arm.log) for arm in header.arms]
    raise LogError(f"{path}:1: not the header of an allocation: {fault}")


def _or_compressed(path: Path) -> Path:
    """The log of an arm, or what it was compressed to since."""
    plain = Path(os.path.normpath(path))
    packed = plain.with_name(f"{plain.name}.gz")
    return packed if packed.exists() and not plain.exists() else plain


def name_runs(paths: Sequence[Path]) -> dict[Path, str]:
    """Names runs after their files, with as many folders as it takes to tell them apart."""
    if not paths:
        return {}
    stems = {path: path.name.removesuffix(".gz").removesuffix(".jsonl") for path in paths}
    if len(set(stems.values())) == len(paths):
        return stems
    # Links of one name may lead to files that lie in one folder, so a link keeps its own place.
    roots = {path: path.parent.resolve() / path.name for path in paths}
    common = os.path.commonpath([root.parent for root in roots.values()])
    folders = {path: root.relative_to(common).parent for path, root in roots.items()}
    names = {path: (folder / stems[path]).as_posix() for path, folder in folders.items()}
    if len(set(names.values())) == len(paths):
        return names
    return {path: (folder / path.name).as_posix() for path, folder in folders.items()}


def read_run(path: Path, name: str) -> LeanRun:
    """Decodes a log.

    Raises:
        LogError: It cannot be read; names file and line.
    """
    data = read_bytes(path)
    lines = data[: data.rfind(b"\n") + 1]
    records = _records_of(path, lines)
    kinds: dict[type, list[Any]] = {}
    for record in records:
        kinds.setdefault(type(record), []).append(record)
    asked = {(r.generation, r.index, r.draft): r for r in kinds.get(LoggedCall, [])}
    children: list[Outcome] = kinds.get(Outcome, [])
    logged = children
    if asked:
        width = records[0].children
        children = [joined(each, asked.pop(each.reply_key(width), None)) for each in children]
        if records[0].asynchronous:
            under_way = len(kinds.get(Generation, [])) + 1
            generation_of = generations_of_calls(records[0], children, under_way)
            asked = {
                key: msgspec.structs.replace(reply, generation=generation_of(reply))
                for key, reply in asked.items()
            }
    run = LeanRun(
        path=path,
        name=name,
        header=records[0],
        initial=kinds.get(Initial, [None])[0],
        children=sorted(children, key=_place),
        generations=kinds.get(Generation, []),
        calls=[
            *kinds.get(InstanceCall, []),
            *kinds.get(CriticCall, []),
            *kinds.get(EmbeddingCall, []),
            *kinds.get(Advice, []),
            *asked.values(),
        ],
        tests=kinds.get(Confirmation, []),
        fresh=kinds[RunEnd][-1].stats if RunEnd in kinds else {},
        key=hashlib.sha256(data[: data.find(b"\n")]).hexdigest()[:12],
        ending="its last line is torn" if len(lines) < len(data) else _open_end(records),
    )
    if (fault := _contradiction(run, kinds[Header])) is not None:
        record, words = fault
        # A child that was joined with its reply is another value than the one of its line.
        lines_of = dict(zip(map(id, children), logged, strict=True))
        record = lines_of.get(id(record), record)
        at = next(number for number, each in enumerate(records, start=1) if each is record)
        raise LogError(f"{path}:{at}: {words}")
    return run


def _records_of(path: Path, lines: bytes) -> list[Any]:
    """Decodes lines in one go; on any doubt `evo.logs.log.log_reader` finds the one to blame."""
    try:
        records: list[Any] = _decoder.decode_lines(lines)
        sound = len(records) == lines.count(b"\n") and _checksums_match(lines)
        sound = sound and isinstance(records[0], Header) and records[0].schema <= SCHEMA
    except (msgspec.DecodeError, ValueError, IndexError, RecursionError):
        sound = False
    return records if sound else list(log_reader(path).follow())


def _open_end(records: Sequence[object]) -> str:
    """Says of a log that its last session has not ended; empty of others, and without sessions."""
    last = next((each for each in reversed(records) if isinstance(each, Session | RunEnd)), None)
    return "its session has no last line" if isinstance(last, Session) else ""


def _checksums_match(lines: bytes) -> bool:
    every = lines.split(b"\n")[:-1]
    heads = np.frombuffer(b"".join([line[:BODY] for line in every]), np.uint8)
    if heads.size != BODY * len(every):
        return False
    sums = np.fromiter(map(zlib.crc32, [line[BODY:] for line in every]), ">u4", len(every))
    begin, digits, end = np.split(heads.reshape(-1, BODY), [len(PREFIX), BODY - 2], axis=1)
    return (
        digits.tobytes() == sums.tobytes().hex().encode()
        and begin.tobytes() == PREFIX * len(every)
        and end.tobytes() == b'",' * len(every)
    )


_place = attrgetter("generation", "index")


def out_of_reach(fitness: float) -> str:
    """Says of a fitness that no statistic can hold it; empty of all others."""
    if abs(fitness) <= MOST_FITNESS:
        return ""
    return (
        f"a fitness of {fitness:.6g}, but statistics are possible up to {MOST_FITNESS:g} either way"
    )


def _contradiction(run: LeanRun, headers: Sequence[Header]) -> tuple[object, str] | None:
    """The record that contradicts the others, if any, and how."""
    beyond, n = len(run.generations) + 1, run.header.children
    before = None
    for child in run.children:
        place = generation, index = child.generation, child.index
        if not (0 < generation <= beyond and 0 <= index < n):
            return child, f"expected a child of generations 1 to {beyond} and N = {n}, got {place}"
        if place == before:
            return child, f"child {place} was logged twice"
        before = place
    every: list[Initial | Outcome] = [*([run.initial] if run.initial else []), *run.children]
    for evaluated in every:
        fitness = evaluated.evaluation.fitness
        if fitness is not None and (words := out_of_reach(fitness)):
            how = "scale it, or take another of its metrics (`evo rescore --metric NAME`)"
            return evaluated, f"{words}; have the evaluator {how}"
    for number, record in enumerate(run.generations, start=1):
        if record.generation != number:
            return record, f"expected generation {number}, got {record.generation}"
    if len(headers) > 1:
        return headers[1], "expected one header, on line 1; got a header here"
    return None
