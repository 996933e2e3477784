"""Charts that the browser draws: what it is told, and what a click on a mark means."""

import base64
import contextlib
import io
import json

import ipywidgets
import pytest
from PIL import Image

from replay import explorers
from replay.explorers.chart_explorer import REMEMBERED, ChartExplorer, notice
from replay.explorers.debounce import Debounce
from replay.explorers.explorer_spec import ExplorerSpec, Sentence
from replay.plots.chart import Chart
from replay.plots.marks import Points
from replay.plots.panel import Axis, Panel
from replay.plots.scripts import UNSEEN


def test_a_click_on_a_mark_sets_what_it_means(explorer):
    explorer.settle()
    panels = json.loads(explorer._screen.chart)["panels"]
    [(panel, mark, place)] = [
        (p, m, k)
        for p, panel in enumerate(panels)
        for m, mark in enumerate(panel["marks"])
        for k, text in enumerate(mark.get("texts", ()))
        if text.startswith("random with 4 arms")
    ]
    told = {"kind": "click", "serial": explorer._serial, "panel": panel, "mark": mark}
    explorer._on_message({**told, "place": place})
    assert explorer.controls["shown"].value == "random"
    assert explorer.settings["shown"] == "random"
    for _ in range(9):  # a click on what was shown long ago means nothing
        explorer.controls["shown"].value = "single"
        explorer.controls["shown"].value = "ucb1"
    explorer._on_message({**told, "place": place})
    assert explorer.settings["shown"] == "ucb1"


def test_the_page_is_told_once_the_view_is_complete(explorer):
    explorer.controls["arms"].value = 3
    assert explorer._screen.coarse
    before = explorer._screen.serial
    explorer.settle()
    assert not explorer._screen.coarse
    assert explorer._screen.serial == before + 1
    assert explorer._screen.label == explorer.words
    assert explorer._screen.source == explorer.code


@pytest.mark.thorough
def test_without_anywidget_the_picture_is_an_image(frame, monkeypatch, tmp_path):
    from replay.explorers import chart_explorer

    monkeypatch.setattr(chart_explorer, "_screen", lambda: None)
    made = explorers.explore_allocation(frame)
    before = made.png
    made.controls["arms"].value = 3
    assert made.png == bytes(made._screen.value) != before
    assert "arms=3" in Image.open(io.BytesIO(made.png)).text["Source"]
    slider, stack, _ = made.scrub("tau", [0.5, 0.6]).children
    assert [len(slider.options), len(stack.children)] == [2, 2]
    made.settle()
    assert "1,000 replicates" in Image.open(io.BytesIO(made.png)).text["Description"]
    assert base64.b64encode(made.png).decode() in made.save(tmp_path / "a.html").read_text()
    made.close()


def charted(**how):
    """An explorer of a chart with a point to click for each value of its slider."""

    def chart(view):
        points = Points(x=[1.0], y=[1.0], keys=[(("a", int(view.words)),)])
        title = view.words if how.get("drawn") else "made"
        return Chart(panels=[Panel(title=title, x=Axis(), y=Axis(), marks=[points])])

    spec = ExplorerSpec(
        name="mine", theme="light", chart=how.get("chart", chart),
        view=lambda now, coarse: Sentence(str(now["a"])),
    )  # fmt: skip
    return ChartExplorer(spec, {"a": ipywidgets.IntSlider(min=0, max=20)}, help="")


def click(shown, serial, place=0):
    told = {"kind": "click", "serial": serial, "panel": 0, "mark": 0, "place": place}
    shown._on_message(told)


def test_a_click_is_understood_for_as_long_as_its_chart_is_remembered(monkeypatch):
    monkeypatch.setattr(Debounce, "soon", lambda self: None)  # nothing comes to rest by itself
    with contextlib.closing(charted()) as shown:
        first = shown._serial
        for value in range(1, REMEMBERED):
            shown.controls["a"].value = value
        click(shown, first)
        assert shown.settings["a"] == 0
        assert first not in shown._clicks  # the click made one chart more
        assert len(shown._clicks) == REMEMBERED
        click(shown, first)
        shown.controls["a"].value = 3
        click(shown, first)
        assert shown.settings["a"] == 3


@pytest.mark.parametrize("place", [-1, 1])
def test_a_click_beside_every_place_changes_nothing(place):
    with contextlib.closing(charted()) as shown:
        first = shown._serial
        shown.controls["a"].value = 3
        click(shown, first, place)
        assert shown.settings["a"] == 3


def test_what_is_said_to_a_closed_explorer_is_passed_over():
    shown = charted()
    shown.close()
    click(shown, 1)
    shown._on_message({"kind": "mounted"})
    assert shown._debounce.thread is None
    assert shown.png == b""


def test_the_full_view_is_computed_once_the_page_shows_the_coarse_one(monkeypatch):
    with contextlib.closing(charted()) as shown:
        soon = []
        monkeypatch.setattr(shown._debounce, "soon", lambda: soon.append(1))
        shown._on_message({"kind": "mounted"})
        assert soon == [1]
        shown.settle()
        shown._on_message({"kind": "mounted"})
        assert soon == [1]


@pytest.mark.parametrize("drawn", [True, False])
def test_words_that_the_chart_bears_are_not_shown_twice(drawn):
    with contextlib.closing(charted(drawn=drawn)) as shown:
        assert (UNSEEN in shown._words.value) == drawn
        assert (UNSEEN in shown._stored()["text/html"]) == drawn


def test_a_still_picture_has_no_numbers_to_save():
    with contextlib.closing(charted(chart=lambda view: Chart(picture=b"png"))) as shown:
        offered = {each.description: each.layout.display for each in shown._saves}
        assert [name for name, display in offered.items() if display == "none"] == ["Save CSV"]


def test_a_notice_is_a_sentence_without_controls_or_files():
    with contextlib.closing(notice("mine", ValueError("a < b"), "dark")) as shown:
        assert shown.words == "a < b"
        assert dict(shown.controls) == {}
        assert json.loads(shown._screen.chart)["message"] == "a < b"
        assert shown._screen.theme == "dark"
        assert {each.layout.display for each in shown._saves} == {"none"}
