"""The page that lives, while a run beside it is killed, continued and finished."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import lab
from samples import write_sample

from replay.reports.live import LivePage

pytestmark = pytest.mark.slow


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LivePage]:
    write_sample(tmp_path / "logs" / "done.jsonl", generations=5, children=4)
    with LivePage(tmp_path / "logs") as view:
        yield view


@pytest.fixture
def page(chromium: str, view: LivePage) -> Iterator[Any]:
    with lab.browser(width=1000, height=900) as (page, errors):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(view.link)
        yield page
        assert errors == []
        own = (view.address, "data:", "blob:")
        assert [url for url in asked if not url.startswith(own)] == []


def run(log: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evo", *more, str(log), "-q"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


SLOW = """
import time

def evaluate(path):
    time.sleep(0.2)
    return {"score": float(len(open(path).read()))}
"""


def test_a_run_is_killed_continued_and_finished_beside_its_page(
    page: Any, view: LivePage, tmp_path: Path
) -> None:
    task = tmp_path / "slow"  # so slow that a page sees it under way
    task.mkdir()
    (task / "initial_program.py").write_text("x = 1.5\n")
    (task / "evaluator.py").write_text(SLOW)
    log = view.folder.path / "new.jsonl"
    process = run(log, "run", str(task), "-T", "40", "-N", "2", "--log")
    row = page.locator("#runs tbody tr", has_text="new")
    lab.expect(row.locator(".state b")).to_have_text("running")
    lab.expect(row.locator("progress")).to_be_visible()
    lab.expect(row.locator(".state")).to_contain_text(re.compile(r"\b[1-9]\d* of 40 generations"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    lab.expect(row.locator(".state b")).to_have_text("interrupted")
    row.get_by_role("button", name="go on").click()
    lab.expect(page.locator("#news")).to_contain_text("new goes on")
    lab.expect(row.locator(".state b")).to_have_text("running")
    row.locator("a").click()
    page.get_by_role("heading", name="new").wait_for()
    page.evaluate("location.hash += '/1-1'")
    lab.expect(page.locator("#child h2")).to_have_text("Child 1 of generation 1")
    page.locator("#child summary", has_text="Messages").click()
    lab.expect(page.locator("#child pre").first).to_be_visible()
    page.get_by_role("link", name="all runs").click()
    lab.expect(row.locator(".state b")).to_have_text("completed", timeout=90_000)
    lab.expect(row.locator(".state")).to_contain_text("40 of 40 generations")


@pytest.mark.parametrize("width", [900, 1400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everyone_can_read_and_use_the_page(page: Any, theme: str, width: int) -> None:
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("#parts figure svg").first.wait_for()
    assert lab.faults(page) == []
    assert lab.small(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#runs tbody tr", has_text="done").locator("a").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="done").wait_for()
    page.evaluate("location.hash += '/1-1'")
    page.locator("#child h2").wait_for()
    assert lab.faults(page) == []
    assert lab.small(page) == []
