"""Texts of a child as HTML. Replies and programs are a stranger's, so everything is escaped."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from evo.logs.cost import cost_of_attempts, usage_tokens
from replay import markup
from replay.explorers.run_data import RunView, name, status_name
from replay.logs.lineage import MOST_LINES, Place, program_of
from replay.markup import LONGEST, clean
from replay.plots.scripts import WIDE

if TYPE_CHECKING:
    from evo.logs.records import Attempt

_BLOCK = (
    "max-height:420px;overflow:auto;margin:4px 0;padding:4px;line-height:1.35;"
    "border:1px solid rgba(128,128,128,.4);width:0;min-width:100%;box-sizing:border-box"
)
"""No width of its own, so that long lines scroll and do not widen the page."""
_NAMES = ("string", "comment", "keyword", "def", "builtin", "number")
SHEET = (
    f"<style>{markup.INKS}.run-browser .code{{"
    + "".join(
        f"--{each}:color-mix(in srgb,var(--jp-mirror-editor-{name}-color) 60%,"
        "var(--jp-ui-font-color0));"
        for each, name in zip("sckfbm", _NAMES, strict=True)
    )
    + "--plus:rgba(0,158,115,.2);--minus:rgba(213,94,0,.2);--place:rgba(128,128,128,.2);"
    + "--sign:inherit}.run-browser .jupyter-widget-tab>.lm-TabBar .lm-TabBar-tab"
    + "{flex:0 0 auto!important;padding:0 6px!important}</style>"
)
"""Colours of code, which are those of the page's theme but stand out from the ground of changed
lines, and tabs as wide as their words."""


def facts(view: RunView) -> str:
    """Evaluation and cost of a program as a table."""
    evaluation = view.evaluation
    rows: list[tuple[str, str]] = [("status", status_name(evaluation))]
    if evaluation.fitness is not None:
        rows.append(("fitness", f"{evaluation.fitness:.9g}"))
    rows += [(key, f"{value:.9g}") for key, value in evaluation.metrics.items()]
    if evaluation.seconds is not None:
        rows.append(("evaluation", f"{evaluation.seconds:.3g} s"))
    if view.child is not None:
        header = view.data.log.header.with_model(view.child.model)
        cost = cost_of_attempts(view.child.attempts, header.model, header.sampling)
        if view.child.seed >= 0:  # else the tool stated none
            rows.append(("seed", str(view.child.seed)))
        if view.child.model:
            rows.append(("model", view.child.model))
        if view.child.kept_out:
            rows.append(("kept out", view.child.kept_out))
        silent = not view.child.attempts and not header.source.startswith("evo")
        tokens, dollars = (None, None) if silent else (cost.tokens, cost.dollars)
        rows.append(("tokens", "unknown" if tokens is None else f"{tokens:,.0f}"))
        if header.model.is_llm:
            rows.append(("cost", "unknown" if dollars is None else f"${dollars:.6f}"))
    scores = [
        (f"instance {each.id}", each.status if each.score is None else f"{each.score:.9g}")
        for each in evaluation.instances
    ]
    return _table(("", ""), [*rows, *scores])


def error(view: RunView) -> str:
    """Returns the error, with what the program printed."""
    if view.evaluation.error:
        return _text(view.evaluation.error)
    if view.evaluation.status != "ok":
        return note("The log holds no message of this failure.")
    return note("The evaluation had nothing to complain of.")


def changes(view: RunView) -> tuple[str, str]:
    """What a child changed of its parent, in a sentence, and in colour and with signs."""
    pair = _pair_of(view)
    if isinstance(pair, str):
        return pair, ""
    before, after, parent = pair
    try:
        shown, added, removed = markup.difference(before, after, language=_language(view))
    except ValueError as error:
        return str(error), ""
    if not added + removed:
        return f"The same text as {name(parent)}.", ""
    text = f"{markup.counted(added, removed)}, against {name(parent)}."
    return text, f"<div style='{_BLOCK}'>{shown}</div>"


def _language(view: RunView) -> str:
    """The language of the run's programs, where it is not Python."""
    return view.data.log.header.task.language


def _pair_of(view: RunView) -> tuple[str, str, Place] | str:
    """The parent's program, the child's, and who the parent is; or why there are not both."""
    if view.program is None:
        return _no_text(view, "program")
    if view.place == (0, 0):
        return "The initial program rewrites nothing; see Program."
    if view.parent is None:
        return "An imported log does not say which program a child rewrote; see Program."
    before = program_of(view.data.log, view.parent)
    if before is None:
        return "The log does not hold the parent's program; see Program."
    return before, view.program, view.parent


def side_by_side(view: RunView) -> str:
    """The parent's program and the child's, line by line, in colours."""
    pair = _pair_of(view)
    if isinstance(pair, str):
        return note(pair)
    before, after, parent = pair[0].splitlines(), pair[1].splitlines(), pair[2]
    if max(len(before), len(after)) > MOST_LINES or sum(map(len, pair[:2])) > 10 * LONGEST:
        return note("The programs are too long to be compared.")
    old, new = (markup.coloured(lines, _language(view)) for lines in (before, after))
    rows = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        left, right = old[a:b], new[c:d]
        if kind == "equal" and len(left) > 8:
            gap = f"<tr><td colspan=2>{len(left) - 6} equal lines</td></tr>"
            rows += [*map(_pair, left[:3], right[:3]), gap, *map(_pair, left[-3:], right[-3:])]
            continue
        for one, other in itertools.zip_longest(left, right):
            rows.append(_pair(one, other, changed=kind != "equal"))
    head = f"<tr><th>{clean(name(parent))}</th><th>{clean(name(view.place))}</th></tr>"
    return (
        f"<div tabindex='0' class='code' style='{_BLOCK}'><table style='width:100%;"
        f"border-collapse:collapse'>{head}{''.join(rows)}</table></div>"
    )


