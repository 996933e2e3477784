"""Sentences made from data, so that what a text states is what the data hold."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from replay.statistics.intervals import Interval
from replay.statistics.numbers import number, with_limits


class MarkedText(str):
    """A text that notebooks show as Markdown, in which data cannot act as markup."""

    __slots__ = ("_markdown",)
    _markdown: str

    def __new__(cls, text: str, markdown: str | None = None) -> MarkedText:
        """Takes the text as it is, and as Markdown whose data are escaped."""
        made = super().__new__(cls, text)
        made._markdown = text if markdown is None else markdown
        return made

    def _repr_markdown_(self) -> str:
        return self._markdown


class _Words(string.Formatter):
    """Fills a template; a field without a format of its own is put into words."""

    def format_field(self, value: object, format_spec: str) -> str:
        return super().format_field(value, format_spec) if format_spec else in_words(value)


_MARKUP = re.compile(r"[\\`*_\[\]<>&~|#]")


def escaped(text: str, *, code: bool = False) -> str:
    """Data within Markdown: shown as they are, whatever signs they hold; `code`: between backticks.

    References to characters never act as markup, and a dollar sign alone in its element begins no
    formula.
    """
    line = " ".join(text.splitlines())
    if code:
        return line.replace("`", "\N{MODIFIER LETTER GRAVE ACCENT}")
    shown = _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", line)
    return shown.replace("$", "<span>$</span>")


def _filled(template: str, known: Mapping[str, object]) -> MarkedText:
    """A template with its fields filled, as plain text and as Markdown."""
    words = _Words()
    plain, marked = [], []
    code = False
    for literal, field, form, conversion in words.parse(template):
        plain.append(literal)
        marked.append(literal)
        code ^= literal.count("`") % 2 == 1
        if field is not None:
            value, _ = words.get_field(field, (), known)
            value = words.convert_field(value, conversion) if conversion else value
            text = words.format_field(value, words.vformat(form or "", (), known))
            plain.append(text)
            marked.append(escaped(text, code=code))
    return MarkedText("".join(plain), "".join(marked))


def say(
    template: str,
    table: pd.DataFrame | Iterable[Mapping[str, object]] | None = None,
    /,
    **values: object,
) -> MarkedText:
    """Returns a text whose names in braces are filled with values: one for each row of a table.

    Numbers get three digits, an interval its limits and the number of runs, lists their commas.
    The template is Markdown; what it is filled with is data, and is shown as it is.
    Attributes and items can be named, as in `{verdict.effect}`, and formats given, as in `{x:.1%}`.

    Example:
        >>> replay.say("{task}: {runs} runs, best {fitness}.", task="mmd", runs=10, fitness=0.98765)
        'mmd: 10 runs, best 0.988.'

    Args:
        template: The sentence, with names in braces.
        table: Rows, whose columns are names too; their texts follow each other, a line each. None:
            there is one text.
        values: What the names stand for; a column of the table goes before.

    Returns:
        A text, which notebooks show as Markdown with all data escaped.

    Raises:
        ValueError: The template names something that is not there.
    """
    rows: Iterable[Mapping[Any, object]] = [{}] if table is None else table  # type: ignore[assignment]
    if isinstance(table, pd.DataFrame):
        new = [name for name in table.index.names if name is not None and name not in table]
        rows = (table.reset_index() if new else table).to_dict("records")
    texts = []
    for row in rows:
        known = {**values, **{str(name): value for name, value in row.items()}}
        try:
            texts.append(_filled(template, known))
        except (KeyError, AttributeError, IndexError) as error:
            raise ValueError(
                f"expected names among {', '.join(sorted(known)) or 'none'}, got {template!r}: "
                f"{error}"
            ) from error
    return MarkedText("  \n".join(texts), "  \n".join(text._repr_markdown_() for text in texts))


def in_words(value: object) -> str:
    """A value as a reader should see it."""
    if isinstance(value, Interval) and isinstance(value.value, float):
        if math.isnan(value.low):
            counted = "" if value.note.startswith(f"n = {value.n} ") else f"n = {value.n}, "
            return f"{number(value.value)} ({counted}{value.note or 'no interval'})"
        found = with_limits(value.value, value.low, value.high, number)
        return f"{found} ({value.label}, n = {value.n})"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "unknown"
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        whole = float(value).is_integer() and abs(float(value)) < 1e5
        return f"{int(value):,}" if whole else number(float(value))
    if isinstance(value, Iterable) and not isinstance(value, str):
        *others, last = [in_words(each) for each in value] or ["none"]
        return " and ".join([", ".join(others), last] if others else [last])
    return str(value)
