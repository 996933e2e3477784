"""What all importers share: the imported run and its assembly.

Whatever a source holds, reading it ends in an `Imported` or in a `LogFormatError` that names the
file. What a source does not say stays unknown (None, no attempts), never zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from evo.logs.hashes import hash_of_task
from evo.logs.journal import encode_line, write_once
from evo.logs.log import line_decoder
from evo.logs.records import (
    Attempt,
    Child,
    Evaluation,
    Generation,
    Header,
    Initial,
    Line,
    Model,
    Sampling,
    SearchRecord,
    Status,
    TaskRecord,
)
from evo.plugins import MistakenType
from replay.importers.reading import EmptyRunError, LogFormatError
from replay.logs.decode import out_of_reach
from replay.logs.rows import UNNAMED

UNKNOWN_SEED = -1
"""Stands for a seed that the source does not hold; real seeds are at least 0."""

NOT_IN_SOURCE = "not in the source"
MOST = 100_000
"""Generations of a run at most; of children twenty times as many."""


Failure = tuple[Status | None, str]
"""How a child failed (None if the source does not tell), and the source's message."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The choices that a bandit made among runs of one import."""

    name: str  # of the folder of its arms
    policy: str  # as the source calls it
    seed: int
    picks: Sequence[int]  # the arm of each round
    rewards: Sequence[float]  # what the policy received, by round
    best: Sequence[float | None]  # over the arms so far; None while nothing is ok


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A run of another tool, converted to the records of this package.

    Attributes:
        source: The file or folder that it was read from.
        name: Name of its log, unique among the runs of one import; a `/` makes folders.
        header: The header of its log.
        initial: The evaluation of the initial program; None if the source does not hold it.
        children: All children by generation; a call without a program is a failed child.
        generations: The generations, all of them complete.
        program: The initial program; None if the source does not hold it.
        pool: The choices of the bandit that advanced this run as an arm, if there was one.

    Example:
        >>> evaluation = evo.Evaluation(status="ok", fitness=0.5)
        >>> born = replay.importers.born
        >>> imported = replay.importers.assemble(
        ...     path, "mine", name="run", initial=born(0, evaluation),
        ...     children=[[born(1, evaluation)]], lost=[], model=evo.Model("m"),
        ... )
        >>> imported.name
        'run'
    """

    source: Path  # file or folder that it was read from
    name: str  # for its log, unique among the runs of one import; `/` makes folders
    header: Header  # its `lost` states in one line what the source did not hold
    initial: Initial | None
    children: tuple[Child, ...]  # by generation; a call that left nothing is there as a failure
    generations: tuple[Generation, ...]  # all complete
    program: str | None = None  # the initial one, where the source holds it
    pool: Pool | None = None  # choices of the bandit whose arm it is

    @property
    def lost(self) -> str:
        """Names what the source did not hold, in one line."""
        return self.header.lost or "nothing"

    @property
    def keeps_best(self) -> bool:
        """Whether the source holds the text of the best program."""
        generation, index = self.generations[-1].best if self.generations else (0, 0)
        if generation == 0:
            return self.program is not None
        at = (generation - 1) * self.header.children + index
        return self.children[at].program is not None

    def of_task(self, name: str) -> Imported:
        """This run with the name of its task, unless the source says another one."""
        if self.header.task.name != UNNAMED:
            return self
        record = msgspec.structs.replace(self.header.task, name=name)
        return replace(self, header=msgspec.structs.replace(self.header, task=record))

    def lines(self, *, compact: bool = True, task: TaskRecord | None = None) -> Iterator[Line]:
        """The run as the lines of a log; a compact one has no replies, prompts and programs.

        With its task it can be rescored and forked.
        """
        record = self.header.task if task is None else task
        own = record.files.get(record.program_file)
        if not compact and self.program is not None and _plain(self.program) != _plain(own or ""):
            name = record.program_file or "initial_program.py"
            files = {**record.files, name: self.program}
            record = msgspec.structs.replace(record, program_file=name, files=files)
            record = msgspec.structs.replace(record, hash=hash_of_task(record))
        lost = self.lost if task is not None else f"files of the task; {self.lost}"
        yield msgspec.structs.replace(self.header, compact=compact, task=record, lost=lost)
        if self.initial is not None:
            yield self.initial
        bare = {"reply": None, "reasoning": None, "program": None, "prompt": ()} if compact else {}
        n = self.header.children
        for number, generation in enumerate(self.generations):
            for child in self.children[number * n : (number + 1) * n]:
                yield msgspec.structs.replace(child, **bare)
            yield generation


def _plain(program: str) -> list[str]:
    """A program's lines without the marks of what may evolve, which tools add and take away."""
    lines = (line.rstrip() for line in program.strip().splitlines())
    return [line for line in lines if "EVOLVE-BLOCK-" not in line]


