"""Columns of a table that count from the beginning of a run, such as all tokens so far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from replay.importers import foreign
from replay.importers.cells import SEVERAL_RUNS, SO_FAR, Row
from replay.importers.reading import LogFormatError

Rows = Sequence[tuple[str, Row]]
"""The rows of a run, each with its place in the file."""

_LEAST = 5
"""Steps of which all rise, by chance one time in 720, before a column looks like a counter."""
_GROWN = 2.0
"""How often the first number fits into the last, at least, in a run of such a column."""


def taken_apart(rows: Rows, counter: str) -> list[tuple[str, Row]]:
    """Returns the rows of a run, each with its own share of what a column has counted so far.

    A row without a number has none of its own, and what was counted there is that of the next.

    Raises:
        LogFormatError: The numbers fall from one generation to a later one.
    """
    each, own = SO_FAR[counter], dict[int, float]()
    before, at = 0.0, "the beginning"
    for number, value in _counted(rows, counter):
        where = rows[number][0]
        if value < before:
            raise LogFormatError(
                f"{where}: expected a number of at least {before:g} in column {counter!r}, which "
                f"counts from the beginning of a run, as in {at}, got {value:g}; if it is of the "
                f"call alone, name it {each!r}; {SEVERAL_RUNS}"
            )
        own[number] = value - before
        before, at = value, where
    return [(where, {**row, each: own.get(k)}) for k, (where, row) in enumerate(rows)]


def _counted(rows: Rows, counter: str) -> list[tuple[int, float]]:
    """Which rows have a number, and it, in the order in which they came about."""
    known = [
        (_place(row), value, number)
        for number, (_, row) in enumerate(rows)
        if (value := foreign.finite(row.get(counter))) is not None
    ]
    return [(number, value) for _, value, number in sorted(known)]


def _place(row: Row) -> float:
    place = foreign.finite(row.get("generation", row.get("order")))
    return math.inf if place is None else place


def rising(runs: Sequence[Rows], ours: Mapping[str, Sequence[str]]) -> str:
    """Names columns that are taken for those of the calls and look like counters; else empty.

    Prompts alone may grow from call to call, as where they hold all that came before: they are
    named beside another column only, unless there is none.

    Args:
        runs: The rows of each run.
        ours: Our names of the columns with those of the file.
    """
    there = [name for name in SO_FAR.values() if name in ours and f"{name}_so_far" not in ours]
    found = [name for name in there if _rises(runs, name)]
    of_prompts = {"prompt_tokens", "cached_tokens"}
    if not found or ({*found} <= of_prompts and not {*there} <= of_prompts):
        return ""
    theirs = {f"{name}_so_far": ours[name][0] for name in found}
    named = ",".join(f"{name}={of}" for name, of in theirs.items())
    return (
        f"the numbers of {', '.join(theirs.values())} only ever rise over a run, as if they "
        "counted from its beginning; they are taken for those of each call alone. If they count "
        f"all calls so far, say so: columns={theirs} of replay.importers.load, or `--columns "
        f"{named}` of `replay import table`"
    )


def _rises(runs: Sequence[Rows], name: str) -> bool:
    steps = 0
    for rows in runs:
        known = [(_place(row), foreign.finite(row.get(name))) for _, row in rows]
        values = [value for _, value in sorted(known, key=lambda e: e[0]) if value is not None]
        if any(after <= before for before, after in itertools.pairwise(values)):
            return False
        if len(values) > 2 and values[-1] < _GROWN * values[0]:
            return False
        steps += max(len(values) - 1, 0)
    return steps >= _LEAST
