"""Charts as HTML: scripts, pages, and texts that are announced."""

import base64
import itertools
import json
import math
import re
from pathlib import Path

import pytest

from replay import plots
from replay.plots.scripts import (
    CHART,
    UNSEEN,
    book_page,
    chart_figure,
    chart_page,
    charts_script,
    encoded,
    live_page,
    module,
    spoken,
    write_page,
)
from replay.plots.style import THEMES


def test_what_two_scripts_need_stands_in_the_one_that_they_share():
    folder = Path(plots.__file__).parent
    views = [folder / "chart.js", *(folder.parent / "explorers").glob("*view.js")]
    found = {
        path.name: set(re.findall(r"^(?:export )?(?:function|const) (\w+)", path.read_text(), re.M))
        - {"mount"}
        for path in (folder / "drawing.js", *views)
    }
    assert len(found) == 4
    for one, other in itertools.combinations(found.values(), 2):
        assert not one & other


def given_to(page):
    """What the script of a page passes on."""
    found = re.search(r'TextDecoder\(\)\.decode\(bytes\("([^"]*)"\)\)', page)[1]
    return json.loads(base64.b64decode(found))


@pytest.mark.parametrize("value", ["</script>τ", b"\x00\xff</script>"])
def test_what_is_encoded_comes_back_and_cannot_end_a_script(value):
    text = encoded(value)
    assert "<" not in text
    known = value.encode() if isinstance(value, str) else value
    assert base64.b64decode(text) == known


def test_words_are_announced_and_hidden_only_where_the_picture_bears_them():
    shown, drawn = spoken("a < b"), spoken("a < b", drawn=True)
    assert "a &lt; b" in shown
    assert "a &lt; b" in drawn
    assert "aria-live='polite'" in shown
    assert UNSEEN in drawn
    assert UNSEEN not in shown
    assert "role='alert'" in spoken("no", role="alert")


def test_a_page_passes_its_arguments_on_and_refuses_what_json_does_not_know():
    page = live_page("export default 1;", b"png", "a < b", [{"τ": 0.5}, None], entry="book")
    assert given_to(page) == [{"τ": 0.5}, None]
    assert "{ book: mount }" in page
    assert "a &lt; b" in page
    assert encoded(b"png") in page
    assert "role=" not in live_page("", b"", "", [])
    names = [re.search(r'id="([^"]+)"', live_page("", b"", "", []))[1] for _ in range(2)]
    assert len(set(names)) == 2  # several stand in one notebook
    with pytest.raises(ValueError, match="not JSON compliant"):
        live_page("", b"", "", [math.nan])


def test_the_state_of_a_chart_is_part_of_what_its_script_reads():
    page = chart_page(b"", "words", b'{"panels": [], "theme": "light"}', {"theme": "dark"})
    assert given_to(page) == [{"panels": [], "theme": "dark"}]
    [book] = given_to(book_page(b"", "words", {"pages": [1], "drawn": True}, "dark"))
    assert (book["pages"], book["state"]["theme"]) == ([1], "dark")


@pytest.mark.parametrize("drawn", [True, False])
def test_the_words_of_a_book_are_hidden_where_its_pictures_bear_them(drawn):
    page = book_page(b"", "words", {"drawn": drawn}, "light")
    assert (UNSEEN in page) == drawn


def test_a_figure_of_a_page_is_data_with_a_caption_only_if_there_is_one():
    found = chart_figure(b'{"panels": []}', "a label", "a < b")
    data = json.loads(base64.b64decode(re.search(r'data-chart="([^"]+)"', found)[1]))
    assert data == {"panels": [], "label": "a label", "source": "", "serial": 0}
    assert "<figcaption>a &lt; b</figcaption>" in found
    assert "figcaption" not in chart_figure(b"{}", "a label")
    assert "replayCharts" in charts_script()


@pytest.mark.parametrize("theme", THEMES)
def test_a_page_wears_the_inks_of_its_theme_or_those_of_the_readers_system(tmp_path, theme):
    path = write_page(tmp_path / "page.html", "<b>", theme, "<p>τ</p>")
    page = path.read_text(encoding="utf-8")
    assert "<title>&lt;b&gt;</title>" in page
    assert page.endswith("<p>τ</p></main>")
    scheme = re.search("color-scheme' content='([^']+)'", page)[1]
    assert scheme == ("light dark" if theme == "neutral" else theme)
    assert (THEMES[theme].ground in page) == (theme != "neutral")


def test_a_module_begins_with_what_all_views_share():
    shared = (CHART.parent / "drawing.js").read_text()
    assert module(CHART) == f"{shared}\n{CHART.read_text()}"
