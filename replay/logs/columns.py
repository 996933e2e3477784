"""What each column of a table says: a setting of a run, a measure of it, or where it is from.

Whoever asks which settings tell runs apart asks here, and every column of every table stands here:
`tests/replay/logs/test_columns.py` reads logs, sweeps and allocations and looks.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from typing import Any

import pandas as pd

from evo.logs.cost import UNITS

FAMILY = ("task", "task_version", "model", "children", "search", "settings")
"""Settings in which runs must agree before their fitness can be taken together, in the order in
which they are asked about: a version is one of a task, and settings are those of a search."""

NESTED = {"task_version": ("task",), "settings": ("task", "task_version", "model", "search")}
"""Columns of FAMILY that say something only where they vary among rows that agree in others."""

SETTINGS = frozenset({
    *FAMILY, "protocol", "condition", "configuration", "tool", "is_llm", "generations", "draws",
    "asked_model", "arm",
})  # fmt: skip
"""Columns that say what a run, or a row of it, was made with."""

REPORTED = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""Columns of tokens that the endpoint reported, summed; what it left out is not in them."""

SPENT = (
    *("n_attempts", "n_without_usage", *REPORTED, "tokens", "flops", "dollars"),
    *("call_seconds", "evaluation_seconds"),
)
"""What calls cost; summed over the calls of a row."""

COUNTED = ("n_calls", "n_ok", "n_repeats", *SPENT, "seconds")
"""What is summed over a generation, generation 0 included."""

MEASURES = frozenset({
    *COUNTED, "best_fitness", "generation_best", "fitness", "parent_fitness",
    "initial_fitness", "fitness_sd", "objective", "strict_fitness", "score", "gain", "fresh_gain",
    "improved", "status", "error", "notes", "finish_reason", "http_status", "latency", "lost",
    "n_tests", "n_accepted", "false_acceptances", "done", "stages", "audit_status",
    "audit_fitness", "kept_out", "ending", "noise",
})  # fmt: skip
"""Columns that say how a run went."""

ORIGINS = frozenset({
    "run", "seed", "source", "log", "path", "hash", "id", "header", "root", "copy", "forked_from",
    "rescored", "mixed", "repeat_of", "compact", "trial", "generation", "index", "instance",
    "attempt", "pull", "unit_scale", "parents", "operator", "edits", "island", "inherited",
    "repeats",
})  # fmt: skip
"""Columns that say which run, and which row of it, this is."""


def settings_that_vary(frame: pd.DataFrame, *, beside: Container[str] = ()) -> list[str]:
    """Returns the columns that tell configurations apart: settings that take several values.

    A column that is none of this project's, such as one that a user added, is a setting.

    Args:
        frame: Rows of any table of `replay`.
        beside: Columns that are used otherwise and are left out.

    Returns:
        Their names, in the order of the frame.

    Example:
        >>> from replay.logs.columns import settings_that_vary
        >>> settings_that_vary(pd.DataFrame({"run": ["a", "b"], "children": [4, 8], "seed": 0}))
        ['children']
    """
    others = {*MEASURES, *ORIGINS, *UNITS}  # users add units of cost
    names = [name for name in map(str, frame) if name not in others and name not in beside]
    return [name for name in names if varies(frame, name).any()]


def varies(frame: pd.DataFrame, column: str) -> pd.Series[bool]:
    """For each row whether it must be told from others by a column, (rows,).

    A column of `NESTED` tells rows apart only if it takes several values among the rows that agree
    in what it belongs to; a value of these that is not known contradicts none.

    Example:
        >>> from replay.logs.columns import varies
        >>> runs = pd.DataFrame({"task": ["t", "t", "u"], "task_version": ["1", "2", "3"]})
        >>> varies(runs, "task_version").tolist()
        [True, True, False]
    """
    if column not in NESTED:
        return pd.Series(frame[column].nunique(dropna=False) > 1, index=frame.index)
    known = frame[column].astype(object)
    if column == "task_version":
        known = known.where(known != "")
    within = [frame[name].astype(object) for name in NESTED[column] if name in frame]
    if not within or known.nunique() < 2:
        return pd.Series(known.nunique() > 1, index=frame.index)
    return known.groupby(within, dropna=False, sort=False).transform("nunique") > 1


def in_order(values: Iterable[Hashable]) -> list[Hashable]:
    """Distinct values, numbers (or texts that are) ascending, others as they first appear.

    Example:
        >>> from replay.logs.columns import in_order
        >>> in_order([1, 16, 4, 16]), in_order(["16", "4"]), in_order(["greedy", "best_of_n"])
        ([1, 4, 16], ['4', '16'], ['greedy', 'best_of_n'])
    """
    found = list(dict.fromkeys(values))
    try:
        return sorted(found, key=_number)
    except (TypeError, ValueError):
        return found


def _number(value: Any) -> tuple[bool, float]:
    missing = bool(pd.isna(value))
    return missing, 0.0 if missing else float(value)


def groups_in_order(
    frame: pd.DataFrame, keys: str | Sequence[str]
) -> list[tuple[tuple[Hashable, ...], pd.DataFrame]]:
    """The groups of rows that agree in some columns, in the order of `in_order` by column.

    Example:
        >>> from replay.logs.columns import groups_in_order
        >>> [of for of, _ in groups_in_order(pd.DataFrame({"children": [1, 16, 4]}), "children")]
        [(1,), (4,), (16,)]
    """
    names = [keys] if isinstance(keys, str) else list(keys)
    # Before its version 3, pandas cannot group by one column that holds a gap, but by two.
    alike = [0] * len(frame)
    by_two = frame.groupby([*names, alike], sort=False, dropna=False)
    parts = [(key[:-1], rows) for key, rows in by_two]
    places = [
        {value: place for place, value in enumerate(in_order(each))}
        for each in zip(*(of for of, _ in parts), strict=True)
    ]

    def place(part: tuple[tuple[Hashable, ...], pd.DataFrame]) -> list[int]:
        return [known[value] for known, value in zip(places, part[0], strict=True)]

    return sorted(parts, key=place)
