"""The readers of logs, which with this module know the runs of other tools, too."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

from replay import importers
from replay.logs import decode
from replay.logs.frames import ReplayWarning
from replay.logs.tables import attempts, children, instances, load, load_tables

__all__ = ["attempts", "children", "instances", "load", "load_tables"]


def as_logs(path: Path) -> list[Path]:
    """Runs of another tool as compact logs in a temporary folder; none if no importer knows them.

    Warns:
        ReplayWarning: What was read, and what the tool did not keep.
    """
    name = importers.kind(path)
    if name == importers.OWN:
        return []
    runs = importers.read(path)
    lost = "; ".join(sorted({run.lost for run in runs if run.lost}))
    many = f"{len(runs)} run{'s' if len(runs) != 1 else ''} of {name}"
    warnings.warn(
        f"{path}: read {many}" + (f", which lack: {lost}" if lost else ""),
        ReplayWarning,
        stacklevel=6,
    )
    return importers.keep(runs, tempfile.mkdtemp(prefix=f"{name}-"))


decode.FOREIGN.append(as_logs)
