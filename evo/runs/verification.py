"""Verifies a log: it is sound, its lines agree, and its task is the installed one or another."""

from __future__ import annotations

import os
from dataclasses import dataclass

from evo.logs.log import Log, read_log
from evo.logs.maintenance import faults_of
from evo.logs.records import Header
from evo.tasks.folder import TaskError
from evo.tasks.task import SHIPPED, load_task


@dataclass(frozen=True)
class Verification:
    """What `verify` found, in words: `faults`, and whether its task is the installed one."""

    log: Log
    faults: tuple[str, ...]
    task: str


def verify(path: str | os.PathLike[str]) -> Verification:
    """Checks a log's checksums, that its lines agree with each other, and its task's hash.

    Raises:
        LogError: A line is damaged; names file and line.
    """
    log = read_log(path)
    named = [f"{log.path}: {fault}" for fault in faults_of(log)]
    if log.reader.torn:
        named.append(str(log.reader.fault("the last line is torn; `evo resume` mends that")))
    return Verification(log, tuple(named), _installed(log.header))


def _installed(header: Header) -> str:
    name = header.task.name
    try:
        installed = load_task(name).record if (SHIPPED / name / "task.toml").is_file() else None
    except (TaskError, OSError, ValueError):
        installed = None
    if installed is None:
        return f"its task {name!r} is not one of the shipped tasks"
    same = "equals" if installed.hash == header.task.hash else "differs from"
    return f"its task {same} the shipped {name}"
