"""The pulls of an allocation as rows, like the generations of one run."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from evo.logs.cost import TimeoutRule
from evo.logs.journal import read_bytes
from evo.logs.types import as_path
from evo.studies.allocation.journal import read_journal
from evo.studies.folders import ALLOCATION
from replay.logs.columns import COUNTED
from replay.logs.decode import find_logs
from replay.logs.tables import load

_MADE = ("n_ok", "n_repeats")
"""What counts children, not what they cost: a generation that was logged before has them."""


def find_journals(sources: Iterable[str]) -> list[Path]:
    """The journals of the allocations at, and in folders below, paths and patterns."""
    found: list[Path] = []
    for source in sources:
        path = Path(source).expanduser()
        for each in [path] if path.exists() else map(Path, sorted(glob.glob(str(path)))):
            if each.is_dir():
                found += sorted(each.rglob(ALLOCATION))
            elif each.name == ALLOCATION:
                found.append(each)
    return found


def load_allocation(
    folder: str | os.PathLike[str], *, timeouts: TimeoutRule = "worst_case"
) -> pd.DataFrame:
    """Reads a live allocation as one run whose generations are its pulls.

    So an allocation can stand in tables and figures beside the runs that it competes with: by
    `plots.trajectories`, `fitness_matrix` or `interval`.

    Args:
        folder: Of the allocation, or its allocation.jsonl.
        timeouts: How attempts without usage count, as for `load`.

    Returns:
        Rows of `load`, in the order in which pulls were completed: run is the folder's name, seed
        and search are those of the policy and its name, generation is the number of the pull and
        best_fitness that of all arms so far. What was spent is what the pull cost, generation 0 of
        an arm included at its first pull; what was logged before costs nothing. Row 0 is what the
        arms begin with: it costs nothing, and its best_fitness is the best of their generations 0.
        Columns arm (from 0; -1 in row 0) and pull (the generation of the arm) are added.

    Raises:
        LogError: Not the folder of an allocation, or damaged; names file and line.

    Example:
        >>> settings = {"children": 1, "log_dir": new(""), "progress": False}
        >>> made = evo.allocate_live("mmd", "ucb1", arms=2, rounds=3, **settings)
        >>> len(replay.load_allocation(settings["log_dir"]))
        4
    """
    path = as_path("folder", folder)
    path = path if path.name == ALLOCATION else path / ALLOCATION
    journal = read_journal(path)
    arms = [load(log, timeouts=timeouts, progress=False) for log in find_logs(path)]
    pulls = [0] * len(arms)
    begun = pd.concat([arm[arm["generation"] == 0] for arm in arms], ignore_index=True)
    spent = [name for name in COUNTED if name in begun]
    start = begun.iloc[[0]].assign(
        best_fitness=begun["best_fitness"].max(), arm=-1, pull=0, **dict.fromkeys(spent, 0)
    )
    rows = [start]
    for told in journal.told.values():
        pulls[told.arm] += 1
        pull, arm = pulls[told.arm], arms[told.arm]
        best = np.nan if told.best_fitness is None else told.best_fitness
        row = arm[arm["generation"] == pull].assign(best_fitness=best, arm=told.arm, pull=pull)
        if pull <= journal.header.arms[told.arm].logged:
            row[[name for name in spent if name not in _MADE]] = 0
        elif pull == 1 and journal.header.initial:
            first = arm.loc[arm["generation"] == 0, spent].to_numpy()
            row[spent] = row[spent].to_numpy() + first
        rows.append(row)
    frame = pd.concat(rows, ignore_index=True)
    header = hashlib.sha256(read_bytes(path).partition(b"\n")[0]).hexdigest()
    return frame.assign(
        run=path.parent.resolve().name,
        seed=journal.header.seed,
        search=journal.header.policy,
        header=header,
        root=header,
        forked_from="",
        repeat_of="",
        copy=-1,
        generation=np.arange(len(frame)),
        source=str(path),
    )
