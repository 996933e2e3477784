"""Explorers saved as HTML, opened from the disk and used without a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import lab
from synthetic_runs import chain_runs

import evo
import replay
from replay.explorers import explore_allocation, explore_budget, explore_curves, explore_panel
from replay.plots import Chart
from replay.plots.marks import Line
from replay.plots.panel import Axis, Panel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(chromium: str) -> Iterator[Any]:
    with lab.browser(width=1000, height=800) as (opened, errors):
        asked: list[str] = []
        opened.on("request", lambda request: asked.append(request.url))
        yield opened
        assert errors == []
        assert {url.partition(":")[0] for url in asked} <= {"file", "blob", "data"}


def best_of(frame: Any, *, last: int = 2, named: bool = False) -> Chart:
    """The best fitness of one run."""
    rows = frame[frame["seed"] == 0].head(last + 1)
    line = Line(x=rows["generation"], y=rows["best_fitness"], label="best" if named else "")
    return Chart(panels=[Panel(title=f"to {last}, {named}", marks=[line], x=Axis(), y=Axis())])


@pytest.fixture
def panel(page: Any, tmp_path: Path) -> Any:
    frame, _ = chain_runs(sizes=(2,), budget=8, seeds=range(6))
    made = explore_panel(frame, best_of, last=2)
    page.goto(made.save(tmp_path / "panel.html").as_uri())
    made.close()
    page.wait_for_selector(".replay-book")
    return page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_saved_panel_is_moved_by_its_controls(panel: Any, theme: str) -> None:
    panel.emulate_media(color_scheme=theme)
    status = panel.locator("div[role=status][aria-live]")
    lab.expect(status).to_contain_text("to 2, False")
    slider = panel.get_by_role("slider", name="last")
    slider.focus()
    panel.keyboard.press("ArrowRight")
    lab.expect(status).to_contain_text("to 3, False")
    lab.expect(panel.locator(".replay-chart")).to_contain_text("to 3, False")
    assert slider.get_attribute("aria-valuetext") == "3"
    panel.get_by_role("checkbox", name="named").check()
    lab.expect(status).to_contain_text("to 3, True")
    assert lab.faults(panel) == []
    assert lab.small(panel) == []


def test_a_saved_panel_states_a_text_that_cannot_be_changed_there(
    page: Any, tmp_path: Path
) -> None:
    def noted(frame: Any, *, note: str = "as it is", last: int = 2) -> Chart:
        return best_of(frame, last=last)

    frame, _ = chain_runs(sizes=(2,), budget=8, seeds=range(6))
    made = explore_panel(frame, noted)
    page.goto(made.save(tmp_path / "noted.html").as_uri())
    made.close()
    text = page.get_by_role("combobox", name="note")
    lab.expect(text).to_be_disabled()
    lab.expect(text.locator("option:checked")).to_have_text("as it is")
    slider = page.get_by_role("slider", name="last")
    slider.focus()
    page.keyboard.press("ArrowRight")
    lab.expect(text.locator("option:checked")).to_have_text("as it is")
    assert lab.faults(page) == []


def test_a_map_of_one_row_has_its_label_whole(page: Any, tmp_path: Path) -> None:
    frame, children = chain_runs(budget=16, sizes=(4,))
    made = explore_budget(frame, child_table=children, tau=0.6)
    page.goto(made.save(tmp_path / "budget.html").as_uri())
    made.close()
    label = page.locator("text", has_text="children N")
    box = label.bounding_box()
    picture = page.locator("svg", has=label).bounding_box()
    assert box["height"] > 40
    assert picture["y"] <= box["y"]
    assert box["y"] + box["height"] <= picture["y"] + picture["height"]


def test_words_that_the_picture_bears_are_for_screen_readers_alone(panel: Any) -> None:
    seen = [
        each.bounding_box()
        for each in panel.get_by_text("to 2, False").all()
        if each.is_visible() and each.bounding_box()["width"] > 1
    ]
    assert len(seen) == 1
    lab.expect(panel.locator("div[role=status][aria-live]")).to_have_text("to 2, False")


INKS = """() => {
  const shown = ["body", ".replay-view", ".replay-chart svg text", ".replay-view select"];
  const inks = shown.map((each) => getComputedStyle(document.querySelector(each)).color);
  return inks.map((ink) => Math.max(...ink.match(/\\d+/g).map(Number)));
}"""
"""How light texts of a page are, from 0 to 255."""


def test_a_page_in_dark_inks_can_be_read_on_paper(page: Any, tmp_path: Path) -> None:
    frame, children = chain_runs(budget=16, sizes=(4,))
    made = explore_budget(frame, child_table=children, theme="dark")
    page.goto(made.save(tmp_path / "dark.html").as_uri())
    made.close()
    page.wait_for_selector(".replay-chart svg text")
    assert min(page.evaluate(INKS)) > 128
    page.emulate_media(media="print")
    assert max(page.evaluate(INKS)) < 128
    page.emulate_media(media="screen")


def test_a_saved_panel_keeps_its_choice_in_its_address_and_undoes_it(panel: Any) -> None:
    slider = panel.get_by_role("slider", name="last")
    slider.focus()
    for _ in range(2):
        panel.keyboard.press("ArrowRight")
    panel.get_by_role("checkbox", name="named").check()
    lab.until(panel, "() => location.hash === '#last=4&named=yes'")
    status = panel.locator("div[role=status][aria-live]")
    undo = panel.get_by_role("button", name="Undo")
    undo.click()
    lab.expect(status).to_contain_text("to 4, False")
    undo.click()  # the moves of a slider in a row are one change
    lab.expect(status).to_contain_text("to 2, False")
    assert undo.is_disabled()
    assert slider.get_attribute("aria-valuetext") == "2"
    panel.evaluate("location.hash = 'last=5&named=yes'")
    lab.expect(status).to_contain_text("to 5, True")
    panel.evaluate("location.hash = 'last=none'")
    lab.expect(status).to_contain_text("to 2, False")


def test_escape_undoes_a_choice_of_a_saved_panel_and_a_link_that_was_followed(panel: Any) -> None:
    panel.get_by_role("slider", name="last").press("ArrowRight")
    status = panel.locator("div[role=status][aria-live]")
    lab.expect(status).to_contain_text("to 3, False")
    panel.evaluate("location.hash = 'last=5&named=yes'")
    lab.expect(status).to_contain_text("to 5, True")
    for before in ("to 3, False", "to 2, False"):
        panel.keyboard.press("Escape")
        lab.expect(status).to_contain_text(before)
    assert panel.get_by_role("button", name="Undo").is_disabled()
    follow_a_link_just_before_the_address_is_written(panel, "last=4&named=yes")
    lab.expect(status).to_contain_text("to 4, True")


def test_a_link_that_was_followed_in_a_saved_budget_is_undone(page: Any, tmp_path: Path) -> None:
    frame, _ = chain_runs(budget=16, sizes=(1, 2, 4))
    made = explore_budget(frame, generations=4, children=4)
    page.goto(made.save(tmp_path / "budget.html").as_uri())
    made.close()
    page.get_by_label("generations T").press("ArrowRight")
    chosen = page.get_by_text("choice: T = ")
    lab.expect(chosen).to_contain_text("T = 8, N = 2")
    page.evaluate("location.hash = 'generations=2&children=4'")
    lab.expect(chosen).to_contain_text("T = 2, N = 4")
    for before in ("T = 8, N = 2", "T = 4, N = 4"):
        page.get_by_label("generations T").press("Escape")
        lab.expect(chosen).to_contain_text(before)
    follow_a_link_just_before_the_address_is_written(page, "generations=2&children=1")
    lab.expect(chosen).to_contain_text("T = 2, N = 1")


def follow_a_link_just_before_the_address_is_written(page: Any, link: str) -> None:
    """Moves the first slider, and has what a page does at rest be due when a link is followed."""
    due = page.evaluate(
        """async (link) => {
            const later = window.setTimeout, due = [];
            window.setTimeout = (call, rest) => (rest === 120 ? due.push(call) : later(call, rest));
            const slider = document.querySelector("input[type=range]");
            slider.stepUp();
            slider.dispatchEvent(new Event("input"));
            await new Promise((ready) => requestAnimationFrame(() => later(ready)));
            window.setTimeout = later;
            location.hash = link;
            for (const call of due) call();
            return due.length;
        }""",
        link,
    )
    assert due > 0


def test_a_saved_panel_has_no_buttons_on_paper(panel: Any) -> None:
    panel.emulate_media(media="print")
    assert not panel.get_by_role("button", name="Undo").is_visible()
    panel.emulate_media(media="screen")


@pytest.mark.thorough
def test_every_page_has_a_heading_a_main_part_and_headings_in_order(
    page: Any, tmp_path: Path
) -> None:
    frame, _ = chain_runs(sizes=(2,), budget=16, seeds=range(6))
    settings: dict[str, Any] = {"generations": 2, "children": 3, "workers": 1, "progress": False}
    log = evo.run("mmd", log=tmp_path / "run.jsonl", **settings)
    made = {
        "budget": explore_budget(frame),
        "allocation": explore_allocation(frame),
        "curves": explore_curves(frame),
        "run": replay.browse(log),
        "follow": replay.follow(log.path, every=60),
        "film": replay.film(log),
        "chart": replay.plots.charts.trajectories(frame),
    }
    pages = {name: each.save(tmp_path / f"{name}.html").as_uri() for name, each in made.items()}
    site = replay.site([log.path], tmp_path / "site").as_uri()
    pages |= {"site": site, "child": f"{site}#run/run/1-1"}
    for name, address in pages.items():
        page.goto(address)
        page.locator("h1").first.wait_for(state="attached")
        page.wait_for_timeout(200)
        assert lab.faults(page, standards=lab.STRUCTURE) == [], name
        assert page.locator("h1:not([hidden] *)").count() == 1, name
        assert page.locator("main").count() == 1, name
