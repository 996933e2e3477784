"""A run on paper: its chart on two axes, and what a program returned on a third one."""

import dataclasses

from replay.explorers import run_picture
from replay.explorers.explorer_spec import Sentence
from replay.explorers.run_data import Drawing, RunData, look_at
from replay.explorers.run_picture import run_figure


def test_the_axes_hold_every_program_above_or_below_and_share_their_generations(log):
    data = RunData(log)
    fitness, failures, _ = run_figure(look_at(data, (0, 0)), "light").axes
    assert fitness.get_xlim() == failures.get_xlim()
    collections = [*fitness.collections, *failures.collections]
    places = [place for each in collections for place in each.get_offsets()]
    assert len(places) > len(data.places)  # and the ring
    assert fitness.get_title(loc="left").replace("\n", " ") == data.label
    words = " ".join(text.get_text().replace("\n", " ") for text in fitness.texts)
    assert "next parents" in words
    assert "below the axis" not in words
    low, high = failures.get_ylim()
    assert low > high  # the first row stands on top


def test_many_points_are_pixels_in_a_file_of_lines(log, monkeypatch):
    view = look_at(RunData(log), (0, 0))

    def rasterized():
        return {each.get_rasterized() for each in run_figure(view, "light").axes[0].collections}

    assert rasterized() == {False}
    monkeypatch.setattr(run_picture, "SOME", 10)
    assert rasterized() == {True}


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


def test_what_a_program_returned_fills_its_axes(log):
    points = [[0.1 * x, 0.1 * y] for x in range(11) for y in range(11)]
    view = look_at(RunData(log), (0, 0))
    drawing = Drawing(picture="points", value=points)
    figure = run_figure(dataclasses.replace(view, drawing=drawing), "light")
    figure.draw_without_rendering()
    for low, high in (figure.axes[2].get_xlim(), figure.axes[2].get_ylim()):
        assert 1.0 <= high - low < 1.25
