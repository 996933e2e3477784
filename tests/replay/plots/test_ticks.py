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
from replay.plots.ticks import even_ticks, tick_texts


@given(st.floats(-1e4, 1e4), st.floats(1e-4, 1e6), st.integers(2, 9))
def test_texts_are_the_values_and_even_steps_apart(low: float, width: float, most: int) -> None:
    ticks = even_ticks(low, low + width, most)
    values = [value for value, _ in ticks]
    assert all(low <= value <= low + width for value in values)
    assert np.allclose([value_of(text) for _, text in ticks], values, rtol=1e-9, atol=1e-11)
    assert len({text for _, text in ticks}) == len(ticks) <= most + 1
    steps = np.diff(values)
    assert np.allclose(steps, steps[:1] if len(steps) else 0, rtol=1e-6)


def value_of(text: str) -> float:
    return float(text.replace("M", "e6").replace("k", "e3"))


@given(
    st.floats(-1, 1), st.floats(1e-6, 1), st.integers(-30, 30), st.integers(2, 8)
)  # fmt: skip
def test_all_ticks_of_an_axis_are_told_apart_in_one_notation(
    start: float, width: float, power: int, most: int
) -> None:
    low, high = start * 10.0**power, (start + width) * 10.0**power
    ticks = even_ticks(low, high, most)
    texts = [text for _, text in ticks]
    assert len(set(texts)) == len(texts)
    size = max((abs(value) for value, _ in ticks), default=0.0)
    assert all(abs(value_of(text) - value) <= 1e-9 * size for value, text in ticks)
    powers = [text for text in texts if "e" in text]
    assert not powers or set(texts) <= {*powers, "0"}


def test_values_below_any_usual_size_are_written_and_a_rest_of_rounding_is_not() -> None:
    assert tick_texts([0.0, 1e-13, 2e-13]) == ["0", "1e-13", "2e-13"]
    assert tick_texts([-0.1, 1.4e-17, 0.1]) == ["-0.1", "0", "0.1"]
    assert tick_texts([8e8, 1e9]) == ["8e8", "1e9"]
    assert tick_texts([0.0, 4e8, 8e8]) == ["0", "400M", "800M"]


@pytest.mark.parametrize("size", [3e-14, 2e-5, 0.5, 7e5, 9.92e8, 4e12])
@pytest.mark.parametrize("side", ["x", "y"])
def test_both_axes_of_a_figure_follow_the_rule(size: float, side: str) -> None:
    line = Line(x=np.array([0.0, size]), y=np.array([0.0, size]))
    ax = Chart(panels=[Panel(title="t", marks=[line], x=Axis(), y=Axis())]).draw()
    ax.figure.draw_without_rendering()
    axis = getattr(ax, f"{side}axis")
    shown = [each.get_text() for each in axis.get_ticklabels()]
    assert axis.get_offset_text().get_text() == ""
    values = axis.get_ticklocs()
    written = [value_of(text.replace("\N{MINUS SIGN}", "-")) for text in shown]
    assert written == pytest.approx(values)
    if side == "x" or not 1e-3 <= size < 1e4:
        assert shown == tick_texts(values)
    plt.close(ax.figure)


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


@pytest.mark.parametrize(
    ("low", "high", "values"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0.1, 1.35, [0.25, 0.5, 0.75, 1, 1.25]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (0.3, 0.3, [0.3]),
    ],
)
def test_round_values_by_hand(low, high, values):
    assert [value for value, _ in even_ticks(low, high, 5)] == pytest.approx(values)
