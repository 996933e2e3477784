"""Looks after logs: checks that one is whole, mends it, or copies it without its texts."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from evo.logs.calls import as_written, generations_of_calls
from evo.logs.caps import above, cap
from evo.logs.hashes import hash_of_lines, hash_of_task
from evo.logs.inputs import TaskRecord
from evo.logs.journal import LogError, encode_line, raw_pieces, write_new
from evo.logs.lines import PREFIX, check_line, check_size
from evo.logs.log import TOLERANCE, Log, line_decoder, read_log
from evo.logs.means import confirmed_fitness
from evo.logs.missing import missing_lines
from evo.logs.records import (
    Advice,
    Child,
    Confirmation,
    Generation,
    Header,
    InheritableLine,
    Initial,
    InstanceCall,
    Outcome,
    Plan,
    Record,
    ReplyLine,
    SearchRecord,
)
from evo.logs.types import as_path

SHIPPED = {"best_of_n", "population", "islands", "map_elites", "pareto", "tree"}
"""Names of the searches of this package; one of a user's own may have any numbers."""


def require_whole(log: Log) -> None:
    """Raises LogError if lines are missing from a log or disagree; a torn end is forgiven.

    Every verb that runs what a log embeds asks this first.
    """
    for fault in faults_of(log):
        raise LogError(f"{log.path}: {fault}")


def faults_of(log: Log) -> Iterator[str]:
    """Yields how the lines of a log disagree, in words."""
    header = log.header
    for each in (header, *(segment.header for segment in header.segments)):
        yield from _above_caps(each)
    if header.source.startswith("evo"):
        yield from _wrong_files(header.task)
    by_generation: dict[int, dict[int, Outcome]] = {}
    for outcome in log.outcomes:
        by_generation.setdefault(outcome.generation, {})[outcome.index] = outcome
    if [g.generation for g in log.generations] != list(range(1, len(log.generations) + 1)):
        yield "the generations are not numbered 1, 2, 3, ..."
    yield from _wrong_generations(log, by_generation)
    yield from _wrong_means(log)
    yield from _wrong_plans(log)
    yield from _wrong_inheritance(log)
    if extra := [g for g in by_generation if g > len(log.generations) + 1]:
        yield f"children of generations {extra} whose predecessors are not complete"


def _above_caps(header: Header) -> Iterator[str]:
    """Yields which numbers of a configuration are above what a log may ask for."""
    most = max(header.children * header.drafts, header.inspirations, *_counts(header.search))
    if most > cap("EVO_MAX_CHILDREN"):
        yield above("EVO_MAX_CHILDREN")
    if max(header.draws, header.confirm) > cap("EVO_MAX_DRAWS"):
        yield above("EVO_MAX_DRAWS")


def _wrong_files(task: TaskRecord) -> Iterator[str]:
    """Yields how the files of a task are not those that it names."""
    if hash_of_task(task) != task.hash:
        yield (
            "its task's files were changed after it was written: they do not have the stated "
            f"hash {task.hash[:12]!r}"
        )
    for file in {task.program_file, task.evaluator_file} - {"", *task.files}:
        yield f"its task has no file {file!r}, which the header names"


def _wrong_generations(
    log: Log, by_generation: Mapping[int, Mapping[int, Outcome]]
) -> Iterator[str]:
    """Yields what complete generations state that their children contradict."""
    children = log.header.children
    best = log.initial.evaluation.fitness if log.initial else None
    for generation in log.generations:
        members = by_generation.get(generation.generation, {})
        last = generation is log.generations[-1]
        short = last and any(end.reason == "over" for end in log.ends)  # the engine ended in it
        expected = min(children, len(members) + (not short))
        if sorted(members) != list(range(expected)):
            yield (
                f"generation {generation.generation} is complete but has children "
                f"{sorted(members)}, expected {children} of them"
            )
        top, slack = _best_of(log, generation.generation, members.values(), best)
        stated = generation.best_fitness
        if not _agrees(stated, top, slack):
            yield (
                f"generation {generation.generation} states best fitness {stated!r}, but its "
                f"children and parent give {top!r}"
            )
        made, index = generation.best
        if generation.best != (0, 0) and index not in by_generation.get(made, {}):
            yield f"generation {generation.generation} names as best {generation.best}, not logged"
        best = stated


