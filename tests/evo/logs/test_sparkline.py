"""A trajectory as a small picture: its points, computed by hand."""

import math
import re

import pytest

from evo.logs.sparkline import sparkline


def points(values, **size):
    [found] = re.findall(r'points="([^"]*)"', sparkline(values, **size))
    return [tuple(map(float, each.split(","))) for each in found.split()]


def test_the_lowest_value_is_at_the_bottom_and_the_last_at_the_right():
    assert points([1.0, 3.0, 2.0], width=100, height=24) == [(0, 22), (50, 2), (100, 12)]


def test_what_is_not_known_leaves_its_place_free():
    known = points([math.nan, 1.0, math.nan, 2.0], width=90, height=14)
    assert known == [(30, 12), (90, 2)]


def test_a_constant_trajectory_is_a_line_at_the_bottom():
    assert points([0.5, 0.5], width=10, height=14) == [(0, 12), (10, 12)]


@pytest.mark.parametrize("values", [[], [1.0], [math.nan, 1.0, math.nan]])
def test_fewer_than_two_values_have_no_picture(values):
    assert sparkline(values) == ""


def test_the_picture_says_its_range():
    assert 'aria-label="best fitness by generation, from 0.25 to 0.5"' in sparkline([0.25, 0.5])
