"""A run as the browser draws it, in a page without kernel, server or network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from browser import lab
from samples import write_sample

import replay
from evo.logs.log import read_log
from evo.logs.records import STATUSES
from replay.explorers.run_data import RunData, look_at, name
from replay.plots.style import usual_range

pytestmark = pytest.mark.slow

DRAWN = """() => {
  const { spots } = document.querySelector(".replay-run").view.shown();
  return spots.map(({ x, y, panel }) => [x, panel ? null : y]);
}"""
"""Where every program lies, in the coordinates of the axes; the height of what is ok."""

SHOWN = "() => document.querySelector('.replay-run').view.shown().state.at"
LIMITS = """() => {
  const [{ x, y, left, right, bottom, top }] =
    document.querySelector(".replay-run").view.shown().plans;
  return [x.back(left), x.back(right), y.back(bottom), y.back(top)];
}"""
SIGNS = """() => {
  const { plans } = document.querySelector(".replay-run").view.shown();
  return plans.flatMap(({ panel, picture, left, right, top, bottom }) =>
    panel.marks.flatMap(({ shape }, m) => {
      const { width, x, y } = picture.querySelector(`[data-mark="${m}"]`).getBBox();
      const [px, py] = [x + width / 2, y + width / 2];
      const seen = width && px > left - 8 && px < right + 8 && py > top - 8 && py < bottom + 8;
      return seen && ["ring", "frame"].includes(shape) ? [shape] : [];
    }),
  );
}"""
"""What marks the shown program and its parent, as far as they are in sight."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    path = tmp_path_factory.mktemp("log") / "run.jsonl"
    return RunData(read_log(write_sample(path, generations=8, children=5, seed=3)))


@pytest.fixture(scope="module")
def page(data: RunData, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    browser = replay.browse(data.log)
    path = browser.save(tmp_path_factory.mktemp("view") / "run.html")
    browser.close()
    with lab.browser(width=900, height=800) as (opened, errors):
        asked: list[str] = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(path.as_uri())
        opened.wait_for_selector(".replay-run svg")
        yield opened
        assert errors == []
        assert {url.partition(":")[0] for url in asked} <= {"file", "blob", "data"}


def test_every_program_lies_where_its_numbers_say(page: Any, data: RunData) -> None:
    x, y = np.array(page.evaluate(DRAWN), dtype=float).T
    N = data.log.header.children
    spread = 0.8 * ((data.index + 0.5) / N - 0.5) * (data.generation > 0)
    assert np.allclose(x, data.generation + spread)
    known = np.isfinite(data.fitness)
    assert np.array_equal(np.isfinite(y), known)
    low, _ = usual_range(data.fitness)
    assert np.allclose(y[known], np.maximum(data.fitness[known], low))


def test_names_of_lines_hide_no_points(page: Any) -> None:
    hidden = page.evaluate("""() => {
      const { plans: [plan], spots } = document.querySelector(".replay-run").view.shown();
      const points = spots.filter(({ panel }) => !panel).map(({ x, y }) => [plan.x(x), plan.y(y)]);
      const texts = [...plan.picture.querySelectorAll("text")];
      return texts.filter((each) => each.textContent === "initial program").map((each) => {
        const { x, y, width, height } = each.getBBox();
        const under = ([a, b]) => a > x && a < x + width && b > y && b < y + height;
        return points.filter(under).length;
      });
    }""")
    assert hidden == [0]


def test_what_is_said_of_every_program_is_what_python_knows(page: Any, data: RunData) -> None:
    application = page.locator(".replay-run [role=application]")
    application.focus()
    while page.evaluate(SHOWN) != [0, 0]:
        page.keyboard.press("ArrowLeft")
    for number, place in enumerate(data.places):
        if number:
            page.keyboard.press("ArrowRight")
        said = page.locator(".replay-run .tip").first.inner_text()
        view = look_at(data, place)
        status = STATUSES[data.status[number]].replace("_", " ")
        assert said.startswith(f"{name(place)}: {status}")
        if view.evaluation.fitness is not None:
            assert f"fitness {view.evaluation.fitness:.6g}" in said
        assert ("better than all before" in said) == bool(data.improved[number])
        assert (view.parent is not None) == ("rewrites" in said)
        if view.parent is not None:
            assert f"rewrites {name(view.parent)}" in said


def test_keys_go_to_improvements_and_failures(page: Any, data: RunData) -> None:
    page.locator(".replay-run [role=application]").focus()
    while page.evaluate(SHOWN) != [0, 0]:
        page.keyboard.press("ArrowLeft")
    for key, back, to in (("ArrowUp", "ArrowDown", "improvement"), ("f", "F", "failure")):
        place = (0, 0)
        while (found := data.hop(place, to, 1)) is not None:
            page.keyboard.press(key)
            assert page.evaluate(SHOWN) == list(found)
            place = found
        while (found := data.hop(place, to, -1)) is not None:
            page.keyboard.press(back)
            assert page.evaluate(SHOWN) == list(found)
            place = found
        while page.evaluate(SHOWN) != [0, 0]:
            page.keyboard.press("ArrowLeft")


def test_a_click_goes_to_a_program_and_marks_its_parent(page: Any, data: RunData) -> None:
    failed = next(place for place, ok in zip(data.places, data.status, strict=True) if ok)
    for place in (data.best, failed):
        said = lab.click(page, f"{name(place)}:")
        assert said.startswith(f"{name(place)}: ")
        assert page.evaluate(SHOWN) == list(place)
        assert sorted(page.evaluate(SIGNS)) == ["frame", "ring"]


def test_a_drag_zooms_both_axes_and_a_double_click_shows_all(page: Any) -> None:
    lab.click(page, f"{name((0, 0))}: ")
    assert page.evaluate(SIGNS) == ["ring"]
    before = page.evaluate(LIMITS)
    box = page.locator("rect.panel[data-panel='0']").first.bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.6 * box["height"], steps=3)
    page.mouse.up()
    zoomed = page.evaluate(LIMITS)
    for low, share in ((0, 0.5), (2, 0.4)):
        part = (zoomed[low + 1] - zoomed[low]) / (before[low + 1] - before[low])
        assert part == pytest.approx(share, rel=0.02)
    assert page.evaluate(SIGNS) == []  # it lies outside
    page.locator("rect.panel[data-panel='1']").dblclick()
    assert page.evaluate(LIMITS) == before
    assert page.evaluate(SIGNS) == ["ring"]


