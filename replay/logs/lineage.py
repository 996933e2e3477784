"""Descent within one run: what a child rewrote, and what the improving rewrites changed."""

from __future__ import annotations

import difflib
import itertools
import math

import numpy as np
import pandas as pd

from evo.logs.log import Log
from evo.searches.base import Place as Place  # noqa: PLC0414
from replay.logs.given import check_loaded

MOST_LINES = 5_000
"""Programs with more lines are not compared: the time grows with the square of their length."""


def parent_of(log: Log, generation: int) -> Place | None:
    """What the children of a generation, from 1 on, rewrote; None where a log does not say."""
    if generation < 1 or log.header.source != "evo":
        return None
    if generation == 1:
        return (0, 0)
    before = log.generations[generation - 2 : generation - 1]
    return before[0].best if before else None


def first_parents(log: Log) -> dict[Place, Place | None]:
    """What each child rewrote, the first one after a crossover; None where a log does not say."""
    return {
        (o.generation, o.index): o.parents[0] if o.parents else parent_of(log, o.generation)
        for o in log.outcomes
    }


def fitness_by_place(log: Log) -> dict[Place, float | None]:
    """The fitness of every program, the initial one included; None where there is none."""
    found = {(o.generation, o.index): o.evaluation.fitness for o in log.outcomes}
    return {**found, (0, 0): log.initial.evaluation.fitness if log.initial else None}


def program_of(log: Log, place: Place) -> str | None:
    """A program's text; None where the log has none, KeyError where there is no such child."""
    if place == (0, 0):
        return log.header.task.files.get(log.header.task.program_file)
    return log.child(*place).program


def compare_programs(before: str, after: str, *, context: int = 3) -> list[str]:
    """Lines of a unified diff without its file names; a ValueError if a text is too long."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        raise ValueError(
            f"programs of {len(old):,} and {len(new):,} lines are too long to compare "
            f"(at most {MOST_LINES:,})"
        )
    return list(difflib.unified_diff(old, new, n=context, lineterm=""))[2:]


def lineage(log: Log) -> pd.DataFrame:
    """Returns the line from the initial program to the best: the children that became parents.

    Args:
        log: A run.

    Returns:
        One row per program, in order, with columns: generation, index, fitness (NaN while nothing
        is ok), gain over the one before, calls made since then, added and removed lines (NaN
        without programs), and program.

    Example:
        >>> replay.lineage(log)["generation"].tolist()[0]
        0
    """
    check_loaded("lineage", log, "evo.read_log")
    steps: list[Place] = [(0, 0)]
    steps += [each.best for each in log.generations if each.improved]
    fitness = fitness_by_place(log)
    table = pd.DataFrame(steps, columns=["generation", "index"])
    table["fitness"] = np.array([fitness[place] for place in steps], dtype=np.float64)
    table["gain"] = table["fitness"].diff()
    table["calls"] = table["generation"].diff().fillna(0).astype(int) * log.header.children
    programs = [program_of(log, place) for place in steps]
    changes = [(math.nan, math.nan), *itertools.starmap(_changed, itertools.pairwise(programs))]
    table[["added", "removed"]] = np.array(changes, dtype=np.float64)
    table["program"] = pd.Series(programs, dtype=object)
    return table


def _changed(before: str | None, after: str | None) -> tuple[float, float]:
    """Lines added and removed; NaN where a program is unknown."""
    if before is None or after is None:
        return math.nan, math.nan
    marks = [line[:1] for line in compare_programs(before, after, context=0)]
    return marks.count("+"), marks.count("-")
