"""The readers of logs, which with this module know the runs of other tools, too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from evo.gate.log import ENGINE_LOG
from evo.warning import warn
from replay import importers
from replay.importers.keeping import keep_for_now
from replay.importers.reading import LogFormatError
from replay.logs import decode, others
from replay.logs.decode import find_logs
from replay.logs.others import Foreign
from replay.logs.tables import Logs, attempts, children, instances, load, load_tables

__all__ = ["attempts", "children", "find_logs", "instances", "load", "load_tables"]


def as_logs(path: Path) -> Foreign | None:
    """Runs of another tool as compact logs in a temporary folder; None if none is recognised."""
    names = importers.kinds(path)
    if not names and (words := importers.table_words(path)):
        raise LogFormatError(f"{path}: {words}")
    if not names:
        return None
    runs, damaged = importers.read_all(path)
    if not runs and not damaged:
        return None
    return keep_for_now(runs, path, names, damaged=damaged)


_WHOLE: dict[Path, Path] = {}
"""By folder of compact logs of other tools' runs, one of the same logs with their texts."""


def find_whole(*sources: Logs) -> list[Path]:
    """The logs of `replay.find_logs`, those of other tools' runs with the texts that they kept."""
    found, left = decode.find_all(sources)
    if left:
        warn(f"{len(left)} file{'s' * (len(left) > 1)} left out: {others.in_words(left)}")
    return [whole(path) for path in found]


def whole(log: Path) -> Path:
    """A log; of one that was made of another tool's run while it was read, one with its texts."""
    origin = others.origin_of(log)
    if origin is None:
        return log
    if origin.folder not in _WHOLE:
        runs, _ = importers.read_all(origin.place)
        kept = keep_for_now(runs, origin.place, origin.tool.split(" and "), full=True)
        _WHOLE[origin.folder] = _WHOLE[kept.folder] = kept.folder
    return _WHOLE[origin.folder] / log.relative_to(origin.folder)


def others_in(
    folder: Path, own: Collection[Path] | None = None
) -> tuple[list[tuple[str, Path]], list[tuple[Path, str]]]:
    """Other tools' runs in a folder with their formats, and tables that lack columns, with why.

    What an engine wrote that evo drove, whose calls have a log of their own, is passed over. `own`
    are the logs of evo there, where they are known.
    """
    is_own = decode.is_own_log if own is None else set(own).__contains__
    places: list[tuple[str, Path]] = []
    unread: list[tuple[Path, str]] = []
    for name, path in _looked_at(folder, is_own):
        if name is not None:
            places.append((name, path))
        elif path.is_file() and (words := importers.table_words(path)):
            unread.append((path, words))
    return places, unread


def _looked_at(path: Path, is_own: Callable[[Path], bool]) -> Iterator[tuple[str | None, Path]]:
    """Files and folders at and below a path with their formats, those of runs as a whole."""
    known = importers.recognised(path)
    yield from ((name, path) for name in known)
    if not known:
        yield None, path
    if not path.is_dir():
        return
    try:
        inside = sorted(importers.apart_from(path, known) if known else path.iterdir())
    except OSError:
        return  # it is not ours to read
    names = {each.name for each in inside}
    for each in inside:
        engine = f"{each.name}.jsonl" in names and (each / ENGINE_LOG).exists()
        passed = each.name.startswith(".") or each.is_symlink() or engine
        if not (passed or "pyvenv.cfg" in names or is_own(each)):
            yield from _looked_at(each, is_own)


others.FOREIGN.append(as_logs)
others.OTHERS.append(others_in)
