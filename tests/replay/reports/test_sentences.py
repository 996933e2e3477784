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
    assert "n = 3" in few
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
