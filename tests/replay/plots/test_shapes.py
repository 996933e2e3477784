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
    made_ledger,
    made_runs,
    marks,
)

import replay
from replay import plots
from replay.plots import charts
from replay.plots.arranging import arrange
from replay.plots.policies import EFFECTS
from replay.plots.style import room_of


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


LONG = [
    f"{name}{k:02d}"
    for k, name in enumerate(
        3
        * [
            "a_search_with_a_rather_long_name_of_its_own_",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf-of-",
            "min_max_distance_of_sixteen_points_in_the_plane_",
            "provider/some-really-long-model-name-v2-x-of-",
        ]
    )
]
"""Names of more than 40 characters, as of models, tasks and searches."""


def runs_of(names, column):
    parts = [(name, made_runs(6, 8, seed=seed)) for seed, name in enumerate(names)]
    return pd.concat(
        [part.assign(**{column: name}, run=part["run"] + name) for name, part in parts]
    )


def compared(names):
    parts = [(task, runs_of(names, "search").assign(task=task)) for task in LONG[:2]]
    return replay.compare(
        pd.concat([part.assign(run=part["run"] + task) for task, part in parts]), by="search"
    )


def of_names(columns):
    table = pd.DataFrame(list(itertools.product(*columns)), columns=["row", "group"])
    return table.assign(value=0.5, low=0.4, high=0.6)


CROWDED = {
    "estimates": lambda: plots.estimates(
        of_names([LONG, LONG[:2]]), rows="row", groups="group", title=LONG[0], about="n", x="x"
    ),
    "groups": lambda: plots.estimates(
        of_names([LONG[:2], LONG]), rows="row", groups="group", title=LONG[0], about="n", x="x"
    ),
    "verdict": lambda: plots.verdict(
        replay.judge(
            runs_of(LONG[:2], "search"), {"search": LONG[0]}, {"search": LONG[1]}, margin=0.01
        )
    ),
    "comparison": lambda: plots.comparison(compared(LONG[:4]))[0],
    "verdicts": lambda: plots.verdicts(
        pd.concat([made_ledger().assign(verdict="less", source=name) for name in LONG])
    ),
    "titles": lambda: plots.facets(
        LONG, lambda task, ax: plots.trajectories(made_runs(6, 8, task=task), ax=ax)
    ),
    "strips": lambda: plots.facets(
        LONG[:3], lambda _, ax: plots.trajectories(runs_of(LONG, "search"), by="search", ax=ax)
    ),
    "trajectories": lambda: plots.trajectories(runs_of(LONG, "search"), by="search"),
}


@pytest.mark.parametrize("figure", CROWDED)
def test_twelve_long_names_can_be_read(figure):
    drawn = CROWDED[figure]()
    drawn = getattr(drawn, "figure", drawn)
    arrange(drawn)
    assert not complaints(drawn)
    assert min(room_of(ax)[0] for ax in drawn.axes) > 0.4 * 72 * drawn.get_figwidth() / 3
