import json

import numpy as np
import pandas as pd
import pytest
from looks import complaints
from synthetic_runs import sweep_runs

from replay.explorers.sweep import FIGURES, SweepView
from replay.planning.sweeps import pareto_front
from replay.plots import cost_and_fitness
from replay.plots.arranging import arrange
from replay.plots.chart import pack
from replay.plots.marks import Label, Points, Polylines
from replay.plots.sweep_tables import SHADES
from replay.plots.sweeps import parallel_coordinates

FRAME = sweep_runs(30, 6)
ONE_SEED = sweep_runs(3, 1)


def view(figure, frame=FRAME, *, measure="fitness", cost="tokens"):
    return SweepView(whole=frame, rows=frame, figure=figure, measure=measure, cost=cost)


def marks(chart, kind, panel=0):
    return [mark for mark in chart.panels[panel].marks if isinstance(mark, kind)]


def close(found, expected):
    np.testing.assert_allclose(
        np.asarray(found, dtype=float), np.asarray(expected, dtype=float), rtol=1e-12
    )


@pytest.mark.parametrize("measure", ["fitness", "tokens"])
@pytest.mark.parametrize("frame", [FRAME, ONE_SEED], ids=["six seeds", "one seed"])
def test_every_main_effect_is_that_of_the_table(frame, measure):
    shown = view("main effects", frame, measure=measure)
    table, [panel] = shown.table(), shown.chart.panels
    [points] = marks(shown.chart, Points)
    for name, column in (("x", "value"), ("x_low", "low"), ("x_high", "high")):
        close(getattr(points, name), table[column])
    rows = dict(panel.y.ticks)
    assert [rows[y] for y in points.y] == [
        f"{row.setting}  (n = {row.runs})" for row in table.itertuples()
    ]
    names = [(label.y, label.text) for label in marks(shown.chart, Label)]
    above = [max((y, text) for y, text in names if y < at)[1] for at in points.y]
    assert above == table["field"].tolist()  # each row stands below the name of its field
    assert len({*points.y, *(y for y, _ in names)}) == len(table) + table["field"].nunique()
    assert np.isfinite(points.x_low).any() == table["low"].notna().any()


@pytest.mark.parametrize("frame", [FRAME, ONE_SEED], ids=["30", "3"])
def test_every_configuration_is_a_line_to_its_fitness(frame):
    shown = view("configurations", frame)
    table = shown.table().set_index("configuration")
    chart = shown.chart
    lines = marks(chart, Polylines)[-1]
    assert sorted(lines.keys) == sorted(table.index)
    [panel] = chart.panels
    scale = {
        label.text: label.y for label in marks(chart, Label) if label.x > len(panel.x.ticks) - 2
    }
    (low, at_low), *_, (high, at_high) = sorted(
        (float(text), height) for text, height in scale.items()
    )
    heights = np.array([row[-1] for row in lines.rows])
    means = low + (heights - at_low) / (at_high - at_low) * (high - low)
    close(np.round(means, 9), np.round(table.loc[list(lines.keys), "fitness"], 9))
    best = table["fitness"].idxmax()
    assert lines.keys[-1] == best  # the fittest is drawn last, and thick
    assert lines.widths[-1] == max(lines.widths)
    assert lines.colors[-1] == SHADES[-1]
    assert f"mean fitness {table['fitness'].max():.4g}" in lines.texts[-1]


def test_every_mean_of_depth_and_breadth_is_that_of_the_table():
    shown = view("depth and breadth")
    table, [panel] = shown.table(), shown.chart.panels
    found = marks(shown.chart, Points)
    for name, column in (("y", "value"), ("y_low", "low"), ("y_high", "high")):
        close(np.concatenate([getattr(each, name) for each in found]), table[column])
    places = np.rint(np.concatenate([each.x for each in found])).astype(int)
    assert [panel.x.ticks[place][1] for place in places] == table["children"].tolist()


