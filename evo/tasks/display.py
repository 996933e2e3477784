"""How a task shows in a notebook."""

from __future__ import annotations

import html

import msgspec

from evo.logs.languages import LANGUAGES
from evo.logs.records import Bar, Limits, TaskRecord
from evo.logs.several import unpack

_MOST_ROWS = 3


def as_html(record: TaskRecord, limits: Limits) -> str:
    """Returns a task's statement, program, evaluator and limits as HTML."""
    files = record.files
    places = {"separate": "in the sandbox, apart from the program",
              "shared": "in the sandbox, in the program's process",
              "here": "in this process, not in the sandbox"}  # fmt: skip
    parts = [
        f"<b>{html.escape(record.name)}</b> <small>{record.hash[:12]}</small>",
        f"<div style='white-space:pre-wrap;margin:.4em 0'>{html.escape(record.statement)}</div>",
        f"<b>What evolves</b>{_program(record)}",
    ]
    if record.evaluator_file:
        parts.append(
            f"<details><summary><b>Evaluator</b>, {places[record.isolation]}</summary>"
            f"{code(files[record.evaluator_file])}</details>"
        )
    if record.stages:
        each = [f"{stage.function} ({_bar(stage.threshold)})" for stage in record.stages[:-1]]
        shown = ", ".join([*each, record.stages[-1].function])
        parts.append(f"<p><b>Stages</b>: {html.escape(shown)}</p>")
    if record.harness_file:
        harness = code(files[record.harness_file])
        parts.append(f"<details><summary><b>Harness</b></summary>{harness}</details>")
    if record.instances_file:
        rows = list(filter(str.strip, files[record.instances_file].split("\n")))
        first = f", the first {_MOST_ROWS}" if len(rows) > _MOST_ROWS else ""
        shown = "\n".join(f"{row:.200}" for row in rows[:_MOST_ROWS])
        parts.append(
            f"<details><summary><b>{len(rows)} instances</b>{first}</summary>"
            f"{code(shown, python=False)}</details>"
        )
    named = {k: f"{v:g}" for k, v in msgspec.structs.asdict(limits).items() if k != "auto"}
    if limits.auto:
        named["seconds"] = f"auto, at most {limits.seconds:g}"
    held = ", ".join(f"{k} {v}" for k, v in named.items())
    parts.append(f"<small>Limits: {held}</small>")
    return f"<div>{''.join(parts)}</div>"


def _program(record: TaskRecord) -> str:
    """Returns the initial program as HTML, each of several files below its name."""
    text = record.files[record.program_file]
    if not record.program_files:
        lexer = LANGUAGES[record.language].lexer if record.language else "python"
        return code(text, python=record.evolves == "python", lexer=lexer)
    return "".join(
        f"<div><code>{html.escape(name)}</code></div>{code(each, python=name.endswith('.py'))}"
        for name, each in unpack(text).items()
    )


def _bar(threshold: Bar | None) -> str:
    return "better than its parent" if threshold == "parent" else f"at least {threshold:g}"


def code(text: str, *, python: bool = True, lexer: str = "python") -> str:
    """Returns a program, or another text, as HTML; a program is highlighted by its language."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    style = "padding:.5em;overflow:auto;max-height:24em"
    wrap = "" if python else "white-space:pre-wrap"
    made = HtmlFormatter(noclasses=True, nobackground=True, cssstyles=style, prestyles=wrap)
    return str(highlight(text, get_lexer_by_name(lexer if python else "text"), made))
