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


_ABSOLUTE: ContextVar[bool] = ContextVar("absolute", default=False)


@contextmanager
def absolute_paths() -> Iterator[None]:
    """Makes the paths of work in the background absolute: its caller may change the folder."""
    token = _ABSOLUTE.set(True)
    try:
        yield
    finally:
        _ABSOLUTE.reset(token)


def as_path(name: str, value: object) -> Path:
    """Returns the path that was given for an argument; MistakenType if it is none."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise MistakenType(f"{name}: expected a path, got {value!r:.60}")
    return Path(value).absolute() if _ABSOLUTE.get() else Path(value)
