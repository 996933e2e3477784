"""Figures in a page: charts stay live, pictures have both themes and are drawn once."""

import base64
import os
import re

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from replay.plots.chart import Chart
from replay.reports.pictures import DPI, figure_of_group, in_both_themes


@pytest.fixture
def logs(tmp_path):
    """The frame of a group with one log, and the log's path."""
    path = tmp_path / "a.jsonl"
    path.write_text("")
    yield pd.DataFrame({"source": [str(path)] * 2}), path
    plt.close("all")


@pytest.fixture
def drawing():
    """A figure on axes, and how often it was drawn."""
    times = []

    def mine(frame, ax):
        times.append(len(frame))
        ax.plot([0, 1], [0, 1])
        ax.set_title('a < "b"', loc="left")

    return mine, times


def test_a_chart_is_data_and_a_figure_on_axes_two_pictures(logs, drawing):
    frame, _ = logs
    live = figure_of_group("mine", lambda frame: Chart(message="nothing yet"), frame)
    assert "data-chart=" in live
    assert "<img" not in live
    page = figure_of_group("mine", drawing[0], frame)
    assert re.findall(r'<img class="(\w+)"', page) == ["light", "dark"]
    assert "data-chart=" not in page


def test_a_picture_is_drawn_again_only_when_a_log_has_changed(logs, drawing):
    (frame, path), (mine, times) = logs, drawing
    drawn = {}
    first = figure_of_group("mine", mine, frame, drawn)
    assert figure_of_group("mine", mine, frame, drawn) == first
    assert len(times) == 1
    figure_of_group("other", mine, frame, drawn)  # each has its own picture
    assert len(times) == 2
    os.utime(path, (1.0, 1.0))
    figure_of_group("mine", mine, frame, drawn)
    assert len(times) == 3
    figure_of_group("mine", mine, frame)
    assert len(times) == 4


def test_what_cannot_be_drawn_is_a_sentence_and_is_tried_again(logs):
    frame, _ = logs
    drawn, words = {}, "w" * 999

    def refusing(frame, ax):
        raise ValueError(words)

    page = figure_of_group("mine", refusing, frame, drawn)
    assert "<img" not in page
    [data] = re.findall(r'data-chart="([^"]+)"', page)
    assert f"Mine: not drawn ({'w' * 300})" in base64.b64decode(data).decode()
    assert drawn == {}


def test_both_themes_have_one_size_and_the_titles_as_their_words():
    figure, axes = plt.subplots(1, 2, figsize=(4, 2))
    for ax, title in zip(axes, ("a < b", 'say "c"'), strict=True):
        ax.plot([0, 1], [1, 0])
        ax.set_title(title, loc="left")
    light, dark = re.findall(r"<img [^>]+>", in_both_themes(figure))
    assert light != dark
    for image in (light, dark):
        assert f'width="{4 * DPI}"' in image
        assert 'alt="a &lt; b; say &quot;c&quot;"' in image
    pixels = [re.search(r'base64,([^"]+)"', image)[1] for image in (light, dark)]
    assert pixels[0] != pixels[1]
    plt.close(figure)
