"""The tables of a group of runs: one that cannot be made is a sentence in its place."""

import dataclasses
import html
import math

import numpy as np
import pytest

import replay
from replay.cli.entry import main
from replay.reports import SECTIONS, stack
from replay.reports.asked import sections_of
from replay.reports.tables import Section, exact


def failing(group, tau):
    raise KeyError("nope")


def refusing(group, tau):
    raise ValueError("these runs have no tokens")


def returning_text(group, tau):
    return "a table"


def of_the_runs(group, tau):
    return group.section("Runs", "runs", group.tables.runs, ["all"])


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (of_the_runs, "makes of cells, got a table of run, "),
        (failing, "the function of the section 'mine' failed: KeyError: 'nope'"),
        (refusing, "these runs have no tokens"),
        (returning_text, "expected the function of the section 'mine' to return a table"),
    ],
)
def test_a_table_that_errs_is_a_sentence_in_its_place(logs, tmp_path, capsys, section, words):
    SECTIONS["mine"] = section
    try:
        assert main(["report", str(logs), "-o", str(tmp_path / "page.svg")]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
        page = replay.site(logs, tmp_path / "site").read_text()
    finally:
        SECTIONS.pop("mine")
    assert "Mine: not made." in page
    assert words in html.unescape(page)
    assert "Children by status" in page


def table(title="Made"):
    return Section(title=title, task="t", model="m", is_llm=True, heading="N", cells=stack({}))


def asked(makers, ours=()):
    """The tables of a group of runs of task t by model m."""
    return sections_of(
        makers,
        lambda title, heading, cells, notes: dataclasses.replace(
            table(title), heading=heading, cells=cells, notes=tuple(notes)
        ),
        ours,
    )


def test_tables_keep_their_order_and_what_does_not_apply_is_left_out():
    found = asked({"b": lambda: table("b"), "none": lambda: None, "a": lambda: table("a")}, {"b"})
    assert [each.title for each in found] == ["b", "a"]
    assert asked({}) == []


def test_a_failure_of_our_own_table_is_raised_and_one_that_was_added_is_told():
    def fail():
        raise ValueError("no tokens")

    with pytest.raises(ValueError, match=r"^no tokens$"):
        asked({"cost of runs": fail}, {"cost of runs"})
    found, after = asked({"cost of runs": fail, "after": table})
    assert found.title == "Cost of runs"
    assert found.words == (("Cost of runs: not made.", "no tokens"),)
    assert (found.task, found.model, len(found.cells)) == ("t", "m", 0)
    assert after.title == "Made"


@pytest.mark.parametrize("made", ["a table", 0, [table()]])
def test_what_is_no_table_is_named_by_its_type(made):
    [found] = asked({"mine": lambda: made})
    [(_, said)] = found.words
    assert f"or None, got {type(made).__name__}" in said


@pytest.mark.parametrize(
    ("rows", "given", "words"),
    [
        ({4: [exact("q", 1.0, 3, "count")]}, {}, "row: expected a text, got 4"),
        ({"a": [exact(3, 1.0, 3, "count")]}, {}, "quantity: expected a text, got 3"),
        ({"a": [exact("q", "x", 3, "count")]}, {}, "value: expected a number, which may be NaN"),
        ({"a": [exact("q", math.nan, 3, "count")]}, {"title": 3}, "title: expected a text, got 3"),
        ({}, {"notes": (3,)}, "notes: expected a text, got 3"),
        ({}, {"cells": [1]}, "cells: expected what `replay.reports.stack` makes of cells, got [1]"),
    ],
)
def test_what_no_report_can_write_is_a_sentence_in_its_place(rows, given, words):
    made = dataclasses.replace(table(), **{"cells": stack(rows), **given})
    [found] = asked({"mine": lambda: made})
    assert words in found.words[0][1]


@pytest.mark.parametrize("value", [1, 1.5, np.int64(2), np.float64(2.5), math.nan, math.inf])
def test_any_number_is_written(value):
    made = dataclasses.replace(table(), cells=stack({"a": [exact("q", value, 3, "fitness")]}))
    assert asked({"mine": lambda: made}) == [made]


def test_interrupting_a_table_stops_the_report():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked({"mine": interrupt})
