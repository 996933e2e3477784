"""The run browser and the live view in a real JupyterLab: read off the screen."""

from __future__ import annotations

import re

import pytest
from browser import lab
from samples import write_sample

import evo

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

LIVE = """
import evo, replay
handle = evo.start("mmd", generations=200, children=4, log="live.jsonl", progress=False, workers=1)
view = replay.follow(handle, every=0.3)
view
"""


@pytest.fixture(scope="module")
def run(notebooks):
    """A short run beside the notebooks."""
    _, folder, _ = notebooks
    return evo.run(
        "circle_packing", generations=6, children=6, seed=3, log=folder / "run.jsonl",
        progress=False,
    )  # fmt: skip


def named(place: tuple[int, int]) -> str:
    """As the words line begins."""
    return f"Child {place[1]} of generation {place[0]}:"


def test_the_run_browser(notebooks, run, screenshots):
    url, folder, log = notebooks
    lab.write_notebook(folder / "runs.ipynb", ["import replay\nreplay.browse('run.jsonl')"])
    with lab.jupyterlab(height=1300) as (page, errors):
        lab.open_notebook(page, url, "runs.ipynb")
        lab.shown(page)
        best = (run.best.generation, run.best.index)
        lab.sees(page, named(best))
        lab.rest(page)
        improving = [each.best for each in run.generations if each.improved]
        page.get_by_role("button", name="◀ improvement").click()
        lab.sees(page, named(max(place for place in improving if place < best)))
        failed = [o for o in run.outcomes if o.evaluation.status != "ok"]
        place = named((failed[-1].generation, failed[-1].index))
        assert failed[-1].evaluation.status in lab.click(page, place.replace("Child", "child"))
        lab.sees(page, place)
        page.locator(".run-browser pre:visible").first.wait_for()  # of the tab of errors
        lab.fits(page)
        page.screenshot(path=screenshots / "runs.png")
        assert not [error for error in errors if "favicon" not in error]
    assert lab.tracebacks(log) == []


def test_the_live_view(notebooks, screenshots):
    url, folder, log = notebooks
    (folder / "live.jsonl").unlink(missing_ok=True)
    lab.write_notebook(folder / "live.ipynb", [LIVE, "1 + 1"])
    with lab.jupyterlab(width=900, height=900) as (page, errors):
        lab.open_notebook(page, url, "live.ipynb", dark=True)
        lab.shown(page)
        page.get_by_text("2", exact=True).first.wait_for()  # the kernel is free
        lab.sees(page, re.compile(r"Under way after [1-9]\d* of 200"))
        page.screenshot(path=screenshots / "live-dark.png")
        page.get_by_role("button", name="Stop").click()
        lab.sees(page, "Ended (stopped), can be resumed")
        lab.expect(page.get_by_role("button", name="Stop")).to_be_disabled()
        said = lab.click(page, "child 3 of generation 1: ")
        lab.sees(page, "Shown: child 3 of generation 1, ")
        assert said.startswith("child 3 of generation 1")
        lab.fits(page)
        page.screenshot(path=screenshots / "live-stopped-dark.png")
        assert not [error for error in errors if "favicon" not in error]
    assert not evo.read_log(folder / "live.jsonl").finished
    assert lab.tracebacks(log) == []


def test_runs_are_sorted_by_a_click_on_a_title_and_by_keys(notebooks, run):
    url, folder, _ = notebooks
    for seed in (5, 9, 7):
        write_sample(folder / "sorted" / f"{seed}.jsonl", seed=seed)
    show = "import replay.explorers\nreplay.explorers.Runs(replay.load('sorted', progress=False))"
    lab.write_notebook(folder / "sorted.ipynb", [show])
    with lab.jupyterlab() as (page, _):
        lab.open_notebook(page, url, "sorted.ipynb")
        heads, rows = page.locator(".dt-scroll-head thead th"), page.locator("table tbody tr")
        lab.expect(rows).to_have_count(3)
        at = heads.all_inner_texts().index("seed") + 1
        seeds = page.locator(f"table tbody td:nth-child({at})")
        lab.expect(seeds).to_have_text(["5", "7", "9"])  # as they were loaded
        title = heads.nth(at - 1).locator(".dt-column-title")
        for wanted in (["5", "7", "9"], ["9", "7", "5"]):
            title.click()
            lab.expect(seeds).to_have_text(wanted)
        heads.nth(at - 1).locator("[role=button]").press("Enter")  # as they were loaded, again
        for key, wanted in (("Enter", ["5", "7", "9"]), ("Space", ["9", "7", "5"])):
            heads.nth(at - 1).locator("[role=button]").press(key)
            lab.expect(seeds).to_have_text(wanted)
