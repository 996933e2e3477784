"""Tables of logs that were read before, as arrays in the user's own cache folder.

Reading many large logs takes seconds; reading the arrays of the tables that were made of them takes
milliseconds. An entry is used only if every log still has the size, the time of its last change and
the SHA-256 that it had, and if the code that makes tables is the same. Entries lie in the user's
cache folder (`XDG_CACHE_HOME`, by default `~/.cache`) and nowhere else: beside the logs of others
they could state anything.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOW = 1.0
"""Tables that take longer to read than this many seconds are cached by default."""

MOST_BYTES = 2**30
"""Size of all entries together; beyond it those that were not used for longest are removed."""

_BROKEN = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.MsgspecError)

Marks = list[tuple[str, int, int]]
"""Path, size and time of the last change of each log."""


class _Column(NamedTuple):
    """A column of a table: its name and type, and whether its distinct values are kept apart."""

    name: str
    kind: str
    coded: bool


class _Stated(msgspec.Struct):
    """What an entry states: the logs that it was made of, and the columns of its tables."""

    marks: Marks
    digests: list[str]
    tables: list[list[_Column]]


def folder() -> Path:
    """Returns the folder of the entries, which need not exist."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        base = Path(given)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "evo-replay" / "tables"


def marks_of(paths: Sequence[Path]) -> Marks | None:
    """Returns path, size and time of change of logs; None if one is not accessible."""
    try:
        found = [(str(path), path.stat()) for path in paths]
    except OSError:
        return None
    return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in found]


def name_of(what: str, marks: Marks) -> str:
    """Name of the entry of tables of these logs, by their paths alone.

    `what` names the tables and their settings.
    """
    paths = [(path, os.path.realpath(path)) for path, *_ in marks]
    stated = repr((_code(), what, paths)).encode()  # whatever bytes a path has
    return f"{hashlib.sha256(stated).hexdigest()[:40]}.npz"


def fetch(name: str, marks: Marks) -> list[pd.DataFrame] | None:
    """The tables of an entry, or None if there is none or a log has changed since."""
    path = folder() / name
    with contextlib.suppress(*_BROKEN):
        if not _is_own(path.parent):
            return None
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            stated = msgspec.json.decode(arrays["stated"].tobytes(), type=_Stated)
            if stated.marks != marks or stated.digests != [_digest(mark[0]) for mark in marks]:
                return None
            frames = [_frame(arrays, n, table) for n, table in enumerate(stated.tables)]
        os.utime(path)  # it was used now
        return frames
    return None


def keep(name: str, marks: Marks, frames: Sequence[pd.DataFrame]) -> None:
    """Writes an entry, unless a log has changed while it was read; failing to is no error."""
    if marks_of([Path(path) for path, *_ in marks]) != marks:
        return
    with contextlib.suppress(*_BROKEN, TypeError):
        arrays: dict[str, NDArray[np.generic]] = {}
        tables = [_columns(frame, number, arrays) for number, frame in enumerate(frames)]
        stated = _Stated(marks, [_digest(mark[0]) for mark in marks], tables)
        arrays["stated"] = np.frombuffer(msgspec.json.encode(stated), np.uint8)
        if sum(array.nbytes for array in arrays.values()) > MOST_BYTES // 4:
            return
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own(folder()):
            return
        with tempfile.NamedTemporaryFile(dir=folder(), suffix=".part", delete=False) as file:
            try:
                np.savez(file, allow_pickle=False, **arrays)
                file.close()
                Path(file.name).replace(folder() / name)
            finally:
                Path(file.name).unlink(missing_ok=True)
        _make_room()


def _is_own(place: Path) -> bool:
    """Whether a folder is the user's and nobody else can write to it."""
    stat = place.stat()
    return stat.st_uid == os.getuid() and not stat.st_mode & 0o022


def _make_room() -> None:
    """Removes the entries that were not used for longest, until all fit."""
    entries = [(path.stat(), path) for path in folder().glob("*.npz")]
    total = sum(stat.st_size for stat, _ in entries)
    for stat, path in sorted(entries, key=lambda entry: entry[0].st_mtime_ns):
        if total <= MOST_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= stat.st_size


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
@functools.cache
def _code() -> str:
    """Returns a hash of all that may change a table: the code of both packages, and libraries."""
    digest = hashlib.sha256(repr((pd.__version__, np.__version__)).encode())
    for package in ("evo", "replay"):
        root = Path(__file__).parents[2] / package
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _columns(
    frame: pd.DataFrame, number: int, arrays: dict[str, NDArray[np.generic]]
) -> list[_Column]:
    """Puts a table's columns among the arrays; returns the name and type of each.

    What is no number is kept as its distinct values and their places.
    """
    made = []
    for place, name in enumerate(frame.columns):
        column, key = frame[name], f"{number}/{place}"
        coded = not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "biuf"
        if coded:
            known: dict[object, int] = {}
            objects = column.to_numpy(object).tolist()  # a fifth of the time of a column's own loop
            codes = [known.setdefault(value, len(known)) for value in objects]
            arrays[f"{key}/values"] = np.frombuffer(msgspec.msgpack.encode([*known]), np.uint8)
            arrays[key] = np.array(codes, dtype=np.int32)
        else:
            arrays[key] = column.to_numpy()
        made.append(_Column(str(name), str(column.dtype), coded))
    return made


def _frame(
    arrays: Mapping[str, NDArray[np.generic]], number: int, table: Sequence[_Column]
) -> pd.DataFrame:
    """A table out of the arrays that `_columns` made of it."""
    columns: dict[str, object] = {}
    for place, (name, kind, coded) in enumerate(table):
        key = f"{number}/{place}"
        if coded:
            values = msgspec.msgpack.decode(arrays[f"{key}/values"].tobytes())
            known = np.empty(len(values), dtype=object)
            known[:] = [_as_tuples(value) for value in values]
            columns[name] = pd.Series(known[arrays[key]], dtype=kind)
        else:
            columns[name] = arrays[key]
    return pd.DataFrame(columns)


def _as_tuples(value: object) -> object:
    """Lists as the tuples that they were."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
