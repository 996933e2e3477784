"""A run without a complete generation, which crashed or has just begun, is counted as no run."""

import numpy as np
import pandas as pd
import pytest
from samples import write_sample
from synthetic_runs import as_frame

import replay
from replay.logs.frames import ReplayWarning
from replay.reports.decision import decision_section
from replay.reports.forms import FORMATS
from replay.reports.report import groups, sections

SAID = "2 of 12 runs have no complete generation and are not counted"


def runs(seed=0):
    steps = np.random.default_rng(seed).exponential(0.05, (10, 6)).cumsum(axis=1)
    return as_frame(np.c_[np.zeros(10), 1 - np.exp(-steps)], children=2, seeds=range(10))


def with_crashed(frame):
    """Two runs more, of which there is the initial program alone."""
    first = frame[(frame["generation"] == 0) & (frame["seed"] < 2)]
    crashed = first.assign(run=first["run"] + "-crashed", seed=first["seed"] + 50)
    return pd.concat([frame, crashed], ignore_index=True)


QUESTIONS = {
    "judge": lambda frame: replay.judge(frame, "thompson", "single").paragraph,
    "simulate": lambda frame: (
        replay.simulate(frame, "thompson", rounds=6, replicates=9, arms=2).best_fitness
    ),
    "depth_breadth": lambda frame: replay.depth_breadth(frame, resamples=20).cells.to_string(),
    "time_to_threshold": lambda frame: str(replay.time_to_threshold(frame, 0.1, share=0.5)),
    "ledger": lambda frame: replay.ledger({"a": frame}, policies=()).to_string(),
    "compare": lambda frame: (
        replay.compare(frame.assign(half=frame["seed"] % 2), by="half").paragraph
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_that_of_the_other_runs_and_says_so(question):
    alone = QUESTIONS[question](runs())
    with pytest.warns(ReplayWarning, match=SAID):
        found = QUESTIONS[question](with_crashed(runs()))
    np.testing.assert_array_equal(found, alone)


def test_a_contest_notes_it():
    alone, found = (
        replay.compete(frame, ["thompson"], replicates=50)
        for frame in (runs(), with_crashed(runs()))
    )
    pd.testing.assert_frame_equal(found.curves, alone.curves)
    assert {*found.notes} - {*alone.notes} == {SAID}


def test_groups_of_runs_are_compared_without_empty_ones():
    frame = with_crashed(runs()).assign(half=lambda f: f["seed"] % 2)
    with pytest.warns(ReplayWarning, match="1 of 6 runs have no complete generation"):
        found = replay.judge(frame, {"half": 0}, {"half": 1})
    alone = frame[frame["seed"] < 50]
    assert found.paragraph == replay.judge(alone, {"half": 0}, {"half": 1}).paragraph


def test_runs_that_have_all_just_begun_are_shown():
    begun = runs()[lambda f: f["generation"] == 0]
    assert replay.time_to_threshold(begun, 0.0).n == 10


def test_a_report_counts_runs_that_went_on_and_says_how_many_did_not(tmp_path):
    for seed in range(5):
        write_sample(tmp_path / f"{seed}.jsonl", seed=seed)
    write_sample(tmp_path / "crashed.jsonl", seed=9, generations=0)
    tables = replay.load_tables(tmp_path, progress=False)
    [group] = groups(tables)
    [fitness, *_] = sections(group)
    assert fitness.cells.set_index("quantity")["value"]["runs"] == 5
    note = "1 of 6 runs have no complete generation and are not counted; their calls are part"
    assert any(each.startswith(note) for each in fitness.notes)
    words = FORMATS["plain"]([decision_section(tables, None)])
    assert "highest of 5 runs" in " ".join(words.split())
