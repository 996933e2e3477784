"""The curves of runs: grouped by a column, filtered, against a cost, near the optimum."""

import contextlib
import json
import re

import pandas as pd
import pytest
from synthetic_runs import chain_runs

import replay
from replay.explorers import explore_curves
from replay.plots import charts
from replay.plots.chart import pack


@pytest.fixture(scope="module")
def frame():
    made = chain_runs(budget=16, sizes=(2, 4))[0]
    return made.assign(prompt=made["seed"].map(lambda seed: "long" if seed % 2 else "short"))


def drawn(explorer):
    """The panels on the screen."""
    return json.loads(explorer._screen.chart)["panels"]


def panels_of(chart):
    return json.loads(pack(chart))["panels"]


def test_a_column_groups_and_colours_the_runs(frame):
    with contextlib.closing(explore_curves(frame)) as shown:
        assert drawn(shown) == panels_of(charts.trajectories(frame, x="calls"))
        assert {"prompt", "children"} <= {*shown.controls["by"].options}
        assert "best_fitness" not in shown.controls["by"].options  # it varies within runs
        assert re.search(r"N = 2: 0\.\d+ \[.*\] at 16, n = 10", shown.words)
        shown.controls["by"].value = "prompt"
        assert drawn(shown) == panels_of(charts.trajectories(frame, x="calls", by="prompt"))
        shown.controls["together"].value = True
        shown.controls["scale"].value = shown.controls["scale"].options[1]
        wanted = charts.trajectories(frame, x="calls", by="prompt", together=True, gap=True)
        assert drawn(shown) == panels_of(wanted)
        assert "by='prompt', together=True, gap=True" in shown.code


def test_runs_that_do_not_meet_a_condition_are_hidden(frame):
    where = "prompt == 'long' and children == 4"
    with contextlib.closing(explore_curves(frame, where=where, x="generation")) as shown:
        kept = frame[(frame["prompt"] == "long") & (frame["children"] == 4)]
        assert drawn(shown) == panels_of(charts.trajectories(kept))
        assert eval(
            shown.code, {"replay": replay, "frame": frame}
        ).lines  # the stated call draws it
        before = drawn(shown)
        for wrong, said in (
            ("children >", "expected a condition"),
            ("children == 3", "no run has"),
        ):
            shown.controls["where"].value = wrong
            assert said in shown._refusal.value
            assert drawn(shown) == before
            assert "replay-refused" in shown.controls["where"]._dom_classes
            assert said not in shown._words.value  # which tells of the picture
        shown.controls["where"].value = where
        assert shown._refusal.value == ""
        assert shown._refusal.layout.display == "none"
        assert "replay-refused" not in shown.controls["where"]._dom_classes


def test_curves_are_a_tab(frame):
    with contextlib.closing(replay.explore(frame)) as tabs:
        assert drawn(tabs.open("Curves"))
        with pytest.raises(ValueError, match=r"expected a tab among .*'Curves'.*, got 'Curvs'"):
            tabs.open("Curvs")
    with pytest.raises(ValueError, match="by: expected a value out of"):
        explore_curves(frame, by="colour")


def test_of_several_tasks_one_is_shown_until_all_are_asked_for(frame):
    both = pd.concat([frame, frame.assign(task="other", run="other-" + frame["run"])])
    with contextlib.closing(explore_curves(both)) as shown:
        assert drawn(shown) == panels_of(charts.trajectories(frame, x="calls"))
        assert eval(shown.code, {"replay": replay, "frame": both}).lines
        shown.controls["task"].value = "all tasks"
        assert drawn(shown) == panels_of(charts.trajectories(both, x="calls"))
        assert "task" not in shown.code
    with contextlib.closing(explore_curves(frame)) as shown:
        assert shown.controls["task"].layout.display == "none"


def test_of_many_groups_some_are_put_into_words(frame):
    many = pd.concat(frame.assign(run=frame["run"] + f" {k}", prompt=f"p{k:02}") for k in range(20))
    with contextlib.closing(explore_curves(many, by="prompt")) as shown:
        assert shown.words.startswith("Where 12 of 40 groups end: p00, N = 2: ")
        assert shown.words.count(" n = ") == 12
        assert shown.words.endswith("The table has the others.")
    with contextlib.closing(explore_curves(frame, by="prompt")) as shown:
        assert re.fullmatch(r"Where groups end: short, N = 2: .*; long, N = 4: .*\.", shown.words)
