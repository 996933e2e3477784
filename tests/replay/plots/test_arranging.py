"""A figure is laid out until its headings fit, and what the last layout warns of is said."""

import pytest

from replay.plots import style
from replay.plots.arranging import arrange


def headed(width, height):
    figure, (ax,) = style.subplots(width=width)
    style.draw_heading(ax, "light", "Differences", "what is drawn " * 60)
    figure.set_size_inches(12, height)
    return figure, ax


def test_headings_that_leave_no_room_until_they_are_wrapped_are_no_reason_to_warn():
    figure, ax = headed(width=2.0, height=4.2)
    before = ax.texts[0].get_text().count("\n")
    arrange(figure)
    assert ax.texts[0].get_text().count("\n") < before
    assert ax.get_window_extent().height > 100


def test_headings_that_leave_no_room_at_all_are_warned_of():
    figure, _ = headed(width=2.0, height=0.5)
    with pytest.warns(UserWarning, match="axes sizes collapsed to zero"):
        arrange(figure)
