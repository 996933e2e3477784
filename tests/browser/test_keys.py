"""Explorers by the keyboard alone: keys are pressed, words are read; of runs: test_runs.py."""

from __future__ import annotations

import re

import pytest
from browser import lab
from browser.test_access import EVERY

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]


def focused(page, wanted) -> bool:
    """Whether something has the focus, in one step: a picture may be drawn anew between two."""
    return wanted.and_(page.locator(":focus")).count() == 1


def go(page, wanted) -> None:
    """Press Tab until something has the focus."""
    wanted.wait_for()
    for _ in range(250):
        if focused(page, wanted):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted.evaluate('each => each.outerHTML')}")


def slider(explorer, label: str):
    """The handle of the slider with a label."""
    return explorer.locator(".widget-hslider").filter(has_text=label).first.locator(".noUi-handle")


def press(page, wanted, *keys: str) -> None:
    """Go to something by Tab, once the page is at rest, and press keys there."""
    lab.rest(page)
    go(page, wanted)
    for key in keys:
        page.keyboard.press(key)


@pytest.mark.thorough
@pytest.mark.parametrize("opened", [((EVERY,), False)], indirect=True)
def test_explorers_are_used_by_keys_and_say_what_changed(opened):
    page = opened
    page.get_by_text("Click on a row to open the run").wait_for()
    lab.rest(page)
    explorers = page.locator(".replay-explorer")
    budget, allocation, sweep, selection = (explorers.nth(k) for k in range(4))

    def says(explorer, words) -> str:
        """Wait for words in what screen readers listen to."""
        found = explorer.locator("[aria-live=polite], [role=status]").filter(has_text=words).first
        found.wait_for()
        return found.inner_text()

    page.locator("select, .noUi-handle, input[type=range]").first.focus()
    press(page, budget.get_by_label("generations T"), "ArrowRight")
    says(budget, "T = 8 generations of N = 2 children (C = 16 calls)")
    picture = budget.get_by_role("application")
    press(page, picture, "ArrowRight", "ArrowRight")
    tip = budget.locator(".tip").inner_text()  # of a cell
    T, N = re.match(r"T = (\d+), N = (\d+)", tip).groups()
    page.keyboard.press("Enter")
    says(budget, f"T = {T} generations of N = {N} children")
    press(page, allocation.locator("button.widget-toggle-button", has_text="exp3ix"), " ")
    says(allocation, "exp3ix with")
    before = says(allocation, " gives its best arm ")
    press(page, allocation.get_by_role("application"), "ArrowRight", *["PageDown"] * 5, "ArrowDown")
    tip = allocation.locator(".replay-chart .tip").filter(has_text=" arms ")
    chosen = tip.inner_text().split()[0]
    assert f"{chosen} gives its best arm" not in before
    page.keyboard.press("Enter")
    says(allocation, f"{chosen} gives its best arm")
    press(page, sweep.get_by_label("model", exact=True), "ArrowDown")
    said = says(sweep, re.compile("^[1-9] of 12 configurations"))
    page.keyboard.press("ArrowDown")
    says(sweep, re.compile(f"^(?!{re.escape(said)})[1-9] of 12 configurations"))
    press(page, slider(selection, "rounds"), "Home")
    says(selection, "After round 1 of")
