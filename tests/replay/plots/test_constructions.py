"""Constructions: what they are worth, and what is none."""

import numpy as np
import pytest
from plotted import (
    CONSTRUCTIONS,
    marks,
    words,
)

from replay import plots
from replay.plots import charts


def test_constructions_say_what_they_are_worth():
    _, radii, _ = CONSTRUCTIONS["circles"]
    ax = plots.construction("circles", CONSTRUCTIONS["circles"])
    assert f"{sum(radii):.6f}" in words(ax)
    [discs] = marks(charts.construction("circles", CONSTRUCTIONS["circles"]), "discs")
    assert len(discs.r) == 26
    square = [(x, y) for x in range(4) for y in range(4)]
    chart = charts.construction("points", square)
    assert f"{1 / np.sqrt(18):.6f}" in words(chart.draw())
    diagonals, sides = marks(chart, "segments")
    assert (len(diagonals.x0), len(sides.x0)) == (2, 24)
    assert "undefined" in words(plots.construction("points", [[1.0, 2.0]] * 16))
    ax = plots.construction("triangle", [[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    assert "1.000000" in words(ax)


@pytest.mark.parametrize("value", [
    [[0.0, 1.0]] * 2_000, [[0.0, np.inf]] * 16, [[1.0] * 3] * 16, "<b>", {"a": 1}, None, [[[]]],
])  # fmt: skip
@pytest.mark.parametrize("picture", CONSTRUCTIONS)
def test_a_value_that_is_no_construction_is_refused(picture, value):
    with pytest.raises(ValueError, match="no picture of"):
        plots.construction(picture, value)


def test_the_triangle_that_is_marked_is_the_smallest():
    value = [[0, 0], [1, 0], [0.5, 0.8], [0.5, 0.01]]
    ax = plots.construction("triangle", value)
    corners = {tuple(corner) for corner in ax.patches[-1].get_xy().tolist()}
    assert corners == {(0, 0), (1, 0), (0.5, 0.01)}