def _agrees(stated: float | None, top: float | None, slack: float) -> bool:
    """Whether a best fitness that is stated is that of the children, but for rounding."""
    if stated is None or top is None:
        return stated is top
    return top - 2 * slack <= stated <= top


def _best_of(
    log: Log, generation: int, members: Iterable[Outcome], before: float | None
) -> tuple[float | None, float]:
    """Best fitness after a generation by its children, and by how much what is stated may differ.

    `before` is that after the previous generation.
    """
    tried = log.confirmations.get(generation)
    if tried is not None:
        fresh = confirmed_fitness(tried, tried.accepted, before)
        if fresh is not None:
            return fresh, TOLERANCE
    fitnesses = [o.evaluation.fitness for o in members if o.evaluation.status == "ok"]
    top = max((f for f in (before, *fitnesses) if f is not None), default=None)
    return top, log.header.min_improvement


def _counts(search: SearchRecord | None) -> Iterator[int]:
    """Yields the whole numbers among the fields of a shipped search, which are counts of work."""
    fields = [search.fields] if search and search.name in SHIPPED and not search.source else []
    for each in fields:
        fields.extend(value for value in each.values() if isinstance(value, dict))
        yield from (value for value in each.values() if isinstance(value, int))


def _wrong_means(log: Log) -> Iterator[str]:
    """Yields where a fitness is not the mean over its instances."""
    evaluated = [
        (f"child {o.index} of generation {o.generation}", o.evaluation) for o in log.outcomes
    ]
    if log.initial:
        evaluated.append(("the initial program", log.initial.evaluation))
    for who, evaluation in evaluated:
        scores = [each.score or 0.0 for each in evaluation.instances]
        if evaluation.fitness is None or not scores or log.header.source != "evo":
            continue
        mean = sum(scores) / len(scores)
        if abs(mean - evaluation.fitness) > TOLERANCE:
            yield (
                f"{who} has fitness {evaluation.fitness!r}, but the mean over its instances "
                f"is {mean!r}"
            )


def _wrong_plans(log: Log) -> Iterator[str]:
    """Yields where children are not what their generation's plan asks for."""
    for number, plan in log.plans.items():
        if len(plan.requests) != log.header.children:
            yield f"the plan of generation {number} has {len(plan.requests)} requests"
    for child in log.outcomes:
        if child.request is not None:
            at, index = log.requests.get(child.request), 0
        else:
            at, index = log.plans.get(child.generation), child.index
        asked = at.requests[index : index + 1] if at else ()
        made = (child.parents, child.operator, child.model, child.edits)
        if any((a.parents, a.operator, a.model, a.edits) != made for a in asked):
            yield f"child {child.index} of generation {child.generation} is not what was planned"


def _wrong_inheritance(log: Log) -> Iterator[str]:
    """Yields the places where inherited lines contradict the fork's header."""
    fork = log.header.fork
    inherited = [o.generation for o in log.outcomes if o.inherited]
    if inherited and (fork is None or max(inherited) > fork.at):
        yield f"generation {max(inherited)} is marked as inherited, which is after any fork"
    elif fork and log.initial and log.initial.inherited and log.header.source == "evo":
        if any(each.header.fork for each in fork.segments):
            yield "its segments are forks themselves"
        if (
            not log.header.compact
            and hash_of_lines(lines_through(log, fork.at, log.children)) != fork.through
        ):
            yield f"what it inherits through generation {fork.at} is not what it left"


