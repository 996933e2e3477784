"""Other tools at a stated budget, as a table of their runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pandas as pd

import evo
from evo.logs.records import Model
from evo.tasks.task import Task


def drive(
    tool: str,
    task: str | os.PathLike[str] | Task,
    *,
    calls: int,
    python: str | os.PathLike[str] = sys.executable,
    seeds: Sequence[int] = (40,),
    model: str | Model = "offline",
    log_dir: str | os.PathLike[str] = "logs/local",
) -> pd.DataFrame:
    """Runs another tool by `evo.drive` and returns its runs as `replay.load` returns ours.

    Args:
        tool: Name out of `evo.ENGINES`, such as openevolve or shinka.
        task: Name, folder or Task, of programs in Python that an evaluator scores.
        calls: Requests to the model that each run may make, failed ones included, at least 1.
        python: The Python in whose environment the tool is installed.
        seeds: One run each.
        model: Name in the registry, or a Model; the tool knows it by its name.
        log_dir: Gets for each run a folder with its log and the tool's own files.

    Returns:
        Rows of `replay.load`; the tool's name is in the column `search`.

    Raises:
        EngineError: The tool is unknown, not installed there, or ended before its first call.
        TaskError: There is no such task.

    Example:
        >>> rows = replay.drive("openevolve", "mmd", calls=2, log_dir=new(""))
        >>> rows["search"].unique().tolist(), rows["generation"].tolist()
        (['openevolve'], [0, 1, 2])
    """
    from replay.logs import tables

    logs = evo.drive(
        tool, task, calls=calls, python=python, seeds=seeds, model=model, log_dir=log_dir
    )
    return tables.load(logs, progress=False)
