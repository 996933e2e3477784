"""The page that lives, while a run beside it is killed, continued and finished."""

import fcntl
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import lab
from samples import changed, make_log_bytes, sample_lines, write_lines, write_sample
from tiers import thorough_after

import evo
from evo.logs.records import Header, Model
from evo.logs.stopping import stop_file
from replay.reports.live import Folder, LivePage
from replay.reports.live_runs import Run

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


NOTICES = """() => {
  window.notices = [];
  const news = document.querySelector('#news');
  new MutationObserver(() => window.notices.push(news.textContent))
    .observe(news, {childList: true, characterData: true, subtree: true});
}"""
"""Notes the notices of the page, also those that are there for less than a look at it takes."""

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
    page.evaluate(NOTICES)
    row.get_by_role("button", name="go on").click()
    lab.until(page, "() => window.notices.some((each) => each.includes('new goes on'))")
    lab.expect(row.locator(".state b")).to_have_text("running")
    lab.expect(page.locator("#news")).to_be_empty()  # it is under way
    row.locator("a").click()
    page.get_by_role("heading", name="new").wait_for()
    page.evaluate("location.hash += '/1-1'")
    lab.expect(page.locator("#child h2")).to_have_text("Child 1 of generation 1")
    page.locator("#child summary", has_text="Messages").click()
    lab.expect(page.locator("#child pre").first).to_be_visible()
    page.get_by_role("link", name="all runs").click()
    lab.expect(row.locator(".state b")).to_have_text("completed", timeout=90_000)
    lab.expect(row.locator(".state")).to_contain_text("40 of 40 generations")


def write_begun(path: Path) -> Path:
    """A log of a run that a kill ended, whose model is known here."""
    evo.run("mmd", generations=3, children=1, log=path, progress=False)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    return path


def test_a_run_that_cannot_go_on_says_why_within_its_row(
    page: Any, view: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_begun(view.folder.path / "cut.jsonl")
    lab.resize(page, 1280)
    row = page.locator("#runs tbody tr", has_text="cut")
    again = row.get_by_role("button", name="go on")
    again.wait_for()
    before = row.locator("td.word").nth(2).bounding_box()
    why = f"the model '{'m_' * 40}' was a function: {'give it again, ' * 12}"

    def fail(run: Run) -> None:
        run._size, run.said = run.path.stat().st_size, why

    monkeypatch.setattr(Run, "go_on", fail)
    again.click()
    lab.expect(row.locator(".state")).to_contain_text(why.strip())
    lab.expect(page.locator("#news")).to_be_empty()
    place = again.bounding_box()
    assert place["x"] + place["width"] < 1280
    assert row.locator("td.word").nth(2).bounding_box()["x"] < before["x"] + 100


def test_runs_that_begin_later_are_sorted_as_the_others_are(page: Any, view: LivePage) -> None:
    for seed in (2, 9):
        write_sample(view.folder.path / f"{seed}.jsonl", seed=seed)
    rows = page.locator("#runs tbody tr")
    lab.expect(rows).to_have_count(3)
    page.locator("#runs thead").get_by_role("button", name="run", exact=True).click()

    def names() -> list[str]:
        return [name.split()[0] for name in rows.locator("a").all_inner_texts()]

    assert names() == ["done", "9", "2"]
    for seed in (5, 10):
        write_sample(view.folder.path / f"{seed}.jsonl", seed=seed)
    lab.expect(rows).to_have_count(5)
    assert names() == ["done", "10", "9", "5", "2"]


@pytest.mark.thorough
def test_the_page_of_a_long_run_is_read_less_often(
    page: Any, view: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = view.folder.path / "long.jsonl", list[float]()
    whole = write_sample(path, seed=4).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:-4]))
    served = Folder.page_of

    def slowly(folder: Folder, number: str) -> str:
        read.append(time.monotonic())
        text = served(folder, number)
        folder._reread = time.monotonic() + 60  # as after 12 s of reading
        return text

    monkeypatch.setattr(Folder, "page_of", slowly)
    page.locator("#runs tbody tr", has_text="long").locator("a").click()
    page.get_by_role("heading", name="long").wait_for()
    for left in (3, 2):
        path.write_bytes(b"".join(whole[:-left]))
        page.wait_for_timeout(2500)
    assert len(read) == 1
    view.folder._reread = 0.0
    path.write_bytes(b"".join(whole))
    deadline = time.monotonic() + lab.PATIENCE / 1000
    while len(read) < 2 and time.monotonic() < deadline:
        page.wait_for_timeout(200)
    page.wait_for_timeout(2500)
    assert len(read) == 2


