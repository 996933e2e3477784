"""The explorers in a real JupyterLab: moved by keyboard and mouse, read off the screen."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from browser import lab
from tiers import thorough_after

import evo

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

DATA = """
from synthetic_runs import chain_runs
import replay.explorers as explorers
frame, children = chain_runs(budget=64)
"""


BUDGET = (DATA, "e = explorers.explore_budget(frame, child_table=children)\ne")
ALLOCATION = (DATA, "e = explorers.explore_allocation(frame)\ne")


@pytest.mark.thorough
@lab.pages(*BUDGET, dark=(True,))
def test_budget_with_a_kernel_and_without(opened, screenshots, request):
    page, name = opened, request.node.name
    assert "generations=8, children=8, calls=64" in lab.shown(page)["Source"]
    assert not page.locator("[data-replay-still]").first.is_visible()  # of the saved notebook
    assert "best fitness 0." in lab.click(page, "T = 4, N = 8")
    lab.wait_for(page, "generations=4, children=8, calls=32")
    lab.click(page, "T = 8, N = 8")
    lab.wait_for(page, "generations=8, children=8, calls=64")
    lab.press(page, "generations T", "ArrowRight")
    lab.wait_for(page, "generations=16, children=4, calls=64")
    lab.sees(page, "T = 16 generations of N = 4 children (C = 64 calls)")
    lab.press(page, "calls C", "ArrowLeft")
    lab.wait_for(page, "generations=8, children=4, calls=32")
    page.screenshot(path=screenshots / f"{name}-mid.png")
    lab.drag(page, "children N", -300)
    lab.wait_for(page, "generations=32, children=1, calls=32")
    lab.fits(page)
    page.screenshot(path=screenshots / f"{name}.png")
    lab.execute(page, "notebook:shutdown-kernel")
    lab.until(
        page, "() => !window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel"
    )
    lab.sees(page, "The kernel is gone")
    lab.press(page, "children N", "ArrowRight")
    lab.wait_for(page, "T = 16 generations of N = 2 children", key="Description")
    page.get_by_label("τ", exact=True).fill("0.5")
    lab.wait_for(page, "A run reaches τ = 0.5 with probability", key="Description")
    page.screenshot(path=screenshots / "budget-without-kernel.png")


@pytest.mark.thorough
def test_in_notebook_7(notebooks, screenshots):
    url, folder, log = notebooks
    cell = "import replay\nreplay.explore(frame, child_table=children)"
    lab.write_notebook(folder / "seven.ipynb", (DATA, cell))
    with lab.browser() as (page, _):
        lab.open_notebook(page, url, "seven.ipynb", under="notebooks")
        lab.shown(page)
        lab.press(page, "generations T", "ArrowRight")  # a shortcut of Notebook's, too
        lab.wait_for(page, "generations=16, children=4, calls=64")
        lab.sees(page, "T = 16 generations of N = 4 children (C = 64 calls)")
        lab.choose(page, "Cost axis", value="generation")
        lab.wait_for(page, "axis='generation'")
        lab.fits(page)
        page.screenshot(path=screenshots / "notebook-7.png")
        page.get_by_role("tab", name="Budget").press("ArrowRight")  # a shortcut, too
        page.keyboard.press("Enter")
        table = page.get_by_role("tab", name="Table of runs", selected=True)
        lab.expect(table).to_be_visible()
        assert lab.tracebacks(log) == []


LOG = """
import evo, numpy as np, replay
log = evo.run("mmd", generations=4, children=3, log=None, progress=False, workers=1)
"""
TOGETHER = """([explorer, picture]) => {
  const shown = [...explorer.querySelectorAll('input[type=range], .widget-hslider')]
    .filter((each) => each.offsetParent && !each.closest('.jupyter-widget-Collapse'));
  picture.scrollIntoView({block: 'end'});
  const page = document.querySelector('.jp-WindowedPanel-outer').getBoundingClientRect();
  const {top, bottom} = picture.getBoundingClientRect();
  return shown.length > 0 && bottom < page.bottom + 1 && shown.every((slider) => {
    const box = slider.getBoundingClientRect();
    const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return slider.contains(hit) && box.top > page.top - 1 && box.bottom < top + 1;
  });
}"""
"""Whether all sliders of an explorer are seen above one of its pictures, once this is seen."""


@pytest.mark.parametrize(
    "call",
    thorough_after(
        1,
        [
            "replay.explore(frame, child_table=children)",
            "explorers.explore_budget(frame, child_table=children)",
            "explorers.explore_allocation(frame)",
            "explorers.explore_selection(np.random.default_rng(1).random((3, 12)))",
            "replay.browse(log)",
        ],
    ),
)
def test_on_a_small_screen_sliders_and_what_they_move_are_seen_together(
    notebooks, screenshots, call
):
    url, folder, _ = notebooks
    name = f"small-{call.partition('(')[0]}.ipynb"
    cell = f"{LOG}made = {call}\nmade"
    lab.write_notebook(folder / name, (DATA, cell))
    with lab.jupyterlab(width=900, height=700) as (page, _):
        lab.open_notebook(page, url, name)
        lab.shown(page)
        lab.rest(page)
        explorer = page.locator(".replay-explorer:not(:has(.replay-explorer))").first
        pictures = explorer.locator(".replay-view .one > svg").locator("visible=true")
        assert pictures.count()
        for picture in pictures.element_handles():
            seen = page.evaluate(TOGETHER, [explorer.element_handle(), picture])
            page.screenshot(path=screenshots / f"{name.removesuffix('.ipynb')}.png")
            assert seen, picture.evaluate("(each) => each.parentElement.innerText")


FOLLOWS = """(dark) => {
  const [view, room] = ['.replay-view', '.replay-explorer'].map(e => document.querySelector(e));
  const bright = getComputedStyle(view).color.match(/[0-9]+/)[0] > 128;
  const edges = [...view.querySelectorAll('svg')].map(e => e.getBoundingClientRect().right);
  const spare = room.getBoundingClientRect().right - Math.max(...edges);
  return bright === dark && spare > -1 && spare < 60;
}"""
"""Whether the charts fill their page, and wear its ink."""


@pytest.mark.thorough
@lab.pages(*ALLOCATION, dark=(False,))
def test_allocation_which_follows_its_page(opened, screenshots, request):
    page, name = opened, request.node.name
    before = lab.shown(page)["Source"]
    assert not page.locator("[data-replay-still]").first.is_visible()  # of the saved notebook
    lab.click(page, "random with 4 arms")
    lab.wait_for(page, "shown='random'")
    policy = page.locator("button.widget-toggle-button", has_text="exp3ix")  # no entry of a legend
    policy.click()
    lab.wait_for(page, "policies=('ucb1', 'thompson', 'exp3ix')")
    policy.click()
    lab.wait_for(page, "policies=('ucb1', 'thompson')")
    page.get_by_text("Parameters").click()
    assert "policies=('ucb1', 'thompson')" in before
    lab.press(page, "arms K", "ArrowRight")
    lab.wait_for(page, "arms=5")
    lab.sees(page, "ucb1 with 5 arms")
    lab.press(page, "c", "ArrowRight")
    lab.wait_for(page, ", c=0")
    lab.choose(page, "Reward", value="rank")
    lab.wait_for(page, "reward='rank'")
    lab.sees(page, "1,000 replicates")  # at rest
    lab.fits(page)
    page.screenshot(path=screenshots / f"{name}.png")
    for dark in (True, False):
        lab.wear(page, dark=dark)
        for width in (900, 1400):
            lab.resize(page, width, 1000)
            lab.until(page, FOLLOWS, arg=dark)
            assert lab.small(page, 10.0) == []


@lab.pages(DATA, "e = explorers.explore_curves(frame)\ne", dark=(False,))
def test_a_condition_that_cannot_be_met_is_said_at_its_input(opened):
    page, where = opened, opened.get_by_label("Runs where")
    said = page.get_by_role("alert")
    for wrong in ("chldren >= 4", "children > 9999"):
        where.fill(wrong)
        where.press("Enter")
        lab.expect(said).to_contain_text(wrong)
        lab.expect(where).to_have_attribute("aria-invalid", "true")
        box, below = where.bounding_box(), page.locator(".replay-view").first.bounding_box()
        assert box["y"] < said.bounding_box()["y"] < below["y"]
    where.fill("children >= 4")
    where.press("Enter")
    lab.expect(said).to_have_count(0)
    lab.expect(where).not_to_have_attribute("aria-invalid", "true")


GONE = "Error displaying widget"


@pytest.mark.thorough
def test_a_saved_notebook_shows_its_pictures_and_no_error(notebooks, screenshots):
    url, folder, _ = notebooks
    name = "saved.ipynb"
    lab.write_notebook(folder / name, (*BUDGET, ALLOCATION[1]))
    with lab.jupyterlab(height=2400) as (page, _):  # cells that are out of sight hold no output
        lab.open_notebook(page, url, name)
        lab.expect(page.locator(".replay-explorer:visible")).to_have_count(2)
        lab.rest(page)
        lab.execute(page, "docmanager:save")
    with lab.jupyterlab(height=2400) as (page, _):
        lab.open_notebook(page, url, name, run=False)
        still, gone = page.locator("[data-replay-still]"), page.get_by_text(GONE)
        for number in range(2):
            gone.nth(number).wait_for(state="attached")
            lab.expect(still.nth(number)).to_be_visible()
            lab.expect(gone.nth(number)).to_be_hidden()
        lab.expect(still).to_have_count(2)
        page.screenshot(path=screenshots / "saved.png")


PANELS = """
def broken(frame, *, k=3):
    raise KeyError("nothing")
