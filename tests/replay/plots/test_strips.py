"""Strips: values keep their order and their range, and no strip reaches into the next."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.plots.strips import Elsewhere, Strips, strips_for

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6)


@given(st.integers(2, 40), values)
def test_every_value_lies_in_the_strip_of_its_group_by_its_size(count, given_values):
    strips = strips_for(count, [given_values])
    for group in (0, count - 1):
        heights = strips.place(group, given_values)
        foot = count - 1 - group
        assert (heights >= foot + strips.margin - 1e-9).all()
        assert (heights <= foot + 1 - strips.margin + 1e-9).all()
        assert (np.diff(heights[np.argsort(given_values, kind="stable")]) >= -1e-9).all()


@pytest.mark.parametrize("count", [0, 1])
def test_one_group_has_the_panel_to_itself(count):
    strips = strips_for(count, [[2.0, 3.0]])
    assert strips.count == 1
    assert strips.place(0, [2.0, 7.0]).tolist() == [2.0, 7.0]
    assert strips.rules() == []
    assert strips.elsewhere([Elsewhere(np.ones(1), [1.0])], step=False) == []
    assert strips.axis("fitness").ticks is None
    assert math.isnan(strips.end(0, math.nan))


def test_the_first_group_stands_on_top_with_rules_between():
    strips = Strips(count=3, low=0.0, high=2.0, margin=0.25)
    assert [strips.place(group, [0.0, 1.0, 2.0]).tolist() for group in range(3)] == [
        [2.25, 2.5, 2.75], [1.25, 1.5, 1.75], [0.25, 0.5, 0.75],
    ]  # fmt: skip
    assert [rule.y for rule in strips.rules()] == [1.0, 2.0]
    assert strips.end(1, math.nan) == 1.25
    assert strips.end(1, 2.0) == 1.75
    axis = strips.axis("fitness")
    assert axis.domain == (0.0, 3.0)
    assert len(axis.ticks) == 3 * len(strips.ticks())


@pytest.mark.parametrize(("count", "height"), [(1, 260), (3, 260), (4, 340), (7, 595), (8, 600),
                                               (13, 600), (14, 14 * 46)])  # fmt: skip
def test_strips_get_lower_before_a_panel_gets_taller_than_a_screen(count, height):
    assert strips_for(count, [[0.0, 1.0]]).height == pytest.approx(height)


@pytest.mark.parametrize(
    ("count", "margin"), [(2, 0.08), (4, 0.65 * 13 / 85), (14, 0.65 * 13 / 46)]
)
def test_a_tick_at_an_end_keeps_clear_of_the_next_strips(count, margin):
    assert strips_for(count, [[0.0, 1.0]]).margin == pytest.approx(margin)


@pytest.mark.parametrize("count", [2, 5, 8, 13, 20])
@pytest.mark.parametrize("high", [0.5, 1.0, 3.0, 7.0])
def test_no_text_of_a_tick_lies_over_the_next(count, high):
    strips = strips_for(count, [[0.0, high]])
    places = strips.place(0, [place for place, _ in strips.ticks()])
    pixels = np.diff(places) * strips.height / count
    assert (pixels >= 1.4 * 13 - 1e-6).all()


@given(st.floats(0, 1), st.floats(1e-3, 1), st.integers(2, 14))
def test_ticks_of_a_strip_are_even_steps_apart_with_none_missing(low, width, count):
    strips = strips_for(count, [[low, low + width]])
    places = [place for place, _ in strips.ticks()]
    steps = np.diff(places)
    assert np.allclose(steps, steps[:1] if steps.size else 0, rtol=1e-6)
    if steps.size:  # another one, a step further, lies outside
        assert places[0] - steps[0] < low + 1e-9
        assert places[-1] + steps[0] > low + width - 1e-9


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(2, 20))
def test_ticks_lie_inside_in_order_and_their_texts_say_where(low, width, count):
    ticks = Strips(count, low, low + width, 0.1).ticks()
    places = [place for place, _ in ticks]
    assert places == sorted(set(places))
    assert all(low <= place <= low + width for place in places)
    for place, text in ticks:
        assert float(text) == pytest.approx(place, abs=width / 1000, rel=1e-5)


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
def test_quarters_are_written_as_quarters(scale):
    texts = [float(text) for _, text in Strips(2, 0.0, scale, 0.1).ticks()]
    assert texts == pytest.approx([0, scale / 4, scale / 2, 3 * scale / 4, scale])


def test_in_grey_are_the_groups_of_the_same_kind_alone():
    strips = Strips(count=3, low=0.0, high=1.0, margin=0.0)
    x = np.array([0.0, 1.0])
    lines = [
        Elsewhere(x, [0.0, 1.0], "a"),
        Elsewhere(x, [0.5, 0.5], "a"),
        Elsewhere(x, [1, 1], "b"),
    ]
    first, second = strips.elsewhere(lines, step=True)
    np.testing.assert_array_equal(first.x, [0, 1, 1])
    np.testing.assert_array_equal(first.y, [2.5, 2.5, np.nan])
    np.testing.assert_array_equal(second.y, [1.0, 2.0, np.nan])
    assert first.step
    empty = [lines[0], Elsewhere(np.array([]), [], "a"), lines[2]]
    [only] = strips.elsewhere(empty, step=False)
    np.testing.assert_array_equal(only.y, [1.0, 2.0, np.nan])


def test_what_is_not_finite_has_no_say_in_the_range():
    strips = strips_for(2, [[math.nan, 1.0], [-math.inf, 3.0], []])
    assert (strips.low, strips.high) == (1.0, 3.0)
    assert (strips_for(2, []).low, strips_for(2, [[math.nan]]).high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("level", "limits"),
    [(0.0, (0.0, 0.5)), (2.0, (1.9, 2.1)), (-2.0, (-2.1, -1.9)), (0.01, (0.0095, 0.0105))],
)
def test_a_single_level_lies_inside_and_none_goes_below_zero_without_need(level, limits):
    strips = strips_for(2, [[level, level]])
    assert (strips.low, strips.high) == pytest.approx(limits)


def test_a_low_strip_has_its_first_and_last_tick_where_there_is_no_room_for_all():
    strips = strips_for(10, [[0.36, 0.98]])
    assert [text for _, text in strips.ticks()] == ["0.4", "0.8"]
