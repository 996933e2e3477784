"""A checked append-only file, one JSON record per line: the journal of a run or a study.

Every line begins with a CRC-32 of the rest, `{"crc":"1c291ca3","kind":"header",...}`. Lines are
only ever appended. A reader forgives a torn last line, which is what a killed writer leaves, and
nothing else. The sizes of files and lines are limited, see `evo.logs.caps`.
"""

from __future__ import annotations

import gzip
import os
import re
import secrets
import stat
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from shlex import quote
from typing import BinaryIO, Generic, Self, TypeVar

import msgspec

from evo.logs import examples
from evo.logs.caps import above, cap
from evo.logs.decompression import DamagedGzip, decompressed, unarchived
from evo.logs.files import in_folder, path_of, why_not_made, write_at
from evo.logs.first_write import WRITTEN
from evo.logs.lines import PREFIX, check_line, check_size, rewritten
from evo.logs.locks import lock, lock_new
from evo.logs.records import SCHEMA

ENDINGS = (".jsonl", ".jsonl.gz")
_GZIP = b"\x1f\x8b"
_PIECE = 4 << 20  # bytes that are read at a time
_LONG = 1 << 20  # bytes of a line beyond which its elements are counted
_encoder = msgspec.json.Encoder()

R = TypeVar("R", bound=msgspec.Struct)


class LogError(ValueError):
    """A log cannot be read or written; the message names the file and the line."""


class LogBusyError(LogError):
    """Another process is writing this log."""


def encode_line(record: msgspec.Struct) -> bytes:
    """The record as one line, checksum and newline included."""
    body = _encoder.encode(record)[1:]
    return b'%s%08x",%s\n' % (PREFIX, zlib.crc32(body), body)


def file_name(text: str) -> str:
    """Returns a text as one part of a path: at most 120 plain characters, no leading dots."""
    plain = re.sub(r"[^\w.+-]", "-", text)[:120].lstrip(".")
    return plain or "unnamed"


def unused(folder: Path, stem: str, ending: str = "") -> Path:
    """Returns an unused path in the folder: STEM, or else STEM-2, STEM-3, ..."""
    taken = set(os.listdir(folder)) if folder.is_dir() else set()
    names = (f"{stem}{ending}", *(f"{stem}-{count}{ending}" for count in range(2, 100_000)))
    return next(folder / n for n in names if n not in taken and f"{n}.gz" not in taken)


class _First(msgspec.Struct):
    """The fields that the first line of any version has."""

    kind: object = None
    schema: object = 1
    format: object = None


_first_decoder = msgspec.json.Decoder(_First)


GATE = (
    "the log of a gate, not of a run: `evo show` prints it, `replay.gate_calls` makes a table of it"
)
"""What is said of a log that `evo watch` or `evo serve` wrote, where runs are expected."""


