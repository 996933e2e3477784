"""The explorers in a real JupyterLab: moved by keyboard and mouse, read off the screen."""

from __future__ import annotations

import pytest
from browser import lab

import evo

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

DATA = """
from synthetic_runs import chain_runs
import replay.explorers as explorers
frame, children = chain_runs(budget=64)
"""


BUDGET = (DATA, "e = explorers.explore_budget(frame, child_table=children)\ne")
ALLOCATION = (DATA, "e = explorers.explore_allocation(frame)\ne")


@lab.both_themes(*BUDGET)
def test_budget(opened, screenshots, request):
    page, name = opened, request.node.name
    assert "generations=8, children=8, calls=64" in lab.shown(page)["Source"]
    assert "best fitness 0." in lab.click(page, "T = 4, N = 8")
    lab.wait_for(page, "generations=4, children=8, calls=32")
    lab.click(page, "T = 8, N = 8")
    lab.wait_for(page, "generations=8, children=8, calls=64")
    lab.handle(page, "generations T").press("ArrowRight")
    lab.wait_for(page, "generations=16, children=4, calls=64")
    lab.sees(page, "T = 16 generations of N = 4 children (C = 64 calls)")
    lab.handle(page, "calls C").press("ArrowLeft")
    lab.wait_for(page, "generations=8, children=4, calls=32")
    page.screenshot(path=screenshots / f"{name}-mid.png")
    box = lab.handle(page, "children N").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 300, box["y"], steps=8)
    page.mouse.up()
    lab.wait_for(page, "generations=32, children=1, calls=32")
    lab.fits(page)
    page.screenshot(path=screenshots / f"{name}.png")


def test_in_notebook_7(tmp_path, screenshots):
    lab.write_notebook(tmp_path / "seven.ipynb", BUDGET)
    with lab.server(tmp_path, "notebook") as (url, log), lab.browser() as (page, _):
        lab.open_notebook(page, url, "seven.ipynb", under="notebooks")
        lab.shown(page)
        lab.handle(page, "generations T").press("ArrowRight")  # a shortcut of Notebook's, too
        lab.wait_for(page, "generations=16, children=4, calls=64")
        lab.sees(page, "T = 16 generations of N = 4 children (C = 64 calls)")
        page.get_by_label("Cost axis").select_option("generation")
        lab.wait_for(page, "axis='generation'")
        lab.fits(page)
        page.screenshot(path=screenshots / "notebook-7.png")
        assert "Traceback" not in log.read_text()


@lab.both_themes(*ALLOCATION)
def test_allocation(opened, screenshots, request):
    page, name = opened, request.node.name
    before = lab.shown(page)["Source"]
    lab.click(page, "random with 5 arms")
    lab.wait_for(page, "shown='random'")
    page.get_by_role("button", name="exp3ix").click()
    lab.wait_for(page, "policies=('ucb1', 'thompson', 'exp3ix')")
    page.get_by_role("button", name="exp3ix").click()
    page.get_by_text("Parameters").click()
    assert "policies=('ucb1', 'thompson')" in before
    lab.handle(page, "arms K").press("ArrowRight")
    lab.wait_for(page, "arms=6")
    lab.sees(page, "ucb1 with 6 arms")
    lab.handle(page, "c").press("ArrowRight")
    lab.wait_for(page, ", c=0")
    page.get_by_label("Reward").select_option("rank")
    lab.wait_for(page, "reward='rank'")
    lab.sees(page, "1,000 replicates")  # at rest
    lab.fits(page)
    page.screenshot(path=screenshots / f"{name}.png")


@pytest.mark.parametrize("opened", [(BUDGET, False)], indirect=True)
def test_a_scrub_needs_no_kernel(opened, screenshots):
    page = opened
    page.get_by_role("button", name="Scrub generations").click()
    slider = lab.handle(page, "generations")  # the live one is called "generations T"
    slider.wait_for()
    lab.execute(page, "notebook:shutdown-kernel")
    page.wait_for_function(
        "() => !window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel"
    )
    slider.press("ArrowRight")
    lab.wait_for(page, "T = 16 generations", key="Description")
    slider.scroll_into_view_if_needed()
    page.screenshot(path=screenshots / "scrub.png")


@pytest.mark.parametrize("dark", [False, True])
def test_picker(notebooks, screenshots, request, dark):
    url, folder, log = notebooks
    name = f"picker{'-dark' if dark else ''}.ipynb"
    logs = folder / f"logs-{dark}"
    evo.run_many("mmd", seeds=range(3), generations=4, children=2, log_dir=logs, progress=False)
    call = f"import replay\np = replay.explorers.pick({str(folder)!r})\np"
    lab.write_notebook(folder / name, [call])
    with lab.browser(width=900 if dark else 1280) as (page, errors):
        lab.open_notebook(page, url, name, dark=dark)
        page.locator(".widget-select select").select_option(label=f"logs-{dark}/")
        page.get_by_role("button", name="Open").focus()
        page.keyboard.press("Enter")
        lab.sees(page, "3 runs in the format of evo, task min_max_distance")
        page.get_by_role("cell", name="min_max_distance").first.click()
        lab.shown(page)
        lab.fits(page)
        page.screenshot(path=screenshots / f"{request.node.name}.png")
        assert not [error for error in errors if "favicon" not in error]
    assert "Traceback" not in log.read_text()
