"""Charts that the browser draws: what it is told, and what a click on a mark means."""

import base64
import io
import json

from PIL import Image

from replay import explorers


def test_a_click_on_a_mark_sets_what_it_means(explorer):
    explorer.settle()
    panels = json.loads(explorer._screen.chart)["panels"]
    [(panel, mark, place)] = [
        (p, m, k)
        for p, panel in enumerate(panels)
        for m, mark in enumerate(panel["marks"])
        for k, text in enumerate(mark.get("texts", ()))
        if text.startswith("random with 2 arms")
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
