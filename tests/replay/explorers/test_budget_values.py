"""The values of the controls of an explorer of budgets."""

import itertools

import pytest

from replay.explorers.budget import link


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
