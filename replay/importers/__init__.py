"""Other tools' logs as runs of this package: one module per tool, one registry.

    frame = load("openevolve_output")          # straight to a frame
    for imported in read("openevolve_output"):  # or kept as logs
        print(imported.lost)
    keep(read("openevolve_output"), "logs/local", full=True, task="my_task")

A folder of many runs is read as all of them. `replay.load` reads what was written like any other
log. What has no importer comes through a table, see `replay.importers.table`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evo.journal import encode_line, file_name, write_new
from evo.plugins import plugged_in
from evo.rounds import ALLOCATION, AllocationHeader, ArmRecord, Asked, Told
from evo.task import load_task
from replay.importers import codeevolve, openevolve, paper, shinkaevolve, skydiscover, table
from replay.importers.foreign import Imported, LogFormatError, Pool, write

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "IMPORTERS",
    "OWN",
    "Imported",
    "LogFormatError",
    "detect",
    "keep",
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
    "table": table.read,
}
"""Format name -> function of a path that reads the runs there."""

_RECOGNISED: dict[str, Callable[[Path], bool]] = {
    "paper": paper.recognises,
    "shinkaevolve": shinkaevolve.recognises,
    "codeevolve": codeevolve.recognises,
    "skydiscover": skydiscover.recognises,
    "openevolve": openevolve.recognises,
    "table": table.recognises,
}


def _found(path: Path, formats: Mapping[str, Callable[[Path], bool]]) -> Iterator[tuple[str, Path]]:
    """Formats and places of the runs at or below a path; no run lies within another."""
    name = next((name for name, recognises in formats.items() if recognises(path)), None)
    if name is not None:
        yield name, path
    elif path.is_dir() and not path.is_symlink():
        for inside in sorted(path.iterdir()):
            yield from _found(inside, formats)


def detect(path: str | os.PathLike[str]) -> str:
    """Name of the format that a file or folder is in, by what lies in it.

    Raises:
        LogFormatError: It is in none of them, or does not exist.
    """
    path = Path(path)
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    for name, _ in _found(path, _RECOGNISED):
        return name
    raise LogFormatError(
        f"{path}: not recognised; name its format, one of {', '.join(sorted(IMPORTERS))}"
    )


def read(path: str | os.PathLike[str], format: str | None = None) -> list[Imported]:  # noqa: A002
    """Reads all runs of other tools at or below a path.

    Args:
        path: File or folder, as the tool wrote it, or a folder of such.
        format: Name in `IMPORTERS`; None: all that are recognised.

    Raises:
        LogFormatError: The format is unknown, or the path does not hold it.
    """
    path = Path(path)
    known = {**plugged_in("replay.importers"), **IMPORTERS}
    if format is not None and format not in known:
        raise LogFormatError(f"expected a format among {', '.join(sorted(known))}, got {format!r}")
    if not path.exists():
        raise LogFormatError(f"{path}: no such file or folder")
    if format is None:
        detect(path)
    formats = {name: _RECOGNISED[name] for name in _RECOGNISED if format in (None, name)}
    places = list(_found(path, formats)) or [(format or "", path)]
    if len(places) == 1 and places[0][1] == path:
        return list(known[places[0][0]](path))
    runs = []
    for name, place in places:
        inside = place.relative_to(path).with_suffix("").as_posix()
        found: list[Imported] = known[name](place)
        for run in found:  # a run is called after its place, several in a file beside each other
            own = run.name if len(found) > 1 and run.pool is None else ""
            own = run.name.rpartition("/")[2] if run.pool else own
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
    """
    record = None if task is None else load_task(task).record
    paths, pools = [], dict[str, Pool]()
    for run in runs:
        parts = [file_name(part) for part in run.name.split("/")]
        paths.append(Path(folder, *parts[:-1], f"{parts[-1]}.jsonl"))
        write(run, paths[-1], compact=not full, task=record)
        if run.pool is not None:
            pools[run.pool.name] = run.pool
    for pool in pools.values():
        arms = [(p, r) for p, r in zip(paths, runs, strict=True) if r.pool == pool]
        header = AllocationHeader(
            policy=pool.policy,
            reward="unknown",
            rounds=len(pool.picks),
            seed=pool.seed,
            arms=tuple(ArmRecord(log=p.name, seed=run.header.seed) for p, run in arms),
        )
        lines: list[AllocationHeader | Asked | Told] = [header]
        for number, arm in enumerate(pool.picks):
            lines.append(Asked(round=number, arm=arm))
            costs = {"calls": float(arms[arm][1].header.children)}
            lines.append(
                Told(
                    round=number,
                    arm=arm,
                    reward=pool.rewards[number],
                    best_fitness=pool.best[number],
                    costs=costs,
                    digest="",
                )
            )
        write_new(arms[0][0].parent / ALLOCATION, b"".join(map(encode_line, lines)))
    return paths


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
    return logs.load(keep(read(path, format), place), progress=False)


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