def write(
    imported: Imported, target: Path, *, compact: bool = True, task: TaskRecord | None = None
) -> None:
    """Writes an imported run as a new log.

    Args:
        imported: The run.
        target: Path of the log, `.jsonl` or `.jsonl.gz`; if it exists, it must hold the same run.
        compact: Whether to leave out replies, prompts and programs.
        task: The task that the run was made on; with it the log can be rescored and forked.

    Raises:
        LogFormatError: The source holds values that a log cannot, such as integers beyond 64 bits.
        LogError: The log exists and holds something else, or cannot be written.

    Example:
        >>> evaluation = evo.Evaluation(status="ok", fitness=0.5)
        >>> born = replay.importers.born
        >>> imported = replay.importers.assemble(
        ...     path, "mine", name="run", initial=born(0, evaluation),
        ...     children=[[born(1, evaluation)]], lost=[], model=evo.Model("m"),
        ... )
        >>> target = new()
        >>> replay.importers.write(imported, target)
        >>> evo.read_log(target).header.source
        'mine'
    """
    try:
        lines = [encode_line(line) for line in imported.lines(compact=compact, task=task)]
        for line in lines:
            line_decoder.decode(line)  # an integer beyond 64 bits can be written, but not read
    except (OverflowError, RecursionError, TypeError, msgspec.MsgspecError, ValueError) as error:
        raise LogFormatError(
            f"{imported.source}: holds what a log cannot: {str(error) or type(error).__name__}"
        ) from None
    write_once(target, b"".join(lines))


def _check_given(
    name: object, lost: object, n: int, seconds: Sequence[float | None], generations: int
) -> None:
    """Refuses what an importer of one's own easily gives in place of what is meant."""
    if not isinstance(name, str):
        raise MistakenType(f"name: expected a text, got {name!r:.80}")
    if isinstance(lost, str):
        raise MistakenType(f"lost: expected a list of texts, got the text {lost!r:.80}")
    if n < 1:
        raise ValueError(f"n: expected at least 1 child in a generation, got {n}")
    if seconds and len(seconds) != generations:
        raise ValueError(
            f"seconds: expected a number or None for each of {generations} generations, got "
            f"{len(seconds)}"
        )


def _by_index(members: Sequence[Child], n: int, where: str) -> dict[int, Child]:
    """Returns the children of a generation by their index, each of which is below n."""
    if isinstance(members, Child):
        raise MistakenType(
            "children: expected a list of children for each generation, as in [[born(1, ...)]], "
            "got a list of children"
        )
    present = {child.index: child for child in members}
    for index in set(present) - set(range(n)):
        raise LogFormatError(f"{where}: expected children 0 to {n - 1}, got {index}")
    if len(present) != len(members):
        raise LogFormatError(f"{where} holds a child twice")
    return present


