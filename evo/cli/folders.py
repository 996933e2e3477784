"""Which logs the paths on a command line stand for."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evo.logs.escapes import plain_text

if TYPE_CHECKING:
    from evo.logs.log import Log
    from evo.logs.records import Header

RESCORED = "evo rescore"
"""How the source of a log begins that evaluates the programs of another one again."""


def find_logs(paths: Sequence[str], *, everything: bool = False) -> list[str]:
    """Returns the logs that paths mean: logs themselves, and those in folders, or below them.

    Args:
        paths: Logs, folders, or journals of allocations, which stand for their arms.
        everything: Return all logs in and below a folder, journals of allocations and the logs of
            engines' gates included; a journal then stands for itself.
    """
    from evo.gate.log import ENGINE_LOG, without_engines
    from evo.logs.journal import ENDINGS
    from evo.studies.folders import ALLOCATION, JOURNALS

    found: list[str] = []
    for path in paths:
        place = Path(path)
        if place.name == ALLOCATION and not everything:
            place = place.parent
        if not place.is_dir():
            found.append(path)
            continue
        others = {*JOURNALS} - ({ALLOCATION} if everything else set())
        for inside in (place.rglob,) if everything else (place.glob, place.rglob):
            files = [file for file in inside("*.jsonl*") if file.name.endswith(ENDINGS)]
            kept = {*without_engines(files)}
            if everything:
                kept |= {file for file in files if file.name == ENGINE_LOG}
            logs = [str(file) for file in files if file in kept and file.name not in others]
            if logs:
                break
        else:
            raise ValueError(f"{path}: expected a log or a folder of logs, found no *.jsonl in it")
        found += sorted(logs)
    return found


def best_of(paths: Sequence[str]) -> tuple[Log, int]:
    """Returns the log whose best program is the best, and the number of logs compared.

    Logs that were rescored are left out if there are others, since their fitness may be another
    metric. Of equal ones, a log that holds its programs is preferred.

    Raises:
        ValueError: The logs are of several tasks.
        LogError: A log cannot be read, or no program was ok.
    """
    from evo.gate.log import is_gate_log
    from evo.logs.journal import LogError
    from evo.logs.log import read_log

    folders = any(Path(path).is_dir() for path in paths)
    found = [read_log(p) for p in find_logs(paths) if not (folders and is_gate_log(Path(p)))]
    if len(found) == 1:
        return found[0], 1
    found = [log for log in found if not log.header.source.startswith(RESCORED)] or found
    if len(tasks := sorted({log.header.task.name for log in found})) > 1:
        raise ValueError(
            "the logs are of several tasks, whose fitness cannot be compared "
            f"({', '.join(tasks)}): name the logs of one"
        )
    known = [log for log in found if log.initial is not None and not math.isnan(log.best_fitness)]
    if not known:
        raise LogError(f"{', '.join(paths)}: no program was ok in {len(found)} logs")
    return max(known, key=_fitness_and_texts), len(found)


def _fitness_and_texts(log: Log) -> tuple[float, bool]:
    fitness = log.best.evaluation.fitness
    return -math.inf if fitness is None else fitness, not log.header.compact


def no_program(header: Header) -> str:
    """Why a log holds no text of a program, and where there is one."""
    if header.source == "evo" or header.source.startswith(RESCORED):
        return "a compact log holds no programs; the log that it was copied from does"
    if header.compact:
        return (
            "a compact log holds no programs; `replay import auto PATH --full -o FOLDER`, with "
            f"the PATH where {header.source} wrote it, keeps those that the tool kept"
        )
    return f"the log holds no text of its best program: {header.source} kept none"


FINISHED = "finished; -T extends"


def unfinished_logs(paths: Sequence[str], generations: int | None, *, finished: bool) -> list[str]:
    """Returns the logs that can go on: those that are named, and of folders the unfinished ones.

    What a folder holds beside them is named on standard error: logs that cannot go on, and the
    runs of studies, which have verbs of their own.

    Args:
        paths: Logs, or folders of logs.
        generations: The number of generations to reach, if one was given.
        finished: Whether runs that have reached their goal count, since another one was given.

    Returns:
        The logs, none if all that the folders hold are finished.

    Raises:
        ValueError: A folder holds nothing that can go on, for other reasons.
    """

    def why_not(path: Path) -> str | None:
        log = _log_of_a_run(path)
        if isinstance(log, str):
            return log
        if log.header.source != "evo":
            return f"written by {log.header.source}, and only runs of evo can go on"
        if log.header.compact:
            return COMPACT
        if log.finished and not finished:
            return FINISHED
        if generations is not None and len(log.generations) > generations:
            return f"beyond generation {generations} already"
        return None

    return _chosen(paths, why_not, "no run to continue")


def logs_with_programs(paths: Sequence[str]) -> list[str]:
    """Returns the logs that are named, and those of folders that hold programs of their own.

    Raises:
        ValueError: A folder holds none.
    """

    def why_not(path: Path) -> str | None:
        log = _log_of_a_run(path, study=False)
        if isinstance(log, str):
            return log
        if log.header.source.startswith(RESCORED):
            return "rescored"
        return COMPACT if log.header.compact else None

    return _chosen(paths, why_not, "no log with programs")


COMPACT = "compact, without programs"


def _chosen(paths: Sequence[str], why_not: Callable[[Path], str | None], none: str) -> list[str]:
    """The logs for which there is no reason against it; what is left is named."""
    found: list[str] = []
    reasons = set[str]()
    for path in paths:
        if not Path(path).is_dir():
            found.append(path)
            continue
        left: dict[str, list[str]] = {}
        for log in find_logs([path]):
            if (reason := why_not(Path(log))) is None:
                found.append(log)
            else:
                left.setdefault(reason, []).append(log)
        reasons |= left.keys()
        for reason, logs in left.items():
            what = f"{len(logs)} logs are left as they are"
            if len(logs) == 1:
                what = f"{Path(logs[0]).name} is left as it is"
            print(plain_text(f"{path}: {what}: {reason}"), file=sys.stderr)
    if not found and reasons - {FINISHED}:
        raise ValueError(f"{', '.join(paths)}: {none}")
    return found


def _log_of_a_run(path: Path, *, study: bool = True) -> Log | str:
    """A log, or in words what else it is: the log of a gate, or with `study` a part of one."""
    from evo.gate.log import is_gate_log
    from evo.logs.log import read_log
    from evo.studies.folders import ALLOCATION, EVENTS, SELECTION

    folder = path.parent
    name = shlex.quote(str(folder))
    again = f"with the same arguments and --log-dir {name} continues"
    if study and (folder / ALLOCATION).is_file():
        return f"part of an allocation, which `evo allocate` {again}"
    if study and (folder / SELECTION).is_file():
        return f"part of a selection, which `evo select` {again}"
    if study and (folder.parent / EVENTS).is_file():
        return f"part of a sweep, which `evo resume {shlex.quote(str(folder.parent))}` continues"
    return "the log of a gate" if is_gate_log(path) else read_log(path)
