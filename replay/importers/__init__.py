"""Other tools' logs as runs of this package: one module per tool, one registry.

    frame = load("openevolve_output")          # straight to a frame
    for imported in read("openevolve_output"):  # or kept as logs
        print(imported.lost)
    keep(read("openevolve_output"), "logs/local", full=True, task="my_task")

A folder of many runs is read as all of them. `replay.load` reads what was written like any other
log. What has no importer comes through a table, see `replay.importers.table`, or through an
importer of your own: a function that reads a path with `assemble`, `born` and `judged`, and one
that recognises it, known to everything here by `register(name, read, recognise)`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from evo.logs import examples
from evo.logs.journal import encode_line, file_name, write_new
from evo.logs.types import as_path
from evo.plugins import plugged_in
from evo.studies.allocation.journal import AllocationHeader, ArmAdvanced, ArmAsked, ArmRecord
from evo.studies.folders import ALLOCATION
from evo.tasks.task import load_task
from replay.importers import codeevolve, gepa, openevolve, paper, shinkaevolve, table
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
from replay.logs.decode import Foreign, remember

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
"""Format name -> function of a path that reads the runs there."""

_RECOGNISED: dict[str, Callable[[Path], bool]] = {
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
    asked = ((name, ask) for name, ask in _RECOGNISED.items() if name not in without)
    return next((name for name, ask in asked if ask(path)), None)


def _found(path: Path, format: str | None) -> Iterator[tuple[str, Path]]:  # noqa: A002
    """Formats and places of the runs at or below a path; no run lies within another."""
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    others = () if format is None else tuple(name for name in _RECOGNISED if name != format)
    if name := recognised(path, without=others):
        yield name, path
    elif path.is_dir() and not path.is_symlink():
        for inside in sorted(path.iterdir()):
            if inside.exists():
                yield from _found(inside, format)


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
    for name, _ in _found(Path(path), None):
        return name
    raise LogFormatError(
        f"{path}: not recognised; name its format, one of {', '.join(sorted(IMPORTERS))}, or make "
        f"it a table of calls (.csv): {examples.minimal(examples.TABLE)}"
    )


def read(path: str | os.PathLike[str], format: str | None = None) -> list[Imported]:  # noqa: A002
    """Reads all runs of other tools at or below a path.

    Args:
        path: File or folder, as the tool wrote it, or a folder of such.
        format: Name in `IMPORTERS`; None: all that are recognised.

    Raises:
        LogFormatError: The format is unknown, or the path does not hold it.

    Example:
        >>> file = new(".csv")
        >>> rows = ["run,generation,fitness", "a,1,0.31", "a,2,0.42"]
        >>> written = file.write_text(chr(10).join(rows))
        >>> [imported] = replay.importers.read(file)
        >>> len(imported.generations)
        2
    """
    given, path = path, as_path("path", path)
    if not os.fspath(given).strip():
        raise LogFormatError("expected the path of a file or folder, got an empty one")
    known = plugged_in("replay.importers", IMPORTERS, _SHIPPED)
    if format is not None and format not in known:
        raise LogFormatError(f"expected a format among {', '.join(sorted(known))}, got {format!r}")
    places = list(_found(path, format)) or [(format or detect(path), path)]
    if places[0][1] == path:
        return list(known[places[0][0]](path))
    runs = []
    for name, place in places:
        inside = place.relative_to(path).with_suffix("").as_posix()
        found: list[Imported] = known[name](place)
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


def load(path: str | os.PathLike[str], format: str | None = None) -> pd.DataFrame:  # noqa: A002
    """Reads logs of this package or another tool's runs as rows of `replay.load`.

    Args:
        path: File or folder, as the tool wrote it.
        format: Name in `IMPORTERS`, or `evo`; None: another tool's if it is recognised, else ours.

    Raises:
        LogError: There is nothing to read, or it is damaged.

    Example:
        >>> replay.importers.load(path)["best_fitness"].shape
        (3,)
    """
    from replay.logs import tables

    name = kind(path) if format is None else format
    if name == OWN:
        return tables.load(path, progress=False)
    return tables.load(keep_for_now(read(path, format), Path(path), [name]).logs, progress=False)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Folders of logs that are removed when this process ends."""


def keep_for_now(runs: Sequence[Imported], place: Path, names: Sequence[str]) -> Foreign:
    """Writes runs as compact logs to a folder that is removed when this process ends.

    Args:
        runs: The runs, from `read`.
        place: The file or folder that they were read from, which messages name.
        names: Names of their formats.

    Returns:
        The logs, with where they are from.
    """
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix=f"{names[0]}-"))
    folder = Path(_FOLDERS[-1].name)
    logs = keep(runs, folder)
    lost = "; ".join(sorted({run.lost for run in runs if run.lost}))
    texts = frozenset(log for log, run in zip(logs, runs, strict=True) if run.keeps_best)
    kept = Foreign(place, " and ".join(names), folder, logs, lost, texts)
    remember(kept)
    return kept


def kinds(path: str | os.PathLike[str]) -> list[str]:
    """Names of the formats at or below a path that exists, each once; none if none is known."""
    return list(dict.fromkeys(name for name, _ in _found(Path(path), None)))


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
    return next((name for name, _ in _found(Path(path), None)), OWN)
