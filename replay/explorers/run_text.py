"""Texts of a child as HTML. Replies and programs are a stranger's, so everything is escaped."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evo.cost import cost_of_attempts, usage_tokens
from replay.ancestry import MOST_LINES, compare_programs, program_of
from replay.explorers.run_data import RunView, name
from replay.explorers.widgets import WIDE
from replay.markup import LONGEST, clean

if TYPE_CHECKING:
    from evo.records import Attempt

_ADDED, _REMOVED, _PLACE = "0,158,115", "213,94,0", "128,128,128"
_BLOCK = (
    "max-height:420px;overflow:auto;margin:4px 0;padding:4px;line-height:1.35;"
    "border:1px solid rgba(128,128,128,.4);width:0;min-width:100%;box-sizing:border-box"
)
"""No width of its own, so that long lines scroll and do not widen the page."""
_CODE = (
    ("Keyword", "keyword-color"), ("Operator.Word", "keyword-color"), ("String", "string-color"),
    ("Comment", "comment-color"), ("Number", "number-color"), ("Builtin", "builtin-color"),
    ("Function", "def-color"),
)  # fmt: skip
"""Parts of the names of Pygments' tokens, and JupyterLab's colours for them."""


def facts(view: RunView) -> str:
    """Evaluation and cost of a program as a table."""
    evaluation = view.evaluation
    rows: list[tuple[str, str]] = [("status", evaluation.status or "unknown")]
    if evaluation.fitness is not None:
        rows.append(("fitness", f"{evaluation.fitness:.9g}"))
    rows += [(key, f"{value:.9g}") for key, value in evaluation.metrics.items()]
    if evaluation.seconds is not None:
        rows.append(("evaluation", f"{evaluation.seconds:.3g} s"))
    if view.child is not None:
        header = view.data.log.header
        cost = cost_of_attempts(view.child.attempts, header.model, header.sampling)
        rows.append(("seed", str(view.child.seed)))
        rows.append(("tokens", "unknown" if cost.tokens is None else f"{cost.tokens:,.0f}"))
        if header.model.is_llm:
            rows.append(("cost", "unknown" if cost.dollars is None else f"${cost.dollars:.6f}"))
    scores = [
        (f"instance {each.id}", each.status if each.score is None else f"{each.score:.9g}")
        for each in evaluation.instances
    ]
    return _table(("", ""), [*rows, *scores])


def error(view: RunView) -> str:
    """Why it is not ok, with what the program printed."""
    if view.evaluation.error:
        return _text(view.evaluation.error)
    return _note("The evaluation had nothing to complain of.")


def diff(view: RunView) -> str:
    """What a child changed of its parent, in colour and with signs."""
    if view.program is None:
        return _note(_no_text(view, "program"))
    if view.place == (0, 0):
        return _note("The initial program rewrites nothing; see Program.")
    if view.parent is None:
        return _note("An imported log does not say which program a child rewrote; see Program.")
    before = program_of(view.data.log, view.parent)
    if before is None:
        return _note("The log does not hold the parent's program; see Program.")
    try:
        lines = compare_programs(before, view.program)
    except ValueError as error:
        return _note(str(error))
    if not lines:
        return _note(f"The same text as {name(view.parent)}.")
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    size = itertools.accumulate(map(len, lines))
    shown = sum(each <= LONGEST for each in size)
    body = "".join(map(_diff_line, lines[:shown]))
    left = f"{len(lines) - shown:,} further lines are not shown."
    return (
        _note(f"{added} lines added, {removed} removed, against {name(view.parent)}.")
        + f"<pre tabindex='0' style='{_BLOCK};white-space:pre'>"
        + f"<span style='display:inline-block;min-width:100%'>{body}</span></pre>"
        + (_note(left) if shown < len(lines) else "")
    )


def side_by_side(view: RunView) -> str:
    """The parent's program and the child's, line by line, in the page's colours of code."""
    before = view.parent and program_of(view.data.log, view.parent)
    if view.program is None or view.parent is None or before is None:
        return diff(view)
    old, new = _coloured(before), _coloured(view.program)
    if max(len(old), len(new)) > MOST_LINES:
        return diff(view)
    rows = []
    same = difflib.SequenceMatcher(None, before.split("\n"), view.program.split("\n"), False)
    for kind, a, b, c, d in same.get_opcodes():
        left, right = old[a:b], new[c:d]
        if kind == "equal" and len(left) > 8:
            gap = f"<tr><td colspan=2 style='opacity:.7'>{len(left) - 6} equal lines</td></tr>"
            rows += [*map(_pair, left[:3], right[:3]), gap, *map(_pair, left[-3:], right[-3:])]
            continue
        for one, other in itertools.zip_longest(left, right):
            rows.append(_pair(one, other, changed=kind != "equal"))
    head = f"<tr><th>{clean(name(view.parent))}</th><th>{clean(name(view.place))}</th></tr>"
    return (
        f"<div tabindex='0' style='{_BLOCK}'><table style='width:100%;border-collapse:collapse'>"
        f"{head}{''.join(rows)}</table></div>"
    )


