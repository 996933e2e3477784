"""The runs of a sweep as rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

from evo.logs.types import as_path
from evo.policies.rewards import has_unit_scale
from evo.runs.handle import read_begun
from evo.runs.settings import Goal
from evo.studies.allocation.journal import read_journal
from evo.studies.folders import ALLOCATION
from evo.studies.sweep.design import read_design
from evo.studies.sweep.events import EventLog, RunKey, SweepState
from evo.studies.sweep.fields import GENERATIONS, ROUNDS, canonical
from evo.studies.sweep.summary import measure

CHILDREN = 16
"""The default N, as in `evo.run`."""

FIGURES = (
    *("fitness", "initial_fitness", "n_calls", "n_ok", "prompt_tokens", "completion_tokens"),
    *("flops", "dollars", "seconds"),
)
"""Columns of a run's figures, see `evo.studies.sweep.summary.measure`."""

OWN = ("generations", "children", "model", "task")  # of every row, swept or not


def load_sweep(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Reads a sweep, as far as it has come: one row per configuration and seed.

    Args:
        folder: Of the sweep, or an `evo.Sweep`.

    Returns:
        Columns: configuration (a short hash), trial (the first that proposed it), seed, task,
        model, status (completed, failed, cancelled or pending), done (generations so far),
        generations (T; an allocation's rounds), children; each field of the space by its own name,
        NaN or None where its condition does not hold; `FIGURES` where the configuration's own T,
        target or patience ends the run, NaN unless completed, and `tokens`; unit_scale (whether the
        task's fitness lies in [0, 1]); log (path) and error.
        `attrs["fields"]` names the fields of the space, `attrs["folder"]` the folder.

    Raises:
        LogError: Not the folder of a sweep, or damaged.

    Example:
        >>> settings = {"base": {"generations": 1}, "log_dir": new(""), "progress": False}
        >>> made = evo.sweep({"children": [1, 2]}, task="mmd", seeds=[1], **settings)
        >>> replay.load_sweep(made)["children"].tolist()
        [1, 2]
    """
    place = as_path("folder", folder)
    design, events = read_design(place), EventLog(place)
    state = events.state
    first = {hash_: trial for trial, (_, hash_) in reversed([*enumerate(state.trials)])}
    fields = sorted(dimension.name for dimension in design.parsed_space().dimensions)
    units = {name: has_unit_scale(task.record) for name, task in design.tasks.items()}
    others, rows = [name for name in fields if name not in OWN], []
    for hash_, values in state.configurations.items():
        known = {canonical(name): value for name, value in {**design.base, **values}.items()}
        pool, models = known.get("policy"), known.get("models") or [known.get("model", "offline")]
        T = int(known.get("rounds", ROUNDS) if pool else known.get("generations", GENERATIONS))
        goal = Goal(T, known.get("target"), known.get("patience"))
        for seed in design.seeds:
            row = {
                "configuration": hash_, "trial": first[hash_], "seed": seed, "generations": T,
                "task": known["task"], "model": "+".join(map(_model_name, models)),
                "children": known.get("children", CHILDREN), "unit_scale": units[known["task"]],
                **{name: _shown(values.get(name)) for name in others},
            }  # fmt: skip
            rows.append(row | _run(place, state, (hash_, seed), goal))
    columns = ["configuration", "trial", "seed", "task", "model", "status", "done"]
    columns += ["generations", "children", *others, *FIGURES, "unit_scale", "log", "error"]
    frame = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(FIGURES, float))
    tokens = frame["prompt_tokens"] + frame["completion_tokens"]
    frame.insert(columns.index("flops"), "tokens", tokens)
    frame.attrs = {"fields": fields, "folder": str(place)}
    return frame


def _model_name(model: Any) -> str:
    """Name of a model that a sweep's design gives by name, or with its fields."""
    own = model.get("model", model) if isinstance(model, dict) else model
    return str(own["name"] if isinstance(own, dict) else own)


def _run(place: Path, state: SweepState, run: RunKey, goal: Goal) -> dict[str, object]:
    """What is known of one run of a sweep."""
    path = place / state.logs[run] if run in state.logs else None
    log = read_begun(path) if path is not None and path.is_file() else None
    rest = "cancelled" if state.ended == "stopped" else "pending"
    status = "failed" if run in state.failed else rest
    row: dict[str, object] = {"status": status, "done": 0, "error": state.failed.get(run)}
    if log is None:
        if (pool := state.completed.get(run)) is not None and path is not None and path.is_dir():
            row |= {"status": "completed", "log": str(path), "error": None, **pool.data}
            row["done"] = len(read_journal(path / ALLOCATION).told)
        return row
    header, end = log.header, goal.end_in(log)
    row |= {"task": header.task.name, "model": header.model_name, "children": header.children}
    row["log"] = str(log.path)
    if end is None:
        return row | {"done": len(log.generations)}
    return row | {"status": "completed", "done": end, "error": None, **measure(log, end)}


def _shown(value: object) -> object:
    """A value as a cell: of what has a name, that and its parameters."""
    if isinstance(value, dict) and "name" in value:
        return " ".join([value["name"], *(f"{k}={v}" for k, v in value.items() if k != "name")])
    return str(value) if isinstance(value, dict | list) else value
