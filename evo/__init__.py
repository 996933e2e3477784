"""LLM-guided evolutionary search: run it live, log everything."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Evaluation": "evo.records",
    "Handle": "evo.handle",
    "Limits": "evo.records",
    "Log": "evo.log",
    "LogError": "evo.log",
    "Model": "evo.records",
    "SELECTORS": "evo.selectors",
    "Selection": "evo.selectors.race",
    "Settings": "evo.configuration",
    "Task": "evo.task",
    "TaskError": "evo.folder",
    "Allocation": "evo.live",
    "allocate_live": "evo.live",
    "ConcurrencyPlan": "evo.concurrency",
    "plan_concurrency": "evo.concurrency",
    "compact": "evo.upkeep",
    "evaluate": "evo.runs.verbs",
    "instance_matrix": "evo.selection",
    "load_task": "evo.task",
    "read_log": "evo.log",
    "rerun": "evo.runs.playback",
    "rescore": "evo.runs.playback",
    "resume": "evo.runs.verbs",
    "resume_many": "evo.runs.verbs",
    "run": "evo.runs.verbs",
    "run_grid": "evo.runs.verbs",
    "run_many": "evo.runs.verbs",
    "select_best": "evo.selection",
    "start": "evo.runs.verbs",
    "Sweep": "evo.sweeping.summary",
    "start_selection": "evo.selection",
    "start_sweep": "evo.sweeping.driver",
    "sweep": "evo.sweeping.driver",
    "start_allocation": "evo.live",
    "stop": "evo.upkeep",
    "verify": "evo.upkeep",
}

__all__ = [
    "SELECTORS",
    "Allocation",
    "ConcurrencyPlan",
    "Evaluation",
    "Handle",
    "Limits",
    "Log",
    "LogError",
    "Model",
    "Selection",
    "Settings",
    "Sweep",
    "Task",
    "TaskError",
    "allocate_live",
    "compact",
    "evaluate",
    "instance_matrix",
    "load_task",
    "plan_concurrency",
    "read_log",
    "rerun",
    "rescore",
    "resume",
    "resume_many",
    "run",
    "run_grid",
    "run_many",
    "select_best",
    "start",
    "start_allocation",
    "start_selection",
    "start_sweep",
    "stop",
    "sweep",
    "verify",
]

if TYPE_CHECKING:
    from evo.concurrency import ConcurrencyPlan, plan_concurrency
    from evo.configuration import Settings
    from evo.folder import TaskError
    from evo.handle import Handle
    from evo.journal import LogError
    from evo.live import Allocation, allocate_live, start_allocation
    from evo.log import Log, read_log
    from evo.records import Evaluation, Limits, Model
    from evo.runs.playback import rerun, rescore
    from evo.runs.verbs import (
        evaluate,
        resume,
        resume_many,
        run,
        run_grid,
        run_many,
        start,
    )
    from evo.selection import instance_matrix, select_best, start_selection
    from evo.selectors import SELECTORS
    from evo.selectors.race import Selection
    from evo.sweeping.driver import start_sweep, sweep
    from evo.sweeping.summary import Sweep
    from evo.task import Task, load_task
    from evo.upkeep import compact, stop, verify


def __getattr__(name: str) -> Any:
    """Loads public names where they are first used, so that `import evo` stays quick."""
    if name == "parallel":
        return importlib.import_module("evo.parallel")
    if name not in _HOMES:
        raise AttributeError(f"module 'evo' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
