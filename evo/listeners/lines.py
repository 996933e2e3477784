"""A line of JSON for each event, for whatever reads such files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec

from evo.logs.types import as_path


class JSONLines:
    """Appends a line of JSON for each event to a file.

    A line of a run has `kind`, `log`, `task`, `seed`, `generation`, `best_fitness` and `cost`, and
    of a child or generation its `record` as in the log, without the program and the reply; a line
    of a sweep is the event as the sweep's own file holds it.

    Args:
        path: The file, which is made unless it exists.

    Example:
        >>> events = new().with_suffix(".events.jsonl")
        >>> log = evo.run("mmd", generations=1, children=2, log=new(),
        ...               listeners=[evo.listeners.JSONLines(events)])
        >>> len(events.read_text().splitlines())  # start, two children, a generation and the end
        5
    """

    def __init__(self, path: str | Path) -> None:
        self.path = as_path("path", path)
        self._lock = threading.Lock()

    def __call__(self, event: Any) -> None:
        """Writes a line."""
        line = msgspec.json.encode(_as_line(event)) + b"\n"
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as file:
                file.write(line)


def _as_line(event: Any) -> object:
    if not hasattr(event, "kind"):  # of a sweep
        return event
    record = msgspec.to_builtins(event.record)
    for name in ("program", "reply", "reasoning", "attempts", "value"):
        record.pop(name, None)
    return {
        "kind": event.kind,
        "log": str(event.path),
        "task": event.header.task.name,
        "seed": event.header.seed,
        "generation": event.generation,
        "best_fitness": event.best_fitness,
        "cost": event.cost,
        "record": record,
    }
