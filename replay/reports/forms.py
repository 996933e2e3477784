"""Forms of a report's tables: text, Markdown, LaTeX, HTML, CSV and JSON, by name in `FORMATS`.

Tables of one title about several groups of runs become one table, in which columns tell the groups
apart.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence

import pandas as pd

from evo.warning import and_more
from replay.markup import clean
from replay.reports.sentences import escaped
from replay.reports.tables import Section, cell_text, title
from replay.statistics.intervals import name_of

_COMMAND = re.compile(r"(`[^`]*`)")
MOST_NAMED = 3
"""Groups that a note names; of more their number."""


def plain(sections: Sequence[Section]) -> str:
    """Tables for a terminal, those of one task and model under one title."""
    from evo.cli.tables import table

    return _render(
        sections,
        lambda text: f"{text}\n{'=' * len(text)}",
        str,
        lambda heads, rows, labels: table(rows, heads),
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
        sections, "## {}".format, "### {}".format,
        lambda heads, rows, labels: _markdown_table(heads, rows), "- {}".format,
        lambda asked, said: f"- **{escaped(asked)}** {_with_commands(said)}",
    )  # fmt: skip


def _with_commands(text: str) -> str:
    """A text for Markdown, in which commands stand as they are typed."""
    return "".join(
        part if number % 2 else escaped(part) for number, part in enumerate(_COMMAND.split(text))
    )


def latex(sections: Sequence[Section]) -> str:
    """The same as tables for a paper, with the rules of the package booktabs."""
    return "% needs \\usepackage{booktabs}\n" + _render(
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
        lambda heads, rows, labels: html_table(
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


def _render(
    sections: Sequence[Section],
    head: Callable[[str], str],
    subhead: Callable[[str], str],
    lines: Callable[[Sequence[str], Sequence[Sequence[str]], int], str],
    note: Callable[[str], str],
    word: Callable[[str, str], str],
) -> str:
    blocks, before = [], ""
    for part in _joined(sections):
        first = part[0]
        words = "\n".join(word(asked, said) for asked, said in first.words)
        if first.cells.empty:
            blocks.append(f"{head(first.title)}\n{words}")
            continue
        if (group := _title_of(part)) != before:
            before = group
            blocks.append(head(group))
        names, labels = _labels(part)
        quantities, body = _body(part, labels)
        table = lines([*names, first.heading, *quantities], body, len(names))
        blocks.append("\n".join(filter(None, [subhead(first.title), words, table])))
        if notes := _notes(part, labels):
            blocks[-1] += "\n" + "\n".join(note(text) for text in notes)
    return "\n\n".join(blocks)


def _joined(sections: Sequence[Section]) -> list[list[Section]]:
    """Sections by the table that they share: those of one title, each of another group of runs.

    Sections with words stay alone. Groups are in order of task, model and setting, each as they
    come first.
    """
    found: dict[object, list[Section]] = {}
    seen: Counter[object] = Counter()
    for number, section in enumerate(sections):
        key: object = number
        if len(section.cells) and not section.words:
            own = (section.title, section.heading, _group(section))
            key = (section.title, section.heading, seen[own])
            seen[own] += 1
        found.setdefault(key, []).append(section)
    order = [list(dict.fromkeys(names)) for names in zip(*map(_group, sections), strict=True)]
    for part in found.values():
        part.sort(key=lambda each: [o.index(n) for o, n in zip(order, _group(each), strict=True)])
    return list(found.values())


def _group(section: Section) -> tuple[str, str, str]:
    return section.task, section.model, section.setting


def _title_of(part: Sequence[Section]) -> str:
    """Names the groups of runs that share a table by what they have in common."""
    tasks, models, settings = (set(names) for names in zip(*map(_group, part), strict=True))
    first = part[0]
    task = first.task if len(tasks) == 1 else f"{len(tasks)} tasks"
    setting = first.setting if len(settings) == 1 else ""
    if len(models) == 1:
        return title(task, first.model, setting, is_llm=any(each.is_llm for each in part))
    return f"{task}, {len(models)} models{setting and f': {setting}'}"


def _labels(part: Sequence[Section]) -> tuple[list[str], list[list[str]]]:
    """Names of the columns that tell the groups of a table apart, and their cells by group."""
    offline = ["" if each.is_llm else " (not an LLM)" for each in part]
    columns = {
        "task": [each.task for each in part],
        "model": [each.model + words for each, words in zip(part, offline, strict=True)],
        "configuration": [each.setting for each in part],
    }
    kept = {name: cells for name, cells in columns.items() if len(set(cells)) > 1}
    return list(kept), [[cells[row] for cells in kept.values()] for row in range(len(part))]


def _body(
    part: Sequence[Section], labels: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """The quantities of a table, and its rows as texts."""
    texts = [each.cells.assign(text=each.cells.apply(cell_text, axis=1)) for each in part]
    quantities = list(dict.fromkeys(name for each in texts for name in each["quantity"]))
    body = []
    for label, each in zip(labels, texts, strict=True):
        found = each.set_index(["row", "quantity"])["text"].to_dict()
        body += [
            [*label, row, *(found.get((row, quantity), "") for quantity in quantities)]
            for row in dict.fromkeys(each["row"])
        ]
    return quantities, body


def _notes(part: Sequence[Section], labels: Sequence[Sequence[str]]) -> list[str]:
    """The notes of a table; one that is not of all its groups says of which it is."""
    found: dict[str, list[str]] = {}
    for section, label in zip(part, labels, strict=True):
        for text in (*_level(section.cells), *_without(section.cells), *section.notes):
            found.setdefault(text, []).append(", ".join(label))
    notes = []
    for text, of in found.items():
        those = "" if len(of) == len(part) else f"{and_more(of, MOST_NAMED, separator='; ')}: "
        notes.append(f"{those}{text}")
    return notes


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


def _latex_table(heads: Sequence[str], rows: Sequence[Sequence[str]], labels: int) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(_in_tex, cells)) + r" \\"

    rules = [r"\toprule", line(heads), r"\midrule", *map(line, rows), r"\bottomrule"]
    names = labels + 1
    begin = rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(heads) - names)}}}"
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