def test_every_text_of_a_child_is_behind_a_link(page: Any, data: RunData) -> None:
    shown = page.locator("#child")
    known = [child for child in data.log.children if child.reply and child.program]
    for child in (known[0], known[-1]):
        page.evaluate("(to) => { location.hash = to; }", f"{child.generation}-{child.index}")
        place = (child.generation, child.index)
        title = name(place)
        lab.expect(shown.locator("h2")).to_have_text(title[:1].upper() + title[1:])
        assert page.evaluate(SHOWN) == list(place)
        for head, text in (("Reply", child.reply), ("Program", child.program)):
            fold = shown.locator("details", has=page.locator("summary", has_text=head))
            if fold.get_attribute("open") is None:
                fold.locator("summary").click()
            assert text.split("\n")[0].strip() in fold.inner_text()
    link = page.url
    for where in ("about:blank", link):
        page.goto(where)
    lab.expect(shown.locator("h2")).to_have_text(title[:1].upper() + title[1:])
    page.wait_for_selector(".replay-run svg")
    lab.click(page, f"{name(data.best)}:")
    lab.expect(shown.locator("h2")).to_have_text(name(data.best)[:1].upper() + name(data.best)[1:])


def test_nothing_is_too_small_or_clipped_and_everyone_can_read_it(page: Any) -> None:
    for width in (420, 900, 1400):
        lab.resize(page, width)
        # Beside the chart, or below it, is what the program returned, or why there is nothing.
        assert page.evaluate(
            """() => {
              const root = document.querySelector(".replay-run"), { plans } = root.view.shown();
              const [all, chart, drawn] = [root, root.querySelector(".one").parentElement,
                root.querySelector(".one > svg")].map((each) => each.getBoundingClientRect());
              return chart.right - drawn.right < 60 && drawn.right <= all.right + 1
                && plans.length === 2;
            }"""
        )
        clipped = page.evaluate(
            """() => [...document.querySelectorAll('.one > svg text')].filter((each) => {
              const box = each.getBoundingClientRect();
              const all = each.ownerSVGElement.getBoundingClientRect();
              return box.left < all.left - 1 || box.right > all.right + 1
                || box.bottom > all.bottom + 1;
            }).map((each) => each.textContent)"""
        )
        assert clipped == []
        assert lab.small(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert lab.faults(page) == []


def test_a_link_to_no_child_says_so(page: Any) -> None:
    child = page.locator("#child")
    for link in ("99-1", "1-99"):
        page.evaluate(f"location.hash = '{link}'")
        lab.expect(child).to_have_text("There is no such child.")
        page.evaluate("location.hash = '1-1'")
        lab.expect(child).to_contain_text("Child 1 of generation 1")