def test_a_notice_goes_once_what_was_asked_for_has_happened(
    page: Any, view: LivePage, tmp_path: Path
) -> None:
    news, path = page.locator("#news"), view.folder.path / "done.jsonl"
    row = page.locator("#runs tbody tr", has_text="done")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as if it was being written
        pause = row.get_by_role("button", name="pause")
        pause.wait_for()
        place = row.bounding_box()
        pause.click()
        lab.expect(news).to_have_text("done was asked to pause")
        assert row.bounding_box()["y"] == place["y"]  # what is said does not move what is pressed
        lab.expect(row.locator(".state")).to_contain_text("asked to pause")
        lab.expect(pause).to_be_focused()  # although its row was written anew
        page.wait_for_timeout(5000)
        lab.expect(news).to_have_text("done was asked to pause")
    lab.expect(row.locator(".state b")).to_have_text("completed")
    lab.expect(news).to_be_empty()


def test_a_run_that_begins_is_filtered_as_others_are(page: Any, view: LivePage) -> None:
    rows = page.locator("#runs tbody tr")
    lab.expect(rows).to_have_count(1)
    page.locator("#find").fill("don")
    for name in ("other", "donkey"):
        write_sample(view.folder.path / f"{name}.jsonl")
    lab.expect(page.locator("#found")).to_have_text("2 of 3 runs")
    lab.expect(rows.filter(visible=True)).to_have_count(2)


def test_figures_say_how_old_they_are_and_follow_within_seconds(page: Any, view: LivePage) -> None:
    age, figures = page.locator("#age"), page.locator("#drawn figure svg")
    figures.first.wait_for()
    lab.expect(age).to_have_text(re.compile(r"^Figures and tables of \d\d:\d\d:\d\d\.$"))
    first = age.inner_text()
    count = figures.count()
    other = changed(sample_lines(seed=9), Header, model=Model(name="other", active_parameters=9))
    write_lines(view.folder.path / "more.jsonl", other)
    lab.expect(age).to_contain_text("runs have gone on since, and they are drawn again")
    rest = view.folder.state()["rest"]
    page.wait_for_timeout(1000 * rest)
    lab.expect(page.locator("#drawn h2", has_text="other")).to_be_visible(timeout=30_000)
    assert figures.count() > count
    lab.expect(age).to_have_text(re.compile(r"\d\.$"))
    assert age.inner_text() != first


def test_the_page_of_a_run_shows_its_last_generations(page: Any, view: LivePage) -> None:
    path = view.folder.path / "grows.jsonl"
    whole = make_log_bytes(generations=12, children=4, seed=2).splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:9]))
    page.locator("#runs tbody tr", has_text="grows").locator("a").click()
    page.get_by_role("heading", name="grows").wait_for()
    depth = page.locator("#run dd").nth(1)
    path.write_bytes(b"".join(whole[:40]))
    lab.expect(depth).to_have_text(re.compile(r"[5-9] of 12"))
    path.write_bytes(b"".join(whole))  # soon after the page has been read
    lab.expect(depth).to_have_text("12")


@pytest.mark.parametrize(
    ("name", "words"),
    [("a%20b%2Fdone", ""), ("gone", "There is no run named gone here. Near it: a b/done")],
)
def test_a_link_to_a_run_is_followed_before_the_list_is_read(
    chromium: str, tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "logs" / "a b").mkdir(parents=True)
    write_sample(tmp_path / "logs" / "a b" / "done.jsonl")
    with LivePage(tmp_path / "logs") as view, lab.browser() as (page, _):
        page.goto(f"{view.link}#run/{name}")
        page.locator("#sums b").first.wait_for(state="attached")
        lab.expect(page.locator("#lost")).to_have_text(words)
        lab.expect(page.locator("#run h1")).to_have_count(0 if words else 1)


def test_names_of_a_sweep_keep_their_ends(page: Any, view: LivePage) -> None:
    stem = "sweep/runs/min_max_dist-offline-N1-ad96d6da7d3WWWWWWW"
    for seed in (1, 2):
        write_sample(view.folder.path / f"{stem}-s{seed}.jsonl", seed=seed)
    cells = page.locator("#runs tbody td:first-child", has_text="sweep")
    lab.expect(cells).to_have_count(2)
    assert [text[-3:] for text in cells.all_inner_texts()] == ["-s1", "-s2"]
    assert cells.evaluate_all("all => all.every((each) => each.scrollWidth <= each.clientWidth)")


