import base64
import dataclasses
import html
import io
import json
import re
import subprocess
import sys
import types

import pytest
from IPython.core import getipython
from PIL import Image
from samples import write_sample
from synthetic_runs import chain_runs, sweep_runs

from replay import explorers


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=32, sizes=(1, 2, 4, 8))[0]


@pytest.fixture
def explorer(frame):
    made = explorers.explore_allocation(frame)
    yield made
    made.close()


def test_the_picture_follows_a_control(explorer):
    before = explorer.png
    explorer.controls["arms"].value = 3
    assert explorer.png != before
    assert "arms=3" in Image.open(io.BytesIO(explorer.png)).text["Source"]
    explorer.settle()
    assert "with 3 arms" in explorer.words


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"z": 1}, "expected settings among task, model, .*, got 'z'"),
        ({"arms": 3, "rounds": -1}, "rounds: expected a value out of .*, got -1"),
        ({"arms": 99}, "arms: expected a value out of .*, got 99"),
    ],
)
def test_settings_and_values_that_do_not_exist_are_refused_and_change_nothing(
    explorer, settings, said
):
    before, shown = explorer.settings, explorer.words
    with pytest.raises(ValueError, match=said):
        explorer.choose(**settings)
    assert explorer.settings == before
    assert {name: control.value for name, control in explorer.controls.items()} == before
    assert explorer.words == shown
    explorer.choose(arms=3)
    explorer.undo()
    assert explorer.settings == before


def test_the_code_gives_the_picture_as_a_figure(frame, explorer):
    explorer.controls["arms"].value = 3
    explorer.settle()
    import replay

    figure = eval(explorer.code, {"replay": replay, "frame": frame})
    drawn = explorer.figure()
    assert [ax.get_xlabel() for ax in figure.axes] == [ax.get_xlabel() for ax in drawn.axes]


def test_what_is_saved(explorer, tmp_path, monkeypatch):
    for suffix in ("png", "svg", "csv", "html"):
        assert explorer.save(tmp_path / f"view.{suffix}").stat().st_size > 200
    with pytest.raises(ValueError, match="docx"):
        explorer.save(tmp_path / "view.docx")
    monkeypatch.chdir(tmp_path)
    explorer._save_clicked("csv")
    [made] = tmp_path.glob("allocation-toy-chain-*.csv")
    assert made.read_text().startswith("policy,")


def test_the_picture_is_there_without_a_kernel(explorer):
    bundle = explorer._repr_mimebundle_()
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', bundle["text/html"])[1]
    assert base64.b64decode(picture) == explorer._small()
    assert explorer.words in html.unescape(bundle["text/html"])
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == explorer.words


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


def test_the_code_names_the_variable_of_the_user(frame, explorer, monkeypatch):
    named = types.SimpleNamespace(user_ns={"_": frame, "mine": frame})
    monkeypatch.setattr(getipython, "get_ipython", lambda: named)
    assert explorer.code.startswith("replay.explorers.explore_allocation(mine, ")


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


def test_a_scrub_holds_every_picture(explorer):
    made = explorer.scrub("tau", [0.5, 0.6, 0.7])
    slider, book, _ = made.children
    texts = book.texts
    assert len(texts) == len(set(texts)) == len(slider.options)
    assert all(label in text for (label, _), text in zip(slider.options, texts, strict=True))
    assert book.at == slider.index
    assert len(book.pages) == len(slider.options)
    with pytest.raises(ValueError, match="arms"):
        explorer.scrub("arms")


def test_what_cannot_be_shown_is_said_and_the_picture_stays(explorer, monkeypatch):
    def unknown(now, coarse):
        raise ValueError(f"nothing is known of {now['arms']} arms")

    before, spec = explorer._screen.chart, explorer._spec
    monkeypatch.setattr(explorer, "_spec", dataclasses.replace(spec, view=unknown))
    explorer.controls["arms"].value = 4
    assert explorer._screen.chart == before
    assert "nothing is known of 4 arms" in explorer._words.value
    monkeypatch.setattr(explorer, "_spec", spec)
    explorer.controls["arms"].value = 3
    assert "with 3 arms" in explorer.words


def test_closing_frees_every_widget(frame, tmp_path):
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    made = explorers.explore(frame)
    made["Allocation"].scrub("tau", [0.5, 0.6])
    made["Budget"].controls["generations"].value = 16
    browser = explorers.browse(write_sample(tmp_path / "a.jsonl"))
    browser.hop("child", -1)
    view, swept = explorers.follow(tmp_path / "a.jsonl"), explorers.explore(sweep_runs())
    swept["Sweep"].controls["where model"].value = ("a",)
    for each in (made, browser, view, swept):
        assert set(_instances) - before
        each.close()
    view._thread.join(30)
    assert not set(_instances) - before


def test_closing_what_is_coming_to_rest_is_quiet(frame):
    made = explorers.explore_allocation(frame)
    made._spec = dataclasses.replace(made._spec, slow=lambda now: made.close())
    made._debounce.soon()
    made._debounce.thread.join(30)  # an exception on it would fail the test
    assert made._debounce.thread is None


class Shell:
    """As much of IPython as says which cell runs."""

    def __init__(self):
        self.parent = {}

    def get_parent(self):
        return self.parent

    def run(self, cell, number):
        header = {"msg_id": f"{cell}-{number}"}
        self.parent = {
            "msg_type": "execute_request", "header": header, "metadata": {"cellId": cell},
        }  # fmt: skip


def test_running_a_cell_again_closes_what_it_made_and_nothing_else(frame, monkeypatch):
    from ipywidgets.widgets.widget import _instances

    shell = Shell()
    monkeypatch.setattr(getipython, "get_ipython", lambda: shell)
    made = []
    counts = []
    for number in range(3):
        for cell in ("a", "b"):
            shell.run(cell, number)
            made.append(explorers.explore(frame))
        counts.append(len(_instances))
    assert counts[0] == counts[1] == counts[2]
    for each in made[-2:]:
        each.close()


def test_at_rest_the_view_is_complete(explorer):
    explorer.controls["arms"].value = 3
    explorer._debounce.thread.join(30)
    assert explorer._debounce.thread is None
    assert not explorer._screen.coarse
    assert "1,000 replicates" in explorer.words


def test_without_ipywidgets_it_is_said_what_to_install() -> None:
    code = "import sys; sys.modules['ipywidgets'] = None; import replay; replay.explore(1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'evo-replay[notebook]'" in done.stderr.splitlines()[-1]


def test_settings_can_be_undone_one_change_at_a_time(explorer):
    begun = explorer.settings
    assert explorer._undo.disabled
    for arms in (3, 4, 5):  # one slide
        explorer.controls["arms"].value = arms
    slid = explorer.settings
    explorer.choose(reward="rank", shown="random")
    explorer.choose(reward="rank")  # changes nothing
    explorer._clicked((("shown", "single"),))
    assert explorer.settings["shown"] == "single"
    explorer.undo()
    assert explorer.settings == {**slid, "reward": "rank", "shown": "random"}
    explorer.undo()
    assert explorer.settings == slid
    assert explorer.controls["reward"].value == slid["reward"]
    explorer._undo.click()
    assert explorer.settings == begun
    assert explorer._undo.disabled
    explorer.undo()
    assert explorer.settings == begun
