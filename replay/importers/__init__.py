"""Other tools' logs as runs of this package: one module per tool, one registry.

    frame = load("openevolve_output")          # straight to a frame
    for imported in read("openevolve_output"):  # or kept as logs
        print(imported.lost)
    keep(read("openevolve_output"), "logs/local", full=True, task="my_task")

A folder of many runs is read as all of them. `replay.load` reads what was written like any other
log. What has no importer comes through a table, see `replay.importers.table`, or through an
importer of your own: a function that reads a path with `assemble`, `born` and `judged`, and one
that recognises it, known to everything here by `register(name, read, recognise)`. A package adds
both by an entry point of the group `replay.importers`: an object, such as a module, with functions
`read` and `recognises`. An entry that is a function reads, and recognises by its attribute
`recognises`; without one, the format is read where it is named.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from evo.logs import examples
from evo.logs.decompression import ARCHIVE
from evo.logs.journal import LogError
from evo.logs.types import as_path
from evo.plugins import MistakenType, guarded, loaded, meant, plugged_in
from evo.warning import warn
from replay.importers import cells, codeevolve, gepa, openevolve, paper, shinkaevolve, table
from replay.importers import paper_export as paper_export
from replay.importers.added import runs_of, tolerant
from replay.importers.cells import Named as Columns
from replay.importers.foreign import (
    Imported,
    answered,
    assemble,
    born,
    failed,
    judged,
    write,
)
from replay.importers.keeping import keep, keep_for_now
from replay.importers.reading import LogFormatError, parse_file, parse_lines
from replay.logs.others import NothingYetError, is_archive, what_to_do_with

__all__ = [
    "IMPORTERS",
    "Imported",
    "LogFormatError",
    "answered",
    "assemble",
    "born",
    "detect",
    "failed",
    "judged",
    "keep",
    "kind",
    "load",
    "parse_file",
    "parse_lines",
    "read",
    "register",
    "write",
]

OWN = "evo"
"""What `load` calls the logs of this package."""
AUTO = "auto"
"""What `replay import` calls whichever format it recognises."""

IMPORTERS: dict[str, Callable[[Path], list[Imported]]] = {
    "openevolve": openevolve.read,
    "skydiscover": openevolve.read,
    "shinkaevolve": shinkaevolve.read,
    "codeevolve": codeevolve.read,
    "gepa": gepa.read,
    "paper": paper.read,
    "table": table.read,
}
"""Format name -> function of a path that reads the runs there; what is popped is forgotten."""

Recognisers = dict[str, Callable[[Path], bool]]

_RECOGNISED: Recognisers = {
    "paper": paper.recognises,
    "shinkaevolve": shinkaevolve.recognises,
    "codeevolve": codeevolve.recognises,
    "gepa": gepa.recognises,
    "skydiscover": openevolve.recognises_skydiscover,
    "openevolve": openevolve.recognises,
    "table": table.recognises,
}
_SHIPPED = frozenset(IMPORTERS)
_TAKEN = _SHIPPED | {OWN, AUTO}


def register(
    name: str, read: Callable[[Path], list[Imported]], recognise: Callable[[Path], bool]
) -> None:
    """Makes a format known to `read`, `load`, `detect`, the picker and `replay import auto`.

    Args:
        name: Of the format; a name registered before is replaced.
        read: Returns the runs at a path, made by `assemble`; raises LogFormatError if it cannot.
        recognise: Says whether a file or folder is in this format; it is asked before the shipped
            formats are, about every path, so it should read little and never raise.

    Raises:
        TypeError: The name is no text, or `read` or `recognise` is no function.
        ValueError: The name is empty, that of a shipped format, "evo" or "auto".

    Example:
        >>> def read(place):
        ...     return []
        >>> replay.importers.register("mine", read, lambda place: place.suffix == ".mine")
        >>> replay.importers.IMPORTERS.pop("mine") is not None
        True
    """
    if not isinstance(name, str):
        raise MistakenType(f"name: expected a text, got {name!r:.80}")
    if not name.strip() or name in _TAKEN:
        taken = ", ".join(sorted(_TAKEN))
        raise ValueError(f"name: expected one that is none of {taken}, got {name!r}")
    for what, function in (("read", read), ("recognise", recognise)):
        if not callable(function):
            raise MistakenType(f"{what}: expected a function of a path, got {function!r:.80}")
    IMPORTERS[name] = read
    others = {known: ask for known, ask in _RECOGNISED.items() if known != name}
    _RECOGNISED.clear()
    _RECOGNISED.update({name: recognise, **others})


def recognised(path: Path, *, without: Sequence[str] = ()) -> list[str]:
    """The formats of a path itself, not of what lies below it; several where tools share it."""
    asked = _recognisers()
    return _formats_of(path, {name: asked[name] for name in asked if name not in without})


_OF_RUNS = re.compile(r"\.|__pycache__$|checkpoints?(_\d+)?$|ckpt$|logs$|programs$|gen_\d+$")
"""How folders begin, or are called, that are parts of the run in whose folder they are."""


def _formats_of(path: Path, asked: Recognisers) -> list[str]:
    """The formats in which there are runs at a path itself; one of a file, or of a package."""
    first = next((name for name, ask in asked.items() if ask(path)), None)
    if first is None or first not in _SHIPPED or not path.is_dir():
        return [first] if first else []
    others = (name for name in asked if name in _SHIPPED and name != first and asked[name](path))
    return [first, *(name for name in others if {first, name} != {"skydiscover", "openevolve"})]


def apart_from(path: Path, names: Sequence[str]) -> Iterator[Path]:
    """The folders in that of a run of these formats that may hold runs of their own."""
    if path.is_dir() and all(name in _SHIPPED for name in names):
        for inside in sorted(path.iterdir()):
            passed = _OF_RUNS.match(inside.name) or inside.is_symlink()
            if not passed and inside.is_dir() and recognised(inside):
                yield inside


def _known() -> Mapping[str, Any]:
    """What reads each format, what other packages add included."""
    return plugged_in("replay.importers", IMPORTERS, _TAKEN)


def _recognisers() -> Recognisers:
    """What recognises each format; what other packages add is asked before shipped formats are."""
    known = _known()
    here = {
        name: ask if name in _SHIPPED else tolerant(name, ask)
        for name, ask in _RECOGNISED.items()
        if name in IMPORTERS
    }
    if len(known) == len(IMPORTERS):
        return here
    added = loaded(_Added(known))
    asked = {name: _recogniser_of(name, entry) for name, entry in added.items()}
    return {name: tolerant(name, ask) for name, ask in asked.items() if ask} | here


def _recogniser_of(name: str, entry: object) -> Callable[[Path], bool] | None:
    """What recognises a format by the entry of a package; None where that does not state it."""
    ask = getattr(entry, "recognises", None)
    return guarded("importer", name, ask) if ask else None


class _Added(Mapping[str, Any]):
    """What other packages add, loaded when it is asked for."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known

    def __getitem__(self, name: str) -> Any:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._known if name not in IMPORTERS)

    def __len__(self) -> int:
        return len(self._known) - len(IMPORTERS)


