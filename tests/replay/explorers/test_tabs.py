"""All explorers of a frame in tabs, through which one choice of runs goes."""

import pytest

import replay
from replay.explorers.run_browser import RunBrowser


@pytest.fixture
def tabs(logged):
    made = replay.explore(logged)
    yield made
    made.close()


def test_a_folder_is_explored_by_its_picture_first_with_the_table_beside(logged):
    tabs = replay.explore(logged["source"].iloc[0].rpartition("/")[0])
    assert tabs.tabs.titles[:2] == ("Budget", "Table of runs")
    assert tabs.tabs.selected_index == 0
    assert len(tabs["Table of runs"].table) == 3
    tabs.close()


def test_a_run_chosen_anywhere_is_chosen_everywhere(tabs, logged):
    names = logged["run"].unique().tolist()
    budget, table = tabs["Budget"], tabs["Table of runs"]
    budget.screen.runs = [names[1]]  # as the page does it
    assert (tabs.chosen, table._rows.selected_rows) == ([names[1]], [1])
    assert isinstance(tabs._below.shown, RunBrowser)
    table._rows.selected_rows = [1, 2]
    assert budget.controls["runs"].value == tabs.chosen == names[1:]
    assert "They differ in" in tabs._below.shown.words
    assert f"Runs chosen: {names[1]}, " in budget.words
    tabs.choose()
    assert budget.controls["runs"].value == table._rows.selected_rows == []
    assert tabs._below.shown is None


def test_what_is_chosen_before_a_tab_is_opened_is_chosen_in_it(tabs, logged):
    name = logged["run"].iloc[-1]
    tabs.choose(name)
    assert tabs["Table of runs"]._rows.selected_rows == [2]
    assert tabs["Budget"].settings["runs"] == [name]


def test_from_a_child_the_way_back_leads_to_its_split(tabs, logged):
    tabs.choose(logged["run"].iloc[0])
    browser = tabs._below.shown
    for generation, deep in ((2, 2), (1, 1), (3, 3), (0, 3)):  # runs end at T = 3
        browser.choose(generation=generation, index=0)
        tabs.tabs.selected_index = 1
        tabs._below.go_back()
        assert tabs.tabs.selected_index == 0
        now = tabs["Budget"].settings
        assert (now["generations"], now["children"], now["calls"]) == (deep, 4, 4 * deep)
