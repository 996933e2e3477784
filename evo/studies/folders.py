"""The folder of a study: the marker by which it is recognised, and what identifies the study.

| study | marker | also holds |
|---|---|---|
| allocation | `allocation.jsonl`, identity and journal | `arm-00.jsonl`, ... |
| sweep | `events.jsonl`, the journal | `sweep.json`, the identity; `runs/` |
| selection | `selection.json`, the identity | the logs, or `agent.jsonl`, the journal |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from evo.logs.inputs import MOST_INT
from evo.logs.journal import LogError, write_new
from evo.logs.stopping import Wish, stop_file
from evo.logs.types import JsonObject
from evo.values import as_logged

ALLOCATION = "allocation.jsonl"
EVENTS = "events.jsonl"
SELECTION = "selection.json"
AGENT = "agent.jsonl"
"""What an agent made of rows of data, in the folder of a selection."""

JOURNALS = (ALLOCATION, EVENTS, AGENT)
"""Files of studies that end as logs of runs do, and are none."""

MARKERS = {ALLOCATION: "allocation", EVENTS: "sweep", SELECTION: "selection"}
"""The kind of a study by the marker in its folder."""


def keep_identity(
    path: Path,
    what: str,
    identity: Mapping[str, object],
    encoded: bytes,
    read: Callable[[Path], Mapping[str, object]],
    more: Mapping[str, str] = {},
) -> None:
    """Writes what identifies a study, or checks it against what its folder holds already.

    Args:
        path: The file of the identity.
        what: The kind of study, in messages.
        identity: The arguments by name.
        encoded: The same as the file shall hold them.
        read: Reads such a file.
        more: See `refuse_other`.

    Raises:
        ValueError: The folder holds a study with other arguments, or a number is not finite.
        LogError: The file cannot be written or read.
    """
    require_finite(identity)
    if not path.exists():
        try:
            write_new(path, encoded)
            return
        except LogError:
            if not path.exists():  # else another process was faster
                raise
    refuse_other(path, what, read(path), identity, more)


def refuse_other(
    path: Path,
    what: str,
    was: Mapping[str, object],
    now: Mapping[str, object],
    more: Mapping[str, str] = {},
) -> None:
    """Raises ValueError where a folder's study has other arguments than those given now.

    Args:
        path: The file that holds the arguments.
        what: The kind of study, in the message.
        was: The arguments in the folder, by name.
        now: Those given now.
        more: What else can be done where an argument differs, by its name.
    """
    for name in now:
        if was.get(name) != now[name]:
            raise ValueError(
                f"{path}: holds {what} with {name} {was.get(name)!r}, not {now[name]!r}; give its "
                f"own arguments to go on with it, or another folder{more.get(name, '')}"
            )


def parameters_of(build: object) -> JsonObject:
    """Returns the parameters of a policy or selector as the folder of its study holds them."""
    given = getattr(build, "keywords", {})
    require_finite(given, "parameters")
    return as_logged(given)


def require_finite(value: object, name: str = "") -> None:
    """Raises ValueError where a value holds an infinity or NaN, which JSON has no words for."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            require_finite(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for each in value:
            require_finite(each, name)
    elif isinstance(value, int | float) and not (
        abs(value) <= MOST_INT if isinstance(value, int) else math.isfinite(value)
    ):
        raise ValueError(
            f"{name}: expected a finite number, a whole one of at most {MOST_INT}, since the "
            f"study's folder has to hold it, got {value!r:.60}"
        )


def kind_of(folder: Path) -> str | None:
    """Returns the kind of study that a folder holds: allocation, sweep or selection; else None."""
    return next((kind for name, kind in MARKERS.items() if (folder / name).is_file()), None)


def request(folder: Path, wish: Wish) -> str:
    """Asks the session that works on a study to pause or to stop; returns the kind of study.

    The request is a file beside the study's marker, which the session notices on whatever machine
    it runs. Without a session it lapses when the next one begins.

    Raises:
        LogError: The folder holds no study.
    """
    for name, kind in MARKERS.items():
        if (marker := folder / name).is_file():
            stop_file(marker, wish).touch()
            return kind
    known = ", ".join(MARKERS)
    raise LogError(f"{folder}: not the folder of a study: expected one of {known} in it")
