import html
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from looks import contrast

from replay import markup
from replay.markup import LONGEST, clean, counted, difference, middle_cut, program

INKS = {
    "code": ["s", "c", "k", "f", "b", "m", "sign"],
    "page": ["ink", "muted", "accent", "better", "timeout"],
}
GROUNDS = {"code": ["plus", "minus", "place"], "page": ["ground", "soft", "chosen"]}

BEFORE = 'def f(x):\n    """Say <b>\n    more."""\n    return x + 1  # one\n'
AFTER = BEFORE.replace("x + 1", "x * 2")


def text_of(markup):
    """What a browser shows of it, line by line."""
    lines = re.findall(r"<span[^>]*>(.*?)</span>", markup, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in lines]


@pytest.mark.parametrize("dark", [False, True])
def test_every_ink_of_the_style_sheets_is_read_on_every_ground(dark):
    colours = {}
    for name in ("page", "code"):
        sheet = (Path(markup.__file__).parent / f"{name}.css").read_text()
        parts = sheet.split("@media screen and (prefers-color-scheme: dark)")
        colours |= {name: dict(re.findall(r"--(\w+): (#\w+);", parts[int(dark)]))}
    grounds = {**colours["page"], **colours["code"]}
    for name, inks in INKS.items():
        low = {
            (ink, ground): round(contrast(colours[name][ink], grounds[ground]), 2)
            for ink in inks
            for ground in {*GROUNDS["page"], *GROUNDS[name]}
            if contrast(colours[name][ink], grounds[ground]) < 4.5
        }
        assert low == {}


def test_tokens_over_lines_are_coloured_on_each():
    shown = program(BEFORE)
    assert text_of(shown) == BEFORE.splitlines()
    assert shown.count("<i class='s'>") == 2
    assert "<i class='k'>return</i>" in shown
    assert "<i class='c'># one</i>" in shown
    assert "<b>" not in shown


def test_a_difference_has_what_was_added_and_removed():
    shown, added, removed = difference(BEFORE, AFTER)
    assert (added, removed) == (1, 1)
    place, *lines = text_of(shown)
    assert place == "line 1"
    assert lines == [*BEFORE.splitlines(), AFTER.splitlines()[-1]]
    assert re.findall(r"data-sign='(.)'", shown) == ["-", "+"]
    with pytest.raises(ValueError, match="too long"):
        difference("a\n" * 6000, AFTER)
    assert "<b>" not in difference("<b>" * 30_000, "<b>")[0]  # too long for colours


@example("\x1f")
@given(st.text(alphabet=st.sampled_from("'\"#\\\n<>&rb def0x\u202e\x1f"), max_size=60))
def test_whatever_a_program_is_it_stays_text(text):
    shown = [html.unescape(clean(line)) for line in text.splitlines()]
    assert text_of(program(text)) == shown
    assert set(re.findall(r"<(/?\w+)", program(text))) <= {
        "pre",
        "/pre",
        "span",
        "/span",
        "i",
        "/i",
    }


def test_a_difference_counts_what_was_added_and_what_was_removed():
    shown, added, removed = difference("a\nb\nc\n", "a\nx\ny\nz\nb\n")
    assert (added, removed) == (3, 1)
    assert (shown.count("class='plus'"), shown.count("class='minus'")) == (3, 1)


@pytest.mark.parametrize(("size", "words"), [(LONGEST, ""), (LONGEST + 1, "1 further characters")])
def test_a_program_is_cut_behind_the_longest_that_is_shown(size, words):
    shown = program("z" * size)
    assert shown.count("z") == LONGEST
    assert ("further characters are not shown" in shown) == bool(words)
    assert words in shown


def test_one_line_is_singular():
    assert counted(1, 3) == "1 line added, 3 removed"
    assert counted(0, 1) == "0 lines added, 1 removed"


@given(st.text(max_size=60), st.integers(3, 40))
def test_a_name_is_cut_in_its_middle(text, most):
    shown = middle_cut(text, most)
    assert len(shown) == min(len(text), most)
    if len(text) > most:
        head, tail = shown[: most - 1 - (most - 1) // 2], shown[len(shown) - (most - 1) // 2 :]
        assert (text.startswith(head), text.endswith(tail)) == (True, True)
    else:
        assert shown == text
