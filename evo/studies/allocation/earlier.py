"""Earlier runs from which the policy of a live allocation learns, and what it learned."""

from __future__ import annotations

import functools
import glob
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from evo.logs.journal import read_bytes
from evo.logs.log import Log, read_log
from evo.policies import Draws, LearnedPolicy, PolicyClass, learns
from evo.studies.allocation.sources import Source, header_of
from evo.studies.folders import JOURNALS

if TYPE_CHECKING:
    from evo.studies.allocation.journal import AllocationHeader


class Table(Protocol):
    """Rows of `replay.load`."""

    @property
    def columns(self) -> Any:
        """Its columns."""


Earlier = (
    str
    | os.PathLike[str]
    | Log
    | Sequence[str | os.PathLike[str] | Log]
    | npt.NDArray[np.float64]
    | Table
)
"""Logs, folders or patterns, rows of `replay.load`, or a matrix (runs, generations + 1)."""


def taught(
    build: PolicyClass,
    earlier: Any,
    sources: Sequence[Source],
    rounds: int,
    known: AllocationHeader | None,
) -> tuple[PolicyClass, dict[str, Any], tuple[str, ...]]:
    """Returns a policy that has learned, what it learned, and hashes of the runs it learned from.

    Args:
        build: The policy as the user gave it.
        earlier: The runs to learn from; None takes over what the allocation's journal holds.
        sources: The arms, which must not be among the earlier runs.
        rounds: Number of rounds that are planned.
        known: Header of the journal, of an allocation that goes on.

    Raises:
        ValueError: Earlier runs for a policy that does not learn, runs of another task, model or N,
            or an arm is among them.
    """
    if not learns(build):
        if earlier is not None:
            raise ValueError(
                "earlier: expected a policy that learns from earlier runs, such as freeze_thaw or "
                "optimal_stopping"
            )
        return build, {}, ()
    if earlier is None and known is not None and known.learned:
        bound = functools.partial(_class_of(build), learned=known.learned)
        return bound, known.learned, known.learned_from
    given = getattr(build, "keywords", {})
    if earlier is None:
        if given.get("earlier") is None:
            return build, dict(given.get("learned") or {}), ()
        earlier = np.asarray(given["earlier"], dtype=np.float64)
    matrix, hashes = _matrix(earlier, sources)
    own = {name: value for name, value in given.items() if name not in ("earlier", "learned")}
    learner: PolicyClass = functools.partial(_class_of(build), **own, earlier=matrix)
    found = vars(learner((1, len(sources)), rounds=rounds, rng=Draws(0, 1)))["learned"]
    assert found is not None
    return functools.partial(_class_of(build), learned=found), found, hashes


def _class_of(build: Any) -> type[LearnedPolicy]:
    """The class of a policy that learns."""
    found: type[LearnedPolicy] = getattr(build, "func", build)
    return found


def _matrix(earlier: Any, sources: Sequence[Source]) -> tuple[Any, tuple[str, ...]]:
    """Best fitness of earlier runs, (runs, generations + 1), and a hash of each run."""
    if isinstance(earlier, np.ndarray):
        rows = [np.ascontiguousarray(row, dtype=np.float64) for row in earlier]
        return earlier, tuple(hashlib.sha256(row.tobytes()).hexdigest()[:12] for row in rows)
    stated = {_about(header_of(source)) for source in sources}
    if hasattr(earlier, "columns"):
        runs = [part for _, part in earlier.groupby("run", sort=False)]
        about = {(p["task"].iloc[0], p["model"].iloc[0], int(p["children"].iloc[0])) for p in runs}
        curves = [p.sort_values("generation")["best_fitness"].to_numpy(np.float64) for p in runs]
        hashes = tuple(str(p["header"].iloc[0]) if "header" in p else "" for p in runs)
        seeds = {int(part["seed"].iloc[0]) for part in runs if "seed" in part}
    else:
        logs = _logs(earlier)
        about = {_about(log.header) for log in logs}
        curves = [np.asarray(log.trajectory, dtype=np.float64) for log in logs]
        hashes = tuple(_hash(log) for log in logs)
        seeds = {log.header.seed for log in logs}
    if about != stated:
        raise ValueError(
            f"earlier: expected runs of the arms' task, model and N, {sorted(stated)}, got "
            f"{sorted(about)}"
        )
    if twice := sorted(seeds & {header_of(source).seed for source in sources}):
        raise ValueError(
            f"earlier: expected runs that are no arms, but they share the seeds {twice[:5]}; "
            "leave them out, or give the arms others by arm_seed="
        )
    width = max(map(len, curves))
    filled = [np.append(curve, np.full(width - len(curve), np.nan)) for curve in curves]
    return np.array(filled), hashes


def _about(header: Any) -> tuple[str, str, int]:
    """What earlier runs and arms must share."""
    return header.task.name, header.model_name, header.children


def _logs(earlier: Any) -> list[Log]:
    """Logs of files, folders and patterns."""
    found: list[Log] = []
    for each in [earlier] if isinstance(earlier, str | os.PathLike | Log) else earlier:
        if isinstance(each, Log):
            found.append(each)
            continue
        place = Path(each)
        inside = place.rglob("*.jsonl*") if place.is_dir() else map(Path, glob.glob(str(place)))
        found += [read_log(path) for path in sorted(inside) if path.name not in JOURNALS]
    if not found:
        raise ValueError(f"earlier: expected logs of earlier runs, found none in {earlier!r}")
    return found


def _hash(log: Log) -> str:
    """Hash of the header's line, as in the column `header` of `replay.load`."""
    data = read_bytes(Path(log.path))
    return hashlib.sha256(data[: data.find(b"\n")]).hexdigest()[:12]
