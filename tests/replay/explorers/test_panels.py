"""Panels of one's own: a function and its controls become a tab."""

import contextlib
import json

import pandas as pd
import pytest
from synthetic_runs import chain_runs, sweep_runs

import replay
from replay.explorers import PANELS, explore_figures, explore_panel, register
from replay.plots import Chart, charts
from replay.plots.marks import Line
from replay.plots.panel import Axis, Panel


def reached(frame, *, tau=0.5, by="generation", together=False):
    """How many runs have reached a fitness."""
    if tau > 5:
        raise ValueError("no run can reach that")
    share = (frame["best_fitness"] >= tau).groupby(frame[by]).mean()
    line = Line(x=share.index, y=share, label="all" if together else "")
    panel = Panel(title=f"Runs at {tau:g}", x=Axis(label=by), y=Axis(), marks=[line])
    return Chart(panels=[panel])


def drawn(frame, *, ax, theme):
    """Draws on axes."""
    ax.plot(frame.groupby("generation")["best_fitness"].mean())
    ax.set_title("Mean", loc="left")
    return ax


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=16, sizes=(1, 2))[0]


@pytest.fixture(autouse=True)
def nothing_stays():
    before = dict(PANELS)
    yield
    PANELS.data.clear()
    PANELS.data.update(before)


def chart_of(explorer):
    return json.loads(explorer._screen.chart)


def test_a_function_is_a_tab_with_its_controls_and_moves(frame):
    register("Reached", reached, tau=(0.0, 1.0, 0.25), by=["generation", "children"])
    with contextlib.closing(replay.explore(frame)) as tabs:
        shown = tabs.open("Reached")
        assert list(shown.controls) == ["tau", "by", "together"]
        assert chart_of(shown)["panels"][0]["title"] == "Runs at 0.5"
        shown.controls["tau"].value = 0.75
        [panel] = chart_of(shown)["panels"]
        assert panel["title"] == "Runs at 0.75"
        [line] = reached(frame, tau=0.75).panels[0].marks
        assert panel["marks"][0]["y"] == line.y.tolist()
        shown.controls["together"].value = True
        assert chart_of(shown)["panels"][0]["marks"][0]["label"] == "all"
        assert "tau=0.75, by='generation', together=True" in shown.code
    sweep = sweep_runs(4, 1)
    register("Sweep length", charts.main_effects)
    with contextlib.closing(replay.explore(sweep)) as tabs:
        assert chart_of(tabs.open("Sweep length"))["panels"]


def test_what_a_panel_refuses_is_a_sentence_and_its_numbers_can_be_saved(frame, tmp_path):
    register("Reached", reached, tau=(0.0, 9.0, 0.25))
    with contextlib.closing(explore_panel(frame, "Reached", tau=0.25)) as shown:
        table = pd.read_csv(shown.save(tmp_path / "numbers.csv"))
        assert table["y"].tolist() == reached(frame, tau=0.25).panels[0].marks[0].y.tolist()
        assert shown.save(tmp_path / "page.html").stat().st_size > 10_000
        shown.controls["tau"].value = 8.0
        assert "no run can reach that" in shown._words.value
        assert chart_of(shown)["panels"][0]["title"] == "Runs at 0.25"


def test_a_function_that_draws_on_axes_is_a_still_picture(frame):
    register("Drawn", drawn)
    with contextlib.closing(explore_panel(frame, "Drawn")) as shown:
        assert len(chart_of(shown)["picture"]) > 1000
        assert [ax.get_title(loc="left") for ax in shown.figure().axes] == ["Mean"]


def test_every_figure_of_a_group_has_a_place(frame):
    with contextlib.closing(explore_figures(frame)) as shown:
        assert chart_of(shown)["panels"][0]["title"].startswith("Best so far")
        shown.controls["figure"].value = "what exploring gains"
        assert "keep the best" in chart_of(shown)["panels"][0]["title"]


@pytest.mark.parametrize(
    ("controls", "said"),
    [
        ({"colour": ["a"]}, "expected settings among tau, by, together, got 'colour'"),
        ({"tau": object()}, "tau: expected what ipywidgets.interact makes a control of"),
    ],
)
def test_settings_that_do_not_exist_are_refused(controls, said):
    with pytest.raises(ValueError, match=said):
        register("Reached", reached, **controls)
    assert "Reached" not in PANELS


def test_an_unknown_panel_lists_those_there_are(frame):
    register("Reached", reached)
    with pytest.raises(ValueError, match=r"those registered \(Reached\), got 'Nothing'"):
        explore_panel(frame, "Nothing")
    with pytest.raises(ValueError, match="by: expected"):
        explore_panel(frame, "Reached", by=3.0)
