"""The medium of figures: what is drawn for paper leaves the screen as it was."""

import pytest

from replay.plots.medium import (
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
from replay.plots.style import look, look_of


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
    with one_look():
        assert look_of("ucb1", 7) == first  # nothing is remembered from before


def test_no_condition_looks_like_a_reference_or_like_a_curve_of_some_of_its_runs():
    def longest(pattern):
        return max(float(stroke) for stroke in pattern.split()[::2])

    dashed = {look(k)[1] for k in range(100)} - {""}
    assert dashed
    assert longest(REFERENCE) < longest(PARTIAL)
    assert min(longest(each) for each in dashed) > 2 * longest(PARTIAL)
    assert len({look(k) for k in range(24)}) == 24
