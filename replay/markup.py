"""Strangers' texts as HTML that stays text, programs and their differences in colours, pages."""

from __future__ import annotations

import difflib
import functools
import html
import itertools
import re
from pathlib import Path

from evo.logs.languages import LANGUAGES, fence_of, named
from evo.logs.several import unpacked
from replay.logs.lineage import MOST_LINES

LONGEST = 60_000
"""Characters of a text that are shown."""

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Control characters, marks that reorder or hide text, and halves of characters."""

_KINDS = {
    "Comment": "c", "Literal.String": "s", "Literal.Number": "m", "Keyword": "k",
    "Operator.Word": "k", "Name.Function": "f", "Name.Class": "f", "Name.Builtin": "b",
    "Name.Exception": "b",
}  # fmt: skip
"""Class of the tokens that have a colour; whatever else a text holds stays as it is."""

SHEET = Path(__file__).with_name("page.css")
INKS = Path(__file__).with_name("code.css").read_text(encoding="utf-8")
"""Style sheet of `program` and `difference`: classes within `.code`."""


def page(title: str, body: str, *, script: str = "", connect: bool = False) -> str:
    """A whole page of HTML, light or dark as the reader's screen is, that needs no network.

    The script is a module: it runs once the page is there, and its names are its own. With
    `connect` it may ask the server that the page came from.
    """
    rules = "default-src 'none'; img-src data: blob: file: 'self'; style-src 'unsafe-inline'; "
    rules += "script-src 'unsafe-inline' blob: file: 'self'"
    rules += "; connect-src 'self'" if connect else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f'<link rel="icon" href="data:,">\n<title>{clean(title)}</title>\n'
        f"<style>\n{SHEET.read_text(encoding='utf-8')}{INKS}</style></head>\n"
        f"<body>\n{body}\n"
        + (f'<script type="module">\n{script}</script>\n' if script else "")
        + "</body></html>\n"
    )


def card(first: str, then: str, details: str = "", table: str = "") -> str:
    """A result in a cell: its verdict, what it rests on below, and the rest folded away.

    Args:
        first: The verdict, a sentence.
        then: Its n, and what would change it.
        details: Further lines.
        table: HTML, which stands open.
    """
    text = f"<p><strong>{html.escape(first)}</strong><br>{html.escape(then)}</p>{table}"
    if not details:
        return text
    lines = "<br>".join(html.escape(line) for line in details.splitlines())
    return f"{text}<details><summary>details</summary><p>{lines}</p></details>"


def middle_cut(text: str, most: int) -> str:
    """A name of at most so many characters, cut in its middle: names differ at their ends.

    Example:
        >>> middle_cut("circle_packing-offline-N1-s43", 15)
        'circle_…-N1-s43'
    """
    if len(text) <= most:
        return text
    kept = max(most - 1, 2)
    return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


def clean(text: str) -> str:
    """Escaped, with signs that act on the text around them shown by their number."""
    shown = _ACTING.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))
    return html.escape(shown)


def program(text: str, language: str = "") -> str:
    """Returns a program as HTML in colours, cut to a length that is still read.

    Each of several files stands below its name.

    Args:
        text: The program.
        language: One of `evo.logs.languages`, where it is not Python.
    """
    files = unpacked(text)
    if files is not None:
        return "".join(
            f"{_named(name)}{_program(each, named(fence_of(name)))}" for name, each in files.items()
        )
    return _program(text, language)


def _named(name: str) -> str:
    return f"<div class='file'><b>{clean(name)}</b></div>"


def _program(text: str, language: str) -> str:
    left = len(text) - LONGEST
    lines = [f"<span>{line}</span>" for line in coloured(text[:LONGEST].splitlines(), language)]
    if left > 0:
        lines.append(f"<span class='place'>{left:,} further characters are not shown</span>")
    return f"<pre class='code' tabindex='0'>{''.join(lines)}</pre>"


def difference(before: str, after: str, *, language: str = "") -> tuple[str, int, int]:
    """A unified difference of two programs as HTML in colours; lines added and removed.

    Of several files, each that differs stands below its name. ValueError if one of them is too long
    to be compared.
    """
    files, others = unpacked(before), unpacked(after)
    if files is None or others is None:
        return _difference(before, after, language)
    parts, added, removed = [], 0, 0
    for name in dict.fromkeys([*files, *others]):
        if files.get(name) != others.get(name):
            shown, more, less = _difference(
                files.get(name, ""), others.get(name, ""), named(fence_of(name))
            )
            parts.append(f"{_named(name)}{shown}")
            added, removed = added + more, removed + less
    return "".join(parts), added, removed


def _difference(before: str, after: str, language: str) -> tuple[str, int, int]:
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES or max(len(before), len(after)) > 10 * LONGEST:
        raise ValueError(f"programs of {len(old):,} and {len(new):,} lines are too long to compare")
    was, now = coloured(old, language), coloured(new, language)
    lines: list[str] = []
    added = removed = 0
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes():
        lines.append(f"<span class='place'>line {group[0][3] + 1}</span>")
        for word, a, b, c, d in group:
            if word == "equal":
                lines += (f"<span>{line}</span>" for line in now[c:d])
                continue
            removed, added = removed + b - a, added + d - c
            lines += (f"<span class='minus' data-sign='-'>{line}</span>" for line in was[a:b])
            lines += (f"<span class='plus' data-sign='+'>{line}</span>" for line in now[c:d])
    return f"<pre class='code' tabindex='0'>{''.join(lines)}</pre>", added, removed


def counted(added: int, removed: int) -> str:
    """The numbers of lines added and removed, in words."""
    return f"{added} line{'' if added == 1 else 's'} added, {removed} removed"


def coloured(lines: list[str], language: str = "") -> list[str]:
    """The lines of a program as HTML; tokens that go over lines are coloured on each."""
    # Runs of lines with nothing but blanks would take the lexer a time that is squared.
    text = "\n".join(line if line.strip() else "" for line in lines)
    shown = _coloured(text, language).split("\n") if lines else []
    return [new if line.strip() else clean(line) for line, new in zip(lines, shown, strict=True)]


@functools.lru_cache(maxsize=64)  # of a child as well as of its parent
def _coloured(text: str, language: str) -> str:
    if len(text) > LONGEST:
        return clean(text)
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(LANGUAGES[language].lexer if language in LANGUAGES else "python")
    tokens = lexer.get_tokens_unprocessed(f"{text}\n")
    parts = []
    for kind, found in itertools.groupby(tokens, lambda token: _kind(token[1])):
        pieces = clean("".join(piece for _, _, piece in found)).split("\n")
        parts.append("\n".join(f"<i class='{kind}'>{e}</i>" if kind else e for e in pieces))
    return "".join(parts).rpartition("\n")[0]


@functools.cache
def _kind(token: tuple[str, ...]) -> str:
    """Class of a type of tokens, from `Token.Name.Builtin.Pseudo` upwards; empty: no colour."""
    names = [".".join(token[:size]) for size in range(len(token), 0, -1)]
    return next((_KINDS[name] for name in names if name in _KINDS), "")
