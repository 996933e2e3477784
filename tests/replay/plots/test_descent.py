"""The tree of a run and the blame of its best program, as figures and in reports."""

import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from looks import complaints
from matplotlib.text import Text
from samples import write_sample

import replay
from evo.logs.log import read_log
from evo.logs.maintenance import compact
from replay import plots
from replay.logs.frames import ReplayWarning
from replay.plots import descent, style
from replay.plots.lanes import lanes_of
from replay.plots.medium import LEAST_SIZE
from replay.plots.style import figure_of

SAMPLES = Path(__file__).resolve().parents[3] / "logs" / "samples"
ISLANDS = "searches/circle_packing-islands-s40.jsonl.gz"
GREEDY = "searches/circle_packing-greedy-s40.jsonl.gz"
OPENEVOLVE = "side-by-side/openevolve-circle_packing-s40.jsonl.gz"


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def titles_of(figure):
    return {ax.get_title(loc="left").replace("\n", " ") for ax in figure.axes}


def places_of(chart):
    """Height and tooltip of every program or fold."""
    [panel] = chart.panels
    points = [mark for mark in panel.marks if mark.kind == "points"]
    return [pair for mark in points for pair in zip(mark.y, mark.texts, strict=True)]


def test_a_tree_whose_parents_are_not_recorded_says_so_and_shows_no_lineage(tmp_path):
    (tmp_path / "calls.csv").write_text("run,order,fitness\na,1,0.3\na,2,0.4\n")
    with pytest.warns(ReplayWarning, match="which lack: .*generation 0"):
        (path,) = replay.find_logs(tmp_path / "calls.csv")
    chart = descent.tree(read_log(path))
    assert chart.panels[0].about == (
        "3 programs of one run; parents not recorded; crosses: without a fitness (1 program)"
    )
    tooltips = {text for _, text in places_of(chart)}
    assert "generation 0, child 0: initial of unknown status" in tooltips


@pytest.mark.parametrize("name", [ISLANDS, GREEDY, OPENEVOLVE])
def test_a_tree_shows_every_program_or_counts_it(name) -> None:
    log = read_log(SAMPLES / name)
    chart = plots.charts.tree(log)
    ax = chart.draw()
    assert not complaints(figure_of(ax))
    assert len(places_of(chart)) == len(replay.tree(log))  # so few need no fold
    if islands := replay.tree(log)["island"].dropna().nunique():
        assert len(ax.get_yticks()) == islands


def test_under_greedy_heights_are_fitness() -> None:
    log = read_log(SAMPLES / GREEDY)
    [panel] = plots.charts.tree(log).panels
    table = replay.tree(log)
    low, high = style.usual_range(table["fitness"])
    fitness = {f"generation {g}, child {k}": f for g, k, f in
               zip(table["generation"], table["index"], table["fitness"], strict=True)}  # fmt: skip
    seen = {text.partition(":")[0]: height for height, text in places_of(plots.charts.tree(log))}
    assert seen.keys() == fitness.keys()
    for name, height in seen.items():
        if np.isnan(fitness[name]):
            assert height < low
        else:
            assert height == max(fitness[name], low)
    assert panel.y.label == "fitness"
    assert panel.y.domain[1] > high


def test_what_has_no_fitness_stands_in_a_strip_and_at_no_value_of_the_axis() -> None:
    log = read_log(SAMPLES / GREEDY)
    table, chart = replay.tree(log), plots.charts.tree(log)
    [panel] = chart.panels
    low, _ = style.usual_range(table["fitness"])
    [strip] = [mark for mark in panel.marks if mark.kind == "spans"]
    crosses, *rest = [mark for mark in panel.marks if mark.kind == "points"]
    assert strip.y0[0] < min(crosses.y) <= max(crosses.y) < strip.y1[0] < low
    assert len(crosses.y) == table["fitness"].isna().sum()
    named = {text: value for value, text in panel.y.ticks}
    assert {named.pop("none")} == set(crosses.y)
    assert min(named.values()) > strip.y1[0]
    assert all(value == pytest.approx(float(text)) for text, value in named.items())
    below = [mark for mark in rest if mark.shape == "below"]
    assert sum(len(mark.y) for mark in below) == (table["fitness"] < low).sum()
    assert all(height == low for mark in below for height in mark.y)
    whole = table.assign(fitness=table["fitness"].fillna(low))
    [plain] = descent._line(log, whole).panels
    assert not [mark for mark in plain.marks if mark.kind == "spans"]


def test_what_does_not_fit_is_folded_and_counted(tmp_path) -> None:
    log = read_log(write_sample(tmp_path / "wide.jsonl", generations=30, children=60))
    chart = plots.charts.tree(log)
    counts = [int(text) for text in texts_of(chart.draw()) if text.isdigit()]
    assert counts
    assert len(places_of(chart)) - len(counts) + sum(counts) == 1801
    assert len(places_of(chart)) <= descent.MOST_MARKS


