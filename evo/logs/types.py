"""Types of data whose shape is not ours: of JSON that was read, and of settings that were given.

Both are checked where they are used; what only passes them on takes `object`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from evo.plugins import MistakenType

JsonObject = dict[str, Any]
"""An object out of JSON, TOML or YAML: its values are of any type that these have."""

Fields = Mapping[str, Any]
"""Values of fields by name, each of the type of its field."""

PathLike = str | os.PathLike[str]
"""A path as it may be given."""

NAME_BYTES = 255
"""Bytes that a name in a path may have on common file systems."""

_ABSOLUTE: ContextVar[dict[Path, Path] | None] = ContextVar("absolute", default=None)


@contextmanager
def absolute_paths() -> Iterator[None]:
    """Makes the paths of work absolute: the working folder may change meanwhile."""
    token = _ABSOLUTE.set({})  # the relative paths that were given, by the absolute ones
    try:
        yield
    finally:
        _ABSOLUTE.reset(token)


def as_path(name: str, value: object) -> Path:
    """Returns the path that was given for an argument; MistakenType or ValueError: it is none."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        shown = " ".join(repr(value).split())  # that of a table has many lines
        raise MistakenType(f"{name}: expected a path, got {shown:.60}")
    if "\0" in os.fspath(value):
        raise ValueError(f"{name}: expected a path without NUL characters, got {value!r:.60}")
    if (longest := max(map(len, map(os.fsencode, Path(value).parts)), default=0)) > NAME_BYTES:
        raise ValueError(
            f"{name}: expected names of at most {NAME_BYTES} bytes in a path, got {longest} in "
            f"{value!r:.60}"
        )
    path, given = Path(value), _ABSOLUTE.get()
    if given is None:
        return path
    whole = as_absolute(name, path)
    if whole != path:
        given |= {whole: path, whole.parent: path.parent}
    return whole


def as_absolute(name: str, path: Path) -> Path:
    """Returns the absolute path of an argument; FileNotFoundError: the working folder is gone."""
    try:
        return path.absolute()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{name}: the folder in which this process works was removed, and {str(path)!r} is "
            "relative to it; change to another folder, or give an absolute path"
        ) from None


def writable(path: Path) -> Path:
    """Returns the path of a file to write once its folder is made; ValueError: there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{path}: cannot write there: {error.strerror}") from None
    if path.is_dir():
        raise ValueError(f"{path}: Is a directory")
    return path


def as_given(path: Path) -> Path:
    """Returns an absolute path of work as it was given, or as a folder that holds it was."""
    given = _ABSOLUTE.get() or {}
    known = next((each for each in (path, *path.parents) if each in given), None)
    return path if known is None else given[known] / path.relative_to(known)
