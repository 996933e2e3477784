"""Descent within one run: what a child rewrote, and what the improving rewrites changed."""

from __future__ import annotations

import difflib
import math

import pandas as pd

from evo.log import Log

Place = tuple[int, int]
"""Generation and index of a child; (0, 0) is the initial program."""

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
    """
    steps: list[Place] = [(0, 0)]
    steps += [each.best for each in log.generations if each.improved]
    fitness = {(o.generation, o.index): o.evaluation.fitness for o in log.outcomes}
    fitness[0, 0] = log.initial.evaluation.fitness if log.initial else None
    rows = []
    before: tuple[Place, float, str | None] | None = None
    for place in steps:
        value = fitness[place]
        program = program_of(log, place)
        known = math.nan if value is None else value
        changed = (math.nan, math.nan)
        if before is not None and before[2] is not None and program is not None:
            lines = compare_programs(before[2], program, context=0)
            changed = (
                sum(line.startswith("+") for line in lines),
                sum(line.startswith("-") for line in lines),
            )
        rows.append(
            {
                "generation": place[0],
                "index": place[1],
                "fitness": known,
                "gain": known - before[1] if before else math.nan,
                "calls": (place[0] - before[0][0]) * log.header.children if before else 0,
                "added": changed[0],
                "removed": changed[1],
                "program": program,
            }
        )
        before = place, known, program
    return pd.DataFrame(rows)
