"""Runs by the keyboard alone: each key changes words that were not there before."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from browser import lab
from browser.test_keys import focused, go
from browser.test_runs import named

import evo
from replay.logs.lineage import program_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

CELL = """
import time
import evo, ipywidgets, replay

def paced(text):
    time.sleep(0.3)
    return len(text)

task = evo.task(
    "paced", initial_program="Say hello.", evaluate=paced, where="here", statement="A long text."
)
handle = evo.start(task, generations=5000, children=2, progress=False)
made = [
    replay.follow(handle, every=0.3),
    replay.browse("keys"),
    replay.explorers.Runs(replay.load("keys", progress=False)),
    replay.explorers.pick("."),
]
ipywidgets.VBox([each.widget for each in made])
"""

REDRAWN = """
async (room) => {
  const picture = room.querySelector('[role=application] .one > svg');
  const end = performance.now() + 60000;
  while (picture.isConnected && performance.now() < end) {
    await new Promise((done) => setTimeout(done, 20));
  }
  return !picture.isConnected;
}
"""


@pytest.mark.thorough
def test_runs_are_used_by_keys_and_say_what_changed(notebooks):
    url, root, log = notebooks
    folder = Path(tempfile.mkdtemp(dir=root))  # of this attempt alone
    logs = evo.run_many(
        "circle_packing", seeds=range(3), generations=4, children=6, log_dir=folder / "keys",
        progress=False,
    )  # fmt: skip
    lab.write_notebook(folder / "keys.ipynb", [CELL])
    with lab.jupyterlab(height=1300) as (page, errors):
        lab.open_notebook(page, url, f"{folder.name}/keys.ipynb")
        page.get_by_text("Click on a row to open the run").wait_for()
        page.locator("select").first.focus()
        live, browser = (page.locator(".replay-explorer").nth(k) for k in range(2))
        _live(page, live)
        lab.rest(page)
        _browser(page, browser, logs[0])
        _runs(page, page.locator(".replay-runs"), [each.path.name[:-6] for each in logs])
        _picker(page, page.locator(".replay-picker"), [each.path.name for each in logs])
        assert not [error for error in errors if "favicon" not in error]
    assert lab.tracebacks(log) == []


def says(page, room, words, *keys) -> None:
    """Press keys where the focus is; then what is listened to says what it did not say before."""
    found = room.locator("[aria-live=polite], [role=status]").filter(has_text=words)
    assert found.count() == 0
    for key in keys:
        page.keyboard.press(key)
    found.first.wait_for()


def _live(page, room) -> None:
    """Open a child of a picture that grows, stop."""
    go(page, room.get_by_role("application"))
    for _ in range(2):  # the picture is drawn anew, and the keys still go to it
        assert room.evaluate(REDRAWN)
        assert focused(page, room.get_by_role("application"))
    says(page, room, "Shown: ", "ArrowLeft", "ArrowLeft")
    go(page, room.get_by_role("button", name="Stop"))
    says(page, room, "Ended (stopped), can be resumed", " ")


def _browser(page, room, log) -> None:
    """Pick a child, filter by status, search, see what it changed."""
    places = [(0, 0), *((each.generation, each.index) for each in log.outcomes)]
    before = places[places.index((log.best.generation, log.best.index)) - 1]
    go(page, room.get_by_role("application"))
    says(page, room, named(before), "ArrowLeft")
    ok = {(0, 0): program_of(log, (0, 0))}
    ok |= {(c.generation, c.index): c.program for c in log.children if c.evaluation.status == "ok"}
    lab.rest(page)  # a list that is drawn anew as it is typed at loses what was typed
    go(page, room.get_by_label("List", exact=True))
    says(page, room, f"The list shows {len(ok)} programs", "o")
    go(page, room.get_by_label("Search", exact=True))
    text = next(line for line in ok[max(ok)].splitlines() if line not in ok[0, 0])
    page.keyboard.type(text)
    wanted = [place for place, program in ok.items() if text in program]
    says(page, room, f"The list shows {len(wanted)} programs", "Enter")
    go(page, room.get_by_label("Programs", exact=True))
    says(page, room, named(wanted[0]), "Home")
    go(page, room.get_by_label("generation", exact=True))
    says(page, room, "The initial program rewrites nothing", "Home")
    go(page, room.get_by_role("application"))
    says(page, room, re.compile(r"\d+ lines? added, \d+ removed"), "ArrowUp")
    beside = room.locator("th", has_text="the initial program")
    assert not beside.is_visible()
    go(page, room.get_by_role("tab", name="Diff"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    beside.wait_for()


def _runs(page, room, names) -> None:
    """Search, sort, open a row, compare two, overlay several."""
    go(page, room.get_by_role("searchbox"))
    says(page, room, "Showing 1 to 1 of 1", *names[1][-2:])
    for _ in names[1][-2:]:
        page.keyboard.press("Backspace")
    go(page, room.locator("[tabindex='0'][aria-label^='run:']"))
    first = room.locator("tbody tr").first
    assert names[0] in first.inner_text()
    for _ in "up", "down":
        page.keyboard.press("Enter")
    room.locator("tbody tr:first-child", has_text=names[2]).wait_for()
    go(page, first)
    says(page, room, f"Below, a run: {names[2]}", "Enter")
    room.locator("[aria-live=polite]").filter(has_text="Run: circle_packing").first.wait_for()
    page.keyboard.press("Tab")
    says(page, room, "They differ in", "Enter")
    page.keyboard.press("Tab")
    says(page, room, "Below, 3 runs together", "Enter")


def _picker(page, room, files) -> None:
    """Type, Enter, open, and open again what was opened before."""
    go(page, room.get_by_label("Folders and files", exact=True))
    says(page, room, "keys: 0 folders, 3 files", "k", "e", "Enter")
    for file, keys in ((files[0], ("ArrowDown", "ArrowDown")), (files[1], ("ArrowDown",))):
        says(page, room, f"{file}: 1 run in the format of evo", *keys, "Enter")
    go(page, room.get_by_label("Recent", exact=True))
    says(page, room, f"{files[0]}: 1 run in the format of evo", "ArrowDown", "ArrowDown")
