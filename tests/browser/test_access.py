"""Who sees or points badly can use the explorers: contrast, labels and the keyboard alone."""

from __future__ import annotations

import pytest
from browser import lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

EVERY = """
import evo, ipywidgets, numpy as np, replay
from synthetic_runs import chain_runs, sweep_runs
import replay.explorers as explorers
frame, children = chain_runs(budget=16)
log = evo.run("mmd", generations=2, children=3, log=None, progress=False, workers=1)
rewards = np.random.default_rng(1).random((3, 12))
made = [
    explorers.explore_budget(frame, child_table=children),
    explorers.explore_allocation(frame),
    explorers.explore_sweep(sweep_runs(12, 40)),
    explorers.explore_selection(rewards),
    replay.browse(log),
    replay.follow(log, every=60),
    explorers.Runs(replay.load(log, progress=False)),
    explorers.pick("."),
]
ipywidgets.VBox([each.widget for each in made])
"""
CONTROLS = (
    ".jp-OutputArea-output "
    ":is(select, button, input, .noUi-handle, [role=application], tr[tabindex])"
)


@pytest.mark.thorough
@lab.pages(EVERY, dark=(False,))
def test_every_explorer_has_contrast_and_labels_and_every_control_is_reached_by_tab(opened):
    page = opened
    page.get_by_text("Click on a row to open the run").wait_for()
    lab.rest(page)
    for dark, width in ((False, 1280), (True, 900)):
        lab.wear(page, dark=dark)
        lab.resize(page, width, 1100)
        lab.rest(page)
        assert lab.faults(page, ".jp-OutputArea-output") == []
        lab.fits(page)
    first = page.locator(CONTROLS).locator("visible=true").first
    first.focus()
    wanted = page.evaluate(
        """(all) => {
          const seen = [...document.querySelectorAll(all)].filter(
            (e) => e.offsetParent && !e.disabled);
          seen.forEach((e, k) => { e.dataset.number = k; });
          return seen.length;
        }""",
        CONTROLS,
    )
    reached, every = set(), {*map(str, range(wanted))}
    for _ in range(2 * wanted):
        reached.add(page.evaluate("() => document.activeElement.dataset.number"))
        if every <= reached:
            break
        page.keyboard.press("Tab")
    missing = sorted(every - reached)
    assert [
        page.locator(f"[data-number='{k}']").evaluate("e => e.outerHTML") for k in missing
    ] == []
