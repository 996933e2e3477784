"""Marks: columns of one length, what they reach, and what a table holds of them."""

import math

import numpy as np
import pytest

from replay.plots.marks import (
    RAMP,
    Area,
    Bars,
    Cells,
    Discs,
    Label,
    Line,
    Points,
    Polylines,
    Rule,
    Segments,
    columns_of,
    intervals_of,
    reach_of,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Line(x=[1, 2], y=[1]), "Line: expected as many values in each of x, y, but x"),
        (lambda: Line(x=[1], y=[1], low=[1, 2]), "low has 2"),
        (lambda: Points(x=[1], y=[1], color=["ink", "faint"]), "color has 2"),
        (lambda: Points(x=[1], y=[1], size=[1.0, 2.0]), "size has 2"),
        (lambda: Points(x=[1, 2], y=[1, 2], texts=["a"]), "texts has 1"),
    ],
)  # fmt: skip
def test_columns_of_several_lengths_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("values", [["a", "b"], [[1.0, 2.0], [3.0, 4.0]], [{}, {}]])
def test_columns_of_numbers_hold_numbers(values):
    for make in (lambda: Line(x=values, y=[1, 2]), lambda: Points(x=[1, 2], y=values)):
        with pytest.raises(ValueError, match=r"expected a list of numbers for [xy], got .*ticks="):
            make()
    Line(x=[0, 1], y=[None, 1.0])


def test_one_colour_and_one_size_do_for_all_places():
    Points(x=[1, 2, 3], y=[1, 2, 3], color="ink", size=2.0)


def test_a_band_is_reached_only_where_it_is_drawn():
    band = {"x": [0, 1], "y": [2, 3], "low": [1, 1], "high": [9, 9]}
    assert reach_of(Line(**band)) == ([0, 1], [2, 3])
    assert intervals_of(Line(**band), "y") == ([1, 1], [9, 9])
    assert intervals_of(Line(**band), "x") == ((), ())
    assert intervals_of(Line(**band, band=False), "y") == ((), ())


def test_points_reach_the_ends_of_their_bars_and_discs_their_edges():
    points = Points(x=[1], y=[2], x_low=[0], x_high=[5])
    assert reach_of(points) == ([1], [2])
    assert intervals_of(points, "x") == ([0], [5])
    assert intervals_of(points, "y") == ((), ())
    assert reach_of(Discs(x=[1, 2], y=[0, 0], r=[1, 3])) == ([0, -1, 2, 5], [-1, -3, 1, 3])
    assert reach_of(Rule(y=4.0)) == ([], [4])
    assert reach_of(Label(x=1.0, y=2.0, text="a")) == ([1], [2])


def test_a_table_states_each_place_and_the_numbers_meant():
    line = Line(x=[0, 1], y=[0.2, 0.9], label="a", stated={"y": [5.0, 7.0]})
    assert columns_of(line) == {"label": "a", "x": [0, 1], "y": [5.0, 7.0]}
    assert columns_of(Line(x=[0], y=[1], stated={})) == {}
    with_limits = columns_of(Line(x=[0], y=[1], low=[math.nan], texts=["t"]))
    assert list(with_limits) == ["label", "x", "y", "low", "texts"]


def test_tables_of_grids_and_bundles_have_a_row_for_each_number():
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    lines = Polylines(x=[10.0, 20.0], rows=rows, colors=["ink"] * 3, widths=[1.0] * 3)
    found = columns_of(lines)
    assert found["row"].tolist() == [0, 0, 1, 1, 2, 2]
    assert found["x"].tolist() == [10, 20] * 3
    assert found["y"].tolist() == [1, 2, 3, 4, 5, 6]
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    cells = columns_of(Cells(values=values, x0=0, x1=3, y0=0, y1=2, colors=["#000000"]))
    assert cells["row"].tolist() == [0, 0, 0, 1, 1, 1]
    assert cells["column"].tolist() == [0, 1, 2] * 2
    assert cells["value"].tolist() == [1, 2, 3, 4, 5, 6]


def test_the_ramp_is_cividis():
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    wanted = colormaps["cividis"](np.linspace(0, 1, len(RAMP)))[:, :3]
    assert np.abs(np.array([to_rgb(each) for each in RAMP]) - wanted).max() < 0.02


@pytest.mark.parametrize(
    ("mark", "columns"),
    [
        (Points, {"x": np.arange(2), "y": [1, 2], "texts": ["one"]}),
        (Bars, {"x0": [0], "x1": [1, 2], "y": [0]}),
        (Segments, {"x0": [0], "y0": [0], "x1": [1], "y1": [1, 2]}),
        (Discs, {"x": [0], "y": [0], "r": [1, 2]}),
        (Area, {"x": [0, 1, 2], "y": [0, 1]}),
    ],
)
def test_every_mark_with_columns_refuses_lengths_that_differ_and_takes_equal_ones(mark, columns):
    with pytest.raises(ValueError, match=f"{mark.__name__}: expected as many values .*, but x"):
        mark(**columns)
    cut = {name: values[:1] for name, values in columns.items()}
    mark(**cut)
