"""Lines of a log: how records become lines with a checksum, and are read back."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from evo.records import (
    SCHEMA,
    AllocationLine,
    End,
    Generation,
    Header,
    Initial,
    InstanceCall,
    Line,
    Outcome,
    Reply,
    Session,
)

LeanLine = Header | Session | Initial | Outcome | InstanceCall | Reply | Generation | End

PREFIX = b'{"crc":"'
BODY = len(PREFIX) + 8 + 2  # where the record's own fields begin, after the checksum and `",`
_GZIP = b"\x1f\x8b"
_PIECE = 4 << 20  # bytes of a log that are read at a time
_encoder = msgspec.json.Encoder()
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


class Decoded(NamedTuple):
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
    if data[:2] == _GZIP:
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise LogError(f"{path}: damaged gzip file: {error}") from None
    return data


def read_pieces(path: Path) -> Iterator[bytes]:
    """Yields the uncompressed content of a log in pieces of whole lines; a torn end comes last.

    So a log of many children is read without ever being in memory as a whole.

    Raises:
        LogError: The file cannot be read or decompressed.
    """
    try:
        with path.open("rb") as file:
            rest = file.read(_PIECE)
            if rest[:2] == _GZIP:
                yield read_bytes(path)
                return
            while more := file.read(_PIECE):
                whole, newline, torn = rest.rpartition(b"\n")
                if newline:
                    yield whole + newline
                rest = torn + more
            yield rest
    except OSError as error:
        raise LogError(f"{path}: cannot read the log: {error.strerror or error}") from None


def decode(path: Path, data: bytes, *, start: int = 0, lines: int = 0) -> Iterator[Decoded]:
    """Yields a log's records without the children's texts.

    A last line without a newline is torn and left out.

    Args:
        path: Of the log, for errors.
        data: Its uncompressed content, or what follows the first `start` bytes, whole lines.
        start: Bytes before `data`.
        lines: Lines before `data`.

    Raises:
        LogError: A line is damaged or unknown, or the file is no log; names file and line.
    """
    for number, line in enumerate(data.split(b"\n")[:-1], start=lines + 1):
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
        yield Decoded(record, start, stop)
        start = stop + 1


def _schema_of(line: bytes) -> int:
    """Returns the schema number that a header of any version states."""

    class AnyHeader(msgspec.Struct):
        schema: int = SCHEMA

    try:
        return msgspec.json.decode(line, type=AnyHeader).schema
    except (msgspec.DecodeError, ValueError):
        return SCHEMA