def salvage_log(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> tuple[str, ...]:
    """Writes every sound line of a damaged log to a new one; returns in words what was lost.

    These are the damaged lines and the faults that the new log has without them.

    `LogError`: not even its header is sound, or the target exists or cannot be written.
    """
    kept, lost = _salvage(Path(path))
    if not kept or not isinstance(line_decoder.decode(kept[0]), Header):
        raise LogError(f"{path}: its first line, the header, is damaged: nothing can be salvaged")
    sound: dict[str, bytes] = {}
    for number, line in enumerate(kept):
        name, record = f"line {number}", line_decoder.decode(line)
        if isinstance(record, Child):
            name = f"child {(record.generation, record.index)}"
        elif isinstance(record, ReplyLine):
            name = f"call {(record.generation, record.index, record.draft)}"
        elif isinstance(record, Header):
            name = "a header"
        if name in sound:
            lost.append(f"{name} again")
        else:
            sound[name] = line
    write_new(Path(target), b"".join(sound.values()))
    left = read_log(target)
    return (*lost, *faults_of(left), *missing_lines(left))


def _salvage(path: Path) -> tuple[list[bytes], list[str]]:
    """Every sound line of a damaged log, and what is gone, in words.

    A line that follows half another one on the same line, as an old version left it on a full
    disk, is sound from where it begins.
    """
    kept: list[bytes] = []
    lost: list[str] = []
    data = b""
    pieces = raw_pieces(path, 0)
    try:
        for piece in pieces:
            data += piece
    except LogError as error:
        if not data:
            raise
        lost.append(str(error).removeprefix(f"{path}: "))
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        at = 0
        while at >= 0 and _unsound(line[at:]):
            at = line.find(PREFIX, at + 1)
        if at >= 0 and number < len(lines):
            kept.append(line[at:] + b"\n")
        if at and line:
            lost.append(f"line {number}: {len(line) if at < 0 else at:,} bytes are damaged")
        elif line and number == len(lines):
            lost.append(f"line {number}: the last line is torn")
    return kept, lost


def _unsound(line: bytes) -> bool:
    if check_line(line) or check_size(line):
        return True
    try:
        line_decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return True
    return False


def compact(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Log:
    """Writes a copy of a log without replies and programs, which still replays.

    Args:
        path: A log.
        target: New file; `.jsonl.gz` compresses, with the same bytes for the same log.

    Raises:
        LogError: The log cannot be read, or the target exists or cannot be written.

    Example:
        >>> small = evo.compact(path, new())
        >>> small.header.compact, small.best_fitness == log.best_fitness
        (True, True)
    """
    log, target = read_log(path), as_path("target", target)
    bare = [Child(**{n: getattr(o, n) for n in Outcome.__struct_fields__}) for o in log.outcomes]
    lines: list[Record] = [msgspec.structs.replace(log.header, compact=True)]
    lines += [*log.sessions, *log.ends]
    for line in as_written(lines_through(log, len(log.generations) + 1, bare), log.header):
        texts = {"reply", "reasoning"} & set(line.__struct_fields__)
        lines.append(msgspec.structs.replace(line, **dict.fromkeys(texts)))
    write_new(target, b"".join(map(encode_line, lines)))
    return read_log(target)


def lines_through(log: Log, at: int, children: Sequence[Outcome]) -> list[InheritableLine]:
    """Returns what a log holds of the generations through `at`, in order; children as given."""
    lines: dict[int, list[InheritableLine]] = {g: [] for g in range(at + 1)}
    initial = [log.initial] if log.initial else []
    generation_of = generations_of_calls(log.header, children, len(log.generations) + 1)
    records: Iterable[
        Initial | Advice | Plan | InstanceCall | ReplyLine | Outcome | Confirmation | Generation
    ]
    records = itertools.chain(
        log.advice_calls, log.plans.values(), log.requests.values(), log.instance_calls,
        log.critic_calls, log.embedding_calls, initial, log.replies.values(), children,
        log.confirmations.values(), log.generations,
    )  # fmt: skip
    for record in records:
        generation = 0 if isinstance(record, Initial) else generation_of(record)
        if generation <= at:
            lines[generation].append(record)
    return [line for group in lines.values() for line in group]
