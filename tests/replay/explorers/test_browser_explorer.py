"""An explorer that the page moves by itself: what it tells, and what it gets."""

import base64
import contextlib
import io
import re

import pandas as pd
from explored import numbers_of
from PIL import Image
from synthetic_runs import chain_runs

from replay.explorers import explore_budget


def test_the_numbers_of_another_task_come_with_it(sweep):
    frame = pd.concat([sweep[0], chain_runs(budget=8, sizes=(1, 2), task="other")[0]])
    with contextlib.closing(explore_budget(frame.reset_index(drop=True))) as explorer:
        seen = []
        explorer.controls["task"].observe(seen.append)
        before = explorer.screen.data
        explorer.controls["task"].value = "other"
        assert [change["new"] for change in seen] == ["other"]
        head, _ = numbers_of(explorer.screen.data)
        assert head["task"] == "other"
        assert explorer.screen.data != before
        explorer.screen.set_state({"task": "toy"})  # as the browser does
        assert numbers_of(explorer.screen.data)[0]["task"] == "toy"
        assert explorer.settings["calls"] == 32


def test_what_moved_on_the_page_is_read_and_observed(sweep):
    with contextlib.closing(explore_budget(*sweep[:1])) as explorer:
        seen = []
        explorer.controls["generations"].observe(seen.append)
        explorer.screen.set_state({"generations": 16, "children": 2, "calls": 32})
        assert [change["new"] for change in seen] == [16]
        assert explorer.settings["children"] == 2
        assert "T = 16 generations of N = 2 children" in explorer.words
        assert "generations=16, children=2, calls=32" in explorer.code


def test_the_stored_picture_is_small_and_needs_no_script(sweep):
    with contextlib.closing(explore_budget(*sweep[:1])) as explorer:
        bundle = explorer._repr_mimebundle_()
        shown = bundle["text/html"]
        assert len(shown) < 300_000
        [image] = re.findall(r'src="data:image/png;base64,([^"]+)"', shown)
        with Image.open(io.BytesIO(base64.b64decode(image))) as picture:
            assert (picture.format, picture.mode) == ("PNG", "P")  # of few colours
        assert 2 * len(image) < len(base64.b64encode(explorer.png))
        assert explorer.words.split(".")[0] in shown
        assert bundle["text/plain"] == explorer.words
        assert "application/vnd.jupyter.widget-view+json" in bundle
