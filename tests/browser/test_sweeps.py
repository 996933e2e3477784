"""The explorers of sweeps and selections in a real JupyterLab."""

from __future__ import annotations

import numpy as np
import pytest
from browser import lab
from synthetic_runs import sweep_runs

from replay.explorers.sweep import Filters
from replay.planning.sweeps import by_configuration

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

DATA = """
from synthetic_runs import sweep_runs
import replay.explorers as explorers
frame = sweep_runs(12, 40, noise=0.05)
"""


SWEEP = (DATA, "e = explorers.explore_sweep(frame)\ne")
SELECTION = (DATA, "e = explorers.explore_selection(frame)\ne")


DRAWN = """() => {
  const [{ picture, x, y }] = document.querySelector(".replay-chart").view.shown().plans;
  const number = (each, name) => Number(each.getAttribute(name));
  const circles = picture.querySelectorAll("[clip-path] circle");
  return [...circles].map((each) => [x.back(number(each, "cx")), y.back(number(each, "cy"))]);
}"""
"""The points of the first panel, in the coordinates of its axes."""


@pytest.mark.thorough
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
    lab.rest(page)
    page.screenshot(path=screenshots / f"{name}.png")
    frame = sweep_runs(12, 40, noise=0.05)
    chosen = frame[(frame["model"] == "b") & frame["children"].isin([4, 8])]
    table = by_configuration(chosen, ["n_calls", "fitness"])
    found = np.array(sorted(page.evaluate(DRAWN)))
    np.testing.assert_allclose(found, sorted(table[["n_calls", "fitness"]].to_numpy().tolist()))
    before = lab.shown(page)["Source"]
    lab.click(page, "n = ")  # a point is a configuration: only its runs are left
    lab.sees(page, "1 of 12 configurations")
    assert lab.shown(page)["Source"] != before


@lab.pages(*SWEEP, dark=(True,))
def test_a_line_of_parallel_coordinates_is_a_configuration(opened, screenshots, request):
    page = opened
    lab.sees(page, "12 of 12 configurations")
    lab.choose(page, "Figure", value="configurations")
    lab.wait_for(page, "figure='configurations'")
    lab.rest(page)
    page.screenshot(path=screenshots / f"{request.node.name}.png")
    assert lab.small(page, 10) == []
    assert lab.faults(page, ".replay-explorer") == []
    frame = sweep_runs(12, 40, noise=0.05)
    filters = Filters(frame)  # whose classes some configurations share
    alone = frame.groupby("configuration").filter(
        lambda rows: filters.chosen(filters.values_of(rows.name)).sum() == len(rows)
    )
    text = f"max_tokens = {alone['max_tokens'].iloc[0]:g}\n"
    assert text in lab.click(page, text)
    lab.sees(page, "1 of 12 configurations")


@pytest.mark.thorough
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
