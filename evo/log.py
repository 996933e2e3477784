"""One run's log: append and read.

A log is a JSONL file. Every line is one record of `evo.records.Line` with a CRC-32 of itself in
front: `{"crc":"1c291ca3","kind":"header",...}`. Lines are only ever appended. A reader forgives a
torn last line, which is what a killed writer leaves, and nothing else.
"""

from __future__ import annotations

import fcntl
import functools
import gzip
import html
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from evo.cost import usage_tokens
from evo.lines import (
    BODY,
    PREFIX,
    Decoded,
    LogBusyError,
    LogError,
    check_line,
    decode,
    encode_line,
    read_bytes,
    read_pieces,
)
from evo.records import (
    AllocationLine,
    Child,
    End,
    Evaluation,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Line,
    Outcome,
    Reply,
    Session,
)
from evo.showing import sparkline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "BODY",
    "PREFIX",
    "Best",
    "Log",
    "LogBusyError",
    "LogError",
    "LogWriter",
    "Logs",
    "check_folder",
    "check_free",
    "check_line",
    "decode",
    "encode_line",
    "read_bytes",
    "read_log",
    "summarise",
    "write_new",
]

_line_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


@dataclass(frozen=True)
class Best:
    """The best program of a run and its evaluation; generation 0 is the initial program."""

    program: str | None
    evaluation: Evaluation
    generation: int
    index: int


