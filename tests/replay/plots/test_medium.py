"""The medium of figures: what is drawn for paper leaves the screen as it was."""

import itertools
import re

import numpy as np
import pytest
from looks import contrast
from matplotlib.colors import to_rgb

from replay.plots.medium import (
    LIGHTER,
    PALETTE,
    PARTIAL,
    PRINT_PALETTE,
    REFERENCE,
    captions,
    for_print,
    looks,
    one_look,
    palette,
)
from replay.plots.scripts import FOLDER
from replay.plots.strokes import ink_of
from replay.plots.style import THEMES, look, look_of

SEEN_BY = {
    "all": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
"""What each sees of red, green and blue (Machado, Oliveira and Fernandes 2009)."""


def lab(linear):
    """Linear red, green and blue in CIELAB, whose distances are those that are seen."""
    to_xyz = [[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]]
    x, y, z = np.cbrt(to_xyz @ np.clip(linear, 0, 1) / [0.9505, 1, 1.0888])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(colours, matrix):
    """The least distance between two of some colours."""
    seen = []
    for channels in map(np.array, map(to_rgb, colours)):
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        seen.append(lab(matrix @ linear))
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))


def now():
    return palette.get(), captions.get(), looks.get()


@pytest.mark.parametrize("titles", [True, False])
def test_paper_has_colours_of_its_own_and_titles_only_if_asked(titles):
    before = now()
    with for_print(titles=titles):
        assert now() == (PRINT_PALETTE, titles, None)
        assert look(0)[0] == PRINT_PALETTE[0]
        with for_print(titles=not titles):
            assert captions.get() is not titles
        assert captions.get() is titles
    assert now() == before == (PALETTE, True, None)


@pytest.mark.parametrize("medium", [lambda: for_print(titles=False), one_look])
def test_a_figure_that_cannot_be_drawn_leaves_the_medium_as_it_was(medium):
    before = now()

    def fail():
        with medium():
            assert now() != before
            raise KeyError("nothing")

    with pytest.raises(KeyError):
        fail()
    assert now() == before


def test_a_name_has_one_colour_in_all_that_is_made_together():
    apart = look_of("thompson", 0), look_of("thompson", 1)
    assert apart[0] != apart[1]
    with one_look():
        first, second = look_of("thompson", 0), look_of("ucb1", 0)
        assert look_of("thompson", 5) == first != second
        assert look_of("ucb1", 3) == second
        with one_look():  # as facets in it
            assert look_of("ucb1", 0) == second
    with one_look():
        assert look_of("ucb1", 7) == first  # nothing is remembered from before


def test_names_that_are_given_have_the_first_colours_in_figures_that_are_made_apart():
    with one_look("thompson", "ucb1", "thompson"):
        assert look_of("random", 0) == look(2)
        assert look_of("ucb1", 0) == look(1)
    with one_look("thompson", "ucb1"):
        assert look_of("ucb1", 0) == look(1)
    assert look_of("ucb1", 0) == look(0)


def test_no_condition_looks_like_a_reference_or_like_a_curve_of_some_of_its_runs():
    def longest(pattern):
        return max(float(stroke) for stroke in pattern.split()[::2])

    dashed = {look(k)[1] for k in range(100)} - {""}
    assert dashed
    assert longest(REFERENCE) < longest(PARTIAL)
    assert min(longest(each) for each in dashed) > 2 * longest(PARTIAL)
    assert len({look(k) for k in range(24)}) == 24


@pytest.mark.parametrize("reader", SEEN_BY)
def test_colours_on_a_dark_ground_are_as_far_apart_as_on_a_light_one_for_every_reader(reader):
    dark = [ink_of(each, "dark") for each in PALETTE]
    assert apart(dark, SEEN_BY[reader]) >= apart(PALETTE, SEEN_BY[reader])


@pytest.mark.parametrize("ground", [THEMES["dark"].ground, "#111111", "#1e1e1e"])
def test_every_colour_of_the_palette_stands_out_from_a_dark_ground(ground):
    assert min(contrast(ink_of(each, "dark"), ground) for each in PALETTE) >= 4.5


def test_a_colour_that_is_see_through_stays_so_on_a_dark_ground():
    assert ink_of(f"{PALETTE[1]}cc", "dark") == f"{ink_of(PALETTE[1], 'dark')}cc"
    assert ink_of(f"{PALETTE[1]}cc", "light") == f"{PALETTE[1]}cc"


def test_both_pens_have_the_same_colours_on_a_dark_ground():
    text = (FOLDER / "drawing.js").read_text(encoding="utf-8")
    block = text.partition("const LIGHTER = {")[2].partition("}")[0]
    found = dict(re.findall(r'"(#\w+)": "(#\w+)"', block))
    assert found == {k.lower(): v.lower() for k, v in LIGHTER.items()}
