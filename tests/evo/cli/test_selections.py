"""A selection as a table: one row for each configuration, and a line that says how it ended."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import write_sample

from evo.cli.selections import print_selection
from evo.logs.log import read_log
from evo.policies.draws import Draws
from evo.studies.selection import find_selector
from evo.studies.selection.base import Terms
from evo.studies.selection.race import (
    LoggedSamples,
    Selection,
    Standing,
    race,
    rewards_of,
    selection_of,
)

SIZE = 60
CALLS = {"calls": np.full(1, 3.0)}


def selected(
    selector: str = "arm_elimination", *, means: Any = (0.2, 0.9), **about: Any
) -> Selection:
    """A race of constant configurations among logged samples; the last mean may lie beyond 1."""
    outcomes = np.repeat(np.array(means, float)[:, None], SIZE, axis=1)
    terms, rounds = Terms(size=SIZE, batch=5), list[Standing]()
    samples = LoggedSamples(rewards_of(outcomes, terms), costs=CALLS)
    build = find_selector(selector)
    races = race(build((1, len(means)), terms, rng=Draws(0, 1)), samples, rounds.append)
    about = {"labels": tuple("abc"[: len(means)]), "path": Path("folder"), **about}
    return selection_of(races, rounds, outcomes, terms, selector=selector, **about)


def printed(
    found: Selection, capsys: pytest.CaptureFixture[str], samples: str = "problems"
) -> tuple[dict[str, list[str]], str]:
    """The words of each row by configuration, and the last line."""
    print_selection(found, samples)
    lines = capsys.readouterr().out.splitlines()
    rows = {words[0]: words[1:] for line in lines[:-1] if (words := line.split())}
    return rows, lines[-1]


def test_a_row_says_what_was_taken_and_to_which_one_it_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = selected()
    rows, last = printed(found, capsys)
    loser, winner = (int(each) for each in found.samples)
    assert rows["a"][:4] == ["no", str(loser), "0", "0.20000"]
    assert rows["b"][:4] == ["yes", str(winner), "0", "0.90000"]
    assert rows["a"][6] == str(3 * loser)
    rival, shared, p = rows["a"][7:]
    assert (rival, int(shared)) == ("b", found.losses.shared[0, 0])
    assert float(p) <= found.decisive
    assert len(rows["b"]) == 7  # it lost to none
    assert last.startswith("winner: b (certain, delta 0.05, anytime; p at any time, decisive at")
    assert f"; {loser + winner} of {2 * SIZE} problems; folder" in last


def test_where_no_bets_decided_there_is_no_p(capsys: pytest.CaptureFixture[str]) -> None:
    rows, last = printed(selected("brute_force"), capsys)
    assert "p at any time" not in last
    assert rows["a"][1] == rows["b"][1] == str(SIZE)
    assert len(rows["a"]) == 7


@pytest.mark.parametrize(
    ("samples", "mean"), [("problems", "mean score"), ("runs", "mean fitness")]
)
def test_the_heads_name_what_was_sampled(
    samples: str, mean: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_selection(selected(), samples)
    said = capsys.readouterr().out
    assert mean in said
    assert f"shared {samples}" in said
    assert re.search(rf"of {2 * SIZE} {samples};", said)


def test_what_lies_outside_the_bounds_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = selected("brute_force", means=(0.2, 1.1))
    assert f"; {SIZE} outside the bounds, clipped;" in printed(found, capsys)[1]
    assert "clipped" not in printed(selected("brute_force"), capsys)[1]


def test_who_leads_is_no_winner_and_there_may_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    open_ = dataclasses.replace(selected(), end="budget")
    assert printed(open_, capsys)[1].startswith("b leads, not decided (budget, ")
    assert printed(dataclasses.replace(open_, winner=None), capsys)[1].startswith("none is left (")


def test_runs_that_were_cut_short_are_counted_with_their_calls_where_nothing_is_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, begun = (read_log(write_sample(tmp_path / f"{k}.jsonl", seed=k)) for k in (1, 2))
    found = selected(path=tmp_path, logs=((whole,), (None,)))
    more = f"; {len(begun.calls)} calls more went into 1 run cut short;"
    for decided in (False, True):
        shown = found if decided else dataclasses.replace(found, end="budget")
        assert (more in printed(shown, capsys, "runs")[1]) != decided
        assert more not in printed(shown, capsys, "problems")[1]
    both = dataclasses.replace(found, end="budget", logs=((whole,), (begun,)))
    assert "cut short" not in printed(both, capsys, "runs")[1]
