"""One run's log, read and written.

A log is a file of `evo.logs.journal` whose lines are the records of `evo.logs.records.Line`.
"""

from __future__ import annotations

import functools
import html
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evo.logs.best import Best
from evo.logs.calls import joined
from evo.logs.constructions import kept_value
from evo.logs.cost import tokens_in, wall_time
from evo.logs.escapes import plain_text
from evo.logs.journal import LogError, Reader, read_pieces
from evo.logs.records import (
    Advice,
    AnyCall,
    Child,
    Confirmation,
    CriticCall,
    EmbeddingCall,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Limits,
    Line,
    LoggedCall,
    Outcome,
    Plan,
    ReplyLine,
    RunEnd,
    Session,
    Tick,
)
from evo.logs.sparkline import sparkline
from evo.logs.types import as_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLERANCE = 1e-9  # of fitnesses that count as equal
FEW = 8  # lines that are sought one by one

Span = tuple[int, int]
"""The bytes of a file at which a line begins and ends."""

LeanLine = (
    Header | Initial | Plan | Outcome | Generation | RunEnd | Session | InstanceCall | CriticCall
    | EmbeddingCall | LoggedCall | Advice | Confirmation | Tick
)  # fmt: skip
"""`Line`, a child and its call without their texts."""

_lean_decoder: msgspec.json.Decoder[LeanLine] = msgspec.json.Decoder(LeanLine)
line_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def log_reader(path: Path) -> Reader[LeanLine]:
    """Returns what reads a run's log, without the children's texts."""
    return Reader(path, _lean_decoder, first=Header)


