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

import atexit
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from evo.logs import examples
from evo.logs.journal import encode_line, file_name, write_new
from evo.logs.types import as_path
from evo.plugins import MistakenType, guarded, loaded, meant, plugged_in
from evo.studies.allocation.journal import AllocationHeader, ArmAdvanced, ArmAsked, ArmRecord
from evo.studies.folders import ALLOCATION
from evo.tasks.task import load_task
from replay.importers import cells, codeevolve, gepa, openevolve, paper, shinkaevolve, table
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
from replay.importers.reading import LogFormatError, parse_file, parse_lines
from replay.logs.others import FOR_NOW, Foreign, remember, what_to_do_with

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
        ValueError: The name is empty or that of a shipped format.

    Example:
        >>> def read(place):
        ...     return []
        >>> replay.importers.register("mine", read, lambda place: place.suffix == ".mine")
        >>> replay.importers.IMPORTERS.pop("mine") is not None
        True
    """
    if not name or name in _SHIPPED | {OWN}:
        taken = ", ".join(sorted(_SHIPPED | {OWN}))
        raise ValueError(f"name: expected one that is none of {taken}, got {name!r}")
    IMPORTERS[name] = read
    others = {known: ask for known, ask in _RECOGNISED.items() if known != name}
    _RECOGNISED.clear()
    _RECOGNISED.update({name: recognise, **others})


def recognised(path: Path, *, without: Sequence[str] = ()) -> str | None:
    """The format of a path itself, not of what lies below it; None if there is none."""
    asked = ((name, ask) for name, ask in _recognisers().items() if name not in without)
    return next((name for name, ask in asked if ask(path)), None)


def _known() -> Mapping[str, Any]:
    """What reads each format, what other packages add included."""
    return plugged_in("replay.importers", IMPORTERS, _SHIPPED)


def _recognisers() -> Recognisers:
    """What recognises each format; what other packages add is asked before shipped formats are."""
    known = _known()
    here = {name: ask for name, ask in _RECOGNISED.items() if name in IMPORTERS}
    if len(known) == len(IMPORTERS):
        return here
    added = loaded(_Added(known))
    asked = {name: _recogniser_of(name, entry) for name, entry in added.items()}
    return {name: ask for name, ask in asked.items() if ask} | here


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
    """Formats and places of the runs at or below a path; no run lies within another."""
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    if name := next((name for name, ask in asked.items() if ask(path)), None):
        yield name, path
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
    if words := table_words(path):
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

    def runs_of(name: str, place: Path) -> list[Imported]:
        if columns is not None:
            return table.read(place, columns=columns)
        return list(getattr(known[name], "read", known[name])(place))

    if places[0][1] == path:
        return runs_of(*places[0])
    runs = []
    stems = Counter(place.with_suffix("") for _, place in places)
    for name, place in places:
        alone = stems[place.with_suffix("")] == 1
        inside = (place.with_suffix("") if alone else place).relative_to(path).as_posix()
        found = runs_of(name, place)
        for run in found:  # a run is called after its place, several in a file beside each other
            own = run.name.rpartition("/")[2] if run.pool else run.name if found[1:] else ""
            pool = run.pool and replace(run.pool, name=inside)
            runs.append(replace(run, name="/".join(filter(None, (inside, own))), pool=pool))
    return runs


def keep(
    runs: Sequence[Imported],
    folder: str | os.PathLike[str],
    *,
    full: bool = False,
    task: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Writes imported runs as logs, and the choices of a bandit beside its arms.

    Args:
        runs: As `read` gives them.
        folder: Where; a name with `/` lies in a folder there.
        full: With prompts, replies and programs, as far as the tool kept them.
        task: Name or folder of the task that they were run on, so that the logs can be rescored
            and forked; None: unknown.

    Returns:
        The logs, in the order of the runs.

    Raises:
        LogError: A log exists already or cannot be written.
        TaskError: There is no such task.

    Example:
        >>> evaluation = evo.Evaluation(status="ok", fitness=0.5)
        >>> born = replay.importers.born
        >>> imported = replay.importers.assemble(
        ...     path, "mine", name="run", initial=born(0, evaluation),
        ...     children=[[born(1, evaluation)]], lost=[], model=evo.Model("m"),
        ... )
        >>> len(replay.importers.keep([imported], new("")))
        1
    """
    record = None if task is None else load_task(task).record
    paths, pools = [], dict[str, list[tuple[Path, Imported]]]()
    for run in runs:
        parts = [file_name(part) for part in run.name.split("/")]
        paths.append(Path(folder, *parts[:-1], f"{parts[-1]}.jsonl"))
        write(run, paths[-1], compact=not full, task=record)
        if run.pool is not None:
            pools.setdefault(run.pool.name, []).append((paths[-1], run))
    for arms in pools.values():
        _write_choices(arms)
    return paths


def _write_choices(arms: Sequence[tuple[Path, Imported]]) -> None:
    """Writes the choices of a bandit beside the logs of its arms."""
    pool = arms[0][1].pool
    assert pool is not None
    header = AllocationHeader(
        policy=pool.policy,
        reward="unknown",
        rounds=len(pool.picks),
        seed=pool.seed,
        arms=tuple(ArmRecord(log=path.name, seed=run.header.seed) for path, run in arms),
    )
    lines: list[AllocationHeader | ArmAsked | ArmAdvanced] = [header]
    for k, (arm, reward, best) in enumerate(zip(pool.picks, pool.rewards, pool.best, strict=True)):
        costs = {"calls": float(arms[arm][1].header.children)}
        completed = ArmAdvanced(
            round=k, arm=arm, reward=reward, best_fitness=best, costs=costs, digest=""
        )
        lines += [ArmAsked(round=k, arm=arm), completed]
    write_new(arms[0][0].parent / ALLOCATION, b"".join(map(encode_line, lines)))


def load(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    columns: Columns | None = None,
) -> pd.DataFrame:
    """Reads logs of this package or another tool's runs as rows of `replay.load`.

    Args:
        path: File or folder, as the tool wrote it.
        format: Name in `IMPORTERS`, or `evo`; None: another tool's if it is recognised, else ours.
        columns: What tables call our columns, as for `read`.

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
        return tables.load(path, progress=False)
    runs = read(path, format, columns=columns)
    return tables.load(keep_for_now(runs, path, [name]).logs, progress=False)


def keep_for_now(
    runs: Sequence[Imported], place: Path, names: Sequence[str], *, full: bool = False
) -> Foreign:
    """Writes runs as logs to a folder that is removed when this process ends.

    Args:
        runs: The runs, from `read`.
        place: The file or folder that they were read from, which messages name.
        names: Names of their formats.
        full: With prompts, replies and programs; otherwise compact.

    Returns:
        The logs, with where they are from.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{FOR_NOW}{names[0]}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    logs = keep(runs, folder, full=full)
    lost = "; ".join(sorted({run.lost for run in runs if run.lost}))
    texts = frozenset(log for log, run in zip(logs, runs, strict=True) if run.keeps_best)
    kept = Foreign(place, " and ".join(names), folder, logs, lost, texts)
    remember(kept)
    return kept


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
