"""Several tools on the same tasks: one model, one gate, one evaluator, one budget of calls.

    evo.compare_engines(["tsp_construct"], engines=["ours", "gepa"], calls=32, runs=8, ...)

`ours` is a search of this project; every other name is an engine (`evo.ENGINES`), which runs
behind a gate of its own. All start from the task's initial program and are asked for whole
programs. Runs are made seed by seed, so that any beginning of them is balanced: each tool has run
equally often, to within one run, on every task. A comparison that was interrupted goes on where
it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from evo.logs.log import Log
from evo.logs.types import as_path
from evo.plugins import MistakenType
from evo.runs.configuration import LOCAL
from evo.runs.verbs import run_many
from evo.studies.allocation.drive import drive

OURS = "ours"
"""Stands for a search of this project among the names of engines."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is compared; as a TOML file it is a protocol, whose hash stands in every log.

    Attributes:
        tasks: Names or folders.
        engines: `ours`, and names out of `evo.ENGINES`.
        calls: Calls of each run, failed ones included.
        runs: Runs of each engine on each task.
        seed: Of the first run; the next have the next seeds.
        model: Name of the model.
        children: Children of a generation (N) of `ours`; it divides `calls`.
        search: Of `ours`.
        temperature: Of every call; None: as each tool does by default.
        max_tokens: Longest reply of every call; None: as each tool does by default.
        evaluation_timeout: Seconds for the evaluation of one program, or "auto": as each run finds
            its initial program to need; None: the task's own.
        title: What the comparison asks.
        notes: What was known and decided before the first call.

    Example:
        >>> engines = ("ours", "openevolve")
        >>> comparison = evo.Comparison(tasks=("mmd",), engines=engines, calls=8, runs=2)
        >>> [engine for seed, task, engine in comparison.order()]
        ['ours', 'openevolve', 'openevolve', 'ours']
    """

    tasks: tuple[str, ...]
    engines: tuple[str, ...]
    calls: int
    runs: int
    seed: int = 40
    model: str = "offline"
    children: int = 4
    search: str = "greedy"
    temperature: float | None = None
    max_tokens: int | None = None
    evaluation_timeout: float | Literal["auto"] | None = None
    title: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("calls", 1), ("runs", 1), ("children", 1), ("seed", 0)):
            if (value := getattr(self, name)) < least:
                raise ValueError(f"{name}: expected an integer of at least {least}, got {value!r}")
        if self.calls % self.children:
            raise ValueError(
                f"children: expected a number that divides the budget of {self.calls} calls, so "
                f"that every tool makes as many, got {self.children!r}"
            )
        for name in ("tasks", "engines"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name}: expected one or more different names, got {values!r}")

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of all it states."""
        stated = json.dumps(msgspec.to_builtins(self), sort_keys=True)
        return hashlib.sha256(stated.encode()).hexdigest()

    def order(self) -> Iterator[tuple[int, str, str]]:
        """Yields seed, task and engine of each run; engines take turns at being first."""
        for k in range(self.runs):
            turned = self.engines[k % len(self.engines) :] + self.engines[: k % len(self.engines)]
            for task in self.tasks:
                for engine in turned:
                    yield self.seed + k, task, engine


@dataclass(frozen=True)
class Compared:
    """One run of a comparison that is complete, or that its tool ended before.

    Attributes:
        engine: `ours`, or the name of an engine.
        task: The task as it was named.
        seed: Of the run.
        log: Its log.
    """

    engine: str
    task: str
    seed: int
    log: Log


def load_comparison(file: str | os.PathLike[str]) -> Comparison:
    """Reads a comparison out of a TOML file.

    Raises:
        ValueError: The file is not TOML, or a field is unknown, missing or out of range.

    Example:
        >>> file = new(".toml")
        >>> keys = ["tasks = ['mmd']", "engines = ['ours']", "calls = 8", "runs = 2"]
        >>> written = file.write_text(chr(10).join(keys))
        >>> evo.load_comparison(file).calls
        8
    """
    try:
        content = tomllib.loads(as_path("file", file).read_text(encoding="utf-8"))
        return msgspec.convert(content, Comparison)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ValueError(f"{os.fspath(file)}: {error}") from None


def compare_engines(
    comparison: Comparison,
    *,
    pythons: Mapping[str, str | os.PathLike[str]] | None = None,
    log_dir: str | os.PathLike[str] = LOCAL,
    progress: bool = True,
    on_run: Callable[[Compared], object] = lambda done: None,
) -> list[Compared]:
    """Runs several tools on the same tasks with the same budget of calls.

    Args:
        comparison: What is compared.
        pythons: The Python in whose environment an engine is installed, by the engine's name; this
            one for those that are not named.
        log_dir: Gets a folder `ours` with a log of each run, and a folder of each run of an engine.
        progress: Whether to show progress bars.
        on_run: Called with each run once it is complete.

    Returns:
        All runs, in the order in which they were made. `replay.compare(replay.load(log_dir),
        by="search")` judges them: an engine is named where a search of ours is.

    Raises:
        EngineError: An engine is unknown, not installed, or made no call.
        TaskError: There is no such task.
        ValueError: `pythons` names an engine that is not compared.

    Example:
        >>> comparison = evo.Comparison(tasks=("mmd",), engines=("ours",), calls=8, runs=2)
        >>> [run.seed for run in evo.compare_engines(comparison)]  # doctest: +SKIP
        [40, 41]
    """
    if not isinstance(comparison, Comparison):
        raise MistakenType(f"expected an evo.Comparison, got {comparison!r}")
    where, folder = dict(pythons or {}), as_path("log_dir", log_dir)
    if strange := where.keys() - set(comparison.engines):
        raise ValueError(
            f"pythons: expected names out of {', '.join(comparison.engines)}, "
            f"got {sorted(strange)[0]!r}"
        )
    asked = ("temperature", "max_tokens", "evaluation_timeout")
    fields = {name: getattr(comparison, name) for name in asked}
    settings: dict[str, Any] = {n: value for n, value in fields.items() if value is not None}
    settings["protocol"] = comparison.digest
    done = []
    for seed, task, engine in comparison.order():
        condition = {**settings, "condition": engine}
        if engine == OURS:
            log = _ours(comparison, task, seed, folder, progress, condition)
        else:
            python = where.get(engine, sys.executable)
            (log,) = drive(
                engine, task, calls=comparison.calls, python=python, seeds=[seed],
                model=comparison.model, log_dir=log_dir, progress=progress, full_rewrites=True,
                **condition,
            )  # fmt: skip
        done.append(Compared(engine, task, seed, log))
        on_run(done[-1])
    return done


def _ours(
    comparison: Comparison,
    task: str,
    seed: int,
    folder: Path,
    progress: bool,
    settings: Mapping[str, Any],
) -> Log:
    """Makes a run of this project's own search, or goes on with it."""
    (log,) = run_many(
        task, model=comparison.model, generations=comparison.calls // comparison.children,
        children=comparison.children, search=comparison.search, seeds=[seed],
        log_dir=folder / OURS, resume=True, max_concurrent=1, progress=progress, **settings,
    )  # fmt: skip
    return log
