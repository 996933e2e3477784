"""Imported runs as logs: kept in a folder, or for as long as this process lasts."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from evo.logs.journal import LogError, encode_line, file_name, write_once
from evo.studies.allocation.journal import AllocationHeader, ArmAdvanced, ArmAsked, ArmRecord
from evo.studies.folders import ALLOCATION
from evo.tasks.task import load_task
from replay.importers.foreign import Imported, write
from replay.logs.others import FOR_NOW, Foreign, remember, united


def keep(
    runs: Sequence[Imported],
    folder: str | os.PathLike[str],
    *,
    full: bool = False,
    task: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Writes imported runs as logs, and the choices of a bandit beside its arms.

    A log that holds the same already stays as it is.

    Args:
        runs: As `read` gives them.
        folder: Where; a name with `/` lies in a folder there.
        full: With prompts, replies and programs, where the tool kept them.
        task: Name or folder of the task that they were run on, so that the logs can be rescored
            and forked; None: unknown.

    Returns:
        The logs, in the order of the runs.

    Raises:
        LogError: A log exists and holds something else, or cannot be written.
        TaskError: There is no such task.

    Example:
        >>> evaluation = evo.Evaluation(status="ok", fitness=0.5)
        >>> born = replay.importers.born
        >>> imported = replay.importers.assemble(
        ...     path, "mine", name="run", initial=born(0, evaluation),
        ...     children=[[born(1, evaluation)]], lost=[], model=evo.Model("m"),
        ... )
        >>> len(replay.importers.keep([imported], new("")))
        1
    """
    record = None if task is None else load_task(task).record
    paths, pools = log_paths(runs, folder), dict[str, list[tuple[Path, Imported]]]()
    for run, path in zip(runs, paths, strict=True):
        write(run, path, compact=not full, task=record)
        if run.pool is not None:
            pools.setdefault(run.pool.name, []).append((path, run))
    for arms in pools.values():
        _write_choices(arms)
    return paths


def log_paths(runs: Sequence[Imported], folder: str | os.PathLike[str]) -> list[Path]:
    """Returns where `keep` writes each of the runs."""
    paths = []
    for run in runs:
        parts = [file_name(part) for part in run.name.split("/")]
        paths.append(Path(folder, *parts[:-1], f"{parts[-1]}.jsonl"))
    return paths


def _write_choices(arms: Sequence[tuple[Path, Imported]]) -> None:
    """Writes the choices of a bandit beside the logs of its arms."""
    pool = arms[0][1].pool
    assert pool is not None
    header = AllocationHeader(
        policy=pool.policy,
        reward="unknown",
        rounds=len(pool.picks),
        seed=pool.seed,
        arms=tuple(ArmRecord(log=path.name, seed=run.header.seed) for path, run in arms),
    )
    lines: list[AllocationHeader | ArmAsked | ArmAdvanced] = [header]
    for k, (arm, reward, best) in enumerate(zip(pool.picks, pool.rewards, pool.best, strict=True)):
        costs = {"calls": float(arms[arm][1].header.children)}
        completed = ArmAdvanced(
            round=k, arm=arm, reward=reward, best_fitness=best, costs=costs, digest=""
        )
        lines += [ArmAsked(round=k, arm=arm), completed]
    write_once(arms[0][0].parent / ALLOCATION, b"".join(map(encode_line, lines)))


def keep_for_now(
    runs: Sequence[Imported],
    place: Path,
    names: Sequence[str],
    *,
    full: bool = False,
    damaged: Mapping[Path, LogError] = {},
) -> Foreign:
    """Writes runs as logs to a folder that is removed when this process ends.

    Args:
        runs: The runs, from `read`.
        place: The file or folder that they were read from, which messages name.
        names: Names of their formats.
        full: With prompts, replies and programs; otherwise compact.
        damaged: What could not be read there.

    Returns:
        The logs, with where they are from.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{FOR_NOW}{names[0]}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    logs = keep(runs, folder, full=full)
    lost = united(run.lost for run in runs)
    texts = frozenset(log for log, run in zip(logs, runs, strict=True) if run.keeps_best)
    kept = Foreign(place, " and ".join(names), folder, logs, lost, texts, damaged)
    remember(kept)
    return kept
