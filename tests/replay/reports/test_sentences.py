import html
import re

import numpy as np
import pandas as pd
import pytest

import replay
from replay.reports.sentences import in_words


@pytest.mark.parametrize(("value", "text"), [
    (0.98765, "0.988"), (12, "12"), (np.int64(5120), "5,120"), (2.5e6, "2.5M"), (True, "True"),
    (np.float64(3.0), "3"), (float("nan"), "unknown"), (None, "unknown"), ("deep", "deep"),
    (["a", "b", 0.12345], "a, b and 0.123"), ([], "none"), (pd.Series([1.0, 2.0]), "1 and 2"),
])  # fmt: skip
def test_values_are_put_into_words(value, text):
    assert in_words(value) == text


def test_an_interval_is_told_with_its_limits_and_its_runs():
    values = np.linspace(0, 1, 10)
    found = replay.interval(values)
    text = replay.say("It is {it}.", it=found)
    assert text.startswith("It is 0.5 [")
    assert text.endswith(f"({found.label}, n = 10).")
    few = replay.say("{it}", it=replay.interval(values[:3]))
    assert few.endswith("(n = 3 is too small for an interval (needs 5))")
    same = replay.say("{it}", it=replay.interval(np.ones(10)))
    assert same == "1 (n = 10, all values are equal: no spread to judge by)"
    assert "[" not in few


def test_a_table_is_told_row_by_row_and_formats_are_kept():
    table = pd.DataFrame({"gain": [0.12345, -2.0]}, index=pd.Index(["a", "b"], name="task"))
    text = replay.say("{task}: {gain} of {of:.1%} at {at[0]}.", table, of=0.25, at=[7])
    assert text.splitlines() == ["a: 0.123 of 25.0% at 7.  ", "b: -2 of 25.0% at 7."]
    assert text._repr_markdown_() == text
    assert replay.say("{task}", table.assign(task=["x", "y"])) == "x  \ny"


@pytest.mark.parametrize("template", ["{none}", "{known.none}", "{}"])
def test_a_name_that_is_not_there_is_refused(template):
    with pytest.raises(ValueError, match="expected names among known, got"):
        replay.say(template, known=1)


@pytest.mark.parametrize(
    "data",
    ["<number>", "a_b_c", "*x*", "`x`", "[a](javascript:b)", "$x$ and $y$", "&lt;", "a | b",
     "\\(x\\)", "<script>alert(1)</script>", "# head", "a\n# head", "![x](http://y/z.png)"],
)  # fmt: skip
def test_data_are_shown_as_they_are_and_never_act_as_markup(data):
    """Mistune, which notebooks are converted with, renders the text; its own letters come back."""
    mistune = pytest.importorskip("mistune")
    said = replay.say("It was **asked** of {model}.", model=data)
    assert said == f"It was **asked** of {data}."
    render = mistune.create_markdown(escape=False, plugins=["table", "strikethrough"])
    page = render(said._repr_markdown_())
    text = re.sub(r"</?(p|strong|span)>", "", page).strip()
    assert "<" not in text
    assert html.unescape(text) == f"It was asked of {' '.join(data.splitlines())}."
    assert page.count("<strong>") == 1
    assert page.count("$") == page.count("<span>$</span>")  # a pair of them would be a formula


def test_data_between_backticks_stay_within_them():
    said = replay.say("`{a}` less `{b}`: {c}", a="best_of_n", b="x` <b>y</b>", c="best_of_n")
    assert said == "`best_of_n` less `x` <b>y</b>`: best_of_n"
    assert (
        said._repr_markdown_()
        == "`best_of_n` less `x\N{MODIFIER LETTER GRAVE ACCENT} <b>y</b>`: best&#95;of&#95;n"
    )