@pytest.mark.parametrize(
    ("theme", "width"),
    thorough_after(2, [("dark", 900), ("light", 1400), ("light", 900), ("dark", 1400)]),
)
def test_everyone_can_read_and_use_the_page(page: Any, theme: str, width: int) -> None:
    page.emulate_media(color_scheme=theme)
    lab.resize(page, width)
    page.locator("#drawn figure svg").first.wait_for()
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


def test_the_table_of_runs_is_no_wider_than_the_paper(page: Any, view: LivePage) -> None:
    write_sample(view.folder.path / "min_max_distance-offline-2-N4-2168f0f8531d-s40.jsonl")
    page.locator("#runs tbody tr", has_text="2168f0f8531d").wait_for()
    page.locator("#drawn figure").first.wait_for()
    page.emulate_media(media="print", color_scheme="light")
    lab.resize(page, 718)  # A4 within a browser's usual margins
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(media="screen")


def test_the_page_of_a_run_says_that_the_server_is_gone(chromium: str, tmp_path: Path) -> None:
    write_sample(tmp_path / "logs" / "done.jsonl")
    with lab.browser() as (page, _):
        with LivePage(tmp_path / "logs") as view:
            page.goto(f"{view.link}#run/done")
            page.get_by_role("heading", name="done").wait_for()
            assert page.get_by_text("The server is gone").count() == 0
        said = page.get_by_text("The server is gone").locator("visible=true")
        lab.expect(said).to_have_count(1)
        page.get_by_role("link", name="all runs").click()
        page.wait_for_timeout(2500)  # two looks of the page
        lab.expect(said).to_have_count(1)


def test_without_the_token_buttons_say_what_they_need(page: Any, view: LivePage) -> None:
    path = view.folder.path / "done.jsonl"
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        pause = page.locator("#runs tbody tr").get_by_role("button", name="pause")
        lab.expect(pause).to_have_attribute("title", re.compile("with all its runs"))
        lab.expect(pause).to_be_enabled()
        page.goto(view.address)
        lab.expect(pause).to_have_attribute("title", re.compile("its token"))
        lab.expect(pause).to_be_disabled()
        pause.click(force=True)
        lab.expect(page.locator("#news")).to_contain_text("Buttons need the whole link")
        assert lab.faults(page) == []
    assert not stop_file(path, "pause").exists()


def test_the_focus_stays_in_a_row_whose_buttons_are_others_now(
    page: Any, view: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_begun(view.folder.path / "cut.jsonl")
    row = page.locator("#runs tbody tr", has_text="cut")
    with path.open("rb") as file:
        monkeypatch.setattr(Run, "go_on", lambda run: fcntl.flock(file, fcntl.LOCK_EX))
        row.get_by_role("button", name="go on").focus()
        page.keyboard.press("Enter")
        lab.expect(row.get_by_role("button", name="pause")).to_be_focused()


def test_rows_of_many_runs_appear_while_others_are_read(
    chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(12):
        write_sample(tmp_path / f"{seed:02d}.jsonl", generations=1, children=2, seed=seed)
    read, gate = Run.refresh, threading.Semaphore(0)

    def when_let(run: Run) -> None:
        assert run.log is not None or gate.acquire(timeout=60)
        read(run)

    monkeypatch.setattr(Run, "refresh", when_let)
    monkeypatch.setattr("replay.reports.live.PART", 0.0)
    with LivePage(tmp_path) as view, lab.browser(width=1000, height=900) as (page, errors):
        page.goto(view.link)
        rows, news, sums = (page.locator(each) for each in ("#runs tbody tr", "#news", "#sums"))
        lab.expect(news).to_have_text("Reading the logs …")
        gate.release(5)
        lab.expect(rows).to_have_count(5)
        lab.expect(sums).to_contain_text("5 of 12")
        lab.expect(news).to_have_text("Reading the logs …")
        assert page.locator("#age").text_content() == ""  # figures wait for all of them
        gate.release(7)
        lab.expect(rows).to_have_count(12)
        lab.expect(sums).to_contain_text("12runs")
        lab.expect(news).to_be_empty()
        assert errors == []