class Log:
    """The content of a log file at the time of reading.

    Attributes:
        path: The file.
        header: Configuration of the run.
        sessions: One per process that wrote it.
        initial: Evaluation of the initial program; None before it was logged.
        plans: By generation, where its search planned more than greedy's.
        requests: By number, the plans of single children in a run without a barrier.
        confirmations: By generation, of rivals that were tried on fresh draws.
        outcomes: Children without their texts, by generation and index, including those of a
            generation under way.
        instance_calls: Calls that evaluations made, by generation, program and index; of a call
            that was repeated after a failure, each in the order made.
        critic_calls: Calls of the critic, likewise.
        embedding_calls: Calls for embeddings that a filter compares, likewise.
        advice_calls: Calls for advice, in the order made.
        replies: Calls without a child, by generation, index and draft: of children that are still
            to be evaluated, drafts that were not chosen, and, by a negative draft, what failed.
        generations: Complete generations, in order.
        ends: Orderly ends of sessions.
        ended: Whether the last session ended in order.
        reader: Says how far it was read: `length` in bytes, `lines`, and whether the end is `torn`.

    Example:
        >>> log.header.task.name, [child.generation for child in log.children]
        ('min_max_distance', [1, 2])
    """

    header: Header

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions: list[Session] = []
        self.initial: Initial | None = None
        self.plans: dict[int, Plan] = {}
        self.requests: dict[int, Plan] = {}
        self.confirmations: dict[int, Confirmation] = {}
        self.generations: list[Generation] = []
        self.ends: list[RunEnd] = []
        self.outcomes: list[Outcome] = []
        self.instance_calls: list[InstanceCall] = []
        self.critic_calls: list[CriticCall] = []
        self.embedding_calls: list[EmbeddingCall] = []
        self.advice_calls: list[Advice] = []
        self.ended = False
        self._tick: Tick | None = None
        self.reader = log_reader(path)
        self._spans: dict[tuple[int, int], list[Span]] = {}
        self._asked: dict[tuple[int, int, int], tuple[LoggedCall, Span]] = {}
        self.refresh()

    def refresh(self) -> bool:
        """Reads what was appended since, and nothing again; returns whether there was anything."""
        before = self.reader.lines
        for record in self.reader.follow():
            match record:
                case Header():
                    self.header = record
                case Initial():
                    self.initial = record
                case Confirmation():
                    self.confirmations[record.generation] = record
                case Plan():
                    if record.request is None:
                        self.plans[record.generation] = record
                    else:
                        self.requests[record.request] = record
                case CriticCall():
                    self.critic_calls.append(record)
                case EmbeddingCall():
                    self.embedding_calls.append(record)
                case InstanceCall():
                    self.instance_calls.append(record)
                case Advice():
                    self.advice_calls.append(record)
                case LoggedCall():
                    key = (record.generation, record.index, record.draft)
                    self._asked[key] = record, self._span()
                case Tick():
                    self._tick = record
                case Generation():
                    self.generations.append(record)
                case Session():
                    self.sessions.append(record)
                    self.ended = False
                case RunEnd():
                    self.ends.append(record)
                    self.ended = True
                case Outcome():
                    self._take_child(record)
        self.outcomes.sort(key=lambda outcome: (outcome.generation, outcome.index))
        kinds: list[list[Any]] = [self.instance_calls, self.critic_calls, self.embedding_calls]
        for calls in kinds:
            calls.sort(key=lambda call: (call.generation, call.program, call.index))
        if self.reader.lines > before:
            self.__dict__.pop("children", None)
            self.__dict__.pop("replies", None)
        return self.reader.lines > before

    def _take_child(self, outcome: Outcome) -> None:
        place = (outcome.generation, outcome.index)
        if place in self._spans:
            raise LogError(f"{self.path}: child {place} was logged twice")
        call, span = self._asked.pop(outcome.reply_key(self.header.children), (None, None))
        self._spans[place] = [*([span] if span else []), self._span()]
        self.outcomes.append(joined(outcome, call))

    def _span(self) -> Span:
        """Returns where the line lies that was read last."""
        return self.reader.start, self.reader.length - 1

    def has_call(self, generation: int, index: int) -> bool:
        """Whether the call of a child is a line of its own."""
        return len(self._spans[generation, index]) > 1

    def __fspath__(self) -> str:
        return str(self.path)

    def child(self, generation: int, index: int) -> Child:
        """One child with its texts, read at its place in the file; `KeyError` if it has none."""
        (child,) = self.find([(generation, index)]).values()
        return child

    def find(self, wanted: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Child]:
        """Children with their texts by generation and index, read in one go; or `KeyError`."""
        found = self._children({place: self._spans[place] for place in sorted(set(wanted))})
        return {(child.generation, child.index): child for child in found}

    @functools.cached_property
    def children(self) -> list[Child]:
        """Children with their texts, from generation 1 on, by generation and index."""
        return self._children(dict(sorted(self._spans.items())))

    @functools.cached_property
    def replies(self) -> dict[tuple[int, int, int], ReplyLine]:
        """Calls without a child: see the attributes."""
        spans = {key: span for key, (_, span) in self._asked.items()}
        records = self._records(spans.values())
        return {
            key: record for key, s in spans.items() if isinstance(record := records[s], ReplyLine)
        }

    def _children(self, spans: Mapping[tuple[int, int], Sequence[Span]]) -> list[Child]:
        """Reads children with their calls, each by the lines that hold them."""
        records = self._records(span for each in spans.values() for span in each)
        found = []
        for each in spans.values():
            child, calls = records[each[-1]], [records[span] for span in each[:-1]]
            assert isinstance(child, Child)
            call = next((call for call in calls if isinstance(call, ReplyLine)), None)
            found.append(joined(child, call))
        return found

    def _records(self, spans: Iterable[Span]) -> dict[Span, Line]:
        """Reads lines in one go, in the order of the file."""
        wanted, found = sorted(spans), dict[Span, Line]()
        if len(wanted) <= FEW and self.path.suffix != ".gz":
            with self.path.open("rb") as file:
                for span in wanted:
                    file.seek(span[0])
                    found[span] = line_decoder.decode(file.read(span[1] - span[0]))
            return found
        at = 0
        for piece in read_pieces(self.path):
            while len(found) < len(wanted) and wanted[len(found)][1] <= at + len(piece):
                first, last = span = wanted[len(found)]
                found[span] = line_decoder.decode(piece[first - at : last - at])
            at += len(piece)
            if len(found) == len(wanted):
                break
        return found

    @property
    def calls(self) -> list[AnyCall]:
        """Every call that this run made: of children and drafts, evaluations, critics, for advice.

        A fork's log holds others besides, which are inherited.
        """
        every: list[AnyCall] = [*self.outcomes, *self.instance_calls, *self.critic_calls]
        every += [*self.embedding_calls, *self.advice_calls, *(c for c, _ in self._asked.values())]
        return [call for call in every if not call.inherited]

    @property
    def advice(self) -> list[tuple[int, str]]:
        """What a model replied when asked for advice, each with the generation it was meant for."""
        return [(each.generation, each.reply) for each in self.advice_calls if each.reply]

    def inherits(self, generation: int) -> bool:
        """Whether a generation was made, and paid for, by the run that this one left."""
        if generation == 0:
            return self.initial is not None and self.initial.inherited
        return self.generations[generation - 1].inherited

    @property
    def limits(self) -> Limits:
        """The limits of its evaluations, with the time limit that the run fixed, if it did."""
        return self.header.limits.fixed(self.initial.limit if self.initial else None)

    @property
    def trajectory(self) -> NDArray[np.float64]:
        """Best fitness after each complete generation, shape (T + 1,); NaN while nothing is ok."""
        import numpy as np

        first = self.initial.evaluation.fitness if self.initial else None
        values = [first, *(generation.best_fitness for generation in self.generations)]
        return np.array([np.nan if value is None else value for value in values])

    @property
    def parent(self) -> Best:
        """The program that the next generation is asked to rewrite; `LogError` before any is.

        Where the run confirms, its fitness is that of its latest confirmation, see `best_fitness`.
        """
        last = self.generations[-1] if self.generations else None
        found = self._program(*(last.best if last else (0, 0)))
        return found.confirmed(last.best_fitness) if last and self.header.confirm else found

    @property
    def best_fitness(self) -> float:
        """The best fitness, NaN where nothing is ok: the end of the trajectory.

        A run with `confirm` states the mean of the fresh draws on which the best program was last
        compared with another, not the fitness that was measured first.
        """
        return float(self.trajectory[-1])

    @property
    def best(self) -> Best:
        """The program of highest fitness in the complete generations.

        It is the parent, unless under `min_improvement` a better child was not better enough. Of
        fitnesses within 1e-9 the first one counts; what a filter kept out does not. Where the run
        confirms it is the parent, with the confirmed fitness. `LogError` before there is one.
        """
        if self.header.confirm:  # what was rejected was better by luck
            return self.parent
        parent = self.generations[-1].best if self.generations else (0, 0)
        stated = self.generations[-1].best_fitness if self.generations else math.inf
        fits = {
            (o.generation, o.index): o.evaluation.fitness
            for o in self.outcomes
            if o.generation <= len(self.generations)
            and o.evaluation.fitness is not None
            and not o.kept_out
        }
        top = max(fits.values(), default=-math.inf)
        if stated is None or top <= stated + TOLERANCE:
            return self._program(*parent)
        return self._program(*next(k for k, f in fits.items() if f >= top - TOLERANCE))

    def _program(self, generation: int, index: int) -> Best:
        if (generation, index) == (0, 0):
            if self.initial is None and self.header.source != "evo":
                raise LogError(f"{self.path}: holds no program that was scored")
            if self.initial is None:
                raise LogError(f"{self.path}: holds no evaluation yet; `evo resume` continues it")
            task = self.header.task
            program = task.files.get(task.program_file)
            return Best(program, self.initial.evaluation, 0, 0, self.initial.value)
        child = self.child(generation, index)
        value = child.value
        if value is None and child.program is not None:
            value = kept_value(self.path, child.program)
        return Best(child.program, child.evaluation, generation, index, value)

    @property
    def goal(self) -> int:
        """T, the goal of the last session; the number of complete generations if it had none."""
        stated = self.sessions[-1].generations if self.sessions else None
        return len(self.generations) if stated is None else stated

    @property
    def finished(self) -> bool:
        """Whether the goal was reached: T, target, the end of its patience, or a rule."""
        reached = self.ended and self.ends[-1].reason in ("target", "patience", "rule")
        return reached or len(self.generations) >= self.goal

    @property
    def seconds(self) -> float | None:
        """Wall time of the complete generations that are its own; None unless all are known."""
        return wall_time(self.generations)

    @property
    def seconds_under_way(self) -> float:
        """Wall time that went into the generation under way so far, to a second or so."""
        tick = self._tick
        return tick.seconds if tick and tick.generation > len(self.generations) else 0.0

    @property
    def status_counts(self) -> dict[str, int]:
        """Number of children by status."""
        return dict(Counter(outcome.evaluation.status or "unknown" for outcome in self.outcomes))

    @property
    def rejections(self) -> dict[str, int]:
        """Number of children that each filter refused, by its name."""
        refused = [each for each in self.outcomes if each.evaluation.status == "rejected"]
        return dict(Counter((each.evaluation.error or "").partition(":")[0] for each in refused))

    @property
    def exclusions(self) -> dict[str, int]:
        """Number of evaluated children that each filter kept out of the archive, by its name."""
        reasons = (each.kept_out for each in self.outcomes if each.kept_out)
        return dict(Counter(reason.partition(":")[0] for reason in reasons))

    def __repr__(self) -> str:
        return f"<Log {self.path}: {summarise(self)}>"

    def _repr_html_(self) -> str:
        return (
            f"<div><b>{html.escape(self.path.name)}</b><br>{html.escape(summarise(self))}<br>"
            f"{sparkline(self.trajectory.tolist())}</div>"
        )