class Reader(Generic[R]):
    """Reads a file from the beginning, and later the lines that were added.

        reader = Reader(path, msgspec.json.Decoder(Event), what="log of events")
        for event in reader.follow():
            ...

    `first` is the type of the first line's record, and of no other. So far `lines` whole lines of
    `length` bytes were read, the last from `start` on; `torn`: something stands behind them, which
    a killed writer left.
    """

    def __init__(
        self,
        path: Path,
        decoder: msgspec.json.Decoder[R],
        *,
        first: type | None = None,
        what: str = "log of evo",
    ) -> None:
        self.path = path
        self.start = self.length = self.lines = 0
        self.torn = False
        self._decoder, self._first, self._what = decoder, first, what

    def follow(self) -> Iterator[R]:
        """Yields the records added since the last call; at first, all.

        `LogError`: a line is damaged, or the file is none of this kind, gone, or another one.
        """
        size = self.length
        for piece in read_pieces(self.path, start=self.length):
            size += len(piece)
            yield from self._take(piece)
        self.torn = size > self.length
        if self._first is not None and not self.lines:
            empty = "" if size else "empty, "
            raise self.fault(f"{empty}not a {self._what}: expected a header line")

    def _take(self, data: bytes) -> Iterator[R]:
        """Yields the records of the next lines; a torn end is left."""
        decode, first = self._decoder.decode, self._first
        for line in data.split(b"\n")[:-1]:
            fault = check_line(line) or (check_size(line) if len(line) > _LONG else None)
            if fault and (words := rewritten(line)):
                raise self.fault(words)
            if fault and not self.lines and not line.startswith(PREFIX):
                raise self.fault(
                    f"not a {self._what}: {fault}; logs of other tools are read with "
                    f"`replay import FORMAT PATH`; {examples.LOG}"
                )
            if fault:
                raise self.fault(fault)
            if not self.lines and first is not None:
                self._check_schema(line)
            try:
                record = decode(line)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise self.fault(f"not a record of a {self._what}: {error}") from None
            if first is not None and (self.lines == 0) != isinstance(record, first):
                kind = type(record).__name__.lower()
                raise self.fault(f"expected one header, on line 1; got a {kind} here")
            self.start = self.length
            self.length += len(line) + 1
            self.lines += 1
            yield record

    def fault(self, words: str) -> LogError:
        """The error of the next line."""
        return LogError(f"{self.path}:{self.lines + 1}: {words}")

    def _check_schema(self, line: bytes) -> None:
        """Refuses a first line of another kind of file, or of a version that is unknown."""
        try:
            found = _first_decoder.decode(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return
        if found.kind == "allocation" and self._what == "log of evo":
            raise self.fault(
                "the journal of an allocation, not the log of a run; the logs of its arms stand "
                "beside it"
            )
        if found.kind == "gate" and self._what == "log of evo":
            raise self.fault(GATE)
        if found.format is not None or found.schema not in range(1, SCHEMA + 1):
            number = found.schema if found.format is None else found.format
            raise self.fault(
                f"log schema {number!r} is unknown to this version, which knows 1 to {SCHEMA}; "
                "if it is newer, upgrade evo-replay"
            )


def read_pieces(path: Path, *, start: int = 0) -> Iterator[bytes]:
    """Yields a file's content after `start` in pieces of whole lines; a torn end comes last.

    So a large log is never in memory as a whole.
    """
    longest = cap("EVO_MAX_LINE_MB") << 20
    rest = b""
    for more in raw_pieces(path, start):
        whole, newline, torn = more.rpartition(b"\n")
        if newline:
            yield rest + whole + newline
            rest = torn
        else:
            rest += more
        if len(rest) > longest:
            raise LogError(f"{path}: {above('EVO_MAX_LINE_MB')}")
    yield rest


def open_regular(path: Path) -> BinaryIO:
    """Opens a file for reading; `LogError` if it is a pipe or a device, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise LogError(f"{path}: a folder, no log; {in_folder(path)}")
    raise LogError(f"{path}: expected a file, got a pipe or a device")


def raw_pieces(path: Path, start: int) -> Iterator[bytes]:
    """Yields a file's content after `start` in pieces of any length, decompressed."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            packed = file.read(2) == _GZIP
            if not packed and size < start:
                raise LogError(f"{path}: shorter than before: another log took its place")
            file.seek(0 if packed else start)
            blocks = iter(lambda: file.read(_PIECE), b"")
            if start and not packed:
                yield from blocks
            elif not start:  # compressed logs are finished: nothing is ever added
                yield from unarchived(decompressed(blocks, size, _PIECE) if packed else blocks)
    except DamagedGzip as error:
        raise LogError(f"{path}: {error}") from None
    except OSError as error:
        raise LogError(f"{path}: cannot read the log: {error.strerror or error}") from None


def read_bytes(path: Path) -> bytes:
    """The decompressed content of a file; `LogError` if it cannot be read or is beyond its cap."""
    if path.is_file() and path.stat().st_size > cap("EVO_MAX_LOG_MB") << 20:
        raise LogError(f"{path}: {above('EVO_MAX_LOG_MB')}")
    return b"".join(raw_pieces(path, 0))


def check_free(path: Path, *, finished: bool = False) -> None:
    """Makes the folder of a new file, which may be compressed only if it is written `finished`."""
    if path.suffix == ".gz" and not finished:
        raise LogError(
            f"{path}: a log is compressed once it is finished (gzip, `evo compact`); begin it as "
            f"{path.with_suffix('')}"
        )
    if path.exists():
        again = "remove it" if finished else f"`evo resume {quote(str(path))}`"
        raise LogError(f"{path}: exists already; choose another path or {again}")
    if path.is_symlink():
        raise LogError(f"{path}: a link that leads to no file; remove it, or name another path")
    check_folder(path.parent)


def check_folder(path: Path) -> None:
    """Makes a folder unless it exists; `LogError` where it cannot be made or written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()  # permissions do not say all
    except OSError as error:
        raise LogError(why_not_made(path, error)) from None


def write_new(target: Path, data: bytes) -> None:
    """Writes a new file, whole or not at all, compressed if its name ends in `.gz`."""
    check_free(target, finished=True)
    if target.suffix == ".gz":
        data = gzip.compress(data, compresslevel=9, mtime=0)
    os.close(_publish(target, data))


def write_once(target: Path, data: bytes) -> None:
    """Writes a new file as `write_new` does; one that holds the same content already stays."""
    if not target.is_file():
        write_new(target, data)
    elif read_bytes(target) != data:
        raise LogError(
            f"{target}: exists already and differs from what would be written; choose another path "
            "or remove it"
        )


def _publish(path: Path, data: bytes) -> int:
    """Creates a file that has its content and its writer's lock as soon as it is visible."""
    hidden = path.with_name(f".new-{secrets.token_hex(8)}")
    try:
        with ExitStack() as undo:
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            undo.callback(os.close, descriptor)
            try:
                lock_new(descriptor)
                left = memoryview(data)
                while left:
                    left = left[os.write(descriptor, left) :]
                os.fsync(descriptor)
                os.link(hidden, path)
                WRITTEN.set()
            finally:
                os.unlink(hidden)
            undo.pop_all()
            return descriptor
    except FileExistsError:
        raise LogError(f"{path}: exists already; choose another path") from None
    except OSError as error:
        raise LogError(f"{path}: cannot write there: {error.strerror}") from None


class Writer:
    """Appends lines to a file; safe to use from several threads.

    A lock on the file keeps other processes from writing it; it ends with the process. A write
    that fails half-way, on a full disk, is cut back before anything else is appended.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._place = path.absolute()  # wherever the process works later
        self._descriptor = descriptor
        own = os.fstat(descriptor)
        self._own = (own.st_dev, own.st_ino)
        self._length = own.st_size  # bytes of what was written whole
        self._sound = True  # whether nothing stands behind them
        self._cut = False  # whether another program has cut the file
        self._kept: Path | None = None  # the copy of a file that has no path any more
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path, *first: msgspec.Struct) -> Self:
        """Begins a new file; its first lines are written at once, so a kill leaves all or none."""
        check_free(path)
        return cls(path, _publish(path, b"".join(map(encode_line, first))))

    @classmethod
    def claim(cls, path: Path, *, wait: bool = False) -> Self:
        """Opens a file to append after byte `cut`. `LogBusyError`: another process writes to it.

        With `wait` it is made if need be, and other writers, who hold it for a moment, waited for.
        """
        if path.suffix == ".gz":
            raise LogError(f"{path}: a compressed log cannot go on; decompress it first (gunzip)")
        try:
            descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if wait else 0), 0o666)
        except OSError as error:
            raise LogError(f"{path}: cannot open the log: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise LogError(f"{path}: expected a file, got a pipe or a device")
        if not lock(descriptor, wait=wait):
            os.close(descriptor)
            raise LogBusyError(
                f"{path}: another process is writing this log; wait for it or stop it"
            )
        WRITTEN.set()
        return cls(path, descriptor)

    def cut(self, length: int) -> None:
        """Drops what follows the first `length` bytes and goes on from there."""
        with self._lock:
            os.ftruncate(self._descriptor, length)
            self._length, self._sound = length, True

    def append(self, *records: msgspec.Struct) -> None:
        """Writes and flushes records; if this fails with an OSError, none of them stays."""
        lines = b"".join(encode_line(record) for record in records)
        with self._lock:
            there = os.fstat(self._descriptor)
            self._cut |= stat.S_ISREG(there.st_mode) and there.st_size < self._length
            try:
                if not self._sound:  # cutting it back had failed, too
                    os.ftruncate(self._descriptor, self._length)
                self._sound = False
                write_at(self._descriptor, lines, self._length)
                self._length, self._sound = self._length + len(lines), True
            except OSError as error:
                words = f"{error.strerror}; no part of the line stays, so the log can go on"
                raise OSError(error.errno, words, str(self.path)) from None
            finally:
                if not self._sound:
                    with suppress(OSError):
                        os.ftruncate(self._descriptor, self._length)
                        self._sound = True

    def check_in_place(self) -> None:
        """Raises LogError, with where the lines are, if the file was cut or is another by now."""
        least = self._length  # looked at first: other threads go on writing meanwhile
        with suppress(OSError):
            there = os.stat(self._place)
            if (there.st_dev, there.st_ino) == self._own:
                if not self._cut and there.st_size >= least:
                    return
                raise LogError(
                    f"{self.path}: was cut by another program while it was written; "
                    f"`evo verify {quote(str(self.path))} --salvage -o NEW` keeps what is left"
                )
        with self._lock:
            lines = self._lines_elsewhere()
        raise LogError(
            f"{self.path}: was moved, deleted or replaced by another file while it was written; "
            f"what this session has logged is in {lines}: move it back and go on with that"
        )

    def _lines_elsewhere(self) -> Path:
        """Returns the path where the file is now; if it has none, its lines are written to one."""
        if (found := path_of(self._descriptor, self._place.parent)) is not None:
            return found
        if self._kept is None:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._kept = unused(self._place.parent, f"{self._place.stem}-kept", ".jsonl")
            write_new(self._kept, os.pread(self._descriptor, self._length, 0))
        return self._kept

    def sync(self) -> None:
        """Asks the operating system to put everything on the disk."""
        with self._lock:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Syncs and closes the file, which also gives up its lock."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def go_on(
    path: Path,
    decoder: msgspec.json.Decoder[R],
    stack: ExitStack,
    *,
    what: str,
    begin: R | None = None,
    wait: bool = False,
) -> tuple[Writer, list[R]]:
    """Opens or creates a file; returns its writer, which the stack closes, and what it holds."""
    if begin is not None and not path.exists():
        return stack.enter_context(Writer.create(path, begin)), [begin]
    with ExitStack() as undo:
        writer = undo.enter_context(Writer.claim(path, wait=wait))
        reader = Reader(path, decoder, first=None if begin is None else type(begin), what=what)
        records = list(reader.follow())
        writer.cut(reader.length)
        stack.push(undo.pop_all())
        return writer, records