def _found(path: Path, asked: Recognisers) -> Iterator[tuple[str, Path]]:
    """Formats and places of the runs at or below a path."""
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    if names := _formats_of(path, asked):
        yield from ((name, path) for name in names)
        for inside in apart_from(path, names):
            yield from _found(inside, asked)
    elif path.is_dir() and not path.is_symlink():
        for inside in sorted(path.iterdir()):
            if inside.exists():
                yield from _found(inside, asked)


def _asked(format: str | None, columns: Columns | None) -> Recognisers:  # noqa: A002
    """What recognises a format, or any; a table may name its columns as is stated."""
    if columns is not None:
        return {"table": lambda path: table.recognises(path, columns)}
    if format is None:
        return _recognisers()
    here = _RECOGNISED.get(format) if format in IMPORTERS else None
    ask = here or _recogniser_of(format, _known()[format])
    return {format: ask} if ask else {}


def detect(path: str | os.PathLike[str]) -> str:
    """Returns the name of the format of another tool's file or folder.

    Args:
        path: A file or folder, or a folder of several runs.

    Returns:
        A name in `replay.importers.IMPORTERS`.

    Raises:
        LogFormatError: No importer recognises it; the message shows a table that can be read.

    Example:
        >>> file = new(".csv")
        >>> rows = ["run,generation,fitness", "a,1,0.31", "a,2,0.42"]
        >>> written = file.write_text(chr(10).join(rows))
        >>> replay.importers.detect(file)
        'table'
    """
    path = _as_path(path)
    for name, _ in _found(path, _recognisers()):
        return name
    if words := ARCHIVE if is_archive(path) else table_words(path):
        raise LogFormatError(f"{path}: {words}")
    raise LogFormatError(
        f"{path}: not recognised; name its format, one of {', '.join(sorted(_known()))}, or make "
        f"it a table of calls (.csv): {examples.minimal(examples.TABLE)}"
    )


def _as_path(path: object) -> Path:
    """The path that was given; a DataFrame, which is none, is answered with what to do."""
    if isinstance(path, pd.DataFrame):
        raise MistakenType(what_to_do_with(path))
    return as_path("path", path)


def table_words(path: Path) -> str:
    """What to do with a file that is no table as it is but might be one; else empty."""
    if not cells.is_table(path) or path.name.endswith(".parquet") or table.recognises(path):
        return ""
    return cells.what_is_wrong(path)