def assemble(
    source: Path,
    tool: str,
    *,
    name: str,
    children: Sequence[Sequence[Child]],
    initial: Child | None,
    lost: Sequence[str],
    model: Model,
    task: str = UNNAMED,
    n: int = 1,
    seed: int = UNKNOWN_SEED,
    sampling: Mapping[str, float | None] | None = None,
    seconds: Sequence[float | None] = (),
    mixed: int | None = None,
    pool: Pool | None = None,
    search: SearchRecord | None = None,
) -> Imported:
    """Puts a run together: best so far and improvements follow from its own children.

    `initial` is a child of generation 0. `children` by generation, from 1: calls that are missing
    below `n` become failures. `mixed` is the first generation that may descend from programs of
    other runs. `search` is one of this package; None: the tool's own.

    Example:
        >>> evaluation = evo.Evaluation(status="ok", fitness=0.5)
        >>> born = replay.importers.born
        >>> imported = replay.importers.assemble(
        ...     path, "mine", name="run", initial=born(0, evaluation),
        ...     children=[[born(1, evaluation)]], lost=[], model=evo.Model("m"),
        ... )
        >>> [line.best_fitness for line in imported.generations]
        [0.5]
    """
    _check_given(name, lost, n, seconds, len(children))
    if not children and initial is None:
        raise EmptyRunError(f"{source}: holds no call and no program of {tool}")
    if n * len(children) > 20 * MOST:
        raise LogFormatError(
            f"{source}: expected at most {20 * MOST} children, got {n} x {len(children)}"
        )
    best = None if initial is None else initial.evaluation.fitness
    require_in_reach(best, f"{source}: the initial program")
    place, all_children, generations = (0, 0), list[Child](), list[Generation]()
    for number, members in enumerate(children, start=1):
        present = _by_index(members, n, f"{source}: generation {number}")
        for index in range(n):
            child = present.get(index) or failed(number, (None, NOT_IN_SOURCE), index=index)
            all_children.append(child)
            fitness = child.evaluation.fitness
            require_in_reach(fitness, f"{source}: child {index} of generation {number}")
            if fitness is not None and (best is None or fitness > best):
                best, place = fitness, (number, index)
        took, improved = seconds[number - 1] if seconds else None, place[0] == number
        made = Generation(
            generation=number, best_fitness=best, best=place, improved=improved, seconds=took
        )
        generations.append(made)
    given = {name: (sampling or {}).get(name) for name in ("temperature", "top_p")}
    limit = (sampling or {}).get("max_tokens")
    record = TaskRecord(
        name=task, hash="", files={}, program_file="", evaluator_file="", statement=""
    )
    return Imported(
        source=source,
        name=name,
        header=Header(
            task=record,
            model=model,
            sampling=Sampling(**given, max_tokens=None if limit is None else int(limit)),
            children=n,
            seed=seed,
            min_improvement=0.0,
            prompt_version=0,
            source=tool,
            lost="; ".join(lost),
            mixed=mixed,
            search=search,
        ),
        initial=None if initial is None else Initial(evaluation=initial.evaluation),
        children=tuple(all_children),
        generations=tuple(generations),
        program=None if initial is None else initial.program,
        pool=pool,
    )


def born(
    generation: int,
    evaluation: Evaluation,
    *,
    attempts: tuple[Attempt, ...] = (),
    parent: tuple[int, int] | None = None,
    island: object = None,
    program: object = None,
    reply: object = None,
    reasoning: object = None,
    prompt: Iterable[tuple[str, object]] = (),
    index: int = 0,
    seed: int = UNKNOWN_SEED,
) -> Child:
    """Returns one child of an imported run.

    Args:
        generation: Its generation, from 1.
        evaluation: Its evaluation, made by `judged`.
        attempts: Its requests, made by `answered`; empty if the source does not hold them.
        parent: Generation and index of its parent; None if unknown.
        island: Number of its island; anything but an integer is left out.
        program: Its text; anything but a text is left out here and below.
        reply: The reply of the model.
        reasoning: What the model returned apart from the reply.
        prompt: Role and text of each message that was sent.
        index: Its index in the generation, from 0.
        seed: Its seed (default: unknown).

    Example:
        >>> evaluation = evo.Evaluation(status="ok", fitness=0.5)
        >>> replay.importers.born(1, evaluation, program="x = 1").program
        'x = 1'
    """
    return Child(
        generation=generation,
        index=index,
        seed=seed,
        prompt_hash="",
        attempts=attempts,
        evaluation=evaluation,
        parents=() if parent is None else (parent,),
        island=island if type(island) is int else None,
        program=text(program),
        reply=text(reply),
        reasoning=text(reasoning) or None,
        prompt=tuple((role, text) for role, text in prompt if isinstance(text, str) and text),
    )


