"""The run of an engine: what identifies it, and how its process is started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evo.gate.engines.job import Engine
from evo.gate.engines.registry import EngineError, check_installed, find_engine
from evo.logs.inputs import switch
from evo.logs.records import Header, Sampling
from evo.logs.types import Fields, as_path
from evo.models.client import find_endpoint
from evo.runs.configuration import make_header
from evo.tasks.task import Task

PATIENCE = 300.0
"""Seconds without any sign of life after which an engine is taken to hang."""

HEEDED = (
    *("model", "children", "seed", "limits", "evaluation_timeout", "min_improvement", "draws"),
    *("protocol", "condition", "temperature", "top_p", "max_tokens"),
)
"""Fields of `make_header` that mean something for the run of an engine."""

_SAMPLING = ("temperature", "top_p", "max_tokens")


@dataclass(frozen=True)
class EngineRun:
    """A run whose children an engine makes.

    Attributes:
        header: What identifies it; its `source` is the engine's name.
        task: The task.
        engine: The engine.
        python: The Python in whose environment the engine is installed.
        calls: The most calls that it can be granted.
        patience: Seconds without any sign of life after which it is taken to hang.
        full_rewrites: Whether replies should be whole programs, whatever the engine's default is.
    """

    header: Header
    task: Task
    engine: Engine
    python: str
    calls: int
    patience: float = PATIENCE
    full_rewrites: bool = False


def engine_run(task: Task, fields: Fields, common: Fields, *, pulls: int) -> EngineRun:
    """Returns the run of an engine, once all was checked.

    Args:
        task: The task.
        fields: `engine`, a name; optionally `python`, `patience`, `full_rewrites`, a sampling
            (`temperature`, `top_p`, `max_tokens`) and fields of `make_header`.
        common: Fields that all runs share; those that mean nothing for an engine are left out, and
            so is their sampling, since an engine has settings of its own.
        pulls: The most generations that it can be asked for.

    Raises:
        EngineError: The engine is unknown or not installed, or cannot work on the task.
        ValueError: A field is unknown or out of range.
    """
    own = dict(fields)
    engine = find_engine(own.pop("engine"))
    python, patience = own.pop("python", sys.executable), own.pop("patience", PATIENCE)
    full_rewrites = switch("full_rewrites", own.pop("full_rewrites", False))
    if strange := own.keys() - set(HEEDED):
        raise ValueError(
            f"arm of engine {engine.name}: {sorted(strange)[0]!r} means nothing for an engine, "
            f"which has settings of its own; expected engine, python, patience, "
            f"full_rewrites, {', '.join(HEEDED)}"
        )
    record = task.record
    if record.evolves != "python" or record.language or record.asks_model or record.program_files:
        raise EngineError(f"{task.name}: engines expect a task whose programs are one Python file")
    if isinstance(patience, bool) or not isinstance(patience, int | float) or not patience > 0:
        raise ValueError(f"patience: expected seconds above 0, got {patience!r}")
    # The link that an environment's Python is must not be followed: it names the environment.
    place = str(as_path("python", python).absolute())
    check_installed(Path(place), engine)
    shared = {n: v for n, v in common.items() if n in HEEDED and n not in _SAMPLING}
    sampling = {name: own.get(name) for name in _SAMPLING}
    header = msgspec.structs.replace(
        make_header(task, **{**shared, **own}),
        source=engine.name,
        sampling=Sampling(**sampling),
        prompt_version=0,
        lost="the engine's own settings and database, which lie in the folder beside the log"
        + ("; replies are whole programs" if full_rewrites else ""),
    )
    find_endpoint(header.model)
    calls = min(pulls * header.children, 10**9)
    return EngineRun(header, task, engine, place, calls, float(patience), full_rewrites)