def _pair(left: str | None, right: str | None, *, changed: bool = False) -> str:
    """Two lines beside each other."""
    cells = []
    for text, colour in ((left, _REMOVED), (right, _ADDED)):
        ground = f"background:rgba({colour},.2);" if changed and text is not None else ""
        look = "vertical-align:top;width:50%;font-family:monospace;white-space:pre-wrap;"
        cells.append(f"<td style='{look}overflow-wrap:anywhere;{ground}'>{text or ''}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _coloured(program: str) -> list[str]:
    """The lines of a program as HTML, in the page's colours of code where Pygments is there."""
    try:
        from pygments.lexers.python import PythonLexer
    except ImportError:
        return [clean(line) for line in program.split("\n")]
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    lines = [""]
    for kind, text in lexer.get_tokens(program[:LONGEST]):
        colour = next((c for part, c in _CODE if part in str(kind)), None)
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append("")
            shown = clean(part)
            if colour and part:
                shown = (
                    f"<span style='color:var(--jp-mirror-editor-{colour},inherit)'>{shown}</span>"
                )
            lines[-1] += shown
    return lines


def program(view: RunView) -> str:
    """The program."""
    if view.program is None:
        return _note(_no_text(view, "program"))
    return _text(view.program, wrap=False, colour=True)


def reply(view: RunView) -> str:
    """The model's reply, and its reasoning where the endpoint gives it apart."""
    if view.child is None:
        return _note("No call was made for the initial program.")
    if view.child.reply is None:
        return _note(_no_text(view, "reply"))
    said = _text(view.child.reply)
    if view.child.reasoning:
        said += f"<b>Reasoning</b>{_text(view.child.reasoning)}"
    return said


def attempts(view: RunView) -> str:
    """Every request made for a child."""
    if view.child is None:
        return _note("No call was made for the initial program.")
    if not view.child.attempts:
        return _note("The log says nothing of the requests.")
    heads = ("", "status", "seconds", "prompt", "cached", "completion", "finish", "error")
    rows = [_attempt(number, each) for number, each in enumerate(view.child.attempts, start=1)]
    return _table(heads, rows) + _note("Prompt, cached and completion are tokens.")


def _attempt(number: int, attempt: Attempt) -> tuple[str, ...]:
    tokens = usage_tokens(attempt.usage)
    counts = ("unknown",) * 3 if tokens is None else tuple(f"{count:,}" for count in tokens)
    status = attempt.status + (f" ({attempt.http_status})" if attempt.http_status else "")
    status += " (from the response cache)" if attempt.cached else ""
    seconds = "unknown" if attempt.latency is None else f"{attempt.latency:.3g}"
    said = attempt.finish_reason or "", attempt.error or ""
    return (str(number), status, seconds, *counts, *said)


def _no_text(view: RunView, what: str) -> str:
    """Why a text is missing."""
    if view.data.log.header.compact:
        return f"This log is compact: it holds no {what}."
    if view.evaluation.status in ("no_reply", "no_program"):
        return f"There is no {what}: {view.evaluation.error or view.evaluation.status}"
    return f"The log holds no {what}."


def _diff_line(line: str) -> str:
    colour = {"+": _ADDED, "-": _REMOVED, "@": _PLACE}.get(line[:1])
    ground = f"background:rgba({colour},.2);" if colour else ""
    return f"<span style='display:block;min-height:1.35em;{ground}'>{clean(line)}</span>"


def _text(text: str, *, wrap: bool = True, colour: bool = False) -> str:
    left = len(text) - LONGEST
    more = _note(f"{left:,} further characters are not shown.") if left > 0 else ""
    space = "pre-wrap" if wrap else "pre"
    shown = "\n".join(_coloured(text)) if colour else clean(text[:LONGEST])
    return f"<pre tabindex='0' style='{_BLOCK};white-space:{space}'>{shown}</pre>{more}"


def _note(text: str) -> str:
    return f"<div style='{WIDE}'>{clean(text)}</div>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cell = "style='padding:1px 12px 1px 0;text-align:left;vertical-align:top'"
    top = "".join(f"<th {cell}>{clean(text)}</th>" for text in heads) if any(heads) else ""
    body = "".join(
        "<tr>" + "".join(f"<td {cell}>{clean(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table style='line-height:1.35'><tr>{top}</tr>{body}</table>"
