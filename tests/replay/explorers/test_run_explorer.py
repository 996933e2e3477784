"""A run that the browser draws: it gets every number once, and the kernel draws nothing."""

import base64
import gzip
import json
import re

import numpy as np
from explored import went
from samples import make_log_bytes

import replay
from evo.logs.log import read_log
from evo.logs.records import STATUSES
from replay.explorers import run_explorer, run_picture
from replay.explorers.explorer_spec import Sentence
from replay.explorers.run_data import RunData, look_at, name


def test_the_browser_gets_every_number_of_the_run_once(browser, log):
    data, drawn = RunData(log), browser._screen.run
    assert [tuple(place) for place in drawn["places"]] == data.places
    for panel, mark, numbers in drawn["points"]:
        points = drawn["chart"]["panels"][panel]["marks"][mark]
        for number, y, text in zip(numbers, points["y"], points["texts"], strict=True):
            status = STATUSES[data.status[number]]
            assert (panel == 0) == (status == "ok")
            assert text.startswith(f"{name(data.places[number])}: {status.replace('_', ' ')}")
            if panel == 0:
                assert y == data.fitness[number]
            else:
                assert text.splitlines()[1] in log.child(*data.places[number]).evaluation.error
    assert sum(len(numbers) for *_, numbers in drawn["points"]) == len(data.places)
    assert drawn["better"] == np.flatnonzero(data.improved).tolist()
    parents = [data.places[k] if k >= 0 else None for k in drawn["parents"]]
    assert parents == [data.parent(place) for place in data.places]
    went(browser, (1, 0))
    assert browser._screen.run is drawn


def test_moving_draws_nothing_in_the_kernel(browser, monkeypatch):
    def refuse(*args, **settings):
        raise AssertionError("a picture was drawn")

    monkeypatch.setattr(run_picture, "run_chart", refuse)
    for _ in range(5):
        browser.hop("child", -1)
    went(browser, (1, 1))
    monkeypatch.undo()
    before = browser.png
    browser.hop("child")
    assert browser.png != before


def test_without_anywidget_the_picture_is_an_image(log, monkeypatch):
    monkeypatch.setattr(run_explorer, "_screen", lambda: None)
    made = replay.browse(log)
    made.hop("child", -1)
    made.settle()
    assert made.png == bytes(made._screen.value)
    made.close()


def test_a_run_is_sent_again_only_where_another_one_is_shown(browser, tmp_path):
    sent = []
    browser._screen.observe(lambda change: sent.append(change["new"]["name"]), names="run")
    went(browser, (1, 0))
    went(browser, (2, 1))
    assert sent == []
    (tmp_path / "other.jsonl.gz").write_bytes(gzip.compress(make_log_bytes(seed=4)))
    data = RunData(read_log(tmp_path / "other.jsonl.gz"))
    run, at, _ = browser._arrays(look_at(data, (1, 1)))
    assert (run["name"], at) == ("other", [1, 1])
    assert run["chart"]["title"] == data.label
    assert browser._arrays(look_at(data, (1, 2)))[0] is None


def test_a_picture_is_drawn_once_and_again_only_after_a_move(browser, monkeypatch):
    drawn = []
    monkeypatch.setattr(browser, "_image", lambda view: drawn.append(view.place) or b"png")
    went(browser, (1, 0))
    assert [browser.png, browser.png] == [b"png", b"png"]
    assert drawn == [(1, 0)]
    went(browser, (1, 1))
    assert browser.png == b"png"
    assert drawn == [(1, 0), (1, 1)]


def test_a_log_that_cannot_be_read_is_a_message_and_the_run_is_sent_again_after_it(browser):
    run, at, drawing = browser._arrays(Sentence("gone"))
    assert (run, at, drawing) == ({"message": "gone", "theme": "neutral"}, None, {})
    assert browser._arrays(browser._view)[0]["name"] == "run"


def test_the_page_is_told_which_of_its_moves_was_heard_and_a_closed_explorer_hears_none(log):
    made = replay.browse(log)
    made._on_message({"kind": "other", "generation": 1, "index": 0, "how": "click", "move": 4})
    assert made._screen.heard == 0
    made._on_message({"kind": "at", "generation": 1, "index": 0, "how": "key", "move": 5})
    assert (made._screen.heard, made.place) == (5, (1, 0))
    made.close()
    made._on_message({"kind": "at", "generation": 2, "index": 0, "how": "key", "move": 6})
    assert made.place == (1, 0)


def test_the_still_page_shows_the_program_of_now(browser):
    went(browser, (2, 1))
    page = browser._still()
    texts = [base64.b64decode(each).decode("utf-8", "ignore")
             for each in re.findall(r'bytes\("([^"]*)"\)', page)]  # fmt: skip
    [given] = [text for text in texts if text.startswith('[{"name"')]
    run, state = json.loads(given)
    assert run["name"] == "run"
    assert state["at"] == [2, 1]
