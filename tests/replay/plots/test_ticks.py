"""Ticks: round, within their range, and written apart."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.plots.chart import Chart
from replay.plots.marks import Line
from replay.plots.panel import Axis, Panel
from replay.plots.ticks import even_ticks


@given(st.floats(-1e4, 1e4), st.floats(1e-4, 1e6), st.integers(2, 9))
def test_texts_are_the_values_and_even_steps_apart(low: float, width: float, most: int) -> None:
    ticks = even_ticks(low, low + width, most)
    values = [value for value, _ in ticks]
    assert all(low <= value <= low + width for value in values)
    assert np.allclose([float(text) for _, text in ticks], values, rtol=1e-9, atol=1e-11)
    assert len({text for _, text in ticks}) == len(ticks) <= most + 1
    steps = np.diff(values)
    assert np.allclose(steps, steps[:1] if len(steps) else 0, rtol=1e-6)


@pytest.mark.parametrize("domain", [(-0.1, 0.1), (0.997, 1.0), (-0.00125, 0.00125), (0, 9_000)])
@pytest.mark.parametrize("width", [2.0, 3.3, 8.0])
def test_texts_below_an_axis_do_not_touch(domain: tuple[float, float], width: float) -> None:
    line = Line(x=np.array(domain), y=np.array([0.0, 1.0]))
    panel = Panel(title="gain", marks=[line], x=Axis(domain=domain), y=Axis())
    figure, ax = plt.subplots(figsize=(width, 2), dpi=100)
    Chart(panels=[panel]).draw(ax)
    figure.canvas.draw()
    texts = [each for each in ax.get_xticklabels() if each.get_text() and each.get_visible()]
    low, high = ax.get_xlim()
    boxes = [each.get_window_extent() for each in texts if low <= each.get_position()[0] <= high]
    assert len(boxes) >= 2
    assert all(left.x1 + 2 < right.x0 for left, right in itertools.pairwise(boxes))
    plt.close(figure)
