"""Sections of a report as plain text, Markdown, CSV or JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from evo.commands import table
from replay.report import Section, title

_UNITS: dict[str, Callable[[float], str]] = {
    "fitness": lambda value: f"{value:.5g}",
    "difference": lambda value: f"{value:+.4f}",
    "count": lambda value: f"{value:,.0f}",
    "share": lambda value: f"{100 * value:.1f}%",
    "pulls": lambda value: "never" if math.isinf(value) else f"{value:g}",
    "flops": lambda value: f"{value:.3g}",
    "dollars": lambda value: f"{value:.4g}",
    "seconds": lambda value: f"{value:,.1f}",
}
_MISSING = {"fitness": "none", "difference": "", "pulls": ""}


def plain(sections: Sequence[Section]) -> str:
    """Tables for a terminal, those of one task and model under one title."""
    return _render(sections, _plain_title, str, lambda heads, rows: table(rows, heads), _plain_note)


def markdown(sections: Sequence[Section]) -> str:
    """The same as Markdown."""
    return _render(sections, "## {}".format, "### {}".format, _markdown_table, "- {}".format)


def csv(sections: Sequence[Section]) -> str:
    """All cells in one table, one row per number."""
    return _cells(sections).to_csv(index=False)


def as_json(sections: Sequence[Section]) -> str:
    """All cells and notes; what is unknown or infinite is null."""
    cells = [
        {name: _plain_value(value) for name, value in row.items()}
        for row in _cells(sections).to_dict("records")
    ]
    notes = [
        {"task": s.task, "model": s.model, "table": s.title, "note": note}
        for s in sections
        for note in s.notes
    ]
    return json.dumps({"cells": cells, "notes": notes}, indent=1, allow_nan=False)


FORMATS: dict[str, Callable[[Sequence[Section]], str]] = {
    "plain": plain,
    "markdown": markdown,
    "csv": csv,
    "json": as_json,
}
"""Format name -> function of the sections that returns text."""


def cell_text(cell: pd.Series[Any]) -> str:
    """A number with its interval, as `0.81 [0.79, 0.84]`."""
    write = _UNITS[cell["unit"]]
    if pd.isna(cell["value"]):
        return _MISSING.get(cell["unit"], "unknown")
    text = write(cell["value"])
    if pd.isna(cell["low"]) or cell["low"] == math.inf:
        return text
    return f"{text} [{write(cell['low'])}, {write(cell['high'])}]"


def _render(
    sections: Sequence[Section],
    head: Callable[[str], str],
    subhead: Callable[[str], str],
    lines: Callable[[Sequence[str], Sequence[Sequence[str]]], str],
    note: Callable[[str], str],
) -> str:
    blocks, before = [], None
    for section in sections:
        if (section.task, section.model) != before:
            before = (section.task, section.model)
            blocks.append(head(title(section.task, section.model, is_llm=section.is_llm)))
        texts = section.cells.assign(text=section.cells.apply(cell_text, axis=1))
        rows, quantities = (list(dict.fromkeys(texts[name])) for name in ("row", "quantity"))
        found = texts.set_index(["row", "quantity"])["text"].to_dict()
        body = [[row, *(found.get((row, quantity), "") for quantity in quantities)] for row in rows]
        blocks.append(f"{subhead(section.title)}\n{lines([section.heading, *quantities], body)}")
        if section.notes:
            blocks[-1] += "\n" + "\n".join(note(text) for text in section.notes)
    return "\n\n".join(blocks)


def _plain_title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}"


def _plain_note(text: str) -> str:
    return textwrap.fill(text, 110, initial_indent="  - ", subsequent_indent="    ")


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [list(heads), ["---"] * len(heads), *rows]
    lines = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in cells)
    return "\n" + "\n".join(f"| {line} |" for line in lines) + "\n"


def _cells(sections: Sequence[Section]) -> pd.DataFrame:
    parts = [
        section.cells.rename(columns={"row": "of"}).assign(
            task=section.task,
            model=section.model,
            is_llm=section.is_llm,
            table=section.title,
            kind=section.heading,
        )
        for section in sections
    ]
    order = ["task", "model", "is_llm", "table", "kind", "of", "quantity"]
    return pd.concat(parts)[[*order, "value", "low", "high", "n", "unit"]]


def _plain_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | bool) else int(value)