def test_a_blame_names_every_program_that_gave_a_line() -> None:
    log = read_log(SAMPLES / GREEDY)
    ax = plots.blame(log)
    assert not complaints(figure_of(ax))
    table = replay.blame(log)
    shown = " ".join(texts_of(ax))
    for generation, index in set(zip(table["generation"], table["index"], strict=True)) - {(0, 0)}:
        assert f"generation {generation} #{index}" in shown
    assert "initial program" in shown
    assert "return centers, radii, float(np.sum(radii))" in shown


def test_lines_that_do_not_fit_are_counted() -> None:
    log = read_log(SAMPLES / GREEDY)
    table = replay.blame(log)
    blank = (table["text"].str.strip() == "").sum()
    ax = plots.blame(log, ax=plots.subplots(height=3.0)[1][0])
    code = [text for text in ax.texts if text.get_fontfamily() == ["monospace"]]
    folded = [int(text.get_text().split()[1]) for text in code if text.get_text()[0] == "…"]
    assert folded
    assert len(code) - len(folded) + sum(folded) == len(table) - blank


def test_lines_of_a_short_program_keep_their_height(tmp_path) -> None:
    short, long = read_log(write_sample(tmp_path / "a.jsonl")), read_log(SAMPLES / GREEDY)

    def height_of(log, height):
        ax = plots.blame(log, ax=plots.subplots(height=height)[1][0])
        figure_of(ax).draw_without_rendering()
        return abs(np.diff(ax.transData.transform([(0, 0), (0, 1)])[:, 1])[0])

    assert len(replay.blame(short)) == 1
    assert height_of(short, 6.0) == pytest.approx(height_of(short, 3.0), rel=0.2)
    assert height_of(short, 6.0) < 1.3 * height_of(long, 6.0)


def test_both_are_of_the_best_run_of_a_group() -> None:
    frame = replay.load(str(SAMPLES / "searches" / "circle_packing-*"), progress=False)
    best = frame.loc[frame["best_fitness"].idxmax()]
    titles = titles_of(plots.overview(frame))
    for name in ("Tree", "Blame"):
        assert f"{name}: circle_packing, offline, seed {best['seed']}" in titles


def test_a_seed_that_is_unknown_is_in_no_title(tmp_path) -> None:
    whole = read_log(write_sample(tmp_path / "a.jsonl", seed=-1))
    for chart in (plots.charts.tree(whole), plots.charts.timeline(whole)):
        titles = [panel.title for panel in chart.panels]
        assert any("min_max_distance, sample" in title for title in titles)
        assert not any("seed" in title for title in titles)


def test_a_group_without_programs_gets_a_sentence_in_their_place(tmp_path) -> None:
    small = compact(write_sample(tmp_path / "a.jsonl"), tmp_path / "small.jsonl")
    figure = plots.overview(replay.load(small.path, progress=False))
    assert "small.jsonl holds no programs, so their" in figure.get_supxlabel().replace("\n", " ")
    assert "Tree: min_max_distance, sample, seed 7" in titles_of(figure)


def test_both_stay_legible_in_a_column_of_a_paper() -> None:
    log = read_log(SAMPLES / ISLANDS)
    for draw in (plots.tree, plots.blame):
        shown = [text for text in plots.paper(draw, log).findobj(Text) if text.get_text()]
        assert min(text.get_fontsize() for text in shown) >= LEAST_SIZE


def test_lanes_hold_paths_that_keep_apart_and_lie_near_their_parents() -> None:
    """A star of 20,000 children takes no longer per child than one of 2,000."""
    table = replay.tree(read_log(SAMPLES / ISLANDS))
    lanes, _ = lanes_of(table)
    spans = {}
    for lane, first, last in zip(lanes, table["generation"], table["last"], strict=True):
        spans.setdefault(lane, []).append((first, last))
    for taken in spans.values():
        assert all(a[1] < b[0] for a, b in itertools.pairwise(sorted(taken)))
    seconds = []
    for count in (2_000, 20_000):
        star = pd.concat([table.iloc[[0]], table.iloc[[1]].loc[[1] * count]], ignore_index=True)
        star.loc[1:, "index"] = range(count)
        star["best_line"] = [True] + [False] * count
        tries = []
        for _ in range(3):  # the least of them says most on a busy machine
            began = time.process_time()
            lanes, _ = lanes_of(star)
            tries.append(time.process_time() - began)
        seconds.append(min(tries))
        assert np.ptp(lanes[1:]) + 1 == len(set(lanes[1:].tolist())) == count
    assert seconds[1] < 40 * seconds[0]
