"""Other tools' logs as runs of this package: one module per tool, one registry.

    frame = load("openevolve_output")          # straight to a frame
    for imported in read("openevolve_output"):  # or kept as logs
        print(imported.lost)
        write(imported, Path("logs/local") / f"{imported.name}.jsonl")

`replay.load` reads what was written like any other log.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from evo.plugins import plugged_in
from replay.importers import codeevolve, openevolve, paper, shinkaevolve, skydiscover
from replay.importers.foreign import Imported, LogFormatError, write

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "IMPORTERS",
    "OWN",
    "Imported",
    "LogFormatError",
    "detect",
    "kind",
    "load",
    "read",
    "write",
]

OWN = "evo"
"""What `load` calls the logs of this package."""

IMPORTERS: dict[str, Callable[[Path], list[Imported]]] = {
    "openevolve": openevolve.read,
    "skydiscover": skydiscover.read,
    "shinkaevolve": shinkaevolve.read,
    "codeevolve": codeevolve.read,
    "paper": paper.read,
}
"""Format name -> function of a path that reads all runs there. Tables are in `tidy`."""

_RECOGNISED: dict[str, Callable[[Path], bool]] = {
    "paper": paper.recognises,
    "shinkaevolve": shinkaevolve.recognises,
    "codeevolve": codeevolve.recognises,
    "skydiscover": skydiscover.recognises,
    "openevolve": openevolve.recognises,
}


def detect(path: str | os.PathLike[str]) -> str:
    """Name of the format that a file or folder is in, by what lies in it.

    Raises:
        LogFormatError: It is in none of them, or does not exist.
    """
    path = Path(path)
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    for name, recognises in _RECOGNISED.items():
        if recognises(path):
            return name
    raise LogFormatError(
        f"{path}: not recognised; name its format, one of {', '.join(sorted(IMPORTERS))}"
    )


def read(path: str | os.PathLike[str], format: str | None = None) -> list[Imported]:  # noqa: A002
    """Reads all runs of another tool at a path.

    Args:
        path: File or folder, as the tool wrote it.
        format: Name in `IMPORTERS`; None: see `detect`.

    Raises:
        LogFormatError: The format is unknown, or the path does not hold it.
    """
    path = Path(path)
    name = detect(path) if format is None else format
    known = {**plugged_in("replay.importers"), **IMPORTERS}
    if name not in known:
        raise LogFormatError(f"expected a format among {', '.join(sorted(known))}, got {name!r}")
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    found: list[Imported] = known[name](path)
    return found


def load(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    folder: str | os.PathLike[str] | None = None,
) -> pd.DataFrame:
    """Reads logs of this package or another tool's runs as rows of `replay.load`.

    Args:
        path: File or folder, as the tool wrote it.
        format: Name in `IMPORTERS`, or `evo`; None: another tool's if it is recognised, else ours.
        folder: Where another tool's runs are kept as compact logs; None: in a new temporary
            folder. One that holds them already is an error.

    Raises:
        LogError: There is nothing to read, or it is damaged.
    """
    from replay import logs

    name = kind(path) if format is None else format
    if name == OWN:
        return logs.load(path, progress=False)
    place = Path(tempfile.mkdtemp(prefix=f"{name}-") if folder is None else folder)
    written = []
    for imported in read(path, name):
        written.append(place / f"{imported.name}.jsonl")
        write(imported, written[-1])
    return logs.load(written, progress=False)


def kind(path: str | os.PathLike[str]) -> str:
    """Name of the format at a path, `evo` for what no importer recognises.

    Raises:
        LogFormatError: It does not exist.
    """
    try:
        return detect(path)
    except LogFormatError:
        if not Path(path).exists():
            raise
        return OWN
