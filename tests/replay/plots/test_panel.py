"""Axes as long as the marks need, with the stated room."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.plots.marks import Line, Points, Rule
from replay.plots.panel import Axis, Panel


def settled(*marks, x=None, y=None):
    found = Panel(title="", x=x or Axis(), y=y or Axis(), marks=marks).settled()
    return found.x.domain, found.y.domain


finite = st.floats(-1e9, 1e9)


@given(st.lists(finite, min_size=1, max_size=5))
def test_every_mark_is_inside_its_axes(values):
    (left, right), (low, high) = settled(Line(x=values, y=values))
    assert left <= min(values) <= max(values) <= right
    assert low <= min(values) <= max(values) <= high
    assert left < right
    assert low < high


def test_room_is_a_share_of_what_is_reached():
    x, y = settled(Line(x=[0.0, 10.0], y=[1.0, 3.0]))
    assert x == pytest.approx((-0.2, 10.2))
    assert y == pytest.approx((0.9, 3.1))


def test_a_logarithmic_axis_has_room_in_ratios_and_leaves_out_what_has_none():
    log = Axis(scale="log")
    x, _ = settled(Line(x=[0.0, 1.0, 100.0, math.nan], y=[1.0] * 4), x=log)
    assert x == pytest.approx((100**-0.02, 100**1.02))
    assert settled(Line(x=[8.0], y=[1.0]), x=log)[0] == (4.0, 16.0)
    assert all(limit > 0 for limit in settled(x=log)[0])


@pytest.mark.parametrize(
    ("value", "limits"), [(0.0, (0.0, 0.5)), (1.0, (0.95, 1.05)), (-1.0, (-1.05, -0.95))]
)
def test_a_single_value_lies_in_the_middle_and_none_goes_below_zero_without_need(value, limits):
    assert settled(Line(x=[value], y=[value]))[1] == pytest.approx(limits)


def test_a_panel_without_numbers_and_one_with_limits_keep_what_is_stated():
    x, y = settled(Line(x=[math.nan], y=[math.inf]), y=Axis(domain=(5.0, 1.0)))
    assert x == pytest.approx((-0.02, 1.02))
    assert y == (5.0, 1.0)


def test_bands_bars_and_rules_are_reached_too():
    band = Line(x=[0.0, 1.0], y=[1.0, 1.0], low=[0.0, 0.0], high=[2.0, 4.0])
    assert settled(band)[1] == pytest.approx((-0.2, 4.2))
    bars = Points(x=[1.0], y=[1.0], y_low=[0.0], y_high=[2.0])
    assert settled(bars, Rule(y=10.0))[1] == pytest.approx((-0.5, 10.5))
