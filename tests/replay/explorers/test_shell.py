import base64
import dataclasses
import io
import time

import numpy as np
import pytest
from IPython.core import getipython
from PIL import Image
from synthetic_runs import chain_runs

from replay import explorers
from replay.explorers.canvas import encode


@pytest.fixture(scope="module")
def frame():
    return chain_runs(budget=32, sizes=(1, 2, 4, 8))[0]


@pytest.fixture
def explorer(frame):
    made = explorers.explore_budget(frame)
    yield made
    made.close()


def test_the_png_holds_the_pixels_and_the_notes():
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)
    image = Image.open(io.BytesIO(encode(pixels, {"Source": "f(τ=0.9)"})))
    assert np.array_equal(np.asarray(image), pixels)
    assert image.text == {"Source": "f(τ=0.9)"}


def test_the_picture_follows_a_control(explorer):
    before = explorer.png
    explorer.controls["generations"].value = 2
    assert explorer.png != before
    assert "generations=2" in Image.open(io.BytesIO(explorer.png)).text["Source"]
    explorer.settle()
    assert explorer.words.startswith("toy, chain: T = 2")


def test_only_moving_artists_are_drawn_but_all_is_as_if_drawn_anew(explorer):
    explorer.controls["generations"].value = 4
    explorer.settle()
    blitted = np.asarray(Image.open(io.BytesIO(explorer.png))).astype(int)
    explorer._canvas.forget()
    explorer._update(coarse=False)
    anew = np.asarray(Image.open(io.BytesIO(explorer.png))).astype(int)
    assert np.abs(blitted - anew).max() <= 1


def test_the_code_gives_the_picture_as_a_figure(frame, explorer):
    explorer.controls["generations"].value = 4
    explorer.settle()
    import replay

    figure = eval(explorer.code, {"replay": replay, "frame": frame})
    assert "generations T" in [ax.get_xlabel() for ax in figure.axes]


def test_what_is_saved(explorer, tmp_path, monkeypatch):
    for suffix in ("png", "svg", "csv"):
        assert explorer.save(tmp_path / f"view.{suffix}").stat().st_size > 200
    with pytest.raises(ValueError, match="docx"):
        explorer.save(tmp_path / "view.docx")
    monkeypatch.chdir(tmp_path)
    explorer._save_clicked("csv")
    [made] = tmp_path.glob("budget-toy-chain-*.csv")
    assert made.read_text().startswith("split,generations,children")


def test_the_picture_is_there_without_a_kernel(explorer):
    bundle = explorer._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]) == explorer.png
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == explorer.words


def test_a_scrub_holds_every_picture(explorer):
    made = explorer.scrub("generations")
    slider, stack, _ = made.children
    texts = [page.children[1].value for page in stack.children]
    assert len(texts) == len(set(texts)) == len(slider.options)
    assert all(
        f"T = {label} " in text for (label, _), text in zip(slider.options, texts, strict=True)
    )
    assert stack.selected_index == slider.index
    with pytest.raises(ValueError, match="children"):
        explorer.scrub("children")


def test_what_cannot_be_shown_is_said_and_the_picture_stays(explorer):
    before = explorer.png
    explorer.controls["calls"].value = explorer.controls["calls"].options[-1]
    explorer.controls["generations"].value = 1  # as broad as the budget: never run
    assert explorer.png == before or "T = 1 " in explorer.words
    explorer.controls["generations"].value = 4
    assert "T = 4 " in explorer.words


def test_closing_frees_every_widget(frame):
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    made = explorers.explore(frame)
    made["Allocation"].scrub("tau", [0.5, 0.6])
    made["Budget"].controls["generations"].value = 2
    assert set(_instances) - before
    made.close()
    assert not set(_instances) - before


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


def test_at_rest_the_next_steps_of_a_slider_are_computed(explorer, monkeypatch):
    seen, view = [], explorer._subject.view
    counted = dataclasses.replace(
        explorer._subject, view=lambda now, coarse: seen.append((now, coarse)) or view(now, coarse)
    )
    monkeypatch.setattr(explorer, "_subject", counted)
    explorer.controls["generations"].value = 2
    deadline = time.monotonic() + 30
    while len(seen) < 2 + 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [(now["generations"], coarse) for now, coarse in seen] == [
        (2, True), (2, False), (1, True), (4, True), (8, True), (16, True)
    ]  # fmt: skip
    assert explorer.settings["generations"] == 2
