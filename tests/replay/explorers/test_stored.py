"""What a saved notebook shows, and a live widget hides."""

import base64
import io
import re

import ipywidgets
import pytest
from PIL import Image

from replay.explorers.stored import live_help, show_live, stored
from replay.explorers.widgets import page_script
from replay.plots.scripts import UNSEEN


def test_an_export_without_network_shows_the_picture_that_the_live_widget_hides(
    explorer, monkeypatch
):
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda bundle, **how: shown.append((bundle, how))
    )
    explorer._ipython_display_()
    (live, _), (stored, how) = shown
    assert how["display_id"]  # so that a later view can replace it
    assert "application/vnd.jupyter.widget-view+json" in live
    assert "image/png" not in live  # exports prefer the widget, which needs a network
    assert set(stored) == {"text/html", "text/plain"}
    assert (live["text/plain"], stored["text/plain"]) == (
        "",
        explorer.words,
    )  # they stand there once
    [mark, picture] = re.findall(r'still="(\w+)"|base64,([^"]+)"', stored["text/html"])
    image = Image.open(io.BytesIO(base64.b64decode(picture[1]))).convert("RGB")
    colours = {colour: count for count, colour in image.getcolors(1 << 20)}
    assert max(n for (r, _, b), n in colours.items() if b - r > 100) > 300  # the curve of ucb1
    assert len(stored["text/html"]) < 300_000
    assert f"data-replay-live='{mark[0]}'" in explorer.widget.children[0].value


@pytest.mark.parametrize("drawn", [True, False])
def test_a_stored_picture_bears_its_mark_and_its_words_unless_they_are_drawn(drawn):
    found = stored("f00", b"png", "a < b", drawn=drawn)
    assert found["text/plain"] == "a < b"
    assert 'data-replay-still="f00"' in found["text/html"]
    assert f"base64,{base64.b64encode(b'png').decode()}" in found["text/html"]
    assert "a &lt; b" in found["text/html"]
    assert (UNSEEN in found["text/html"]) == drawn


def test_the_first_line_of_a_live_explorer_is_text_and_bears_the_same_mark():
    line = live_help("f00", "<b>Move</b>")
    assert "data-replay-live='f00'" in line
    assert "&lt;b&gt;Move&lt;/b&gt;" in line
    assert page_script() in line


def test_the_picture_is_made_once_the_widget_is_shown(monkeypatch):
    order = []
    monkeypatch.setattr(
        "IPython.display.display",
        lambda bundle, **how: order.append((bundle["text/plain"], how.get("display_id"))) or "at",
    )
    widget = ipywidgets.HTML()
    place = show_live(widget, lambda: order.append("made") or {"text/plain": "words"})
    widget.close()
    assert order == [("", None), "made", ("words", True)]
    assert place == "at"
