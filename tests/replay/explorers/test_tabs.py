"""All explorers of a frame in tabs, through which one choice of runs goes."""

import ipywidgets
import pytest

import replay
from replay.explorers import PANELS, Tabs
from replay.explorers.panels import ExplorerPanel
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


class Shown:
    """As much of an explorer as a tab needs."""

    def __init__(self, made):
        self.widget, self.closed = ipywidgets.HTML(), 0
        made.append(self)

    def close(self):
        self.closed += 1


@pytest.fixture
def made():
    return []


@pytest.fixture
def two(made):
    tabs = Tabs({name: lambda: Shown(made) for name in ("one", "two")})
    yield tabs
    tabs.close()


def test_an_explorer_is_made_once_and_when_its_tab_is_first_opened(two, made):
    assert len(made) == 1
    two.tabs.selected_index = 1
    assert two.tabs.children[1].children == (made[1].widget,)
    for again in (0, 1, None):
        two.tabs.selected_index = again
    assert len(made) == 2
    assert two["one"] is made[0]


def test_looking_at_a_tab_does_not_open_it_and_opening_does(two, made):
    assert two["two"] is made[1]
    assert two.tabs.selected_index == 0
    assert two.open("two") is made[1]
    assert two.tabs.selected_index == 1


def test_a_tab_that_is_not_there_is_named_with_those_that_are(two):
    with pytest.raises(KeyError, match=r"expected a tab among \['one', 'two'\], got 'three'"):
        two["three"]
    with pytest.raises(ValueError, match=r"expected a tab among \['one', 'two'\], got 'three'"):
        two.open("three")


def test_what_only_an_explorer_has_is_asked_of_one_in_a_tab(logged, tmp_path):
    tabs = replay.explore(logged)
    with pytest.raises(AttributeError, match=r"use \.open\('Budget'\)\.save, of tabs \['Budget', "):
        tabs.save(tmp_path / "view.html")
    assert tabs.open("Budget").save(tmp_path / "view.html").exists()
    with pytest.raises(AttributeError, match=r"no attribute 'sabe'$"):
        tabs.sabe(tmp_path / "view.html")
    tabs.close()


def test_tabs_without_runs_below_have_none_to_choose(two):
    two.choose("r1")
    assert two.chosen == []


def test_closing_closes_what_was_made_and_makes_nothing(two, made):
    two.close()
    assert [each.closed for each in made] == [1]


def test_panels_of_ones_own_come_after_the_built_in_tabs(logged, monkeypatch):
    monkeypatch.setitem(PANELS, "Mine", ExplorerPanel(lambda frame: None))
    tabs = replay.explore(logged)
    assert tabs.tabs.titles[-1] == "Mine"
    assert tabs.tabs.titles[0] == "Budget"
    tabs.close()