class Log:
    """What a log file held when it was read.

    Attributes:
        path: The file.
        header: Configuration of the run.
        sessions: One per process that wrote it.
        initial: Evaluation of the initial program; None before it was logged.
        outcomes: Children without their texts, by generation and index, including those of a
            generation under way.
        instance_calls: Calls that evaluations made, by generation, program and index; of a call
            that was repeated after a failure, each in the order made.
        replies: By generation and index, of children that are still to be evaluated.
        generations: Complete generations, in order.
        torn: Whether a torn last line was left out.
        ends: Orderly ends of sessions.
        ended: Whether the last session has come to its orderly end.
    """

    def __init__(self, path: Path, pieces: Iterable[bytes]) -> None:
        self.path = path
        self.sessions: list[Session] = []
        self.initial: Initial | None = None
        self.generations: list[Generation] = []
        self.ends: list[End] = []
        self.outcomes: list[Outcome] = []
        self.instance_calls: list[InstanceCall] = []
        self.replies: dict[tuple[int, int], Reply] = {}
        self.ended = False
        self.length = 0  # bytes of whole lines: where a writer goes on
        self.lines = 0
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        header, size, begins = None, 0, b""
        for data in pieces:
            found = self._take(decode(path, data, start=self.length, lines=self.lines))
            header, size, begins = header or found, size + len(data), begins or data[:40]
        if header is None:
            raise LogError(f"{path}:1: not a log of evo: expected a header line, got {begins!r}")
        self.header = header
        self.torn = size > self.length

    def _take(self, lines: Iterator[Decoded]) -> Header | None:
        """Takes over further lines; returns the header if it is among them."""
        header: Header | None = None
        for decoded in lines:
            self.length = decoded.stop + 1
            self.lines += 1
            match decoded.record:
                case Header() as header:
                    pass
                case Session() as session:
                    self.sessions.append(session)
                    self.ended = False
                case Initial() as initial:
                    self.initial = initial
                case InstanceCall() as call:
                    self.instance_calls.append(call)
                case Reply() as reply:
                    self.replies[reply.generation, reply.index] = reply
                case Generation() as generation:
                    self.generations.append(generation)
                case End() as end:
                    self.ends.append(end)
                    self.ended = True
                case Outcome() as outcome:
                    key = (outcome.generation, outcome.index)
                    if key in self._places:
                        raise LogError(f"{self.path}: child {key} was logged twice")
                    self._places[key] = (decoded.start, decoded.stop)
                    self.replies.pop(key, None)
                    self.outcomes.append(outcome)
        self.outcomes.sort(key=lambda outcome: (outcome.generation, outcome.index))
        self.instance_calls.sort(key=lambda call: (call.generation, call.program, call.index))
        return header

    def refresh(self) -> bool:
        """Reads what was appended since, and nothing again; returns whether there was anything.

        Raises:
            LogError: A new line is damaged, or the file is gone or another one.
        """
        if self._content is not None:  # compressed, so finished
            return False
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(self.length)
                data = file.read()
        except OSError as error:
            raise LogError(f"{self.path}: cannot read the log: {error.strerror}") from None
        if size < self.length:
            raise LogError(f"{self.path}: shorter than before: another log took its place")
        before = self.length
        self._take(decode(self.path, data, start=self.length, lines=self.lines))
        self.torn = before + len(data) > self.length
        if self.length > before:
            self.__dict__.pop("children", None)
        return self.length > before

    def __fspath__(self) -> str:
        return str(self.path)

    def child(self, generation: int, index: int) -> Child:
        """Returns one child with its texts, read from the file at its place.

        Raises:
            KeyError: It is not in the log.
        """
        start, stop = self._places[generation, index]
        if self._content is not None:
            line = self._content[start:stop]
        else:
            with self.path.open("rb") as file:
                file.seek(start)
                line = file.read(stop - start)
        record = _line_decoder.decode(line)
        assert isinstance(record, Child)
        return record

    @functools.cached_property
    def _content(self) -> bytes | None:
        """What a compressed log holds, as one cannot jump in it; None of a plain one."""
        return read_bytes(self.path) if self.path.suffix == ".gz" else None

    @functools.cached_property
    def children(self) -> list[Child]:
        """Children with their texts, from generation 1 on, by generation and index."""
        data = read_bytes(self.path)
        places = [self._places[key] for key in sorted(self._places)]
        records = (_line_decoder.decode(data[start:stop]) for start, stop in places)
        return [record for record in records if isinstance(record, Child)]

    @property
    def calls(self) -> list[Outcome | InstanceCall | Reply]:
        """Every call: of children, of evaluations, and of children still to be evaluated."""
        return [*self.outcomes, *self.instance_calls, *self.replies.values()]

    @property
    def trajectory(self) -> NDArray[np.float64]:
        """Best fitness after each complete generation, shape (T + 1,); NaN while nothing is ok."""
        import numpy as np

        first = self.initial.evaluation.fitness if self.initial else None
        values = [first, *(generation.best_fitness for generation in self.generations)]
        return np.array([np.nan if value is None else value for value in values])

    @property
    def best(self) -> Best:
        """The best program after the last complete generation.

        Raises:
            LogError: Not even the initial program was evaluated yet.
        """
        if self.initial is None:
            raise LogError(f"{self.path}: holds no evaluation yet; `evo resume` continues it")
        generation, index = self.generations[-1].best if self.generations else (0, 0)
        if (generation, index) == (0, 0):
            task = self.header.task
            return Best(task.files.get(task.program_file), self.initial.evaluation, 0, 0)
        child = self.child(generation, index)
        return Best(child.program, child.evaluation, generation, index)

    @property
    def goal(self) -> int:
        """T, the goal of the last session; the number of complete generations if it had none."""
        stated = self.sessions[-1].generations if self.sessions else None
        return len(self.generations) if stated is None else stated

    @property
    def finished(self) -> bool:
        """Whether the goal was reached."""
        return len(self.generations) >= self.goal

    @property
    def seconds(self) -> float | None:
        """Wall time of the complete generations; None unless every one's is known."""
        known = [each.seconds for each in self.generations if each.seconds is not None]
        return sum(known) if len(known) == len(self.generations) else None

    @property
    def status_counts(self) -> dict[str, int]:
        """Number of children by status."""
        return dict(Counter(outcome.evaluation.status for outcome in self.outcomes))

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
    model = header.model.name + ("" if header.model.is_llm else " (not an LLM)")
    best = log.trajectory[-1]
    tokens = [usage_tokens(attempt.usage) for call in log.calls for attempt in call.attempts]
    prompt = sum(t.prompt or 0 for t in tokens if t)
    completion = sum(t.completion or 0 for t in tokens if t)
    seconds = "unknown time" if log.seconds is None else f"{log.seconds:.1f} s"
    state = "" if log.finished else ", unfinished"
    asked = f"{len(log.instance_calls):,} calls on instances, " if log.instance_calls else ""
    return (
        f"{header.task.name}, {model}, seed {header.seed}, T={len(log.generations)} of "
        f"N={header.children}{state}: best fitness {best:.6g}, "
        f"{log.status_counts.get('ok', 0)} of {len(log.outcomes)} children ok, "
        f"{asked}{prompt:,} + {completion:,} tokens, {seconds}"
    )


