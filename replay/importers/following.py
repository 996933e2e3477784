"""Other tools' runs while the tools write them: found in folders, and read again as they grow."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evo.gate.log import ENGINE_LOG
from evo.logs.journal import LogError
from replay import importers

SHARE = 0.2
"""Share of the time that looking and reading may take."""

DEEPEST = 6
"""Folders within one another in which a tool's output is looked for."""

_NO_TOOLS = ("table", "paper")
"""Formats of single files, which are complete when they appear."""

_LONGER = 30.0  # seconds for which a state that cannot be read is taken for one being written

Stamp = tuple[tuple[str, int, int], ...]


def places(folder: Path, *, depth: int = DEEPEST) -> Iterator[tuple[str, Path]]:
    """Formats and folders of the runs of other tools at or below a folder.

    Hidden folders, environments of Python and the folders of engines, whose calls have logs of
    their own, are passed over.
    """
    try:
        known = importers.recognised(folder, without=_NO_TOOLS)
        if known:
            yield from ((name, folder) for name in known)
            for each in importers.apart_from(folder, known):
                yield from places(each, depth=depth - 1)
            return
        inside = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return  # it is gone, or not ours to read
    names = {entry.name for entry in inside}
    if depth == 0 or "pyvenv.cfg" in names:
        return
    for entry in inside:
        passed = entry.name.startswith((".", "__pycache__")) or entry.name == "node_modules"
        if passed or not entry.is_dir(follow_symlinks=False):
            continue
        path = Path(entry.path)
        if f"{entry.name}.jsonl" in names and (path / ENGINE_LOG).exists():
            continue
        yield from places(path, depth=depth - 1)


@dataclass
class Followed:
    """What another tool writes at a place, as logs that are written anew when it has changed.

    A state that is being written, and so cannot be read, or holds less than the one before, is
    passed over until it is whole: the last whole one stays.

    Attributes:
        place: The tool's folder.
        tool: Name of its format.
        logs: A log for each run, under the same path while the run grows.
        version: Grows with each state that was read.
        changed: Unix time of the last change of the tool's files.
    """

    place: Path
    tool: str
    logs: list[Path] = field(default_factory=list)
    version: int = 0
    changed: float = 0.0
    _into: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="followed-")))
    _stamp: Stamp = ()
    _doubted: Stamp = ()
    _failed: tuple[Stamp, str] = ((), "")
    _whole: int = 0
    _again: float = 0.0

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self._into, ignore_errors=True)

    @property
    def problem(self) -> str:
        """Why the files, which have not changed for a while, cannot be read; else empty."""
        return self._failed[1] if time.time() - self.changed > _LONGER else ""

    def refresh(self) -> bool:
        """Reads the files if they have changed; returns whether there is something new."""
        if time.monotonic() < self._again:
            return False
        began = time.thread_time()
        stamp = stamp_of(self.place)
        try:
            return self._read(stamp)
        except (LogError, ValueError, OSError) as error:
            self._failed = stamp, str(error)
            return False
        finally:
            self._again = time.monotonic() + (time.thread_time() - began) / SHARE

    def _read(self, stamp: Stamp) -> bool:
        if not stamp or stamp in (self._stamp, self._failed[0]):
            return False
        self.changed = last_change(stamp)
        runs = importers.read(self.place, self.tool)
        whole = sum(child.evaluation.status == "ok" for run in runs for child in run.children)
        if whole < self._whole and stamp != self._doubted:
            self._doubted = stamp  # a look later it is as it is, or something was under way
            return False
        with tempfile.TemporaryDirectory(dir=self._into) as fresh:
            for path in importers.keep(runs, fresh, full=True):
                kept = self._into / path.relative_to(fresh)
                kept.parent.mkdir(parents=True, exist_ok=True)
                path.replace(kept)
                if kept not in self.logs:
                    self.logs.append(kept)
        self._stamp, self._whole, self._failed = stamp, whole, ((), "")
        self.version += 1
        return True


def last_change(stamp: Stamp) -> float:
    """Unix time of the newest file; 0 without any."""
    return max((when for _, _, when in stamp), default=0) / 1e9


def stamp_of(folder: Path) -> Stamp:
    """Names, sizes and times of the files at a place."""
    found = []
    for path, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(path, name)
            try:
                facts = os.stat(file)
            except OSError:
                continue  # it has just gone
            found.append((file, facts.st_size, facts.st_mtime_ns))
    return tuple(sorted(found))
