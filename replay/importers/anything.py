"""The readers of logs, which with this module know the runs of other tools, too."""

from __future__ import annotations

from pathlib import Path

from replay import importers
from replay.logs import decode
from replay.logs.decode import Foreign
from replay.logs.tables import attempts, children, instances, load, load_tables

__all__ = ["attempts", "children", "instances", "load", "load_tables"]


def as_logs(path: Path) -> Foreign | None:
    """Runs of another tool as compact logs in a temporary folder; None if none is recognised."""
    names = importers.kinds(path)
    if not names:
        return None
    runs = importers.read(path)
    return importers.keep_for_now(runs, path, names) if runs else None


decode.FOREIGN.append(as_logs)
