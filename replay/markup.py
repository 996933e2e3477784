"""Strangers' texts as HTML that stays text, programs and their differences in colours, pages."""

from __future__ import annotations

import builtins
import difflib
import html
import keyword
import re
from pathlib import Path

from replay.ancestry import MOST_LINES

LONGEST = 60_000
"""Characters of a text that are shown."""

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Control characters, marks that reorder or hide text, and halves of characters."""

_BUILT_IN = (name for name in dir(builtins) if name[0].islower() and name not in keyword.kwlist)
_TOKEN = re.compile(
    r'''(?P<s>(?<!\w)[rbfuRBFU]{0,2}(?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\''''
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))"""
    r"|(?P<c>#[^\n]*)|(?<=\bdef )(?P<f>\w+)|(?<=\bclass )(?P<g>\w+)"
    rf"|\b(?P<k>{'|'.join(keyword.kwlist)})\b"
    rf"|(?<![\w.])(?P<b>{'|'.join(_BUILT_IN)})\b"
    r"|(?<![\w.])(?P<m>(?:0[xob][\da-fA-F_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+))"
)
"""Tokens of Python that have a colour: strings, comments, names that are defined, keywords,
built-ins and numbers. Whatever else a text holds stays as it is."""

SHEET = Path(__file__).with_name("page.css")
INKS = Path(__file__).with_name("code.css").read_text(encoding="utf-8")
"""Style sheet of `program` and `difference`: classes within `.code`."""


def page(title: str, body: str, *, script: str = "") -> str:
    """A whole page of HTML, light or dark as the reader's screen is, that needs no network."""
    rules = "default-src 'none'; img-src data: blob: file: 'self'; style-src 'unsafe-inline'; "
    rules += "script-src 'unsafe-inline' blob: file: 'self'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{clean(title)}</title>\n"
        f"<style>\n{SHEET.read_text(encoding='utf-8')}{INKS}</style></head>\n"
        f"<body>\n{body}\n"
        + (f"<script>\n{script}</script>\n" if script else "")
        + "</body></html>\n"
    )


def clean(text: str) -> str:
    """Escaped, with signs that act on the text around them shown by their number."""
    shown = _ACTING.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))
    return html.escape(shown)


def program(text: str) -> str:
    """Returns a program as HTML in colours, cut to a length that is still read."""
    left = len(text) - LONGEST
    lines = [f"<span>{line}</span>" for line in coloured(text[:LONGEST].splitlines())]
    if left > 0:
        lines.append(f"<span class='place'>{left:,} further characters are not shown</span>")
    return f"<pre class='code' tabindex='0'>{''.join(lines)}</pre>"


def difference(before: str, after: str, *, context: int = 3) -> tuple[str, int, int]:
    """A unified difference of two programs as HTML in colours; lines added and removed.

    ValueError if one of them is too long to be compared.
    """
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES or max(len(before), len(after)) > 10 * LONGEST:
        raise ValueError(f"programs of {len(old):,} and {len(new):,} lines are too long to compare")
    was, now = coloured(old), coloured(new)
    lines: list[str] = []
    added = removed = 0
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(context):
        lines.append(f"<span class='place'>line {group[0][3] + 1}</span>")
        for word, a, b, c, d in group:
            if word == "equal":
                lines += (f"<span>{line}</span>" for line in now[c:d])
                continue
            removed, added = removed + b - a, added + d - c
            lines += (f"<span class='minus' data-sign='-'>{line}</span>" for line in was[a:b])
            lines += (f"<span class='plus' data-sign='+'>{line}</span>" for line in now[c:d])
    return f"<pre class='code' tabindex='0'>{''.join(lines)}</pre>", added, removed


def coloured(lines: list[str]) -> list[str]:
    """The lines of a program as HTML; tokens that go over lines are coloured on each."""
    text, parts, at = "\n".join(lines), [], 0
    for found in _TOKEN.finditer(text):
        parts.append(clean(text[at : found.start()]))
        kind, at = found.lastgroup, found.end()
        pieces = clean(found[0]).split("\n")
        parts.append("\n".join(f"<i class='{kind}'>{piece}</i>" for piece in pieces))
    parts.append(clean(text[at:]))
    return "".join(parts).split("\n") if lines else []
