"""Figures of several groups say which one they show, and share their axes."""

import base64
import json
import re

import pandas as pd
import pytest
from matplotlib.axes import Axes
from test_registrations import tokens_by_generation

import evo
import replay
from replay.cli.entry import main
from replay.logs.tables import Tables
from replay.plots import FIGURES
from replay.reports.comparison import comparison_with_sections
from replay.reports.figures import GroupPanel, draw_page
from replay.reports.report import groups
from replay.reports.titles import apart, menu_names, settled, titled

SEARCHES = ("greedy", "tree", "islands")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three searches, 3 runs each."""
    made = tmp_path_factory.mktemp("runs")
    how = {"generations": 3, "progress": False, "children": 2}
    for search in SEARCHES:
        evo.run_many("mmd", seeds=range(3), search=search, log_dir=made / search, **how)
    return made


@pytest.fixture(scope="module")
def parts(folder):
    return groups(replay.load_tables(folder))


def titles_of(figure):
    return [title for ax in figure.axes if (title := ax.get_title(loc="left").replace("\n", " "))]


def test_every_title_of_a_page_says_what_tells_its_group_apart(parts, monkeypatch):
    def own(frame, *, ax: Axes):
        ax.set_title("Mine", loc="left")

    monkeypatch.setitem(FIGURES, "own", own)
    monkeypatch.setitem(FIGURES, "tokens", tokens_by_generation)
    titles = titles_of(draw_page([GroupPanel(part, None) for part in parts]))
    first, *others = titles
    assert first.startswith("Best so far: min_max_distance")  # of all together
    assert len(set(titles)) == len(titles)
    for search in SEARCHES:
        assert sum(title.endswith(f"search {search}") for title in others) == len(FIGURES)


def test_the_panels_of_one_task_have_one_vertical_axis(parts):
    figure = draw_page([GroupPanel(part, None) for part in parts])
    shown = {}
    for ax in figure.axes:
        name = ax.get_title(loc="left").replace("\n", " ").partition(":")[0]
        shown.setdefault(name, []).append(ax.get_ylim())
    first, *own = shown["Best so far"]
    assert first == (0.0, 3.0)  # strips
    assert len(own) == 3
    assert len(set(own)) == 1
    most = max(part.tables.generations["best_fitness"].max() for part in parts)
    assert own[0][1] > most


def test_strips_of_several_n_have_one_range_too(folder, tmp_path):
    how = {"generations": 3, "progress": False}
    for search in SEARCHES[:2]:
        for children in (1, 3):
            own = {"children": children, "search": search, "log_dir": tmp_path / search}
            evo.run_many("mmd", seeds=range(2), **own, **how)
    parts = groups(replay.load_tables(tmp_path))
    figure = draw_page([GroupPanel(part, None) for part in parts])
    panels = [ax for ax in figure.axes if ax.get_title(loc="left").startswith("Best so far")]
    ticks = [[text.get_text() for text in ax.get_yticklabels()] for ax in panels]
    assert len(panels) == 3
    assert ticks[1] == ticks[2]


def charts_of(page):
    return [json.loads(base64.b64decode(e)) for e in re.findall(r'data-chart="([^"]*)"', page)]


@pytest.mark.thorough
def test_a_site_names_groups_apart_and_says_first_what_was_decided(folder, tmp_path):
    text = replay.site(folder, tmp_path / "site").read_text()
    menu = re.findall(r'<a href="#part-\d">(.*?)</a>', text)
    assert sorted(menu) == sorted(f"search {search}" for search in SEARCHES)
    assert text.index("<h2>Decision</h2>") < text.index("<h2>Runs</h2>")
    assert "Which configuration is best?" in text
    labels = [chart["label"].partition(":")[2] for chart in charts_of(text)]
    for search in SEARCHES:
        assert any(f"search {search}" in label for label in labels)


def test_a_report_compares_first(folder, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("replay.plots.output.save", lambda figure, path: drawn.append(figure))
    assert main(["report", str(folder), "-o", str(tmp_path / "page.png")]) == 0
    titles = titles_of(drawn[0])
    summary = ["Interquartile means", "Differences", "Profiles of the runs"]
    assert titles[1:4] == summary


def test_one_group_has_plain_titles_and_the_name_of_its_task(parts):
    [words] = apart(parts[:1])
    assert words == ()
    assert menu_names(parts[:1]) == ["min_max_distance"]


@pytest.mark.parametrize(
    ("title", "words", "wanted"),
    [
        ("Tree: mmd, seed 1", ("search tree",), "Tree: mmd, seed 1, search tree"),
        ("Distance ratio 0.2", ("mmd", "search tree"), "Distance ratio 0.2: mmd, search tree"),
        ("Tree: mmd, seed 1", ("mmd",), "Tree: mmd, seed 1"),
        ("Tree: gpt-4o, seed 1", ("gpt-4",), "Tree: gpt-4o, seed 1, gpt-4"),
        ("Tree", (), "Tree"),
    ],
)
def test_a_title_says_each_word_once(title, words, wanted):
    assert titled(title, words) == wanted


def _together(parts):
    return Tables(*(pd.concat(each) for each in zip(*(p.tables for p in parts), strict=True)))


@pytest.mark.thorough
def test_a_page_of_three_searches_has_a_height_that_a_screen_shows(parts, tmp_path):
    found, _, _ = comparison_with_sections(_together(parts))
    assert found is not None
    figure = draw_page([GroupPanel(part, None) for part in parts], comparison=found)
    assert 144 * figure.get_figheight() <= 2400  # pixels of `replay.plots.save`
    alone = draw_page([GroupPanel(parts[0], None)])
    assert alone.get_figwidth() < figure.get_figwidth()  # in columns, and not below each other
    figure.draw_without_rendering()
    shown = [ax for ax in figure.axes if ax.get_title(loc="left")]
    assert min(ax.get_window_extent().width for ax in shown) > 150


def test_a_name_has_one_colour_in_the_figures_of_all_groups(tmp_path):
    for search, sizes in (("greedy", (2, 4)), ("tree", (4, 8))):
        for N in sizes:
            evo.run_many(
                "mmd", seeds=range(2), generations=2, children=N, search=search,
                log_dir=tmp_path / f"{search}-{N}", progress=False,
            )  # fmt: skip
    parts = groups(replay.load_tables(tmp_path))
    name = "best so far"
    shown = [
        {mark.text: mark.color for mark in own[name](None).panels[0].marks if mark.kind == "end"}
        for own in settled({name: FIGURES[name]}, parts)
    ]
    assert [[*each] for each in shown] == [["N = 2", "N = 4"], ["N = 4", "N = 8"]]
    assert shown[0]["N = 4"] == shown[1]["N = 4"]
    assert len({*shown[0].values(), *shown[1].values()}) == 3
