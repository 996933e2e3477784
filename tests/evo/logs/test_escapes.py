"""A text out of a log is shown by a terminal and not obeyed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.logs.escapes import plain_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a\tb\nc\r\nd", "a\tb\nc\r\nd"),
        ("\x1b[2J", "\\x1b[2J"),
        ("done\rgone", "done\\rgone"),
        ("\r\r\n", "\\r\r\n"),
        ("\x00\x07\x08\x0b\x0c\x1f\x7f\x9b", "\\x00\\x07\\x08\\x0b\\x0c\\x1f\\x7f\\x9b"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\u200e\u061c\u2028", "\\u200e\\u061c\\u2028"),
        ("é ü 数 \u00a0", "é ü 数 \u00a0"),
    ],
)
def test_control_characters_are_escaped_and_ends_of_lines_stay(text: str, shown: str) -> None:
    assert plain_text(text) == shown


@given(st.text())
def test_what_is_shown_holds_no_control_and_stays_as_it_is(text: str) -> None:
    shown = plain_text(text)
    left = shown.replace("\r\n", "").replace("\n", "").replace("\t", "")
    assert not any(unicodedata.category(each) == "Cc" for each in left)
    assert not any(
        unicodedata.bidirectional(each)
        in {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"}
        for each in left
    )
    assert plain_text(shown) == shown
