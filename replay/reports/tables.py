"""Tables of a report and their forms: cells that know their interval and n.

A cell is one number: what it is about (`row`), what it is (`quantity`), `value`, and `unit`. An
estimate has the limits `low` and `high` of its interval over runs, the nominal `level` of that
interval, the worst `coverage` that was measured for such intervals (NaN where none was), and `n`,
the runs that it rests on. `Section`s of cells become text, Markdown, LaTeX, HTML, CSV or JSON:
`FORMATS`.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from replay.markup import clean
from replay.reports.sentences import escaped
from replay.statistics.intervals import Interval, name_of
from replay.statistics.numbers import with_limits

LEVEL = 0.95
"""Nominal level of the intervals of a report."""
_COMMAND = re.compile(r"(`[^`]*`)")


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
    """Names a group of runs; no figure of the offline model goes without saying what it is."""
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


def plain(sections: Sequence[Section]) -> str:
    """Tables for a terminal, those of one task and model under one title."""
    from evo.cli.tables import table

    return _render(
        sections,
        lambda text: f"{text}\n{'=' * len(text)}",
        str,
        lambda heads, rows: table(rows, heads),
        lambda text: textwrap.fill(text, 110, initial_indent="  - ", subsequent_indent="    "),
        lambda asked, said: _copyable(f"{asked} {said}"),
    )


def _copyable(text: str) -> str:
    """Wraps a text in which paths and commands stay whole, so that they can be copied."""
    held = _COMMAND.sub(lambda command: command[0].replace(" ", "\0"), text)
    made = textwrap.fill(
        held, 110, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )
    return made.replace("\0", " ")


def markdown(sections: Sequence[Section]) -> str:
    """The same as Markdown."""
    return _render(
        sections, "## {}".format, "### {}".format, _markdown_table, "- {}".format,
        lambda asked, said: f"- **{escaped(asked)}** {_with_commands(said)}",
    )  # fmt: skip


def _with_commands(text: str) -> str:
    """A text for Markdown, in which commands stand as they are typed."""
    return "".join(
        part if number % 2 else escaped(part) for number, part in enumerate(_COMMAND.split(text))
    )


def latex(sections: Sequence[Section]) -> str:
    """The same as tables for a paper, with the rules of the package booktabs."""
    return _render(
        sections,
        lambda text: rf"\paragraph{{{_in_tex(text)}}}",
        lambda text: rf"\par\medskip\noindent {_in_tex(text)}\par\smallskip",
        _latex_table,
        lambda text: rf"\par\noindent{{\footnotesize {_in_tex(text)}\par}}",
        lambda asked, said: rf"\par\noindent\emph{{{_in_tex(asked)}}} {_in_tex(said)}\par",
    )


def html(sections: Sequence[Section]) -> str:
    """The tables as HTML for a page, without titles of their groups."""
    return _render(
        sections,
        lambda text: "",
        lambda text: f"<h3>{clean(text)}</h3>",
        lambda heads, rows: html_table(
            [(clean(head), "") for head in heads], ["".join(map(_html_cell, row)) for row in rows]
        ),
        lambda text: f'<p class="notes">{_in_html(text)}</p>',
        lambda asked, said: f"<p><strong>{clean(asked)}</strong> {_in_html(said)}</p>",
    )


def _in_html(text: str) -> str:
    """A text for a page, in which commands are marked as such."""
    return "".join(
        f"<code>{clean(part.strip('`'))}</code>" if number % 2 else clean(part)
        for number, part in enumerate(_COMMAND.split(text))
    )


def html_table(heads: Sequence[tuple[str, str]], rows: Sequence[str]) -> str:
    """A table that scrolls, of heads (HTML and class) and rows (HTML of their cells)."""
    top = "".join(f'<th scope="col" class="{kind}">{head}</th>' for head, kind in heads)
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _html_cell(text: str) -> str:
    value, bracket, limits = clean(text).partition(" [")
    interval = f' <span class="range">[{limits}</span>' if bracket else ""
    return f"<td>{value}{interval}</td>"


def csv(sections: Sequence[Section]) -> str:
    """All cells in one table, one row per number; like the other formats without a last newline."""
    return _cells(sections).to_csv(index=False).removesuffix("\n")


def as_json(sections: Sequence[Section]) -> str:
    """All decisions, cells and notes; what is unknown or infinite is null."""
    cells = _cells(sections).replace([math.inf, -math.inf], math.nan)
    notes = [
        {
            "task": s.task, "model": s.model, "setting": s.setting, "table": s.title, "note": note
        }
        for s in sections for note in (*_without(s.cells), *s.notes)
    ]  # fmt: skip
    known = cells.astype(object).where(cells.notna(), None).to_dict("records")
    words = [
        {"task": s.task, "model": s.model, "question": asked, "answer": said}
        for s in sections for asked, said in s.words
    ]  # fmt: skip
    made = {"decisions": words, "cells": known, "notes": notes}
    return json.dumps(made, indent=1, allow_nan=False)


FORMATS: dict[str, Callable[[Sequence[Section]], str]] = {
    "plain": plain,
    "markdown": markdown,
    "latex": latex,
    "html": html,
    "csv": csv,
    "json": as_json,
}
"""Format name -> function of the sections that returns text."""


def cell_text(cell: pd.Series[Any]) -> str:
    """A number with its interval, as `0.81 [0.79, 0.84]`."""
    write = UNITS[cell["unit"]]
    if pd.isna(cell["value"]):
        return _MISSING.get(cell["unit"], "unknown")
    text = write(cell["value"])
    if pd.isna(cell["low"]) or cell["low"] == math.inf:
        return f"undetermined ({text})" if cell["unit"] == "effect" else text
    return with_limits(cell["value"], cell["low"], cell["high"], write)


def _render(
    sections: Sequence[Section],
    head: Callable[[str], str],
    subhead: Callable[[str], str],
    lines: Callable[[Sequence[str], Sequence[Sequence[str]]], str],
    note: Callable[[str], str],
    word: Callable[[str, str], str],
) -> str:
    blocks, before = [], None
    for section in sections:
        group = (section.task, section.model, section.setting)
        words = "\n".join(word(asked, said) for asked, said in section.words)
        if section.cells.empty:
            blocks.append(f"{head(section.title)}\n{words}")
            continue
        if group != before:
            before = group
            blocks.append(head(title(*group, is_llm=section.is_llm)))
        texts = section.cells.assign(text=section.cells.apply(cell_text, axis=1))
        rows, quantities = (list(dict.fromkeys(texts[name])) for name in ("row", "quantity"))
        found = texts.set_index(["row", "quantity"])["text"].to_dict()
        body = [[row, *(found.get((row, quantity), "") for quantity in quantities)] for row in rows]
        table = lines([section.heading, *quantities], body)
        blocks.append("\n".join(filter(None, [subhead(section.title), words, table])))
        if notes := [*_level(section.cells), *_without(section.cells), *section.notes]:
            blocks[-1] += "\n" + "\n".join(note(text) for text in notes)
    return "\n\n".join(blocks)


def _level(cells: pd.DataFrame) -> list[str]:
    """What intervals of a table are called: by the worst coverage of a quantity, where known."""
    known = cells[cells["level"].notna()]
    names: dict[str, list[str]] = {}
    for quantity, own in known.groupby("quantity", sort=False):
        name = name_of(own["coverage"], float(own["level"].min()))
        if own["level"].nunique() > 1:  # by Holm's rule each pair has its own
            low, high = 100 * own["level"].min(), 100 * own["level"].max()
            name = f"nominal {low:.4g} to {high:.4g} % interval"
        names.setdefault(name, []).append(str(quantity))
    if len(names) == 1:
        return [f"in brackets: {next(iter(names))} over runs"]
    each = [f"{name} over runs ({'; '.join(of)})" for name, of in names.items()]
    return [f"in brackets: {', '.join(each)}"] if each else []


def _without(cells: pd.DataFrame) -> list[str]:
    """Which estimates of a table have no interval, and why."""
    lacking = cells[cells["without"] != ""]
    return [
        f"no interval ({'; '.join(dict.fromkeys(own['quantity']))}): {why}"
        for why, own in lacking.groupby("without", sort=False)
    ]


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [list(heads), ["---"] * len(heads), *rows]
    lines = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in cells)
    return "\n" + "\n".join(f"| {line} |" for line in lines) + "\n"


def _latex_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(_in_tex, cells)) + r" \\"

    rules = [r"\toprule", line(heads), r"\midrule", *map(line, rows), r"\bottomrule"]
    begin = rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}"
    return "\n".join([begin, *rules, r"\end{tabular}"])


_TEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}", "]": "{]}"}
)


def _in_tex(text: str) -> str:
    """Returns a text with what LaTeX would read as its own written out; commands as they are typed.

    Elsewhere LaTeX makes a dash of two hyphens and a quotation mark of a backtick.
    """
    return "".join(
        rf"\texttt{{{part.strip('`').translate(_TEX).replace('--', '-{}-')}}}"
        if number % 2
        else part.translate(_TEX)
        for number, part in enumerate(_COMMAND.split(text))
    )


def _cells(sections: Sequence[Section]) -> pd.DataFrame:
    parts = [
        section.cells.rename(columns={"row": "of"}).assign(
            task=section.task, model=section.model, is_llm=section.is_llm, setting=section.setting,
            table=section.title, kind=section.heading,
        )
        for section in sections if len(section.cells)
    ]  # fmt: skip
    order = ["task", "model", "is_llm", "setting", "table", "kind", "of", "quantity"]
    return pd.concat(parts)[[*order, "value", "low", "high", "level", "coverage", "n", "unit"]]