for number in range(3):
    explorers.register(f"A panel of mine, number {number}", broken)
import replay
t = replay.explore(frame, child_table=children)
t
"""


@lab.pages(DATA, PANELS, f"{LOG}replay.browse(log)", dark=(True,))
def test_every_tab_is_readable_and_a_panel_that_fails_says_so(opened, screenshots):
    page = opened
    lab.fits(page)  # beside a run's browser, whose sheet is for all of the page
    page.get_by_role("tab", name="A panel of mine, number 1").click()
    lab.expect(page.get_by_text("the function of the panel")).to_be_visible()
    page.screenshot(path=screenshots / "panels-of-mine.png")


def test_picker(notebooks, screenshots):
    url, folder, log = notebooks
    logs = Path(tempfile.mkdtemp(prefix="logs-", dir=folder)) / "runs"
    evo.run_many("mmd", seeds=range(3), generations=4, children=2, log_dir=logs, progress=False)
    call = f"import replay\np = replay.explorers.pick({str(logs.parent)!r})\np"
    lab.write_notebook(folder / "picker.ipynb", [call])
    with lab.jupyterlab() as (page, errors):
        lab.open_notebook(page, url, "picker.ipynb")
        page.get_by_label("Recent", exact=True).press("Enter")  # of the other list: opens nothing
        page.get_by_role("option", name="runs/").dblclick()
        page.get_by_role("option", name="min_max_distance").first.wait_for()
        page.locator(".widget-select select").select_option(label="./ (this folder)")
        page.get_by_role("button", name="Open").focus()
        page.keyboard.press("Enter")
        lab.sees(page, "3 runs in the format of evo, task min_max_distance")
        page.get_by_role("tab", name="Runs").click()
        page.get_by_role("cell", name="min_max_distance").first.click()
        lab.sees(page, "Below, a run")
        lab.fits(page)
        page.screenshot(path=screenshots / "picker.png")
        assert not [error for error in errors if "favicon" not in error]
    assert lab.tracebacks(log) == []
