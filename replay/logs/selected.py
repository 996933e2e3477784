"""Some of the runs by what they were made with, as `--where COLUMN=VALUE` chooses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from evo.plugins import meant
from replay.logs.columns import FAMILY, in_order
from replay.logs.tables import Tables

Where = Mapping[str, Sequence[str]]
"""Values by column, as texts; a run is chosen if each column has one of its values."""

COLUMNS = (*FAMILY, "seed", "run", "protocol", "condition")
"""What runs are chosen by: columns that are the same in all rows of a run."""

_MOST = 8
"""Values that a message names."""


def check_where(where: Where) -> None:
    """Raises ValueError for a column that is none of `COLUMNS`."""
    for column in where:
        if column not in COLUMNS:
            raise ValueError(
                f"--where: expected a column among {', '.join(COLUMNS)}, got {column!r}"
                f"{meant(column, COLUMNS)}"
            )


def chosen(frame: pd.DataFrame, where: Where | None) -> pd.DataFrame:
    """Returns the rows of the runs that are chosen; all of them where nothing is asked.

    Args:
        frame: As from `replay.load`.
        where: Values by column.

    Raises:
        ValueError: There is no such column, or no run has one of the values.

    Example:
        >>> from replay.logs.selected import chosen
        >>> chosen(frame, {"children": ["2"]})["children"].unique().tolist()
        [2]
    """
    check_where(where or {})
    for column, texts in (where or {}).items():
        known = in_order(frame[column].dropna().unique()) if column in frame else []
        wanted = [value for value in known if has_value(value, texts)]
        if not wanted:
            name = repr if column == "settings" else str  # which holds commas and semicolons
            shown = ", ".join(map(name, known[:_MOST])) + ", ..." * (len(known) > _MOST)
            raise ValueError(
                f"--where: no run {'that is left ' if len(where or {}) > 1 else ''}has {column} = "
                f"{' or '.join(map(name, texts))}; there are runs of {shown or 'none'}"
            )
        frame = frame[frame[column].isin(wanted)]
    return frame


def chosen_tables(tables: Tables, where: Where | None) -> Tables:
    """Returns the rows of the runs that are chosen in all tables of the same logs."""
    if not where:
        return tables
    runs = chosen(tables.generations, where)["run"].unique()
    return Tables(*(table[table["run"].isin(runs)] for table in tables))


def has_value(value: object, texts: Iterable[str]) -> bool:
    """Whether a value is one of those that are written as texts; numbers may be written anyhow.

    Example:
        >>> from replay.logs.selected import has_value
        >>> has_value(16, ["16.0"]), has_value("greedy", ["islands"])
        (True, False)
    """
    if isinstance(value, str):
        return value in texts
    return any(_number(text) == value for text in texts)


def in_words(where: Where) -> str:
    """The choice as it would be written on the command line, without its options."""
    return ", ".join(f"{name}={' or '.join(texts)}" for name, texts in where.items())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
