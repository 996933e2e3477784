"""Where the log of a run is: a path that was given, one that goes on, or a new one.

A cell that is run twice goes on where its log was. `resume=True`, the default, begins, goes on,
extends or returns what is there if the configuration is the same; another one is an error.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from evo.logs.journal import LogError, check_free
from evo.logs.records import Header, TaskRecord
from evo.runs.configuration import default_path, find_run
from evo.runs.handle import read_begun
from evo.runs.holders import holders
from evo.runs.identity import differences

Resume = bool | Literal["auto"]
"""Whether a log of the same configuration goes on; "auto" is True."""


def check_resume(resume: object) -> bool:
    """Returns whether logs go on; raises ValueError for anything but True, False and "auto"."""
    if resume not in (True, False, "auto"):
        raise ValueError(f"resume: expected True or False, got {resume!r}")
    return bool(resume)


def place_of_log(header: Header, log: str | os.PathLike[str], *, resume: bool) -> Path:
    """Returns the path of a log that was named, once it is clear that the run may be there.

    Raises:
        LogError: It exists and does not go on, or holds another run.
    """
    path = Path(log)
    finished = path.with_name(f"{path.name}.gz")
    if not path.exists() and finished.exists():
        path = finished
    if not path.exists():
        check_free(path)
        return path
    if not resume:
        raise LogError(
            f"{path}: exists already; resume=True goes on with it if it is the same run, another "
            "path begins a new one"
        )
    known = read_begun(path)
    if known is not None and (other := differing(known.header, header)):
        if _only_code_differs(known.header, header):
            raise LogError(
                f"{path}: exists already, and the code of its search has changed since; "
                f"evo.resume({str(path)!r}, search=...) goes on with the code as it is now, "
                "another path begins a new run"
            )
        raise LogError(
            f"{path}: exists already and holds another run: {other}; give what is new another path"
        )
    return path


def place_in_folder(
    header: Header, folder: str | os.PathLike[str] | None, *, resume: bool
) -> tuple[Path, bool]:
    """Returns the path of a run's log in a folder, and whether that is one which goes on."""
    if resume:
        found = _held(header, folder) or find_run(header, folder)
        if found is not None:
            return found, True
    return default_path(header, folder), False


def _held(header: Header, folder: str | os.PathLike[str] | None) -> Path | None:
    """Returns the log of this very run that is written in this process, perhaps not begun yet."""
    for path, holder in holders():
        inside = folder is None or path.parent == Path(folder).absolute()
        if inside and not differences(holder.header, header):
            return path
    return None


def differing(there: Header, here: Header) -> str:
    """Returns in words how the run of a log differs from another one; empty: not at all."""
    parts = []
    for name in differences(there, here):
        one, other = (_shown(getattr(each, name)) for each in (there, here))
        parts.append(f"{name} {one} there, {other} here" if one != other else f"{name} differs")
    return "; ".join(parts)


def _only_code_differs(there: Header, here: Header) -> bool:
    """Whether two runs differ by nothing but the source of their search."""
    one, other = there.search, here.search
    if one is None or other is None or differences(there, here) != ["search"]:
        return False
    return msgspec.structs.replace(one, source=other.source) == other


def _shown(value: object) -> str:
    if isinstance(value, TaskRecord):
        return f"{value.name} {value.hash[:12]}"
    name = getattr(value, "name", None)
    if isinstance(name, str):
        return name
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value).items()
        return "(" + ", ".join(f"{key} {_shown(each)}" for key, each in fields) + ")"
    return f"{value!r:.60}"
