"""The command `evo drive`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from evo.commands.options import Count, Seeds
from evo.commands.tables import table


def drive(
    tool: Literal["openevolve", "shinka"],
    task: str,
    *,
    calls: Annotated[Count, Parameter(required=True)] = None,
    seeds: Seeds = None,
    python: Path = Path(sys.executable),
    model: str = "offline",
    log_dir: Path = Path("logs/local"),
) -> int:
    """Runs another tool at a budget of calls, on one of our tasks, and imports what it left.

    Args:
        tool: openevolve or shinka.
        task: Name (cp, mmd, ht, ...; see `evo tasks`) or folder.
        calls: Requests to the model that each run may make.
        seeds: Such as 40:45; a run each, 40 by default.
        python: The Python in whose environment the tool is installed.
        model: One of `evo models`.
        log_dir: Folder of the logs and of the tool's own files.
    """
    from replay.drivers import drive as run

    frame = run(
        tool,
        task,
        calls=calls or 1,
        seeds=seeds or [40],
        python=python,
        model=model,
        log_dir=log_dir,
    )
    rows = []
    for run_name, part in frame.groupby("run", sort=False):
        best = part["best_fitness"].iloc[-1]
        rows.append((run_name, len(part) - 1, f"{best:.5g}", part["source"].iloc[-1]))
    print(table(rows, ("run", "generations", "best fitness", "log")))
    return 0
