"""Figures that somebody added: what they may do, and what becomes of their mistakes."""

import base64
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgb
from PIL import Image
from synthetic_runs import chain_runs

import replay
from replay.plots.chart import Chart
from replay.plots.panel import Axis, Panel
from replay.plots.registry import FIGURES, draw, figures, title_of
from replay.plots.style import THEMES
from replay.reports.pictures import figure_of_group


@pytest.fixture
def added() -> Iterator[Callable[[Callable[..., Any]], str]]:
    """Adds a figure for the length of a test, and returns its name."""

    def add(figure: Callable[..., Any]) -> str:
        FIGURES["mine"] = figure
        return "mine"

    yield add
    FIGURES.data.pop("mine", None)
    plt.close("all")


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    frame, _ = chain_runs(sizes=(2,), budget=8, seeds=range(3))
    return frame


def test_what_a_figure_does_to_its_frame_stays_its_own(added, runs) -> None:
    def spoiling(frame):
        frame["best_fitness"] = -1.0
        return replay.plots.charts.trajectories(frame)

    added(spoiling)
    before = runs.copy()
    replay.plots.overview(runs)
    pd.testing.assert_frame_equal(runs, before)


def failing(frame):
    raise KeyError("nope")


def returning_nothing(frame):
    return None


def returning_a_figure(frame):
    return plt.figure()


def titled_by_a_number(frame):
    return Chart(panels=[Panel(title=frame["seed"].iloc[0], x=Axis(), y=Axis(), marks=[])])


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (titled_by_a_number, "'mine' failed: MistakenType: title: expected a text, got .*0"),
        (failing, "the function of the figure 'mine' failed: KeyError: 'nope'"),
        (returning_nothing, "to return a replay.plots.Chart .* got NoneType"),
        (returning_a_figure, "to return a replay.plots.Chart .* got Figure"),
    ],
)
def test_a_figure_that_errs_is_a_sentence_in_its_place(added, runs, figure, words) -> None:
    name = added(figure)
    with pytest.raises(ValueError, match=words.replace(" .* ", ".*")):
        figures()[name](runs)
    drawn = replay.plots.overview(runs)
    assert "Mine: not drawn" in " ".join(text.get_text() for text in drawn.texts)
    [data] = re.findall(r'data-chart="([^"]+)"', figure_of_group(name, figures()[name], runs))
    assert "Mine: not drawn" in base64.b64decode(data).decode()


def test_a_figure_on_axes_that_cannot_be_drawn_is_a_sentence_on_a_page_too(added, runs) -> None:
    def refusing(frame, ax):
        raise ValueError("there is nothing")

    name = added(refusing)
    page = figure_of_group(name, figures()[name], runs)
    assert "<img" not in page
    [data] = re.findall(r'data-chart="([^"]+)"', page)
    assert "Mine: not drawn (there is nothing)" in base64.b64decode(data).decode()


def test_a_figure_on_axes_needs_no_theme(added, runs) -> None:
    def plain(frame, ax):
        ax.set_title("mine", loc="left")

    added(plain)
    titles = [ax.get_title(loc="left") for ax in replay.plots.overview(runs).axes]
    assert "mine" in titles


@pytest.mark.parametrize("title", [None, "of mine"])
def test_a_figure_on_axes_without_a_title_stands_under_its_name(added, runs, title) -> None:
    def plain(frame, ax):
        ax.plot([0, 1], [0, 1])
        if title:
            ax.set_title(title)  # in the middle, as Matplotlib puts it

    name = added(plain)
    shown = title or "Mine"
    overview = replay.plots.overview(runs)
    assert shown in [title_of(ax) for ax in overview.axes]
    assert f'alt="{shown}"' in figure_of_group(name, figures()[name], runs)
    _, ax = plt.subplots()
    draw(f"{name}: search tree", figures()[name], runs, ax, "light")
    assert title_of(ax) == (title or "Mine: search tree")


def unstyled(frame, ax):
    """Names no colour."""
    ax.plot([0, 1], [0, 1])
    ax.set(title="Mine", xlabel="runs")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_on_axes_that_names_no_colour_wears_the_inks_of_a_page(added, runs, theme) -> None:
    name, ink = added(unstyled), THEMES[theme].text
    _, alone = plt.subplots()
    draw(name, figures()[name], runs, alone, theme)
    overview = replay.plots.overview(runs, theme=theme)
    [among] = [each for each in overview.axes if title_of(each) == "Mine"]
    for ax in (alone, among):
        texts = [ax.title, ax.xaxis.label, *ax.get_xticklabels()]
        assert {to_hex(text.get_color()).upper() for text in texts} == {ink}
        assert {to_hex(spine.get_edgecolor()).upper() for spine in ax.spines.values()} == {ink}
        assert ax.get_facecolor()[3] == 0


def test_a_figure_on_axes_wears_the_inks_of_both_themes_of_a_site(added, runs) -> None:
    name = added(unstyled)
    page = figure_of_group(name, figures()[name], runs)
    pictures = re.findall(r'class="(\w+)".*?base64,([^"]+)"', page)
    assert [theme for theme, _ in pictures] == ["light", "dark"]
    for theme, png in pictures:
        image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
        colours = np.asarray(image).reshape(-1, 3).astype(int)
        ink = np.array(to_rgb(THEMES[theme].text)) * 255
        other = np.array(to_rgb(THEMES["dark" if theme == "light" else "light"].ground)) * 255
        assert (abs(colours - ink).max(axis=1) < 3).sum() > 500
        assert (abs(colours - other).max(axis=1) < 3).sum() < 50