def summarise(log: Log) -> str:
    """Returns one line of words: task, model, progress, fitness, calls, tokens, time."""
    header = log.header
    seed = "unknown" if header.seed < 0 else header.seed  # of an import
    best = log.trajectory[-1]
    seconds = "unknown time" if log.seconds is None else f"{log.seconds:.1f} s"
    state = "" if log.finished else ", unfinished"
    asked = f"{len(log.instance_calls):,} calls on instances, " if log.instance_calls else ""
    dropped = log.status_counts.get("partial", 0)
    by = "refused by a stage" if header.task.stages else "dropped on a batch"
    left = f" ({dropped} {by}: no fitness, in no analysis of it)" if dropped else ""
    stats = log.ends[-1].stats if log.ends else {}
    checked = ""
    if "check_low" in stats:
        checked = (
            f", on {stats['check_instances']:.0f} check instances {stats['check_gain']:+.3f} over "
            f"the initial text (at least {stats['check_low']:+.3f}; "
            f"{stats['check_detectable']:.3f} would be found four times in five)"
        )
    return plain_text(
        f"{header.task.name}, {header.model_name}, seed {seed}, T={len(log.generations)} of "
        f"N={header.children}{state}: best fitness {best:z.6g}, "
        f"{log.status_counts.get('ok', 0)} of {len(log.outcomes)} children ok{left}, "
        f"{asked}{tokens_in(log.calls)}, {seconds}{checked}"
    )


