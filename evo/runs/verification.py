"""Verifies a log: it is sound, its lines agree, and its task is the installed one or another."""

from __future__ import annotations

import os
from dataclasses import dataclass

from evo.logs.log import Log, read_log
from evo.logs.maintenance import faults_of
from evo.logs.missing import missing_lines
from evo.logs.records import Header
from evo.plugins import plugged_in
from evo.tasks.folder import TaskError
from evo.tasks.task import SHIPPED, load_task, names_of_shipped_tasks


@dataclass(frozen=True)
class Verification:
    """The result of `verify`.

    Attributes:
        log: The log that was read.
        faults: Every fault in words; empty if the log is sound.
        task: A sentence that states whether the log's task equals the shipped or installed one.
    """

    log: Log
    faults: tuple[str, ...]
    task: str


def verify(path: str | os.PathLike[str]) -> Verification:
    """Checks a log: its checksums, that its lines agree and none is missing, and its task's hash.

    Args:
        path: The log, `.jsonl` or `.jsonl.gz`.

    Returns:
        The log, its faults in words (none if it is sound), and whether its task equals the shipped
        one.

    Raises:
        LogError: A line is damaged; the message names file and line.

    Example:
        >>> evo.verify(path).faults
        ()
    """
    log = read_log(path)
    named = [f"{log.path}: {fault}" for fault in (*faults_of(log), *missing_lines(log))]
    if log.reader.torn:
        named.append(str(log.reader.fault("the last line is torn; `evo resume` mends that")))
    return Verification(log, tuple(named), _installed(log.header))


def _installed(header: Header) -> str:
    name = header.task.name
    ships = (SHIPPED / name / "task.toml").is_file()
    try:
        known = ships or name in plugged_in("evo.tasks", taken=names_of_shipped_tasks())
        installed = load_task(name).record if known else None
    except (TaskError, OSError, ValueError):
        installed = None
    if installed is None:
        return f"its task {name!r} is not one of the shipped tasks, nor of an installed package"
    same = "equals" if installed.hash == header.task.hash else "differs from"
    return f"its task {same} the {'shipped' if ships else 'installed'} {name}"
