"""What programs that ran into their time limit cost."""

from types import SimpleNamespace

import pandas as pd

from replay.reports.timeouts import timeouts_of_tables


def said(*rows):
    names = ["status", "evaluation_seconds", "inherited", "repeats"]
    return [*timeouts_of_tables(SimpleNamespace(children=pd.DataFrame(rows, columns=names)))]


def test_late_programs_are_counted_among_those_that_were_evaluated():
    [words] = said(
        ("timeout", 30.0, False, None), ("timeout", 31.5, False, None), ("ok", 1.0, False, None),
        ("error", 1.0, False, None), ("no_reply", 0.0, False, None),
        ("timeout", 99.0, True, None), ("timeout", 99.0, False, "another run"),
    )  # fmt: skip
    assert words == "2 of 4 programs ran into their time limit: 61.5 s of evaluation"


def test_where_none_was_late_nothing_is_said():
    assert said(("ok", 1.0, False, None), ("timeout", 9.0, True, None)) == []


def test_a_time_that_is_not_recorded_is_no_zero():
    nan = float("nan")
    [words] = said(("timeout", nan, False, None), ("ok", 1.0, False, None))
    assert words == "1 of 2 programs ran into their time limit: how long they took is not recorded"
    [words] = said(("timeout", nan, False, None), ("timeout", 2.5, False, None))
    assert words.endswith(
        "time limit: at least 2.5 s of evaluation, without 1 whose time is not recorded"
    )