def read(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    columns: Columns | None = None,
) -> list[Imported]:
    """Reads all runs of other tools at or below a path.

    One that has just begun, without a call or a program, is left out beside others, with a warning.

    Args:
        path: File or folder, as the tool wrote it, or a folder of such.
        format: Name in `IMPORTERS`, or of what a package adds; None: all that are recognised.
        columns: What tables call our columns, such as {"run": "trial"}, see
            `replay.importers.table`; only tables are read then.

    Raises:
        LogFormatError: The format is unknown, or the path does not hold it.
        ValueError: `columns` names what is no column of ours, or the format is no table.

    Example:
        >>> file = new(".csv")
        >>> rows = ["run,generation,fitness", "a,1,0.31", "a,2,0.42"]
        >>> written = file.write_text(chr(10).join(rows))
        >>> [imported] = replay.importers.read(file)
        >>> len(imported.generations)
        2
    """
    runs, damaged = read_all(path, format, columns=columns)
    for error in damaged.values():
        if not (runs and isinstance(error, NothingYetError)):
            raise error
        warn(f"left out: {error}")
    return runs


def read_all(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    columns: Columns | None = None,
) -> tuple[list[Imported], dict[Path, LogError]]:
    """The runs of `read` that can be read, and the errors of the others by their place."""
    given, path = path, _as_path(path)
    if not os.fspath(given).strip():
        raise LogFormatError("expected the path of a file or folder, got an empty one")
    known = _known()
    if format is not None and format not in known:
        raise LogFormatError(
            f"expected a format among {', '.join(sorted(known))}, got {format!r}"
            f"{meant(format, known)}"
        )
    if columns is not None:
        if format not in (None, "table"):
            raise ValueError(f"columns: expected a table, whose columns they are, got {format!r}")
        cells.check_columns(columns)
        format = "table"  # noqa: A001
    places = list(_found(path, _asked(format, columns))) or [(format or detect(path), path)]

    def read_at(name: str, place: Path) -> list[Imported]:
        if columns is not None:
            return table.read(place, columns=columns)
        reader = getattr(known[name], "read", known[name])
        return list(reader(place)) if name in _SHIPPED else runs_of(name, place, reader)

    runs: list[Imported] = []
    damaged: dict[Path, LogError] = {}
    stems = Counter(place.with_suffix("") for place in {place for _, place in places})
    shared = Counter(place for _, place in places)
    for name, place in places:
        try:
            found = read_at(name, place)
        except LogError as error:
            damaged[place / name if shared[place] > 1 else place] = error
            continue
        if place == path and not places[1:]:
            return found, damaged
        alone = stems[place.with_suffix("")] == 1
        inside = (place.with_suffix("") if alone else place).relative_to(path).as_posix()
        if shared[place] > 1 or place == path:
            inside = Path(inside, name).as_posix()
        runs += (_named_after(inside, run, alone=len(found) == 1) for run in found)
    return runs, damaged


def _named_after(place: str, run: Imported, *, alone: bool) -> Imported:
    """Calls a run after its place; several runs of a file are called after it and their names."""
    own = "" if alone else run.name
    if run.pool:
        own = run.name.rpartition("/")[2]
    pool = run.pool and replace(run.pool, name=place)
    return replace(run, name="/".join(filter(None, (place, own))), pool=pool)


def load(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    columns: Columns | None = None,
    task: str | None = None,
) -> pd.DataFrame:
    """Reads logs of this package or another tool's runs as rows of `replay.load`.

    Args:
        path: File or folder, as the tool wrote it.
        format: Name in `IMPORTERS`, or `evo`; None: another tool's if it is recognised, else ours.
        columns: What tables call our columns, as for `read`.
        task: The task of runs that do not say it themselves (default: unknown).

    Raises:
        LogError: There is nothing to read, or it is damaged.

    Example:
        >>> replay.importers.load(path)["best_fitness"].shape
        (3,)
    """
    from replay.logs import tables

    path = _as_path(path)
    name = format or ("table" if columns is not None else kind(path))
    if name == OWN and columns is None:
        if words := table_words(path):
            raise LogFormatError(f"{path}: {words}")
        return tables.load(path, progress=False, task=task)
    runs = read(path, format, columns=columns)
    return tables.load(keep_for_now(runs, path, [name]).logs, progress=False, task=task)


def kinds(path: str | os.PathLike[str]) -> list[str]:
    """Names of the formats at or below a path that exists, each once; none if none is known."""
    return list(dict.fromkeys(name for name, _ in _found(Path(path), _recognisers())))


def kind(path: str | os.PathLike[str]) -> str:
    """Returns the name of the format of a file or folder that exists.

    Args:
        path: A file or folder.

    Returns:
        A name in `replay.importers.IMPORTERS`, or "evo" if no importer recognises it.

    Example:
        >>> replay.importers.kind(path)
        'evo'
    """
    return next((name for name, _ in _found(Path(path), _recognisers())), OWN)
