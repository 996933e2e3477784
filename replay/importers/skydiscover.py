"""Logs of SkyDiscover: OpenEvolve's checkpoints, and one line of statistics per iteration.

The statistics, `adaevolve_iteration_stats_<time>.jsonl`, also hold the iterations that failed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from replay.importers import openevolve
from replay.importers.foreign import Imported, LogFormatError, failed, finite, parse_lines

NAME = "SkyDiscover"
_STATISTICS = "adaevolve_iteration_stats_*.jsonl"


class _Program(msgspec.Struct):
    id: str
    metrics: dict[str, Any] | None
    parent_id: str | None = None
    metadata: dict[str, Any] | None = None


class _Result(msgspec.Struct):
    error: str | None = None
    iteration_time_seconds: float | None = None
    child_program: _Program | None = None


class _Iteration(msgspec.Struct):
    iteration: int
    iteration_result: _Result


def recognises(path: Path) -> bool:
    """Whether the path looks like an output folder of SkyDiscover, or its statistics."""
    if not path.is_dir():
        return path.match(_STATISTICS)
    if any(path.glob(_STATISTICS)):
        return True
    programs = (*path.glob("checkpoint_*/programs/*.json"), *path.glob("*/checkpoint_*/programs/*"))
    return any(b'"solution"' in file.read_bytes() for file in programs[:1])


def read(path: Path) -> list[Imported]:
    """Reads an output folder, or its file of statistics alone."""
    files = sorted(path.glob(_STATISTICS)) if path.is_dir() else [path]
    others = path.is_dir() and openevolve.recognises(path)
    found = openevolve.gather(path) if others else openevolve.Found()
    if not files and not others:
        raise LogFormatError(f"{path}: expected checkpoints/checkpoint_<n> or {_STATISTICS}")
    for file in files:
        _add_statistics(file, found)
    return [openevolve.finish(found, path, NAME)]


def _add_statistics(path: Path, found: openevolve.Found) -> None:
    lines, torn = parse_lines(path, _Iteration)
    if torn:
        found.notes.append("a torn last line of the statistics")
    for line in lines:
        result = line.iteration_result
        found.last = max(found.last, line.iteration)
        child = result.child_program
        if child is None:
            found.failures[line.iteration] = failed(
                line.iteration, 0, "no_program", result.error or "failed"
            )
            continue
        found.seconds[child.id] = finite(result.iteration_time_seconds)
        if child.id not in found.programs:
            found.programs[child.id] = openevolve.Program(
                id=child.id,
                metrics=child.metrics,
                iteration_found=line.iteration,
                parent_id=child.parent_id or "unknown",
                metadata=child.metadata,
            )
