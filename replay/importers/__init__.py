"""Other tools' logs as runs of this package: one module per tool, one registry.

    for imported in read("openevolve_output"):
        print(imported.lost)
        write(imported, Path("logs/local") / f"{imported.name}.jsonl")

`replay.load` then reads what was written like any other log.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from replay.importers import codeevolve, openevolve, paper, shinkaevolve, skydiscover
from replay.importers.foreign import Imported, LogFormatError, write

__all__ = ["IMPORTERS", "Imported", "LogFormatError", "detect", "read", "write"]

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
    if name not in IMPORTERS:
        raise LogFormatError(
            f"expected a format among {', '.join(sorted(IMPORTERS))}, got {name!r}"
        )
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    return IMPORTERS[name](path)
