"""The scripts of the views that the browser draws, and the widgets and pages that run them."""

import base64
import json
import re
import sys

import pytest
import traitlets

from replay.explorers import scripts
from replay.explorers.scripts import run_page, screen_class, script
from replay.plots.medium import DASHES
from replay.plots.scripts import CHART, FOLDER, WIDGET

EXPLORERS = FOLDER.parent / "explorers"
VIEWS = {
    "view": EXPLORERS / "view.js",
    "run_view": EXPLORERS / "run_view.js",
    "chart": WIDGET,
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_script_of_a_view_follows_what_all_of_them_share(name):
    parts = [FOLDER / "drawing.js", CHART, VIEWS[name]]
    assert script(name) == "\n".join(each.read_text() for each in parts)
    assert script(name) is script(name)  # read once


def test_runs_are_told_apart_by_the_dashes_of_all_other_figures():
    [written] = re.findall(r"const RUN_DASHES = (\[.*?\])", script("view"))
    assert json.loads(written) == ["none", *DASHES[1:]]


def test_a_screen_runs_the_script_of_its_view_and_shares_its_traits_with_the_page():
    made = screen_class("chart", mine=traitlets.Int(3), other=traitlets.Unicode())
    screen = made()
    try:
        assert screen.mine == 3
        assert {"mine", "other"} <= set(made.class_traits(sync=True))
        assert screen._esm == script("chart")
    finally:
        screen.close()


def test_without_anywidget_there_is_no_screen(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    assert screen_class("chart", mine=traitlets.Int()) is None


def test_the_page_of_a_run_mounts_its_view_with_the_run_and_where_it_stands():
    page = run_page(b"png", "a run", {"name": "r"}, {"at": [1, 0]})
    given = re.search(r'TextDecoder\(\)\.decode\(bytes\("([^"]*)"\)\)', page)[1]
    assert json.loads(base64.b64decode(given)) == [{"name": "r"}, {"at": [1, 0]}]
    assert scripts.script("run_view").encode() in [
        base64.b64decode(each) for each in re.findall(r'new Blob\(\[bytes\("([^"]*)"\)\]', page)
    ]
    assert "mount: mount" in page
