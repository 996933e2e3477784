"""What the arms of an allocation are made from: configurations, logs and engines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import SupportsIndex

import msgspec

from evo.gate.engines.runs import EngineRun, engine_run
from evo.logs.inputs import at_least
from evo.logs.log import Log, read_log
from evo.logs.maintenance import require_whole
from evo.logs.records import Header, Model, TaskRecord
from evo.logs.types import Fields, JsonObject
from evo.models.critics import Critic
from evo.models.registry import Given, find_model, own_models
from evo.plugins import MistakenType
from evo.runs.configuration import make_header
from evo.runs.options import ConfigurationOptions
from evo.runs.signatures import check_options
from evo.searches.registry import known_search
from evo.studies.allocation.journal import ArmRecord
from evo.tasks.task import Task, load_task

ArmSource = int | str | os.PathLike[str] | Fields
"""An arm: a seed, a log to go on from, or fields of `make_header` that differ for it."""

Source = Header | Log | EngineRun
"""An arm once its arguments were checked."""


def arm_sources(
    task: Task,
    arms: int | Sequence[ArmSource],
    arm_seed: int,
    common: JsonObject,
    *,
    rounds: int,
) -> list[Source]:
    """Returns each arm's configuration, the log that it continues, or its engine's run."""
    if isinstance(arms, SupportsIndex) and not isinstance(arms, Iterable):
        arms = range(arm_seed, arm_seed + at_least("arms (K)", arms, 1))
    if not isinstance(arms, Iterable) or isinstance(arms, str | bytes | Mapping):
        raise MistakenType(
            "arms: expected a number K, or a list of seeds, logs or configurations, such as "
            f'[{{"search": "greedy"}}, {{"search": "tree"}}], got {arms!r:.80}'
        )
    arms = list(arms)
    if not arms:
        raise ValueError("arms: expected at least one")
    sources: list[Source] = []
    for k, arm in enumerate(arms):
        if isinstance(arm, Log | str | os.PathLike):
            sources.append(_arm_log(arm, task, common, sources))
        elif isinstance(arm, Mapping):
            fields = dict(arm)
            of_arm = load_task(fields.pop("task", task))
            if _judged(of_arm.record) != _judged(task.record):
                raise ValueError(f"arm {k}: its task may differ from {task.name} in the statement")
            if "engine" in fields:
                own = {"seed": arm_seed + k, **fields}
                sources.append(engine_run(of_arm, own, common, pulls=rounds))
                continue
            check_options(ConfigurationOptions, fields)
            sources.append(make_header(of_arm, **{"seed": arm_seed + k, **common, **fields}))
        else:
            sources.append(make_header(task, seed=arm, **common))
    _check_each_once(sources)
    return sources


def _arm_log(
    given: Log | str | os.PathLike[str], task: Task, common: JsonObject, others: Sequence[Source]
) -> Log:
    """Returns the log that an arm continues, with the search and the models to go on with."""
    log = read_log(given)
    if _judged(log.header.task) != _judged(task.record):
        raise ValueError(f"{log.path}: a log of another task or version than {task.name}")
    if any(isinstance(each, Log) and each.path == log.path for each in others):
        raise ValueError(f"{log.path}: expected each log as one arm, got it as two or more")
    require_whole(log)
    header = own_models(log.header, log.path, _asked_there(log.header, common))
    log.header = header if header.compact else known_search(header)
    return log


def _check_each_once(sources: Sequence[Source]) -> None:
    """Raises where two arms would be the same run."""
    runs = [None if isinstance(each, Log) else header_of(each) for each in sources]
    for k, run in enumerate(runs):
        if run is not None and (first := runs.index(run)) < k:
            raise ValueError(
                f"arms: arm {first} and arm {k} have the same configuration and seed, {run.seed}; "
                "give each arm a seed or a configuration of its own"
            )


def _asked_there(header: Header, common: JsonObject) -> list[Given]:
    """Returns those of the models of an allocation that the run of a log asks, by their names."""
    listed = [common.get("model"), *(common.get("models") or ()), common.get("critic")]
    found = [each.record.model if isinstance(each, Critic) else each for each in listed if each]
    named = [each for each in found if isinstance(each, Model) or callable(each)]
    beside = [each for each in (header.critic, header.asks) if each is not None]
    used = {each.model.name for each in (header, *header.models, *beside)}
    return [each for each in named if find_model(each).name in used]


def _judged(task: TaskRecord) -> TaskRecord:
    """Returns all of a task but its wording in the prompt: where it is equal, fitness compares."""
    files = {name: text for name, text in task.files.items() if name != "task.toml"}
    return msgspec.structs.replace(task, name="", hash="", statement="", files=files)


def header_of(source: Source) -> Header:
    """Returns what identifies the run of an arm."""
    return source if isinstance(source, Header) else source.header


def arm_record(folder: Path, k: int, source: Source) -> ArmRecord:
    """Returns an arm as the journal in a folder names it."""
    if not isinstance(source, Log):
        return ArmRecord(log=f"arm-{k:02}.jsonl", seed=header_of(source).seed)
    place = os.path.relpath(source.path, folder)
    return ArmRecord(log=place, seed=source.header.seed, logged=len(source.generations))