@pytest.mark.parametrize("frame", [FRAME, ONE_SEED], ids=["six seeds", "one seed"])
@pytest.mark.parametrize("cost", ["tokens", "n_calls"])
def test_every_cost_and_the_front_are_those_of_the_table(frame, cost):
    shown = view("cost and fitness", frame, cost=cost)
    table = shown.table().set_index("configuration")
    rest, front = marks(shown.chart, Points)
    assert sorted([*rest.keys, *front.keys]) == sorted(table.index)
    for points, of in ((rest, False), (front, True)):
        rows = table.loc[list(points.keys)]
        assert (rows["front"] == of).all()
        for name, column in (
            *(("x", cost), ("x_low", f"{cost}_low"), ("x_high", f"{cost}_high")),
            *(("y", "fitness"), ("y_low", "fitness_low"), ("y_high", "fitness_high")),
        ):
            close(getattr(points, name), rows[column])
    named = [each for each in front.labels if each]
    [rows] = marks(shown.chart, Points, panel=1)
    assert list(rows.keys) == list(front.keys)[-len(named) :]
    close(rows.x, table.loc[list(rows.keys), "fitness"])
    assert [text.split(":")[0] for _, text in shown.chart.panels[1].y.ticks] == named


@pytest.mark.parametrize("figure", FIGURES)
def test_everything_lies_within_its_axes_and_can_be_packed(figure):
    for frame in (FRAME, ONE_SEED, FRAME.assign(fitness=0.0)):
        chart = view(figure, frame).chart
        assert json.loads(pack(chart))["panels"]
        for panel in chart.panels:
            for points in (mark for mark in panel.marks if isinstance(mark, Points)):
                for axis, name in ((panel.x, "x"), (panel.y, "y")):
                    low, high = sorted(axis.domain)
                    for part in (name, f"{name}_low", f"{name}_high"):
                        values = getattr(points, part)
                        known = np.asarray([] if values is None else values, dtype=float)
                        known = known[np.isfinite(known)]
                        assert ((low <= known) & (known <= high)).all(), (panel.title, part)
                    if axis.ticks is None:
                        assert min(axis.domain) >= 0  # no fitness and no cost is below zero


def test_a_sentence_stands_where_there_is_nothing_to_draw():
    same = FRAME[FRAME["configuration"] == "c000"]
    assert "one T and one N" in view("depth and breadth", same).chart.message
    assert "No field" in view("main effects", same).chart.message
    pending = FRAME.assign(status="pending", fitness=np.nan)
    assert "none of these runs is completed" in view("configurations", pending).chart.message


def test_a_field_that_no_completed_run_was_asked_for_has_one_tick():
    frame = FRAME.copy()
    asked = frame["top_p"].notna()
    frame.loc[asked, ["status", "fitness"]] = ["failed", np.nan]
    frame.loc[frame.index[asked][0], "status"] = "pending"
    chart = parallel_coordinates(frame)
    assert [label.text for label in marks(chart, Label)].count("not asked") == 1


def test_an_axis_of_ratios_holds_intervals_that_are_above_zero():
    frame = FRAME.copy()
    frame["tokens"] *= np.exp(0.3 * np.random.default_rng(0).normal(size=len(frame)))
    frame.loc[frame.index[3], "tokens"] *= 100  # an interval that goes down to zero
    panel = view("cost and fitness", frame).chart.panels[0]
    table = view("cost and fitness", frame).table()
    low, high = panel.x.domain
    assert panel.x.scale == "log"
    assert table["tokens_low"].min() == 0  # cut at the least that a cost can be
    cut, axis = table["tokens"].min() / 3, np.log(high / low)
    assert low < cut  # the axis ends there, but for the room around what is drawn
    assert np.log(cut / low) < 0.05 * axis
    assert table["tokens_high"].max() < high


def test_the_front_is_the_one_that_the_table_names():
    table = view("cost and fitness").table()
    assert table.loc[table["front"], "configuration"].tolist() == sorted(
        pareto_front(table, "tokens")["configuration"], key=table["configuration"].tolist().index
    )


def test_values_of_several_kinds_share_an_axis():
    frame = ONE_SEED.assign(model=pd.Series(["auto", 3, True], dtype=object))
    texts = [text for _, text in parallel_coordinates(frame).panels[0].y.ticks]
    assert {"auto", "3", "True"} <= set(texts)


def test_long_values_of_every_field_can_be_read():
    long = {name: f"a_rather_long_value_of_its_own_which_is_called_{name}" for name in "abc"}
    frame = FRAME.assign(model=FRAME["model"].map(lambda name: long.get(name, name)))
    for field in ("temperature", "children", "generations"):
        frame[field] = frame["model"].str.replace("rather", field)
    assert not complaints(parallel_coordinates(frame).figure())
    figure = cost_and_fitness(frame).figure
    arrange(figure)
    assert not [each for each in complaints(figure) if "cropped" in each]
