"""The values of the controls of an explorer of budgets."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.explorers.budget import link
from replay.explorers.budget_values import Behind, ChosenRun, SplitValue, behind_in_cell
from replay.plots.style import ranged


@pytest.mark.parametrize("moved", ["generations", "children", "calls"])
def test_linked_sliders_stay_on_the_budget_line(moved):
    powers = [1, 2, 4, 8, 16]
    for T, N, new in itertools.product(powers, repeat=3):
        before = {"generations": T, "children": N, "calls": T * N}
        asked = new * N if moved == "calls" else new
        after = link(moved, {**before, moved: asked}, powers, powers)
        assert after["calls"] == after["generations"] * after["children"]
        if moved == "calls":
            assert after["calls"] == asked
        elif 1 < T * N < 256:
            assert after["calls"] == T * N  # at the edges, too
            if T * N % new == 0 and T * N // new in powers:
                assert after[moved] == new


def test_a_split_says_its_size_its_interval_and_whether_it_was_run():
    run = SplitValue(value=0.5, low=0.25, high=0.75, n=8.0, logged=True)
    assert run.words(4, 300) == (
        f"T = 4, N = 300, C = 1.2k\nbest fitness {ranged(0.5, 0.25, 0.75)}\nn = 8 runs"
    )
    never = dataclasses.replace(run, logged=False)
    assert never.words(1, 1).endswith("n = 8 runs, never run: predicted")


def test_a_difference_turns_its_sign_and_its_limits():
    behind = Behind(value=-0.2, low=-0.3, high=-0.1, best=(8, 2))
    assert behind.words() == (
        f"It lies {ranged(0.2, 0.1, 0.3)} behind T = 8, N = 2, which has the highest mean of all "
        "splits of its budget."
    )
    none = Behind(value=-0.2, low=math.nan, high=math.nan, best=(8, 2), note="n = 3 is too small")
    assert " (no interval, as n = 3 is too small) behind T = 8, N = 2" in none.words()
    best = Behind(value=0, low=0, high=0, best=(8, 2))
    assert best.words().startswith("It has the highest mean")
    assert (
        dataclasses.replace(best, tied=True).words().startswith("No split of its budget has a hig")
    )


def test_a_run_is_told_at_the_generation_asked_for_or_at_its_end():
    run = ChosenRun(run="r", x=np.arange(3.0), value=np.array([math.nan, 0.25, 0.5]))
    assert run.words(1) == "r, nothing ok after T = 1"
    assert run.words(2) == "r, 0.25 after T = 2"
    assert run.words(9) == "r, 0.5 after T = 3"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, ""),
        (0.0, "0"),
        (-0.0, "0"),
        (-0.02, "-.02"),
        (-0.994, "-.99"),
        (-0.995, "-0.99"),
        (-1.25, "-1.2"),
        (-12.0, "-12"),
        (-0.004, "-.004"),
        (-0.0051, "-.01"),
        (-0.5, "-.50"),
    ],
)
def test_a_cell_states_how_far_a_split_lies_behind_in_a_few_signs(value, text):
    assert behind_in_cell(value) == text


@given(st.floats(-0.994, -0.00095))
def test_what_a_cell_states_is_the_value_as_far_as_its_digits_go(value):
    text = behind_in_cell(value)
    assert len(text) <= 5
    assert float(text) == pytest.approx(value, abs=0.00501 if value <= -0.005 else 0.0005)