class Logs(list[Log]):
    """Logs of several runs; a table with pictures in Jupyter.

    Attributes:
        not_begun: Paths of the logs of runs that were asked for and not begun, because the budget
            was used up before their turn, or a stop was requested.
    """

    def __init__(self, logs: Iterable[Log] = (), not_begun: Sequence[Path] = ()) -> None:
        super().__init__(logs)
        self.not_begun = tuple(not_begun)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(summarise(log))}</td>"
            f"<td>{sparkline(log.trajectory.tolist(), 160, 30)}</td></tr>"
            for log in self
        )
        names = ", ".join(html.escape(path.name) for path in self.not_begun)
        note = f"<p>Not begun: {names}</p>" if names else ""
        return f"<table>{rows}</table>{note}"


def read_log(path: str | os.PathLike[str]) -> Log:
    """Reads a log and checks every line of it.

    Args:
        path: The log, `.jsonl` or `.jsonl.gz`. It is only read: nothing in it is run.

    Returns:
        The log: its header, trajectory, children, generations, best program and costs.

    Raises:
        LogError: The file is missing, damaged or not a log; the message names file and line.

    Example:
        >>> log = evo.read_log(path)
        >>> len(log.trajectory) == len(log.generations) + 1
        True
    """
    return Log(as_path("path", path))
