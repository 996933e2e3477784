"""A run on paper: every child is a point on its axes."""

import dataclasses

import msgspec
import numpy as np
import pytest
from odd_logs import write
from samples import sample_child, sample_header, sample_lines

from evo.logs.log import read_log
from evo.logs.records import Child, Evaluation, Generation
from replay.explorers import run_picture
from replay.explorers.explorer_spec import Sentence
from replay.explorers.run_data import Drawing, RunData, look_at
from replay.explorers.run_picture import RunPicture, run_figure


def test_very_low_values_do_not_squeeze_the_rest(tmp_path):
    lines = sample_lines(generations=12, children=5)
    low = Evaluation(status="ok", fitness=-1e9)
    position = next(k for k, line in enumerate(lines) if isinstance(line, Child))
    lines[position] = msgspec.structs.replace(lines[position], evaluation=low)
    data = RunData(read_log(write(tmp_path / "a.jsonl", *lines)))
    picture = RunPicture("light")
    picture._set_up(data)
    assert picture._fitness.get_ylim()[0] > -1
    assert np.isfinite(picture._points).all()
    assert "below the axis" in picture._fitness.texts[0].get_text()


def statuses(tmp_path, *statuses):
    """A run of one generation whose children ended so."""
    children = [
        msgspec.structs.replace(
            sample_child(1, k, None),
            evaluation=Evaluation(status=status, fitness=0.05 if status == "ok" else None),
        )
        for k, status in enumerate(statuses)
    ]
    end = Generation(generation=1, best_fitness=0.1, best=(0, 0), improved=False, seconds=1.0)
    lines = [sample_header(len(children)), sample_lines()[2], *children, end]
    return RunData(read_log(write(tmp_path / "a.jsonl", *lines)))


def rows_of(figure):
    """The names of the failures, and how many there are of each."""
    ax = figure.axes[1]
    names = [text.get_text() for text in ax.get_yticklabels()]
    heights = [y for line in ax.lines[: len(names)] for y in line.get_ydata()]
    return {name: heights.count(row) for row, name in enumerate(names)}


def test_every_failure_has_its_place_in_the_row_of_its_status_and_an_unknown_one_too(tmp_path):
    data = statuses(tmp_path, "timeout", None, "error", "ok", None)
    found = rows_of(run_figure(look_at(data, (0, 0)), "light"))
    assert found == {"error": 1, "timeout": 1, "unknown": 2}
    fine = run_figure(look_at(statuses(tmp_path, "ok", "ok"), (0, 0)), "light")
    assert rows_of(fine) == {"no failures": 0}
    low, high = run_figure(look_at(data, (0, 0)), "light").axes[1].get_ylim()
    assert low > high  # the first one stands on top


def test_the_shown_program_wears_a_ring_and_its_parent_a_square_joined_where_both_are_ok(tmp_path):
    data = statuses(tmp_path, "ok", "error")

    def signs(place):
        figure = run_figure(look_at(data, place), "light")
        return [
            [
                line.get_linestyle() if len(line.get_xdata()) == 2 else line.get_marker()
                for line in ax.lines
                if line.get_markerfacecolor() == "none" or line.get_linestyle() == ":"
            ]
            for ax in figure.axes[:2]
        ]

    assert signs((1, 0)) == [[":", "s", "o"], []]
    assert signs((1, 1)) == [["s"], ["o"]]
    assert signs((0, 0)) == [["o"], []]


def test_children_of_a_generation_are_spread_around_it_and_never_into_the_next(log):
    picture = RunPicture("light")
    picture.show(look_at(RunData(log), (0, 0)))
    data = RunData(log)
    x = picture._points[:, 0]
    assert x[0] == 0
    ok = ~np.isnan(data.fitness)
    assert picture._points[ok, 1].tolist() == data.fitness[ok].tolist()
    assert "below the axis" not in picture._fitness.texts[0].get_text()
    assert (np.abs(x - data.generation) < run_picture.SPREAD / 2).all()
    for generation in range(1, 7):
        members = x[data.generation == generation]
        assert (np.diff(members) > 0).all()
        assert members.mean() == pytest.approx(generation)


def test_many_points_are_pixels_in_a_file_of_lines(log, monkeypatch):
    view = look_at(RunData(log), (0, 0))
    few = [line.get_rasterized() for line in run_figure(view, "light").axes[0].lines[:3]]
    monkeypatch.setattr(run_picture, "FEW", 10)
    many = [line.get_rasterized() for line in run_figure(view, "light").axes[0].lines[:3]]
    assert (few, many) == ([False] * 3, [True] * 3)


def test_a_run_of_which_nothing_is_ok_says_so(tmp_path):
    data = statuses(tmp_path, "error", "error")
    figure = run_figure(look_at(data, (1, 0)), "light")
    assert "nothing is ok yet" not in [text.get_text() for text in figure.axes[0].texts]
    data.fitness[:] = np.nan
    figure = run_figure(look_at(data, (1, 0)), "light")
    assert "nothing is ok yet" in [text.get_text() for text in figure.axes[0].texts]


def test_a_sentence_stands_in_the_place_of_a_run(log):
    figure = run_figure(Sentence("There is no log. " * 20), "light")
    assert not any(ax.axison for ax in figure.axes)
    [text] = figure.axes[0].texts
    assert max(map(len, text.get_text().splitlines())) <= 80


def test_a_construction_that_is_none_is_a_sentence_of_a_bearable_length(log):
    view = look_at(RunData(log), (0, 0))
    for drawing, said in (
        (Drawing(reason="kept nowhere"), "kept nowhere"),
        (Drawing(picture="points", value=[["x" * 999]]), ""),
    ):
        figure = run_figure(dataclasses.replace(view, drawing=drawing), "light")
        [text] = figure.axes[2].texts
        assert said in text.get_text()
        assert 0 < len(text.get_text()) <= 310
        assert not figure.axes[2].axison
