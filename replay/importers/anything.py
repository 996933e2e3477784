"""The readers of logs, which with this module know the runs of other tools, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evo.gate.log import ENGINE_LOG
from replay import importers
from replay.importers.reading import LogFormatError
from replay.logs import decode, others
from replay.logs.others import Foreign
from replay.logs.tables import attempts, children, instances, load, load_tables

__all__ = ["attempts", "children", "instances", "load", "load_tables"]


def as_logs(path: Path) -> Foreign | None:
    """Runs of another tool as compact logs in a temporary folder; None if none is recognised."""
    names = importers.kinds(path)
    if not names and (words := importers.table_words(path)):
        raise LogFormatError(f"{path}: {words}")
    if not names:
        return None
    runs = importers.read(path)
    return importers.keep_for_now(runs, path, names) if runs else None


def others_in(folder: Path) -> tuple[list[tuple[str, Path]], list[tuple[Path, str]]]:
    """Other tools' runs in a folder with their formats, and tables that lack columns, with why.

    What an engine wrote that evo drove, whose calls have a log of their own, is passed over.
    """
    places: list[tuple[str, Path]] = []
    unread: list[tuple[Path, str]] = []
    for name, path in _looked_at(folder):
        if name is not None:
            places.append((name, path))
        elif path.is_file() and (words := importers.table_words(path)):
            unread.append((path, words))
    return places, unread


def _looked_at(path: Path) -> Iterator[tuple[str | None, Path]]:
    """Files and folders at and below a path with their formats, those of runs as a whole."""
    name = importers.recognised(path)
    yield name, path
    if name is not None or not path.is_dir():
        return
    try:
        inside = sorted(path.iterdir())
    except OSError:
        return  # it is not ours to read
    names = {each.name for each in inside}
    for each in inside:
        engine = f"{each.name}.jsonl" in names and (each / ENGINE_LOG).exists()
        passed = each.name.startswith(".") or each.is_symlink() or engine
        if not (passed or "pyvenv.cfg" in names or decode.is_own_log(each)):
            yield from _looked_at(each)


others.FOREIGN.append(as_logs)
others.OTHERS.append(others_in)
