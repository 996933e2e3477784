"""Reads files of other tools: their text, and JSON as values of a type.

Whatever a file holds, reading it ends in a value or in a `LogFormatError` that names the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import msgspec

from evo.logs.journal import LogError, read_bytes
from replay.logs.others import NothingYetError

T = TypeVar("T")


class LogFormatError(LogError):
    """A log of another tool cannot be read; the message names the file and, if known, the line."""


class EmptyRunError(LogFormatError, NothingYetError):
    """A run was begun, but holds no call and no program."""


def read_text(path: Path) -> str:
    """The text of a file, decompressed if it is gzip and within the caps, without a mark."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogFormatError(f"{path}: cannot be read: {error}; save it as UTF-8") from None
    except LogError as error:
        raise LogFormatError(str(error)) from None


def parse(text: str, kind: type[T], where: Path | str) -> T:
    """JSON, which may hold NaN and Infinity, as a value of a type; else LogFormatError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LogFormatError(f"{where}: not JSON: {error}") from None
    return convert(value, kind, where)


def convert(value: object, kind: type[T], where: Path | str) -> T:
    """A plain value checked against a type; else LogFormatError names `where` and the place."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeError) as error:
        raise LogFormatError(f"{where}: {error}") from None


def parse_file(path: Path, kind: type[T]) -> T:
    """Reads a JSON file into a typed value.

    Args:
        path: The file.
        kind: The type to read, such as `dict[str, float]` or a msgspec Struct.

    Raises:
        LogFormatError: The file is missing, too large or does not fit the type.

    Example:
        >>> file = new(".json")
        >>> written = file.write_text('{"fitness": 0.5}')
        >>> replay.importers.parse_file(file, dict[str, float])
        {'fitness': 0.5}
    """
    return parse(read_text(path), kind, path)


def parse_lines(path: Path, kind: type[T], notes: list[str]) -> list[T]:
    """The lines of a JSONL file as values of a type, blank ones passed over.

    A last line without an end is torn if it is no JSON, as a killed writer leaves it: it is left
    out, and noted.

    Example:
        >>> file, notes = new(), []
        >>> written = file.write_text('{"fitness": 0.5}' + chr(10) + '{"fit')
        >>> replay.importers.parse_lines(file, dict[str, float], notes), len(notes)
        ([{'fitness': 0.5}], 1)
    """
    lines = read_text(path).split("\n")
    values = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = parse(line, object, f"{path}:{number}")
        except LogFormatError:
            if number < len(lines):
                raise
            notes.append(f"a torn last line of {path.name}")
        else:
            values.append(convert(value, kind, f"{path}:{number}"))
    return values
