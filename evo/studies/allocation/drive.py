"""An engine alone under a budget of calls: an allocation over one arm."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evo.gate.engines.registry import EngineError, find_engine
from evo.logs.inputs import at_least
from evo.logs.journal import file_name
from evo.logs.log import Log, read_log
from evo.logs.records import Model
from evo.logs.types import as_path
from evo.runs.configuration import LOCAL, seeds_of
from evo.studies.allocation.driver import allocate_live
from evo.studies.allocation.journal import read_journal
from evo.studies.folders import ALLOCATION
from evo.tasks.task import Task, load_task


def drive(
    engine: str,
    task: str | os.PathLike[str] | Task,
    *,
    calls: int,
    python: str | os.PathLike[str] = sys.executable,
    seeds: Sequence[int] = (40,),
    model: str | Model = "offline",
    log_dir: str | os.PathLike[str] = LOCAL,
    progress: bool = True,
    **settings: Any,
) -> list[Log]:
    """Runs another tool at a budget of calls, on one of our tasks.

    Each call is a generation of one child. Called again with the same arguments, it goes on where
    it was interrupted, as far as the engine can, and runs that are complete are kept.

    Args:
        engine: Name out of `evo.ENGINES`, such as openevolve or shinka.
        task: Name, folder or Task, of programs in Python that an evaluator scores.
        calls: Requests to the model that each run may make, failed ones included, at least 1.
        python: The Python in whose environment the engine is installed.
        seeds: One run each.
        model: Name in the registry, or a Model; the engine knows it by its name.
        log_dir: Gets for each run a folder with its log and the engine's own files.
        progress: Whether to show progress bars.
        **settings: Further fields of the arm, such as `temperature`, `max_tokens`,
            `full_rewrites` or `evaluation_timeout`; see `evo.gate.engines.runs.engine_run`.

    Returns:
        The log of each run; its header's `source` is the engine's name.

    Raises:
        EngineError: The engine is unknown, not installed there, or ended before its first call.
        TaskError: There is no such task.

    Example:
        >>> logs = evo.drive("openevolve", "mmd", calls=2, log_dir=new(""), progress=False)
        >>> [(log.header.source, len(log.children)) for log in logs]
        [('openevolve', 2)]
    """
    known, loaded, place = find_engine(engine), load_task(task), as_path("log_dir", log_dir)
    calls, numbers = at_least("calls", calls, 1), seeds_of(seeds)
    logs = []
    for seed in numbers:
        folder = place / f"{known.name}-{file_name(loaded.name)}-s{seed}"
        log = _complete(folder, calls)
        if log is None:
            arm = {"engine": known.name, "python": python, "seed": seed, **settings}
            allocation = allocate_live(
                loaded, "round_robin", arms=[arm], rounds=calls, children=1, model=model,
                log_dir=folder, progress=progress,
            )  # fmt: skip
            (log,) = allocation.arms
        if not log.outcomes and log.ends:
            words = f"{known.package or known.name} made no call: {log.ends[-1].message}"
            raise EngineError(f"{words}; its output is in {folder / 'arm-00' / 'output.txt'}")
        logs.append(log)
    return logs


def _complete(folder: Path, calls: int) -> Log | None:
    """Returns the log of a run that is there already, with all its calls."""
    if not (folder / ALLOCATION).exists():
        return None
    journal = read_journal(folder / ALLOCATION)
    whole = journal.header.rounds == calls == len(journal.told)
    return read_log(folder / journal.header.arms[0].log) if whole else None
