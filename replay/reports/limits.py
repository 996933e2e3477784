"""Limits of intervals of fitness that lie beyond what runs show to be possible."""

from __future__ import annotations

import math

import pandas as pd

from replay.logs.frames import possible_in

PUBLISHED = (
    "a limit above 1, the best published fitness, says only that so few runs leave the mean open "
    "upwards"
)
FAR = (
    "a limit far above the best run, which has {best:.5g}, says only that so few runs leave the "
    'mean open upwards; a task whose fitness ends at 1 states `scale = "unit"` in its task.toml, '
    "and limits then end there"
)


def notes_on_limits(cells: pd.DataFrame, generations: pd.DataFrame) -> list[str]:
    """Says how to read upper limits of fitness that no run comes near, if there are some.

    Args:
        cells: Cells of a table about runs of one task.
        generations: These runs, as rows of `replay.load`.

    Example:
        >>> from replay.reports.limits import notes_on_limits
        >>> [group] = replay.reports.groups(replay.load_tables(path))
        >>> fitness, *_ = replay.reports.sections(group)
        >>> notes_on_limits(fitness.cells, group.tables.generations)
        []
    """
    highest = cells.loc[cells["unit"] == "fitness", "high"].max()
    best, lowest = generations["best_fitness"].max(), generations["best_fitness"].min()
    published = possible_in(generations)
    if published is not None and best <= published[1]:
        return [PUBLISHED] if highest > published[1] else []
    if math.isinf(highest):  # an interval that is open for another reason says so itself
        return []
    return [FAR.format(best=best)] if highest > best + (best - lowest) else []
