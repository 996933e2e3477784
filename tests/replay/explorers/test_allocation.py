"""The explorer of allocations: what its controls do, and what it says."""

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame, chain_runs

import replay
from replay.explorers import explore_allocation
from replay.explorers.allocation import COARSE
from replay.explorers.allocation_chart import allocation_chart
from replay.explorers.carried import book_of


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=96, sizes=(2, 4))[0]


@pytest.fixture
def explorer(frame):
    made = explore_allocation(frame)
    yield made
    made.close()


def test_coarse_while_it_moves_and_full_at_rest(explorer):
    explorer.settle()
    assert "1,000 replicates" in explorer.words
    explorer.controls["arms"].value = 3
    assert f"{COARSE} replicates" in explorer.words
    explorer.settle()
    assert "1,000 replicates" in explorer.words
    assert "replicates=1000" in explorer.code


def test_only_parameters_of_chosen_policies_are_shown(explorer):
    explorer.controls["policies"].value = ("exp3p",)
    shown = {
        name
        for name in ("c", "gamma", "epsilon", "noise_std", "prior_std")
        if explorer.controls[name].layout.display != "none"
    }
    assert shown == {"gamma"}
    assert explorer.settings["shown"] == "exp3p"
    explorer.controls["gamma"].value = 0.5
    explorer.settle()
    assert "gamma=0.5" in explorer.code
    assert " c=" not in explorer.code


def test_of_five_policies_the_last_four_are_kept_and_shown(explorer):
    explorer.controls["policies"].value = ("ucb1", "thompson", "exp3p", "exp3ix", "best_arm")
    assert explorer.settings["policies"] == ("thompson", "exp3p", "exp3ix", "best_arm")
    assert explorer.controls["policies"].value == explorer.settings["policies"]
    assert set(explorer._view.played) == {"single", "random", *explorer.settings["policies"]}


def test_the_code_gives_the_same_numbers(frame, explorer):
    explorer.controls["c"].value = 0.05
    explorer.settle()
    figure = eval(explorer.code, {"replay": replay, "frame": frame})
    drawn = figure.axes[0].lines[2].get_ydata()
    table = explorer._view.table()
    assert np.array_equal(drawn, table.loc[table["policy"] == "ucb1", "value"])


def test_words_say_what_is_reached_and_what_is_not(explorer):
    explorer.controls["tau"].value = 0.5
    assert "thompson with 4 arms reaches 0.5 after" in explorer.words
    explorer.controls["tau"].value = 1.5
    assert "does not reach 1.5" in explorer.words


def test_policies_are_compared_with_one_run_where_runs_are_as_deep_as_the_budget(frame, explorer):
    explorer.controls["rounds"].value = min(explorer.controls["rounds"].options)
    explorer.settle()
    view = explorer._view
    assert [*view.effects] == ["random", "ucb1", "thompson"]
    single, ucb1 = view.played["single"], view.played["ucb1"]
    assert view.effects["ucb1"].value == ucb1.end.less(single.end).value
    assert "ucb1 gains" in explorer.words
    assert "over one run with the whole budget" in explorer.words
    explorer.controls["rounds"].value = max(explorer.controls["rounds"].options)
    explorer.settle()
    shortest = int(explorer._view.pools.lengths.min())
    deep = explorer._view.rounds > shortest
    assert ("over random pulls" in explorer.words) == deep
    assert [*explorer._view.effects] == ["random"] * (not deep) + ["ucb1", "thompson"]


def test_a_warning_of_a_policy_is_passed_on(explorer):
    explorer.controls["arms"].value = 8
    explorer.controls["rounds"].value = min(explorer.controls["rounds"].options)
    assert "Note:" in explorer.words


@pytest.mark.parametrize(
    "frame_", [as_frame(np.ones((2, 4)), children=2, seeds=range(2)), as_frame(
        np.ones((3, 1)), children=2, seeds=range(3)), as_frame(np.ones((3, 1)), children=2,
        seeds=range(3)).head(0)],
    ids=["two runs", "no generation", "empty"],
)  # fmt: skip
def test_too_little_is_a_sentence(frame_):
    made = explore_allocation(frame_)
    assert "nothing to allocate" in made.words
    assert made.figure().axes
    made.close()


@pytest.mark.parametrize("value", [np.nan, 1.0])
def test_runs_that_find_nothing_or_all_the_same(value):
    frame = as_frame(np.full((5, 6), value), children=2, seeds=range(5))
    made = explore_allocation(frame)
    assert ("gains +0.0000" if value == 1 else "gains an unknown amount") in made.words
    made.close()


def test_what_is_wrong_is_said(frame):
    five = ("ucb1", "exp3p", "exp3ix", "thompson", "best_arm")
    for settings, said in (
        ({"policies": five}, "at most 4"),
        ({"policies": ("ucb7",)}, "policies out of"),
        ({"arms": 11}, "arms: expected a value out of"),
        ({"children": 3}, "no runs of"),
    ):
        with pytest.raises(ValueError, match=said):
            explore_allocation(frame, **settings)


def test_it_opens_with_runs_that_leave_a_choice_among_arms(frame):
    many = chain_runs(budget=24, sizes=(2,), seeds=range(20), task="many")[0]
    found = explore_allocation(pd.concat([frame, many]))
    assert (found.settings["task"], found.settings["arms"]) == ("many", 4)
    bar = allocation_chart(found._view).panels[1].bar
    assert (bar.least + bar.most) / 2 == pytest.approx(100 / 4)  # an equal share: the middle colour
    found.close()


def test_ten_runs_begin_with_four_arms_and_few_rounds_with_fewer():
    for rounds, arms in ((40, 4), (6, 3), (2, 2)):
        made = explore_allocation(as_frame(np.ones((10, 1 + rounds)), children=2, seeds=range(10)))
        assert made.settings["arms"] == arms
        made.close()


def test_the_bar_of_two_arms_that_are_pulled_alike_shows_no_contrast(explorer):
    explorer.choose(arms=2, shown="random")
    explorer.settle()
    panel = allocation_chart(explorer._view).panels[1]
    assert (panel.bar.least, panel.bar.most) == (25, 75)
    assert "an equal share: 50 %" in panel.about


def test_a_saved_page_moves_the_arms_and_the_fitness_to_reach(explorer):
    book = book_of(explorer._spec, explorer.controls, explorer.settings)
    arms, tau, *_ = book["controls"]
    assert (arms["label"], tau["label"]) == ("arms K", "τ")
    at = 0
    for each in book["controls"]:
        at = at * len(each["texts"]) + each["at"]
    here = book["pages"][book["which"][at]]
    assert here["label"] == explorer._spec.view(explorer.settings, False).words
    assert len({page["label"] for page in book["pages"]}) > 4
