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
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import msgspec

from evo.cost import usage_tokens
from evo.records import (
    SCHEMA,
    AllocationLine,
    Child,
    End,
    Evaluation,
    Generation,
    Header,
    Initial,
    Line,
    Outcome,
    Session,
)
from evo.showing import sparkline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LeanLine = Header | Session | Initial | Outcome | Generation | End

PREFIX = b'{"crc":"'
BODY = len(PREFIX) + 8 + 2  # where the record's own fields begin, after the checksum and `",`
_encoder = msgspec.json.Encoder()
_line_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
_lean_decoder: msgspec.json.Decoder[LeanLine] = msgspec.json.Decoder(LeanLine)


class LogError(ValueError):
    """A log cannot be read or written; the message names file and line."""


class LogBusyError(LogError):
    """Another process is writing this log."""


def encode_line(record: Line | AllocationLine) -> bytes:
    """Returns the record as one line of a log, checksum and newline included."""
    body = _encoder.encode(record)[1:]
    return b'%s%08x",%s\n' % (PREFIX, zlib.crc32(body), body)


def check_line(line: bytes) -> str | None:
    """Returns what is wrong with the line's checksum, or None."""
    if not line.startswith(PREFIX) or line[BODY - 2 : BODY] != b'",':
        return 'expected a line that begins with {"crc":"<8 hex digits>", got ' + repr(line[:40])
    if line[len(PREFIX) : BODY - 2] != b"%08x" % zlib.crc32(memoryview(line)[BODY:]):
        return "the checksum does not match: the line was changed after it was written"
    return None


class _Decoded(NamedTuple):
    """A line's record with its place in the (uncompressed) file."""

    record: LeanLine
    start: int
    stop: int


def read_bytes(path: Path) -> bytes:
    """Returns the uncompressed content of a log.

    Raises:
        LogError: The file cannot be read or decompressed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LogError(f"{path}: cannot read the log: {error.strerror or error}") from None
    if data[:2] == b"\x1f\x8b":
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise LogError(f"{path}: damaged gzip file: {error}") from None
    return data


def decode(path: Path, data: bytes) -> Iterator[_Decoded]:
    """Yields a log's records without the children's texts.

    A last line without a newline is torn and left out.

    Raises:
        LogError: A line is damaged or unknown, or the file is no log; names file and line.
    """
    start = 0
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        stop = start + len(line)
        fault = check_line(line)
        if number == 1 and fault and not line.startswith(PREFIX):
            raise LogError(
                f"{path}:1: not a log of evo: {fault}; logs of other tools are read with "
                "`replay import FORMAT PATH`"
            )
        if fault:
            raise LogError(f"{path}:{number}: {fault}")
        try:
            record = _lean_decoder.decode(line)
        except (msgspec.DecodeError, ValueError) as error:
            if b'"kind":"allocation"' in line[: BODY + 20]:
                raise LogError(
                    f"{path}:1: the journal of an allocation, not the log of a run; the logs of "
                    "its arms stand beside it"
                ) from None
            schema = _schema_of(line) if number == 1 else SCHEMA
            if schema > SCHEMA:
                raise LogError(
                    f"{path}:1: log schema {schema} is newer than this version's {SCHEMA}; "
                    "upgrade evo-replay"
                ) from None
            raise LogError(f"{path}:{number}: not a record of a log: {error}") from None
        if (number == 1) != isinstance(record, Header):
            kind = type(record).__name__.lower()
            raise LogError(f"{path}:{number}: expected one header, on line 1; got a {kind} here")
        yield _Decoded(record, start, stop)
        start = stop + 1


def _schema_of(line: bytes) -> int:
    """Returns the schema number that a header of any version states."""

    class AnyHeader(msgspec.Struct):
        schema: int = SCHEMA

    try:
        return msgspec.json.decode(line, type=AnyHeader).schema
    except (msgspec.DecodeError, ValueError):
        return SCHEMA


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
        generations: Complete generations, in order.
        torn: Whether a torn last line was left out.
        ends: Orderly ends of sessions.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.sessions: list[Session] = []
        self.initial: Initial | None = None
        self.generations: list[Generation] = []
        self.ends: list[End] = []
        self.length = 0  # bytes of whole lines: where a writer goes on
        self.lines = 0
        outcomes: list[_Decoded] = []
        header: Header | None = None
        for decoded in decode(path, data):
            self.length = decoded.stop + 1
            self.lines += 1
            match decoded.record:
                case Header() as header:
                    pass
                case Session() as session:
                    self.sessions.append(session)
                case Initial() as initial:
                    self.initial = initial
                case Generation() as generation:
                    self.generations.append(generation)
                case End() as end:
                    self.ends.append(end)
                case Outcome():
                    outcomes.append(decoded)
        if header is None:
            raise LogError(f"{path}:1: not a log of evo: expected a header line, got {data[:40]!r}")
        self.header = header
        self.torn = len(data) > self.length
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        found: dict[tuple[int, int], Outcome] = {}
        for record, start, stop in outcomes:
            assert isinstance(record, Outcome)
            key = (record.generation, record.index)
            if key in found:
                raise LogError(f"{path}: child {key} was logged twice")
            found[key] = record
            self._places[key] = (start, stop)
        self.outcomes: list[Outcome] = [found[key] for key in sorted(found)]

    def __fspath__(self) -> str:
        return str(self.path)

    def child(self, generation: int, index: int) -> Child:
        """Returns one child with its texts, read from the file at its place.

        Raises:
            KeyError: It is not in the log.
        """
        start, stop = self._places[generation, index]
        with self._open() as file:
            file.seek(start)
            record = _line_decoder.decode(file.read(stop - start))
        assert isinstance(record, Child)
        return record

    @functools.cached_property
    def children(self) -> list[Child]:
        """Children with their texts, from generation 1 on, by generation and index."""
        with self._open() as file:
            data = file.read(self.length)
        places = [self._places[key] for key in sorted(self._places)]
        records = (_line_decoder.decode(data[start:stop]) for start, stop in places)
        return [record for record in records if isinstance(record, Child)]

    def _open(self) -> IO[bytes]:
        if self.path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(self.path))
        return self.path.open("rb")

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
    tokens = [
        usage_tokens(attempt.usage) for outcome in log.outcomes for attempt in outcome.attempts
    ]
    prompt = sum(t.prompt or 0 for t in tokens if t)
    completion = sum(t.completion or 0 for t in tokens if t)
    seconds = "unknown time" if log.seconds is None else f"{log.seconds:.1f} s"
    state = "" if log.finished else ", unfinished"
    return (
        f"{header.task.name}, {model}, seed {header.seed}, T={len(log.generations)} of "
        f"N={header.children}{state}: best fitness {best:.6g}, "
        f"{log.status_counts.get('ok', 0)} of {len(log.outcomes)} children ok, "
        f"{prompt:,} + {completion:,} tokens, {seconds}"
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
    return Log(path, read_bytes(path))


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