def failed(
    generation: int, failure: Failure, *, index: int = 0, attempts: tuple[Attempt, ...] = ()
) -> Child:
    """Returns a child of an imported run that has no result.

    Args:
        generation: Its generation, from 1.
        failure: Its status (None if unknown) and an error message (None if there is none).
        index: Its index in the generation, from 0.
        attempts: Its requests, made by `answered`.

    Example:
        >>> replay.importers.failed(1, ("timeout", "too slow")).evaluation.status
        'timeout'
    """
    evaluation = Evaluation(status=failure[0], error=failure[1], seconds=None)
    return born(generation, evaluation, index=index, attempts=attempts)


def text(value: object) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def status_of(words: str) -> Status | None:
    """Classifies a failure from the tool's recorded message."""
    if re.search(r"\btimed? ?out\b|TimeoutError|TimeoutExpired", words, re.IGNORECASE):
        return "timeout"
    return "error" if re.search(r"Traceback|\w(Error|Exception)\b", words) else None


def named(models: Iterable[object]) -> Model:
    """The models of a run as one; unknown without any name."""
    return Model(name="+".join(sorted({str(name) for name in models if name})) or "unknown")


def common(values: Iterable[object]) -> float | None:
    """The number that all of them are; None where they differ or there is none."""
    found = {finite(value) for value in values}
    return found.pop() if len(found) == 1 else None


def judged(
    fitness: object,
    *,
    failure: Failure | None = None,
    metrics: Mapping[str, object] | None = None,
    seconds: float | None = None,
) -> Evaluation:
    """Returns the evaluation of an imported program.

    Args:
        fitness: The fitness in the source. It counts only without a failure, and a value that is
            not a finite number gives the status `invalid`.
        failure: Status and message if the program failed.
        metrics: Further values by name; those that are finite numbers are kept.
        seconds: Duration of the evaluation; None if unknown.

    Example:
        >>> replay.importers.judged(0.5).status, replay.importers.judged("high").status
        ('ok', 'invalid')
    """
    numbers = {str(key): finite(value) for key, value in (metrics or {}).items()}
    kept = {key: number for key, number in numbers.items() if number is not None}
    value = finite(fitness)
    if failure is None and value is None:
        failure = ("invalid", f"expected a finite fitness, got {fitness!r:.60}")
    if failure is not None:
        return Evaluation(status=failure[0], error=failure[1], metrics=kept, seconds=seconds)
    return Evaluation(status="ok", fitness=value, metrics=kept, seconds=seconds)


def answered(
    prompt: object, completion: object, *, dollars: object = None, **details: object
) -> tuple[Attempt, ...]:
    """Returns the requests of a child of which the source holds the tokens only.

    Args:
        prompt: Number of prompt tokens; anything but a number from 0 is left out.
        completion: Number of completion tokens, likewise.
        dollars: What the source says that they cost, likewise; it goes before tokens times prices.
        **details: Further fields of the usage.

    Returns:
        One attempt with this usage, or an empty tuple if all three numbers are missing.

    Example:
        >>> replay.importers.answered(900, 250)[0].usage
        {'prompt_tokens': 900, 'completion_tokens': 250}
    """
    counts = {
        key: value
        for key, value in (
            ("prompt_tokens", prompt),
            ("completion_tokens", completion),
            ("dollars", dollars),
        )
        if (known := finite(value)) is not None and known >= 0
    }
    if not counts:
        return ()
    usage = counts | {key: value for key, value in details.items() if value is not None}
    return (Attempt(status="ok", latency=None, usage=usage),)


def finite(value: object) -> float | None:
    """The value as a float if it is a finite number (not a bool), otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def require_in_reach(fitness: float | None, where: Path | str) -> None:
    """Raises LogFormatError of a fitness that no statistic can hold, which no report would take."""
    if fitness is not None and (words := out_of_reach(fitness)):
        raise LogFormatError(f"{where}: {words}; scale it in the file, or leave the child out")


def within(value: object, where: Path | str, what: str = "generation") -> int:
    """A whole number from 0 to `MOST`; else LogFormatError names `where` and what it counts."""
    if type(value) is not int or not 0 <= value <= MOST:
        raise LogFormatError(f"{where}: expected {what} from 0 to {MOST}, got {value!r:.60}")
    return value
