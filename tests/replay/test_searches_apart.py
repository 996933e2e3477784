"""Runs of two searches in one frame are refused or shown apart, as those of two models are."""

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame

import replay
from replay import plots
from replay.explorers import explore_allocation
from replay.explorers.budget import Budgets
from replay.logs.columns import FAMILY
from replay.logs.frames import models_apart
from replay.plots import charts


def runs_of(search, start=0.0):
    steps = np.random.default_rng(len(search)).exponential(0.05, (8, 6)).cumsum(axis=1)
    best = start + np.c_[np.zeros(8), 1 - np.exp(-steps)]
    frame = as_frame(best, children=2, seeds=range(8)).assign(search=search)
    return frame.assign(run=frame["run"] + f"-{search}")


@pytest.fixture(scope="module")
def both():
    return pd.concat([runs_of("greedy"), runs_of("islands", 5.0)], ignore_index=True)


QUESTIONS = {
    "diagnose": replay.diagnose,
    "judge": lambda frame: replay.judge(frame, "thompson", "single"),
    "compete": lambda frame: replay.compete(frame, {"ucb1": "ucb1"}, replicates=20),
    "simulate": lambda frame: replay.simulate(frame, "ucb1", rounds=4, replicates=10),
    "time_to_threshold": lambda frame: replay.time_to_threshold(frame, 0.5),
    "fit_bilinear": replay.fit_bilinear,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_answer_for_two_searches_is_refused(question, both):
    with pytest.raises(ValueError, match=r"one search.*got .*greedy.*islands.*frame\.search == "):
        QUESTIONS[question](both)


def test_policies_do_not_learn_from_runs_of_another_search(both):
    earlier, judged = (both[both["search"] == each] for each in ("islands", "greedy"))
    with pytest.raises(ValueError, match="one search, got greedy, islands"):
        replay.simulate(judged, "freeze_thaw", rounds=4, replicates=10, earlier=earlier)


@pytest.mark.parametrize("setting", FAMILY)
def test_trajectories_group_by_every_setting_that_fitness_depends_on(setting, both):
    one = both[both["search"] == "greedy"].assign(task_version="a.b", settings="")
    other = {"children": 4, "search": "islands", "settings": "feedback"}.get(setting, "other")
    changed = one.assign(**{"run": one["run"] + "-b", setting: other})
    chart = charts.trajectories(pd.concat([one, changed]))
    assert len({*chart.table()["label"].dropna()} - {""}) == 2
    assert "n = 8" in chart.panels[0].about


def test_splits_are_those_of_each_search_alone(both):
    found = replay.depth_breadth(both, resamples=20).cells
    for search in ("greedy", "islands"):
        alone = replay.depth_breadth(both[both["search"] == search], resamples=20).cells
        mine = found[found["model"] == f"chain, search {search}"]
        assert mine["value"].tolist() == alone["value"].tolist()
        assert set(alone["model"]) == {"chain"}


def test_the_budget_explorer_has_each_search_alone(both):
    budgets = Budgets(both, None)
    assert budgets.pairs == [("toy", f"chain, search {each}") for each in ("greedy", "islands")]
    start = budgets.begins({"model": "chain, search islands"})
    view = budgets.view(start)
    alone = Budgets(both[both["search"] == "islands"], None)
    other = alone.view(alone.begins({}))
    assert view.words == other.words.replace("chain:", "chain, search islands:")
    assert view.splits[0].fitness.n == 8


def test_the_allocation_explorer_has_each_search_alone(both):
    explorer = explore_allocation(both)
    models = {f"chain, search {each}" for each in ("greedy", "islands")}
    assert set(explorer.controls["model"].options) == models


def test_frames_without_a_search_or_with_one_are_named_by_their_model(both):
    one = both[both["search"] == "greedy"]
    for frame in (one, one.drop(columns="search")):
        assert set(models_apart(frame)) == {"chain"}
        assert plots.trajectories(frame).get_title() == plots.trajectories(one).get_title()
