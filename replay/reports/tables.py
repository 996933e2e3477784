"""Tables of a report: cells that know their interval and n.

A cell is one number: what it is about (`row`), what it is (`quantity`), `value`, and `unit`. An
estimate has the limits `low` and `high` of its interval over runs, the nominal `level` of that
interval, the worst `coverage` that was measured for such intervals (NaN where none was), and `n`,
the runs that it rests on. `replay.reports.forms` writes `Section`s of cells as text, Markdown,
LaTeX, HTML, CSV or JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from replay.statistics.intervals import Interval
from replay.statistics.numbers import with_limits

LEVEL = 0.95
"""Nominal level of the intervals of a report."""


class Cell(NamedTuple):
    """One number of a table, with its interval.

    Attributes:
        quantity: Name of its column.
        value: The number.
        low: Lower limit of its interval; NaN if it has none.
        high: Upper limit, likewise.
        n: Number of runs that it rests on.
        unit: How it is printed, such as "fitness", "share" or "count".
        level: Nominal level of the interval.
        coverage: Coverage that was measured for such an interval; NaN if none was.
        without: Why an estimate has no interval.

    Example:
        >>> replay.reports.Cell("gain", 0.1, 0.0, 0.2, 6, "difference").value
        0.1
    """

    quantity: str
    value: float
    low: float
    high: float
    n: int
    unit: str
    level: float = math.nan
    coverage: float = math.nan
    without: str = ""  # why an estimate has no interval


CELLS = ("row", *Cell._fields)


@dataclass(frozen=True, kw_only=True)
class Section:
    """One table of a report.

    Attributes:
        title: Its title.
        task: Name of the task.
        model: Name of the model.
        is_llm: Whether the model is an LLM; if not, the report says so.
        setting: What tells its runs from those of other configurations; empty if there is one.
        heading: What the rows are, such as "N" or "policy".
        cells: One row per cell, with the columns of `Cell` and `row`, in the order of display;
            without any, there are words alone.
        notes: Sentences that are needed to read the table.
        words: What it says, as questions with their answers, which stand before the table.

    Example:
        >>> cell = replay.reports.Cell("gain", 0.1, 0.0, 0.2, 6, "difference")
        >>> section = replay.reports.Section(
        ...     title="Gain", task="mmd", model="offline", is_llm=False, heading="N",
        ...     cells=replay.reports.stack({"4": [cell]}),
        ... )
        >>> section.title
        'Gain'
    """

    title: str
    task: str
    model: str
    is_llm: bool
    setting: str = ""
    heading: str  # what its rows are: `N` or `policy`
    cells: pd.DataFrame  # rows and quantities in the order to show them
    notes: tuple[str, ...] = ()  # what one must know to read it
    words: tuple[tuple[str, str], ...] = ()


def exact(quantity: str, value: float, n: int, unit: str) -> Cell:
    """Returns a cell for a number that is counted and not estimated.

    Args:
        quantity: Name of its column.
        value: The number.
        n: Number of runs that it rests on.
        unit: How it is printed, such as "fitness", "share" or "count".

    Example:
        >>> replay.reports.exact("calls", 320, n=10, unit="count").value
        320
    """
    return Cell(quantity, value, math.nan, math.nan, n, unit)


def estimate(quantity: str, found: Interval, unit: str, most: float = math.inf) -> Cell:
    """Returns a cell for a number with its interval.

    Args:
        quantity: Name of its column.
        found: The number and its interval, such as `replay.interval` returns.
        unit: How it is printed; the limits of a "share" are cut to [0, 1].
        most: The largest value that there is, above which no limit lies.

    Example:
        >>> found = replay.interval([0.6, 0.7, 0.8, 0.8, 0.9])
        >>> cell = replay.reports.estimate("final", found, "fitness")
        >>> cell.n, round(cell.value, 2)
        (5, 0.76)
    """
    bounds = (0.0, 1.0) if unit == "share" else (-math.inf, most)
    low, high = max(found.low, bounds[0]), min(found.high, bounds[1])
    level = math.nan if math.isnan(low) else found.level
    without = found.note if math.isnan(low) else ""
    return Cell(quantity, found.value, low, high, found.n, unit, level, found.coverage, without)


def stack(rows: Mapping[str, Sequence[Cell]]) -> pd.DataFrame:
    """Returns cells as a data frame.

    Args:
        rows: The cells of each row, by the row's name.

    Returns:
        One row per cell, with the columns `row` and those of `Cell`.

    Raises:
        ValueError: The unit of a cell is not one of those that tables print.

    Example:
        >>> cell = replay.reports.Cell("gain", 0.1, 0.0, 0.2, 6, "difference")
        >>> replay.reports.stack({"4": [cell]})["value"].tolist()
        [0.1]
    """
    for cell in (cell for cells in rows.values() for cell in cells):
        if cell.unit not in UNITS:
            raise ValueError(
                f"{cell.quantity}: expected a unit out of {', '.join(UNITS)}, got {cell.unit!r}"
            )
    return pd.DataFrame(
        [(row, *cell) for row, cells in rows.items() for cell in cells], columns=list(CELLS)
    )


def title(task: str, model: str, setting: str = "", *, is_llm: bool) -> str:
    """Names a group of runs; the heading of the offline model says what it is."""
    named = model if model == "model" else f"model {model}"  # as a function of that name
    known = f"{task}, {named}{'' if is_llm else ' (not an LLM)'}"
    return f"{known}: {setting}" if setting else known


UNITS: dict[str, Callable[[float], str]] = {
    "fitness": lambda value: "none" if math.isinf(value) else f"{value:.5g}",
    "difference": lambda value: f"{value:+.4f}",
    "effect": lambda value: f"{value:+.4f}",
    "p": lambda value: f"{value:.3g}",
    "count": lambda value: f"{value:,.0f}",
    "calls": lambda value: f"{value:.0f}",
    "tokens": lambda value: f"{value:.0f}",
    "share": lambda value: f"{100 * value:.1f}%",
    "pulls": lambda value: "never" if math.isinf(value) else f"{value:g}",
    "flops": lambda value: f"{value:.3g}",
    "dollars": lambda value: f"{value:.4g}",
    "seconds": lambda value: f"{value:,.1f}",
}
_MISSING = {"fitness": "none", "difference": "", "effect": "", "pulls": "", "p": ""}


def cell_text(cell: pd.Series[Any]) -> str:
    """A number with its interval, as `0.81 [0.79, 0.84]`."""
    write = UNITS[cell["unit"]]
    if pd.isna(cell["value"]):
        return _MISSING.get(cell["unit"], "unknown")
    text = write(cell["value"])
    if pd.isna(cell["low"]) or cell["low"] == math.inf:
        return f"undetermined ({text})" if cell["unit"] == "effect" else text
    return with_limits(cell["value"], cell["low"], cell["high"], write)