def _pair(left: str | None, right: str | None, *, changed: bool = False) -> str:
    """Two lines beside each other."""
    cells = []
    for text, colour in ((left, "minus"), (right, "plus")):
        ground = f"background:var(--{colour});" if changed and text is not None else ""
        look = "vertical-align:top;width:50%;white-space:pre-wrap;text-align:left;"
        cells.append(f"<td style='{look}overflow-wrap:anywhere;{ground}'>{text or ''}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def program(view: RunView) -> str:
    """The program."""
    if view.program is None:
        return note(_no_text(view, "program"))
    return f"<div style='{_BLOCK}'>{markup.program(view.program, _language(view))}</div>"


def prompt(view: RunView) -> str:
    """The messages that asked for a child, made again from the log, with their context."""
    if view.child is None:
        return note("No call was made for the initial program.")
    log = view.data.log
    if log.header.source != "evo" or log.header.compact:
        return note(_no_text(view, "prompt"))
    try:
        asked = view.data.prompts(view.place[0])[view.place[1]]
    except (KeyError, ValueError) as error:
        return note(f"The prompt cannot be made again: {error}")
    same = asked.hash == view.child.prompt_hash
    text = "As it was sent" if same else "Not quite as it was sent (the log's hash is another)"
    planned = asked.planned
    parts = [f"{text}: {planned.operator} {' and '.join(map(name, planned.parents))}."]
    if planned.inspirations:
        parts.append(f"It also shows {' and '.join(map(name, planned.inspirations))}.")
    shown = [given for given, _ in log.advice if given <= view.place[0]]
    if shown and log.header.at_generation(view.place[0]).advice:
        parts.append(f"It shows the advice that was given before generation {shown[-1]}.")
    texts = [f"<b>{clean(each['role'])}</b>{_text(each['content'])}" for each in asked.messages]
    return "".join([note(" ".join(parts)), *texts])


def reply(view: RunView) -> str:
    """The model's reply, and its reasoning where the endpoint gives it apart."""
    if view.child is None:
        return note("No call was made for the initial program.")
    if view.child.reply is None:
        return note(_no_text(view, "reply"))
    text = _text(view.child.reply)
    if view.child.reasoning:
        text += f"<b>Reasoning</b>{_text(view.child.reasoning)}"
    return text


def attempts(view: RunView) -> str:
    """Every request made for a child."""
    if view.child is None:
        return note("No call was made for the initial program.")
    if not view.child.attempts:
        return note("The log holds nothing about the requests.")
    heads = ("", "status", "seconds", "prompt", "cached", "completion", "finish", "error")
    rows = [_attempt(number, each) for number, each in enumerate(view.child.attempts, start=1)]
    return _table(heads, rows) + note("Prompt, cached and completion are tokens.")


def child(view: RunView, without: Collection[str] = ()) -> str:
    """All texts of a child under heads that fold: facts, error, messages, reply, change, program.

    Args:
        view: The child.
        without: Heads that are left out.
    """
    sentence, changed = changes(view)
    notes = view.evaluation.notes
    parts: list[tuple[str, Callable[[RunView], str], bool]] = [
        ("Facts", facts, True),
        ("Error", error, bool(view.evaluation.error)),
        ("Notes", lambda _: f"<pre>{clean(notes or '')}</pre>", True),
        ("Messages", prompt, False),
        ("Reply", reply, False),
        ("What it changed", lambda _: note(sentence) + changed, True),
        ("Program", program, False),
        ("Requests", attempts, False),
    ]
    left_out = {*without, *(() if notes else ("Notes",))}
    folds = "".join(
        f"<details id='{head.lower().replace(' ', '-')}'{' open' if shown else ''}>"
        f"<summary>{head}</summary>{text(view)}</details>"
        for head, text, shown in parts
        if head not in left_out
    )
    title = name(view.place)
    return f"<h2>{clean(title[:1].upper() + title[1:])}</h2>{folds}"


def _attempt(number: int, attempt: Attempt) -> tuple[str, ...]:
    tokens = usage_tokens(attempt.usage)
    counts = ("unknown",) * 3 if tokens is None else tuple(f"{count:,}" for count in tokens)
    status = attempt.status + (f" ({attempt.http_status})" if attempt.http_status else "")
    status += " (from the response cache)" if attempt.cached else ""
    seconds = "unknown" if attempt.latency is None else f"{attempt.latency:.3g}"
    words = attempt.finish_reason or "", attempt.error or ""
    return (str(number), status, seconds, *counts, *words)


def _no_text(view: RunView, what: str) -> str:
    """Returns why a text is missing."""
    if view.data.log.header.compact:
        return f"This log is compact: it holds no {what}."
    if view.evaluation.status in ("no_reply", "no_program"):
        return f"There is no {what}: {view.evaluation.error or view.evaluation.status}"
    return f"The log holds no {what}."


def _text(text: str) -> str:
    left = len(text) - LONGEST
    more = note(f"{left:,} further characters are not shown.") if left > 0 else ""
    shown = clean(text[:LONGEST])
    return f"<pre tabindex='0' style='{_BLOCK};white-space:pre-wrap'>{shown}</pre>{more}"


def note(text: str) -> str:
    """A sentence that is not announced."""
    return f"<div style='{WIDE}'>{clean(text)}</div>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cell = "style='padding:1px 12px 1px 0;text-align:left;vertical-align:top'"
    top = "".join(f"<th {cell}>{clean(text)}</th>" for text in heads) if any(heads) else ""
    body = "".join(
        "<tr>" + "".join(f"<td {cell}>{clean(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table style='line-height:1.35'><tr>{top}</tr>{body}</table>"
