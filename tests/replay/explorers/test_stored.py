"""What a saved notebook shows, and a live widget hides."""

import base64
import io
import re

from PIL import Image


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
