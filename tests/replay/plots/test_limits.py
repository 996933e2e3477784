"""Limits of axes: all values lie on them, and intervals do not squeeze the values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from plotted import words

from replay import plots
from replay.logs.frames import possible_in
from replay.plots.limits import held, with_room
from replay.plots.marks import Line, Points
from replay.plots.panel import GOES_ON, Axis, Panel
from replay.plots.strips import strips_for

lengths = st.lists(st.floats(0.1, 10), min_size=1, max_size=9)


@given(lengths, st.floats(-5, 5))
def test_all_values_are_held_and_intervals_of_like_lengths_in_full(sizes, start):
    values = start + np.cumsum(sizes)
    low, high = values - 1.0, values + 1.0
    found = held(values, low, high)
    assert (found.min(), found.max()) == (low.min(), high.max())
    found = held(values, low, high, (values.min() + 0.5, values.max() - 0.5))
    assert (found.min(), found.max()) == (values.min(), values.max())


def test_one_interval_far_longer_than_the_others_is_cut_and_says_so():
    table = pd.DataFrame({"value": [0.92, 0.95, 0.95, 0.94]}, index=list("abcd"))
    table = table.assign(low=table["value"] - 0.05, high=table["value"] + 0.05)
    table.loc["a", "low"] = 0.1
    ax = plots.estimates(table, title="Policies", about="n = 5", x="fitness")
    assert ax.get_xlim()[0] > 0.6
    assert GOES_ON in words(ax)
    table.loc["a", "low"] = 0.85
    ax = plots.estimates(table, title="Policies", about="n = 5", x="fitness")
    assert ax.get_xlim()[0] < 0.85
    assert GOES_ON not in words(ax)


def test_intervals_end_where_there_is_nothing_possible_with_an_arrow_that_points_on():
    table = pd.DataFrame({"value": [0.5, 0.6], "low": [-1.5, 0.1], "high": [2.5, 1.4]})
    words_of = {"title": "Sizes", "about": "n = 5", "x": "fitness"}
    free = plots.estimates(table, **words_of)
    ax = plots.estimates(table, possible=(0, 1), **words_of)
    low, high = ax.get_xlim()
    assert free.get_xlim()[0] < -1.5
    assert (low, high) == pytest.approx((0, 1), abs=0.1)
    arrows = [each for each in ax.collections if isinstance(each, PathCollection)]
    tips = sorted(float(x) for each in arrows for x, _ in each.get_offsets() if x in (low, high))
    assert tips == [low, high, high]


@pytest.mark.parametrize("flipped", [False, True])
def test_arrows_point_out_of_the_panel(flipped):
    domain = (1.0, 0.0) if flipped else (0.0, 1.0)
    points = Points(x=[0.5], y=[0.5], y_low=[-1.0], y_high=[0.7], x_low=[0.2], x_high=[9.0])
    panel = Panel(title="", x=Axis(domain=domain), y=Axis(domain=domain), marks=[points])
    ax = plots.Chart(panels=[panel]).draw()
    ax.figure.draw_without_rendering()
    middle = ax.transData.transform((0.5, 0.5))
    found = []
    for each in (c for c in ax.collections if isinstance(c, PathCollection)):
        for place in each.get_offsets():
            at = ax.transData.transform(place)
            shape = each.get_paths()[0].vertices.mean(axis=0)
            if not np.allclose(at, middle):
                found.append(float(np.dot(shape, at - middle)))
    assert len(found) == 2
    assert max(found) < 0  # their bodies lie on the side of the middle


def test_bands_keep_to_their_strips():
    strips = strips_for(2, [[0.4, 0.9]], limits=([0.35, -7.0, 0.38], [0.5, 9.0, 0.5]))
    assert strips.high < 1.5
    for group, foot in ((0, 1.0), (1, 0.0)):
        assert strips.limit(group, [-7.0, 9.0]).tolist() == [foot, foot + 1]
        assert strips.limit(group, [0.5]) == strips.place(group, [0.5])
    curves = pd.DataFrame(
        [(name, k, 0.5, 0.4, 0.6 if k else 40.0) for name in "ab" for k in range(4)],
        columns=["line", "x", "value", "low", "high"],
    )
    words_of = {"title": "", "about": "n = 5", "x": "x", "y": "y", "by": "line"}
    [panel] = plots.charts.lines(curves, **words_of).panels
    assert panel.about == "n = 5; grey: the others. A band at an edge goes on"
    [whole] = plots.charts.lines(curves.assign(high=0.6), **words_of).panels
    assert whole.about == "n = 5; grey: the others"
    for mark in panel.marks:
        if isinstance(mark, Line) and mark.high is not None:
            assert np.ptp(np.floor(np.nextafter(mark.high, 0))) == 0


def test_fitness_is_bounded_where_a_task_says_so_or_one_is_the_best_published():
    def frame(*tasks, unit=False):
        return pd.DataFrame({"task": tasks, "unit_scale": [unit] * len(tasks)})

    assert possible_in(frame("circle_packing", "min_max_distance")) == (0, 1)
    assert possible_in(frame("mine", unit=True)) == (0, 1)
    assert possible_in(frame("circle_packing", "mine")) is None
    assert possible_in(frame("circle_packing").iloc[:0]) is None


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.booleans())
def test_values_lie_inside_with_room_and_a_single_one_near_the_middle(low, length, signed):
    high = low + length
    least, most = with_room(low, high, signed=signed)
    assert least <= low <= high < most
    assert least >= 0 or low < 0 or (signed and high > low)
    if low == high != 0:
        assert most - least < 0.11 * abs(low)
        assert low - least == pytest.approx(most - high, rel=1e-6)
