"""Figures of single runs: trajectories, forks, pulls and constructions."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from looks import complaints
from plotted import (
    made_runs,
    marks,
    words,
)
from synthetic_runs import as_frame

from replay import plots
from replay.logs.frames import ReplayWarning
from replay.plots import charts
from replay.plots.chart import pack
from replay.plots.marks import End, Line, Rule
from replay.plots.style import THEMES


def test_pulls_and_references_lie_where_they_were_made():
    class Allocation(SimpleNamespace):
        """What is drawn of one."""

    made = Allocation(pulls=np.array([0, 2, 1, -1]), arms=[None] * 3)
    points = plots.pulls(made).collections[0].get_offsets()
    assert points.tolist() == [[1, 1], [2, 3], [3, 2]]
    ax = plots.trajectories(made_runs(3), references={"nearest_neighbour": 0.5})
    assert ax.lines[-1].get_ydata() == [0.5, 0.5]
    assert "nearest neighbour" in words(ax)


def test_a_rescored_log_beside_its_original_is_no_run_of_a_picture():
    frame = made_runs(7)
    again = frame.assign(run=frame["run"] + "-again", rescored=True)
    both = pd.concat([frame.assign(rescored=False), again], ignore_index=True)
    with pytest.warns(ReplayWarning, match="7 of 14 runs are rescored logs"):
        drawn = charts.trajectories(both)
    assert pack(drawn) == pack(charts.trajectories(frame))
    assert pack(charts.trajectories(again)) == pack(charts.trajectories(frame))


def test_trajectories_draw_every_run_and_their_median():
    frame = made_runs(7)
    ax = plots.trajectories(frame)
    wide = frame.pivot(index="run", columns="generation", values="best_fitness").to_numpy()
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    for run in wide:
        assert any(np.array_equal(run, line) for line in drawn)
    assert sum(np.allclose(np.median(wide, axis=0), line) for line in drawn) == 2
    assert len(drawn) == 7 + 2


def test_of_many_groups_in_one_panel_only_medians_and_bands_are_drawn():
    frame = pd.concat([made_runs(4, model=f"m{k}") for k in range(8)])
    ax = plots.trajectories(frame, together=True)
    assert len(ax.lines) == 2 * 8
    assert "thin" not in words(ax)


def test_references_are_dotted_as_no_condition_is_and_the_words_say_so():
    frame = pd.concat([made_runs(3, model=f"m{k}", seed=k) for k in range(9)])
    chart = charts.trajectories(frame, references={"known": 0.9})
    [panel] = chart.panels
    of = {kind: [e for e in panel.marks if isinstance(e, kind)] for kind in (Rule, Line, End)}
    dotted = {each.dash for each in of[Rule] if each.color == "ink"}
    assert dotted == {each.dash for each in of[End] if each.text == "known"}
    assert not dotted & {each.dash for each in of[Line]}
    assert "dotted: references" in panel.about
    assert "dotted" not in charts.trajectories(frame).panels[0].about
    conditions = {(each.color, each.dash) for each in of[Line] if each.width == 3.0}
    assert conditions == {(each.color, each.dash) for each in of[End] if each.text != "known"}
    [name] = [each for each in chart.draw().texts if each.get_text() == "known"]
    assert name.arrow_patch.get_linestyle() != "-"


def test_every_strip_has_the_same_range_its_ticks_its_name_and_the_other_medians():
    frame = pd.concat([made_runs(8, model=f"m{k}", seed=k) for k in range(4)])
    ax = plots.trajectories(frame, references={"known": 0.9})
    ax.figure.draw_without_rendering()
    ticks = [text.get_text() for text in ax.get_yticklabels()]
    assert ticks == ticks[: len(ticks) // 4] * 4
    heights = np.reshape(ax.get_yticks(), (4, -1))
    assert np.allclose(np.diff(heights, axis=0), -1)  # one strip is one unit high
    low, high = float(ticks[0]), float(ticks[len(ticks) // 4 - 1])
    unit = (heights[0, -1] - heights[0, 0]) / (high - low)
    wide = [line for line in ax.lines if line.get_lw() > 2]
    faint = [each for each in ax.lines if each.get_color() == THEMES["light"].faint]
    grey = [each.get_ydata() for each in faint if len(each.get_ydata()) > 2]
    assert len(grey) == 4  # one mark for each strip: where its lines cross it gets no darker
    for k, line in enumerate(wide):
        runs = frame[frame["model"] == f"m{k}"]
        median = runs.groupby("generation")["best_fitness"].median().to_numpy()
        assert np.allclose(line.get_ydata(), heights[k, 0] + unit * (median - low))
        others = [each.get_ydata() - (k - order) for order, each in enumerate(wide) if order != k]
        assert np.allclose(grey[k], np.hstack([[*each, np.nan] for each in others]), equal_nan=True)
    names = {text.get_text(): text.xy[1] for text in ax.texts if text.get_text()}
    assert [math.floor(names[f"m{k}"]) for k in range(4)] == [3, 2, 1, 0]
    assert math.floor(names["known"]) == 3
    assert not complaints(ax.figure)


def test_the_medians_of_other_tasks_are_not_shown_and_many_strips_fit_a_screen():
    tasks = [made_runs(2, task=task, seed=k) for k, task in enumerate(("circle_packing", "other"))]
    few = charts.trajectories(pd.concat(tasks))
    assert not [
        mark for mark in few.panels[0].marks if mark.kind == "line" and mark.color == "faint"
    ]
    sizes = [made_runs(2, children=2**k, seed=k) for k in range(10)]
    assert charts.trajectories(pd.concat(sizes)).panels[0].height == 600
    assert charts.trajectories(pd.concat(sizes[:4])).panels[0].height == 4 * 85


@pytest.mark.parametrize("level", [0.0, 0.7])
def test_a_task_of_one_level_has_no_negative_axis(level):
    models = pd.concat([made_runs(3, model=name) for name in "ab"]).assign(best_fitness=level)
    alone = plots.trajectories(models[models["model"] == "a"])
    assert 0 <= alone.get_ylim()[0] <= level < alone.get_ylim()[1]
    ticks = [text.get_text() for text in plots.trajectories(models).get_yticklabels()]
    assert ticks
    assert min(map(float, ticks)) >= 0


@pytest.mark.parametrize("count", [2, 10])
def test_strips_can_be_read_however_many_there_are(count):
    frame = pd.concat([made_runs(3, 3, children=2**k, seed=k) for k in range(count)])
    assert not complaints(plots.trajectories(frame, x="calls").figure)
    [ax] = plots.subplots(height=4.6)[1]
    plots.trajectories(frame, x="calls", ax=ax)
    assert not complaints(ax.figure)


@pytest.mark.parametrize(("x", "columns"), [
    ("calls", ["n_calls"]),
    ("tokens", ["prompt_tokens", "completion_tokens"]),
    ("flops", ["flops"]),
    ("seconds", ["seconds"]),
])  # fmt: skip
def test_costs_add_up_over_generations(x, columns):
    frame = made_runs(4)
    ax = plots.trajectories(frame, x=x)
    totals = frame.groupby("run")[columns].sum().sum(axis=1)
    ends = [line.get_xdata()[-1] for line in ax.lines[:4]]
    assert sorted(ends) == pytest.approx(sorted(totals))


@pytest.mark.parametrize("generations", [1, 5])
@pytest.mark.parametrize(("x", "size"), [("generation", 1), ("calls", 24)])
def test_no_trajectory_passes_its_last_position(generations, x, size):
    """Best of 24 is a step up to a dot; a bar shows the interval of the last value."""
    frame = made_runs(6, generations=generations, children=24)
    chart = charts.trajectories(frame, x=x)
    for line in marks(chart, "line"):
        assert line.x[-1] == size * generations
    ends, median, bar = marks(chart, "points")
    assert list(ends.x) == [size * generations] * 6
    assert list(median.x) == list(bar.x) == [size * generations]
    assert bar.y_low[0] < bar.y_high[0]
    alone = charts.trajectories(frame[frame["generation"] == 0])
    assert all(len(set(line.x)) == 1 for line in marks(alone, "line"))


def test_forks_are_drawn_as_gains_over_the_state_that_they_left():
    frame = made_runs(6, generations=8, children=4)
    frame = frame.assign(
        forked_from="a state", n_calls=frame["n_calls"] * (frame["generation"] > 3)
    )
    ax = plots.worth(frame)
    assert "interval over copies; thin: every copy" in words(ax)
    assert ax.get_ylabel() == "gain over the state of the fork"
    wide = frame.pivot(index="run", columns="generation", values="best_fitness").to_numpy()
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    for run in wide:
        assert any(np.array_equal(run[3:] - run[3], line) for line in drawn)
    for line in ax.lines:  # five generations of four calls
        assert line.get_xdata()[-1] == 5 * 4
    others = frame.assign(forked_from=frame["run"].str[-1])
    with pytest.raises(ValueError, match="forks of one state"):
        plots.worth(others)


def test_an_unknown_cost_is_not_drawn_as_none():
    with pytest.raises(ValueError, match="does not say its dollars in 16 generations"):
        plots.trajectories(made_runs(), x="dollars")


def test_a_group_without_any_fitness_is_named(tmp_path):
    failed = made_runs(4, model="qwen3-8b").assign(best_fitness=np.nan)
    ax = plots.trajectories(pd.concat([made_runs(3), failed]))
    assert "qwen3-8b (n = 4, nothing ok)" in words(ax)
    unnamed = made_runs(2, model=None)
    assert "(n = 2)" in words(plots.trajectories(pd.concat([made_runs(3), unnamed])))
    plots.save(ax, tmp_path / "failed.png")


def test_groups_are_whatever_differs_and_the_offline_model_is_named():
    said = words(plots.trajectories(pd.concat([made_runs(3), made_runs(5, children=4)])))
    assert "N = 16 (n = 3)" in said
    assert "N = 4 (n = 5)" in said
    assert "no interval" in words(plots.trajectories(made_runs(1, 0)))
    assert "offline model" in words(plots.trajectories(made_runs()))
    assert "qwen3-8b model" not in words(plots.trajectories(made_runs(model="qwen3-8b")))


def test_the_median_is_dashed_where_some_runs_have_no_value():
    frame = made_runs(5)
    first = frame["run"] == frame["run"].iloc[0]
    frame = frame[~first | (frame["generation"] <= 10)].copy()
    frame.loc[
        (frame["run"] == frame["run"].iloc[-1]) & (frame["generation"] < 3), "best_fitness"
    ] = np.nan
    ax = plots.trajectories(frame)
    solid = np.asarray(ax.lines[-1].get_ydata(), dtype=float)
    assert np.array_equal(np.flatnonzero(np.isfinite(solid)), np.arange(3, 11))
    assert np.isfinite(np.asarray(ax.lines[-2].get_ydata(), dtype=float)).all()
    assert "in short dashes where only some have a value" in words(ax)
    assert "dashes" not in words(plots.trajectories(made_runs(5)))
    half = made_runs(4)
    gone = half["run"].isin(half["run"].unique()[:2]) & (half["generation"] > 10)
    of_half = plots.trajectories(half[~gone]).lines[-2].get_ydata()
    assert np.isfinite(np.asarray(of_half, dtype=float)).all()


def test_runs_without_a_program_that_is_ok_are_a_sentence():
    for frame in (made_runs()[:0], made_runs().assign(best_fitness=np.nan)):
        assert "No run has a program that is ok." in words(plots.trajectories(frame))


def test_what_is_missing_to_the_optimum_is_drawn_on_a_logarithmic_axis():
    frame = made_runs(4)
    frame["best_fitness"] = 1 - 10 ** (-20 * frame["best_fitness"])
    chart = charts.trajectories(frame, gap=True, references={"known": 0.999})
    [panel] = chart.panels
    line = marks(chart, "line")[0]
    first = frame[frame["run"] == frame["run"].iloc[0]]["best_fitness"]
    wanted = -np.log10(np.maximum(1 - first, 1e-9))
    np.testing.assert_allclose(line.y, wanted, atol=1e-9)
    assert dict(panel.y.ticks)[3.0] == "0.001" or min(dict(panel.y.ticks)) > 3
    [rule] = marks(chart, "rule")
    assert rule.y == pytest.approx(3.0)
    assert panel.y.label == "1 - best fitness"


def test_groups_stand_in_the_order_of_their_numbers_and_no_curve_pools_several_n():
    curve = np.linspace(0.1, 0.9, 5)
    parts = [
        as_frame(np.stack([curve, curve]), children=size, seeds=range(2), model=model)
        for model in ("m", "a") for size in (16, 1, 4)
    ]  # fmt: skip
    frame = pd.concat(parts, ignore_index=True)

    def names(chart):
        return list(filter(None, dict.fromkeys(chart.table()["label"].dropna())))

    one = frame[frame["model"] == "m"]
    assert names(plots.charts.trajectories(one)) == ["N = 1", "N = 4", "N = 16"]
    pooled = names(plots.charts.trajectories(frame, by="model"))
    assert pooled == [f"{model}, N = {size}" for model in ("m", "a") for size in (1, 4, 16)]
    assert names(plots.charts.trajectories(one, by="model")) == pooled[:3]
    words = {"title": "", "about": "", "x": "x", "y": "y", "by": "K", "at": "x"}
    table = pd.DataFrame({"K": [2, 5, 3], "x": 1.0, "value": 0.0, "low": 0.0, "high": 0.0})
    assert names(plots.charts.lines(table, **words)) == ["2", "3", "5"]