class Logs(list[Log]):
    """Logs of several runs; a table with pictures in Jupyter."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(summarise(log))}</td>"
            f"<td>{sparkline(log.trajectory.tolist(), 160, 30)}</td></tr>"
            for log in self
        )
        return f"<table>{rows}</table>"


def read_log(path: str | os.PathLike[str]) -> Log:
    """Reads a log (`.jsonl` or `.jsonl.gz`), checking every line.

    Raises:
        LogError: The file is missing, damaged or no log; names file and line.
    """
    path = Path(path)
    return Log(path, read_pieces(path))


def check_free(path: Path) -> None:
    """Makes the folder of a new file.

    Raises:
        LogError: The path exists already or its folder cannot be written.
    """
    if path.exists():
        raise LogError(f"{path}: exists already; choose another path or `evo resume {path}`")
    check_folder(path.parent)


def check_folder(path: Path) -> None:
    """Makes a folder unless it exists.

    Raises:
        LogError: It cannot be made or written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LogError(f"{path}: cannot write there: {error.strerror or error}") from None
    if not os.access(path, os.W_OK):
        raise LogError(f"{path}: cannot write there: Permission denied")


class LogWriter:
    """The one writer of a log; safe to use from several threads.

    A lock on the file keeps other processes from writing it; it ends with the process.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path, *first: Line | AllocationLine) -> LogWriter:
        """Begins a new log; its first lines are written at once, so a kill leaves all or none.

        Raises:
            LogError: The path exists already or cannot be written.
        """
        check_free(path)
        try:
            file = path.open("xb")
        except OSError as error:
            raise LogError(f"{path}: cannot write there: {error.strerror}") from None
        writer = cls(path, file)
        writer._claim()
        writer.append(*first)
        writer.sync()
        return writer

    @classmethod
    def reopen(cls, path: Path) -> tuple[LogWriter, Log]:
        """Goes on with a run's log; a torn last line is cut off.

        Raises:
            LogBusyError: Another process is writing it.
            LogError: It cannot be read or written.
        """
        writer = cls.claim(path)
        try:
            log = read_log(path)
            writer.cut(log.length)
        except BaseException:
            writer._file.close()
            raise
        return writer, log

    @classmethod
    def claim(cls, path: Path) -> LogWriter:
        """Opens an existing file for writing; `cut` says where to go on.

        Raises:
            LogBusyError: Another process is writing it.
            LogError: It cannot be opened, or is compressed.
        """
        if path.suffix == ".gz":
            raise LogError(f"{path}: a compressed log cannot go on; decompress it first (gunzip)")
        try:
            file = path.open("r+b")
        except OSError as error:
            raise LogError(f"{path}: cannot open the log: {error.strerror}") from None
        writer = cls(path, file)
        try:
            writer._claim()
        except LogBusyError:
            file.close()
            raise
        return writer

    def cut(self, length: int) -> None:
        """Drops what follows the first `length` bytes and goes on from there."""
        self._file.truncate(length)
        self._file.seek(length)

    def _claim(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LogBusyError(
                f"{self.path}: another process is writing this log; wait for it or stop it"
            ) from None

    def append(self, *records: Line | AllocationLine) -> None:
        """Writes records; they have left this process when this returns."""
        lines = b"".join(encode_line(record) for record in records)
        with self._lock:
            self._file.write(lines)
            self._file.flush()

    def sync(self) -> None:
        """Asks the operating system to put everything on the disk."""
        with self._lock:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Syncs and closes the file, which also gives up its lock."""
        with self._lock:
            if not self._file.closed:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()


def write_new(target: Path, data: bytes) -> None:
    """Writes a new file, compressed if its name ends in `.gz`.

    Raises:
        LogError: It exists already or cannot be written.
    """
    if target.suffix == ".gz":
        data = gzip.compress(data, compresslevel=9, mtime=0)
    check_free(target)
    try:
        with target.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise LogError(f"{target}: cannot write there: {error.strerror}") from None
