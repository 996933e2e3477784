"""The film of a run: its steps, its pictures, and the files that it is saved in."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from samples import write_sample

import replay
from evo.logs.log import read_log
from replay.explorers import film as module
from replay.explorers.film import COLUMNS, LINES

SAMPLES = Path(__file__).resolve().parents[3] / "logs" / "samples" / "searches"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "run.jsonl"
    return read_log(write_sample(path, generations=6, children=4, seed=3))


@pytest.fixture(scope="module")
def made(log):
    return replay.film(log)


def test_the_steps_are_the_lineage_with_its_gains(log, made):
    table = replay.lineage(log)
    places = [each.view.place for each in made.steps]
    assert places == list(zip(table["generation"], table["index"], strict=True))
    fitness = [each.view.evaluation.fitness for each in made.steps]
    assert np.array_equal(np.array(fitness, dtype=float), table["fitness"], equal_nan=True)
    gains = [each.gain for each in made.steps]
    assert np.array_equal(gains, table["gain"], equal_nan=True)
    assert f"fitness {fitness[-1]:.6g} ({gains[-1]:+.3g})" in made.steps[-1].words


def test_along_islands_each_step_rewrites_the_one_before():
    made = replay.film(next(SAMPLES.glob("circle_packing-islands-s40*")))
    places = [each.view.place for each in made.steps]
    assert [each.view.parent for each in made.steps] == [None, *places[:-1]]
    assert made.steps[-1].view.place == made._data.best


def test_a_step_shows_its_construction_and_without_one_its_changes(made):
    kept = replay.film(next(SAMPLES.glob("circle_packing-islands-s40*")))
    left, right = kept.figure().axes
    circles = sum(len(each.get_paths()) for each in left.collections) + len(left.patches)
    assert circles >= 26
    assert right.lines[-1].get_xydata()[-1].tolist() == [6.0, pytest.approx(0.847682, abs=1e-6)]
    left, _ = made.figure(-1).axes
    shown = [each.get_text() for each in left.texts]
    assert shown == made.steps[-1].changes
    assert any(line.startswith("+program ") for line in shown)


def test_long_lines_and_programs_are_cut_with_words(made):
    step = made.steps[0]
    vars(step)["changes"] = ["+" + "x" * 200] * (LINES + 5)
    texts = [each.get_text() for each in made.figure(0).axes[0].texts]
    assert len(texts) == LINES + 1
    assert max(map(len, texts[:-1])) == COLUMNS
    assert texts[-1] == "5 further lines"
    del vars(step)["changes"]


def test_of_a_long_lineage_the_ends_and_some_between_are_shown(log, made, monkeypatch):
    monkeypatch.setattr(module, "MOST", 2)
    ends = [each.view.place for each in replay.film(log).steps]
    assert ends == [made.steps[0].view.place, made.steps[-1].view.place]


def test_it_is_saved_as_a_page_without_network_and_as_a_moving_picture(log, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST", 2)
    made = replay.film(log.path)
    page = made.save(tmp_path / "new" / "run.html").read_text()
    assert page.count("<figure>") == len(made.steps) == 2
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert re.search(r"<summary>What it changed: \d+ lines? added, \d+ removed", page)
    with Image.open(made.save(tmp_path / "run.gif")) as picture:
        assert picture.n_frames == 2
        picture.seek(1)
        assert picture.info["duration"] == 3000
    assert "srcdoc=" in made._repr_html_()
    with pytest.raises(ValueError, match=r"ends in \.html or \.gif"):
        made.save(tmp_path / "run.png")


def test_a_film_is_of_one_log(log):
    write_sample(log.path.with_name("other.jsonl"), generations=1, children=2)
    with pytest.raises(ValueError, match="expected one log, got 2"):
        replay.film(log.path.parent)


def test_texts_of_a_log_stay_texts(log, monkeypatch):
    monkeypatch.setattr(module, "MOST", 1)
    made = replay.film(log)
    made.title = "<script>alert(1)</script>"
    page = made.page()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_the_run_browser_shows_and_hides_the_film(log, monkeypatch):
    monkeypatch.setattr(module, "MOST", 1)
    browser = replay.browse(log)
    play = browser.widget.children[5].children[0]
    place = browser.widget.children[6]
    assert (play.description, place.value) == ("Film", "")
    play.click()
    assert "Film of min_max_distance" in place.value
    play.click()
    assert place.value == ""
    browser.close()
