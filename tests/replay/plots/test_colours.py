"""Colours as numbers, against matplotlib's and against the contrast of WCAG."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgb

from replay.plots.colours import parsed, readable, shades
from replay.plots.marks import RAMP

channels = st.tuples(*[st.floats(0, 1)] * 3)


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@given(channels)
def test_the_ink_is_the_one_of_more_contrast(ground):
    light = luminance(ground)
    white, black = 1.05 / (light + 0.05), (light + 0.05) / 0.05
    if abs(white - black) > 0.05:
        assert readable(ground) == ("white" if white > black else "black")


@given(channels)
def test_a_hex_colour_is_matplotlibs(colour):
    text = to_hex(colour)
    assert parsed(text) == pytest.approx(to_rgb(text))


def test_a_ramp_is_linear_between_its_colours_and_ends_at_its_limits():
    ramp = ["#000000", "#ff0000", "#ffffff"]
    found = shades([-9, 0, 1, 2, 3, 4, 99], ramp, 0, 4)
    assert found == [
        "#000000", "#000000", "#800000", "#ff0000", "#ff8080", "#ffffff", "#ffffff",
    ]  # fmt: skip


def test_equal_values_have_the_middle_of_the_ramp():
    assert shades([5.0, 5.0], ["#000000", "#00ff00", "#ffffff"], 5, 5) == ["#00ff00"] * 2


def test_a_larger_value_is_never_darker_on_the_shipped_ramp():
    lights = [luminance(parsed(each)) for each in shades(np.linspace(0, 1, 50), RAMP, 0, 1)]
    assert all(a <= b for a, b in itertools.pairwise(lights))
