"""The explorers of sweeps and selections in a real JupyterLab."""

from __future__ import annotations

import pytest
from browser import lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

DATA = """
from synthetic_runs import sweep_runs
import replay.explorers as explorers
frame = sweep_runs(12, 40, noise=0.05)
"""


SWEEP = (DATA, "e = explorers.explore_sweep(frame)\ne")
SELECTION = (DATA, "e = explorers.explore_selection(frame)\ne")


@lab.pages(*SWEEP, dark=(False,))
def test_filters(opened, screenshots, request):
    page, name = opened, request.node.name
    lab.sees(page, "12 of 12 configurations")
    left = page.get_by_label("top_p").locator("option").filter(has_text="(0)")
    assert left.count() == 0
    lab.choose(page, "model", index=0)
    lab.wait_for(page, "where={'model': ('a',)}")
    left.first.wait_for(state="attached")  # values that the other filters leave no run of
    lab.rest(page)
    page.get_by_label("model", exact=True).press("ArrowDown")  # from a to b, as in any list
    lab.wait_for(page, "where={'model': ('b',)}")
    lab.choose(page, "children", index=[0, 1])
    lab.wait_for(page, "where={'model': ('b',), 'children': ('4', '8')}")
    lab.choose(page, "Figure", value="cost and fitness")
    lab.wait_for(page, "figure='cost and fitness', cost='tokens'")
    lab.choose(page, "Cost", value="n_calls")
    lab.wait_for(page, "cost='n_calls'")
    page.screenshot(path=screenshots / f"{name}.png")
    before = lab.shown(page)["Source"]
    lab.click(page, "n = ")  # a point is a configuration: only its runs are left
    lab.sees(page, "1 of 12 configurations")
    assert lab.shown(page)["Source"] != before


@lab.pages(*SELECTION, dark=(True,))
def test_the_race(opened, screenshots, request):
    page, name = opened, request.node.name
    lab.sees(page, "other orders of the samples")
    lab.choose(page, "Intervals", value="compat")
    lab.wait_for(page, "'interval': 'compat'")
    lab.choose(page, "Selector", value="brute_force")
    lab.wait_for(page, "'selector': 'brute_force'")
    lab.choose(page, "Intervals", value="anytime")
    lab.wait_for(page, "'selector': 'brute_force', 'interval': 'anytime'")
    lab.press(page, "rounds", "Home")
    lab.wait_for(page, "'rounds': 1}")
    lab.press(page, "rounds", "ArrowRight")
    lab.wait_for(page, "'rounds': 2}")
    lab.press(page, "rounds", "ArrowRight")
    lab.wait_for(page, "'rounds': 3}")
    lab.sees(page, "After round 3 of")
    assert "round 2: " in lab.click(page, "round 2: ")
    lab.wait_for(page, "'rounds': 2}")
    page.screenshot(path=screenshots / f"{name}.png")
