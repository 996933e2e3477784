"""Shapes that figures share: facets, lines, estimates."""

import itertools

import numpy as np
import pandas as pd
import pytest
from looks import complaints, texts
from plotted import (
    POLICIES,
    TABLE,
    WORDS,
    made_curves,
    made_effects,
    made_runs,
    marks,
)

import replay
from replay import plots
from replay.plots import charts
from replay.plots.policies import EFFECTS


def test_facets_of_nothing_say_what_is_expected():
    with pytest.raises(ValueError, match="facets: expected one name or more, such as tasks"):
        plots.facets([], lambda name, ax: None)


def test_facets_say_once_what_all_say_and_give_a_name_one_colour():
    tasks = ["circle_packing", "min_max_distance", "third"]
    frame = pd.concat([made_runs(4, task=t, model=m) for t in tasks for m in ("b", "a")])
    parts = dict(list(frame.groupby("task")))
    draw = lambda task, ax: plots.trajectories(parts[task], by="model", ax=ax)  # noqa: E731
    figure = plots.facets(tasks, draw, columns=2)
    shown = replay.show(figure)
    assert repr(shown) == f"Best so far, N = 16; {'; '.join(tasks)}"
    assert "thin: every run; n = 4 each" in figure.get_supxlabel()
    assert not complaints(figure)
    parts["third"] = parts["third"].query("model == 'a'")
    figure = plots.facets(tasks, draw)
    named = [
        [text.get_text() for text in ax.texts if text.get_text() in "ab"] for ax in figure.axes
    ]
    assert named == [[], ["a", "b"], ["a"]]  # strips side by side are named at the right
    wide = [{line.get_color() for line in ax.lines if line.get_lw() > 2} for ax in figure.axes]
    assert list(map(len, wide)) == [2, 2, 1]
    assert wide[2] < wide[0] == wide[1]


def test_facets_of_rows_share_their_names_and_their_legend():
    effects = made_effects()
    draw = lambda name, ax: plots.pool_vs_allocation(effects, of=name, ax=ax)  # noqa: E731
    figure = plots.facets(["one", "two"], draw)
    replay.show(figure)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    assert [ax.get_legend() for ax in figure.axes] == [None, None]
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(EFFECTS.values())
    seen = [ax.yaxis.get_major_ticks()[0].label1.get_visible() for ax in figure.axes]
    assert seen == [True, False]


def test_facets_of_heatmaps_name_their_colours_once_and_can_be_read_on_a_narrow_page(grid):
    figure = plots.facets(["one", "two", "three"], lambda _, ax: plots.heatmap(grid, ax=ax))
    bars = [ax.get_ylabel() for ax in figure.axes[3:]]
    assert bars == ["", "", "mean best fitness"]
    replay.show(figure)
    assert not complaints(figure)
    shown = 715 / figure.get_figwidth() / 72  # pixels of a point where JupyterLab has 900
    assert min(text.get_fontsize() for ax in figure.axes for text in texts(ax)) * shown > 9


def spans(ax):
    """Lowest and highest points of the bands that are drawn, from below."""
    bands = [each.get_paths()[0].vertices[:, 1] for each in ax.collections if each.get_paths()]
    return sorted((band.min(), band.max()) for band in bands if np.ptp(band) > 0)


def test_bands_of_several_lines_never_overlap_but_in_one_panel():
    apart = spans(plots.policy_curves(made_curves()))
    assert len(apart) == len(POLICIES)
    assert all(lower[1] < upper[0] for lower, upper in itertools.pairwise(apart))
    table = made_curves().rename(columns={"policy": "by"})
    one = plots.lines(table, y="fitness", by="by", at="round", together=True, **WORDS)
    together = spans(one)
    assert any(lower[1] > upper[0] for lower, upper in itertools.pairwise(together))
    band = table[["low", "high"]].to_numpy()
    assert one.get_ylim()[0] <= band.min() < band.max() <= one.get_ylim()[1]


@pytest.mark.parametrize(("scale", "places"), [
    ("plain", [[0.75, 3.75], [1.25, 4.25]]),
    ("doublings", [[2**-0.25, 2**1.75], [2**0.25, 2**2.25]]),
])  # fmt: skip
def test_lines_are_moved_apart_in_the_units_of_their_axis_with_their_bars(scale, places):
    rows = [("a", 1, 0.5, 0.2, 0.9), ("a", 4, 0.6, 0.3, 1.0)]
    rows += [("b", *row[1:]) for row in rows]
    table = pd.DataFrame(rows, columns=["line", "x", "value", "low", "high"])
    drawn = {"by": "line", "limits": "bars", "apart": 0.5, "scale": scale}
    chart = charts.lines(table, y="fitness", **drawn, **WORDS)
    assert [line.x.tolist() for line in marks(chart, "line")] == [pytest.approx(p) for p in places]
    for bars, each in zip(marks(chart, "points"), places, strict=True):
        np.testing.assert_allclose(bars.x, each)
        np.testing.assert_allclose(bars.y_low, [0.2, 0.3])
        np.testing.assert_allclose(bars.y_high, [0.9, 1.0])


def test_each_estimate_has_its_row_and_each_group_its_colour():
    ax = plots.estimates(TABLE, groups="task", **WORDS)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["deep", "broad"]
    a, b = marks(charts.estimates(TABLE, groups="task", **WORDS), "points")
    assert a.x.tolist() == [0.1, 0.3]
    assert b.x[0] == 0.2
    assert [round(y) for y in a.y] == [0, 1]
    assert a.color != b.color
    with pytest.raises(ValueError, match="low, high missing"):
        plots.estimates(TABLE[["value"]], **WORDS)
