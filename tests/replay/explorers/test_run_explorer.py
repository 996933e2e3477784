"""A run that the browser draws: it gets every number once, and the kernel draws nothing."""

import numpy as np
from explored import went

import replay
from evo.logs.records import STATUSES
from replay.explorers import run_explorer
from replay.explorers.run_data import RunData
from replay.explorers.run_picture import RunPicture


def test_the_browser_gets_every_number_of_the_run_once(browser, log):
    data, drawn = RunData(log), browser._screen.run
    children = drawn["children"]
    assert list(zip(children["generation"], children["index"], strict=True)) == data.places
    known = [None if np.isnan(each) else each for each in data.fitness.tolist()]
    assert children["fitness"] == known
    names = [drawn["statuses"][k][0] if k >= 0 else "ok" for k in children["status"]]
    assert names == [STATUSES[k] for k in data.status.tolist()]
    assert children["better"] == np.flatnonzero(data.improved).tolist()
    parents = [data.places[k] if k >= 0 else None for k in children["parent"]]
    assert parents == [data.parent(place) for place in data.places]
    assert drawn["best"] == log.trajectory.tolist()
    errors = {int(k): drawn["errors"][text] for k, text in children["said"].items()}
    failed = [k for k, place in enumerate(data.places) if names[k] != "ok"]
    assert list(errors) == failed
    for number in failed:
        assert errors[number] in log.child(*data.places[number]).evaluation.error
    went(browser, (1, 0))
    assert browser._screen.run is drawn


def test_moving_draws_nothing_in_the_kernel(browser, monkeypatch):
    def refuse(*args, **settings):
        raise AssertionError("a picture was drawn")

    monkeypatch.setattr(RunPicture, "show", refuse)
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
