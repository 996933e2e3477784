"""The charts of the allocation explorer: their numbers are those of its table."""

import dataclasses
import json

import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection

from replay.explorers.allocation_chart import allocation_chart


def panels(explorer):
    return json.loads(explorer._screen.chart)["panels"]


def test_every_number_of_the_chart_is_one_of_the_table(explorer):
    explorer.controls["arms"].value = 3
    explorer.controls["tau"].value = 0.7
    explorer.settle()
    table, view = explorer._view.table(), explorer._view
    curves, pulls, times, effects = panels(explorer)
    lines = [each for each in curves["marks"] if each["kind"] == "line"]
    assert [each["label"] for each in lines] == list(view.played)
    for line in lines:
        rows = table[table["policy"] == line["label"]]
        assert line["x"] == rows["round"].tolist()
        for drawn, column in (("y", "value"), ("low", "low"), ("high", "high")):
            assert line[drawn] == [None if np.isnan(each) else each for each in rows[column]]
    assert curves["marks"][-1]["y"] == 0.7
    assert pulls["marks"][0]["values"] == view.played[view.shown].ranks.tolist()
    dots = times["marks"][0]["x"]
    known = table.groupby("policy", sort=False)["rounds_to_tau"].first()
    assert dots == [None if np.isinf(each) else each for each in known]
    found = list(view.effects.values())
    assert effects["marks"][1]["x1"] == [each.value for each in found]
    assert effects["marks"][2]["x_low"] == [each.low for each in found]
    assert effects["marks"][2]["x_high"] == [each.high for each in found]


def test_of_many_rounds_some_are_sent(explorer, monkeypatch):
    monkeypatch.setattr("replay.explorers.allocation_chart.MOST_PLACES", 7)
    explorer._draw(coarse=False)
    line = panels(explorer)[0]["marks"][0]
    assert len(line["x"]) == 7
    assert [line["x"][0], line["x"][-1]] == [1, explorer.settings["rounds"]]
    value = explorer._view.played[line["label"]].curve.value
    assert line["y"] == [value[at - 1] for at in line["x"]]


def test_only_the_policy_whose_pulls_are_shown_has_a_band(explorer):
    view = explorer._view
    for shown in view.played:
        lines = allocation_chart(dataclasses.replace(view, shown=shown)).panels[0].marks[:-1]
        assert {each.label: each.band for each in lines} == {n: n == shown for n in view.played}
        figure = allocation_chart(dataclasses.replace(view, shown=shown)).figure()
        drawn = figure.axes[0].collections
        [band] = [each for each in drawn if isinstance(each, FillBetweenPolyCollection)]
        curve, path = view.played[shown].curve, band.get_paths()[0].vertices
        assert np.nanmax(curve.high) == pytest.approx(path[:, 1].max())


def test_what_comes_later_or_never_is_an_arrow_at_the_edge(explorer):
    explorer.controls["tau"].value = 1.5
    dots, later, _ = panels(explorer)[2]["marks"]
    assert dots["x"] == [None] * len(later["x"])
    assert later["shape"] == "later"
    assert all(each is not None for each in later["x"])


def test_the_axis_of_fitness_shows_the_early_part_of_curves(explorer):
    low, high = allocation_chart(explorer._view).figure().axes[0].get_ylim()
    for played in explorer._view.played.values():
        assert low <= np.nanmin(played.curve.value) <= np.nanmax(played.curve.value) <= high
