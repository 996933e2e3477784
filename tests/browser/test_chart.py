"""Charts in a page without a kernel: what is drawn, pointed at, chosen, zoomed and gone to."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import lab

from replay.explorers import explore_selection
from replay.plots.chart import Chart, pack
from replay.plots.marks import RAMP, Area, Bars, Cells, Label, Line, Points, Polylines, Rule
from replay.plots.panel import Axis, Panel
from replay.plots.scripts import CHART, chart_page, module

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror='document.title=1'> </script>"


def make() -> Chart:
    x = np.arange(1.0, 11)
    curve = Line(x=x, y=np.sqrt(x), low=np.sqrt(x) - 0.2, high=np.sqrt(x) + 0.3, label="ucb1")
    broken = Line(
        x=x, y=np.where(x == 5, np.nan, x / 4), label="random", color="#0072b2", step=True
    )
    rows = Axis(domain=(1.5, -0.5), ticks=[(0, "one\nrow"), (1, HOSTILE)])
    share = {"zoom": True, "shares": "rounds"}
    axes = {"x": Axis(domain=(0, 12), label="round", whole=True)}
    unit = Axis(domain=(0.0, 1.0))
    return Chart(
        columns=2,
        panels=[
            Panel(
                title="Curves", y=Axis(domain=(0, 4), label="fitness"), legend=True,
                **axes, **share,
                marks=[curve, broken, Rule(y=2.0, dash="2 2"), Label(x=1, y=3, text="here")],
            ),
            Panel(
                title="Cells", y=Axis(domain=(2.5, 0.5), ticks=[(1, "best")]), **axes, **share,
                marks=[
                    Cells(
                        values=np.array([[0.0, 0.5, 1.0], [1.0, 0.5, math.nan]]), x0=0.5, x1=3.5,
                        y0=0.5, y1=2.5, colors=RAMP, names=("round", "rank"),
                    )
                ],
            ),
            Panel(
                title="Rows", x=Axis(domain=(1, 1000), scale="log", label="calls"), y=rows,
                height=80,
                marks=[
                    Bars(
                        x0=[10, 10], x1=[100, 500], y=[0, 1], texts=["first bar", HOSTILE],
                        keys=["a", None], opacity=0.4,
                    ),
                    Points(x=[3.0, 300.0], y=[0, 1], x_low=[2.0, 200.0], x_high=[5.0, 900.0],
                           texts=["first point", "later point"], keys=[None, "b"], shape="later"),
                ],
            ),
            Panel(
                title="Parallel", x=Axis(domain=(0, 1), ticks=[(0, "left"), (1, "right")]), y=unit,
                marks=[
                    Polylines(x=[0, 1], rows=[[0.1, 0.9], [0.8, 0.8]], colors=RAMP[:2],
                              widths=[1, 2], texts=["rising", "level"], keys=["c", "b"]),
                ],
            ),
        ],
    )  # fmt: skip


@pytest.fixture(scope="module")
def opened(chromium: str) -> Iterator[Any]:
    with lab.browser(width=900, height=900) as (page, errors):
        yield page
        assert errors == []


@pytest.fixture
def page(opened: Any, tmp_path: Path) -> Any:
    state = {"label": "a chart", "source": "f(1)", "serial": 3, "theme": "light"}
    text = chart_page(b"", "a chart", pack(make()), state)
    before = "<!doctype html><meta charset='utf-8'><script>window.sent = [];</script>"
    text = text.replace("mount(place, ...given);", "mount(place, ...given, (m) => sent.push(m));")
    (tmp_path / "chart.html").write_text(before + text, encoding="utf-8")
    opened.mouse.move(0, 0)
    opened.goto((tmp_path / "chart.html").as_uri())
    opened.wait_for_selector(".replay-view[data-serial='3']")
    return opened


def tooltip(page: Any) -> str:
    found: str = page.locator(".tip").inner_text()
    return found


def at(page: Any, text: str) -> list[float]:
    found: list[float] = page.evaluate(
        "(text) => document.querySelector('.replay-view').view.find(text)", text
    )
    return found


def domains(page: Any) -> list[list[float]]:
    found: list[list[float]] = page.evaluate(
        "() => document.querySelector('.replay-view').view.shown().plans.map("
        "({x, left, right}) => [x.back(left), x.back(right)])"
    )
    return found


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()


def test_the_numbers_are_drawn_where_they_belong(page: Any) -> None:
    d = page.locator("path[data-line=random]").get_attribute("d")
    assert d.count("M") == 2  # it is broken where nothing is known
    plan = "document.querySelector('.replay-view').view.shown().plans[0]"
    for x, y in ((1.0, 0.25), (10.0, 2.5)):
        there = page.evaluate(f"({plan}).x({x}).toFixed(1) + ' ' + ({plan}).y({y}).toFixed(1)")
        assert there in d
    assert page.locator(".legend button").all_inner_texts() == ["ucb1", "random"]
    assert page.locator(".replay-view").get_attribute("data-description") == "a chart"


def test_pointing_says_what_is_there_and_texts_stay_texts(page: Any) -> None:
    page.mouse.move(*at(page, "ucb1: 2 [1.8, 2.3] at 4"))
    assert tooltip(page).splitlines() == ["ucb1: 2 [1.8, 2.3] at 4", "random: 1 at 4"]
    page.mouse.move(*at(page, "level"))
    assert tooltip(page) == "level"
    plans = "document.querySelector('.replay-view').view.shown().plans"
    marked = f"{plans}.map((plan) => plan.marks.childElementCount)"
    assert page.evaluate(marked) == [0, 0, 1, 1]  # the point that stands for the same, too
    page.mouse.move(*at(page, HOSTILE))
    assert tooltip(page) == HOSTILE
    assert page.title() == ""
    box = page.locator("image").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.75 * box["height"])
    assert tooltip(page) == "round 2, rank 2: 50 %"


def test_a_click_is_told_where_it_means_something(page: Any) -> None:
    for text in ("first bar", HOSTILE, "first point", "later point", "rising"):
        page.mouse.click(*at(page, text))
    told = [(m["kind"], m["serial"], m["panel"], m["mark"], m["place"]) for m in
            page.evaluate("sent")]  # fmt: skip
    assert told == [("click", 3, *place) for place in ((2, 0, 0), (2, 1, 1), (3, 0, 0))]


def test_a_drag_zooms_all_panels_that_share_and_a_double_click_shows_all(page: Any) -> None:
    before = domains(page)
    left, right = at(page, "ucb1: 1.414"), at(page, "ucb1: 2.828")  # at 2 and at 8
    drag(page, (left[0], left[1] - 30), (right[0], left[1] - 30))
    zoomed = domains(page)
    assert zoomed[0] == pytest.approx([2, 8], abs=0.1)
    assert zoomed[1] == zoomed[0]
    assert zoomed[2:] == before[2:]
    page.mouse.dblclick(left[0] + 20, left[1])
    assert domains(page) == before
    assert page.evaluate("sent") == []


def test_keys_go_from_place_to_place_and_choose(page: Any) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert tooltip(page).startswith("ucb1: 1 [0.8, 1.3] at 1")
    page.keyboard.press("ArrowRight")
    assert tooltip(page).startswith("ucb1: 1.414")
    for _ in range(2):
        page.keyboard.press("PageDown")
    assert tooltip(page) == "first bar"
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # means nothing there
    page.keyboard.press("End")
    assert tooltip(page) == "level"
    page.keyboard.press("Home")
    assert tooltip(page).startswith("ucb1: 1 ")
    assert [(m["panel"], m["mark"], m["place"]) for m in page.evaluate("sent")][:1] == [(2, 0, 0)]


def test_a_place_that_is_held_does_not_outlive_its_chart(page: Any) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    axes = {"x": Axis(domain=(0, 1)), "y": Axis(domain=(0, 4))}
    other = Panel(title="Another", **axes, marks=[Rule(y=2.0)])
    given = {**json.loads(pack(Chart(panels=[other]))), "label": "another", "serial": 5}
    page.evaluate("(chart) => document.querySelector('.replay-view').view.load(chart)", given)
    assert page.locator(".tip").is_hidden()


def test_narrow_pages_have_one_column_and_text_of_the_same_size(page: Any) -> None:
    columns = "getComputedStyle(document.querySelector('.panels')).gridTemplateColumns"
    assert len(page.evaluate(columns).split()) == 2
    lab.resize(page, 500)
    assert len(page.evaluate(columns).split()) == 1
    assert lab.small(page, 10.0) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    lab.resize(page, 900)


def test_the_number_at_the_end_of_an_axis_is_whole(page: Any) -> None:
    axes = {"x": Axis(domain=(-0.0002, 0.0002)), "y": Axis(domain=(0, 4))}
    small = Chart(panels=[Panel(title="Small numbers", **axes, marks=[Rule(x=0.0)])])
    given = {**json.loads(pack(small)), "label": "small", "serial": 6}
    page.evaluate("(chart) => document.querySelector('.replay-view').view.load(chart)", given)
    ends = page.evaluate(
        """() => {
          const picture = document.querySelector(".one > svg");
          const all = picture.getBoundingClientRect();
          return [...picture.querySelectorAll("text")].map(
            (each) => all.right - each.getBoundingClientRect().right);
        }"""
    )
    assert 0 <= min(ends) < 10


def test_a_long_name_of_an_axis_goes_on_below_and_stays_inside(page: Any) -> None:
    name = f"fitness, search = {'a_long_name_of_' * 12}search minus search = another"
    axes = {"x": Axis(domain=(0, 1), label=name), "y": Axis(domain=(0, 4))}
    long = Chart(panels=[Panel(title="A long name", **axes, marks=[Rule(x=0.5)])])
    given = {**json.loads(pack(long)), "label": "long", "serial": 7}
    page.evaluate("(chart) => document.querySelector('.replay-view').view.load(chart)", given)
    found = page.evaluate(
        """() => {
          const picture = document.querySelector(".one > svg");
          const all = picture.getBoundingClientRect();
          return [...picture.querySelectorAll("text")].map((each) => {
            const own = each.getBoundingClientRect();
            const room = [own.left - all.left, all.right - own.right, all.bottom - own.bottom];
            return [each.textContent, Math.min(...room)];
          });
        }"""
    )
    assert min(room for _, room in found) >= 0
    assert "".join(text for text, _ in found).count("a_long_name_of_") == 12


def test_a_sentence_stands_where_there_is_no_chart(page: Any) -> None:
    given = json.loads(pack(Chart(message="There is nothing.")))
    page.evaluate("(chart) => { window.given = chart; }", {**given, "label": "x", "serial": 4})
    page.evaluate("document.querySelector('.replay-view').view.load(window.given)")
    assert page.locator(".message").inner_text() == "There is nothing."
    assert page.get_by_role("application").count() == 0


@pytest.mark.thorough
def test_the_page_that_an_explorer_saves_is_accessible(opened: Any, tmp_path: Path) -> None:
    for theme in ("light", "dark"):
        explorer = explore_selection(np.random.default_rng(1).random((3, 12)), theme=theme)
        path = explorer.save(tmp_path / "race.html")
        explorer.close()
        opened.goto(path.as_uri())
        opened.wait_for_selector(".replay-view[data-serial]")
        assert lab.faults(opened) == []
        assert lab.small(opened, 10.0) == []


def test_numbers_and_pictures_are_had_without_a_kernel(page: Any) -> None:
    page.locator(".takes summary").click()
    page.get_by_role("button", name="Table").click()
    assert page.locator(".takes table tr").count() > 20
    assert page.locator(".takes table tr").nth(1).inner_text().split("\t")[0] == "Curves"
    with page.expect_download() as found:
        page.get_by_role("button", name="CSV").click()
    text = Path(found.value.path()).read_text()
    assert found.value.suggested_filename == "curves.csv"
    assert "Curves,line,ucb1,1,1," in text
    assert any(
        line.startswith("Cells,cells,") and ",best," in line for line in text.splitlines()
    )  # its row as the axis names it
    with page.expect_download() as found:
        page.get_by_role("button", name="SVG").click()
    assert found.value.suggested_filename == "curves.svg"
    assert Path(found.value.path()).read_text().startswith("<svg")


def test_files_are_named_after_what_they_show(page: Any) -> None:
    line = Line(x=[1, 2], y=[0.5, 0.6])
    x, y = Axis(label="LLM calls"), Axis(label="best fitness")
    untitled = Panel(title="", marks=[line], x=x, y=y)
    for panels, title, names in (
        ([untitled], "", ["best-fitness-by-llm-calls.svg"]),
        ([untitled] * 2, "", [f"best-fitness-by-llm-calls-{k}.svg" for k in (1, 2)]),
        ([replace(untitled, title="Reached τ: 95 %")], "tsp", ["tsp-reached-τ-95.svg"]),
    ):
        given = json.loads(pack(Chart(panels=panels, title=title)))
        page.evaluate("(chart) => { window.given = chart; }", {**given, "label": "x", "serial": 4})
        page.evaluate("document.querySelector('.replay-view').view.load(window.given)")
        page.evaluate("document.querySelector('.takes').open = true")
        saved: list[str] = []
        page.on("download", lambda found, saved=saved: saved.append(found.suggested_filename))
        page.get_by_role("button", name="SVG").click()
        page.wait_for_timeout(300)
        assert sorted(saved)[-len(names) :] == names


def test_a_tap_shows_and_a_second_one_chooses(page: Any) -> None:
    """A finger that moves scrolls the page: the chart takes no touches for itself."""
    panning = "getComputedStyle(document.querySelector('.replay-chart svg')).touchAction"
    assert page.evaluate(panning) == "pan-y"
    x, y = page.evaluate("document.querySelector('.replay-view').view.find('first bar')")
    tap = """([x, y]) => {
      const target = document.elementFromPoint(x, y);
      const how = {clientX: x, clientY: y, pointerType: 'touch', bubbles: true, button: 0};
      for (const kind of ['pointerdown', 'pointerup']) {
        target.dispatchEvent(new PointerEvent(kind, how));
      }
    }"""
    before = page.evaluate("sent.length")
    page.evaluate(tap, [x, y])
    assert "first bar" in page.locator(".tip").inner_text()
    assert page.evaluate("sent.length") == before
    page.evaluate(tap, [x, y])
    assert page.evaluate("sent.length") == before + 1


def test_a_legend_hides_and_shows(page: Any) -> None:
    button = page.get_by_role("button", name="random", exact=True)
    assert page.locator("path[data-line='random']").count() == 1
    button.click()
    assert page.locator("path[data-line='random']").count() == 0
    assert page.locator("path[data-line='ucb1']").count() == 1
    lab.expect(button).to_have_attribute("aria-pressed", "false")
    page.mouse.move(*at(page, "ucb1: 1.732"))
    assert "random" not in tooltip(page)
    button.focus()  # by keys
    page.keyboard.press("Enter")
    assert page.locator("path[data-line='random']").count() == 1
    lab.expect(button).to_be_focused()


DIMMED = """all => all.filter((each) => getComputedStyle(each).opacity < 1).length"""


def test_escape_brings_back_what_a_legend_hid_or_dimmed(page: Any) -> None:
    lines, marks = page.locator("path[data-line]"), page.locator("[data-mark]")
    button, whole = page.locator(".legend button").first, lines.count()
    page.mouse.move(0, 0)
    button.hover()
    assert marks.evaluate_all(DIMMED) > 0
    button.click()
    assert lines.count() < whole
    page.keyboard.press("Escape")
    assert lines.count() == whole
    assert marks.evaluate_all(DIMMED) == 0
    lab.expect(button).to_be_focused()
    lab.expect(button).to_have_attribute("aria-pressed", "true")
    button.hover(position={"x": 3, "y": 3})
    assert marks.evaluate_all(DIMMED) > 0
    page.keyboard.press("Escape")
    assert marks.evaluate_all(DIMMED) == 0
    button.click()
    page.locator(".panels").press("Escape")
    assert lines.count() == whole


def test_escape_shows_all_again(page: Any) -> None:
    before = domains(page)
    left, right = at(page, "ucb1: 1.414"), at(page, "ucb1: 2.828")
    drag(page, (left[0], left[1] - 30), (right[0], left[1] - 30))
    assert domains(page) != before
    page.locator(".panels").press("Escape")
    assert domains(page) == before


def test_a_view_that_a_fuller_one_follows_says_so(page: Any) -> None:
    sign = page.get_by_text("the full view is being computed")
    lab.expect(sign).to_be_hidden()
    for coarse in (True, False):
        page.evaluate(
            "(coarse) => { const { view } = document.querySelector('.replay-view');"
            " view.load({ ...view.shown().chart, coarse }); }",
            coarse,
        )
        lab.expect(sign).to_be_visible(visible=coarse)


def stacked(title: str = "a run") -> Chart:
    """Two panels above each other with one axis, a named level, and places that can be chosen."""
    x = np.arange(40.0)
    generation = {"domain": (-1.0, 40.0), "label": "generation", "whole": True}
    share = {"zoom": True, "shares": "generation", "height": 100}
    ring = Points(x=[], y=[], shape="ring", size=8, color="#d55e00", label="shown")
    y = np.where(x < 25, 0.52, 0.9)
    return Chart(
        title=title,
        panels=[
            Panel(
                title="", x=Axis(**generation, named=False), legend=True, **share,
                y=Axis(domain=(0, 1), label="fitness"),
                marks=[
                    Rule(y=0.5, text="a level", dash="1.5 3"),
                    Points(x=x, y=y, label="ok", shape="diamond", texts=[f"ok {k}" for k in x],
                           keys=range(40)),
                    ring,
                ],
            ),
            Panel(
                title="", x=Axis(**generation), y=Axis(domain=(0.5, -0.5), ticks=[(0, "failures")]),
                marks=[Points(x=[5.0], y=[0], shape="times", texts=["failed"], keys=[40])], **share,
            ),
        ],
    )  # fmt: skip


@pytest.fixture
def stack(page: Any) -> Any:
    given = {**json.loads(pack(stacked())), "label": "a run", "serial": 8, "ways": "keys hop"}
    page.evaluate("(chart) => document.querySelector('.replay-view').view.load(chart)", given)
    return page


def view(page: Any, call: str) -> Any:
    return page.evaluate(f"document.querySelector('.replay-view').view.{call}")


def test_panels_above_each_other_that_share_an_axis_begin_alike_and_write_it_once(
    stack: Any,
) -> None:
    ends = view(stack, "shown().plans.map(({left, right}) => [left, right])")
    assert ends[0] == ends[1]
    drawn = stack.locator(".one > svg").all()
    texts = [each.locator("text").all_text_contents() for each in drawn]
    assert {"0", "20", "generation"} <= {*texts[1]}
    assert not {"20", "generation"} & {*texts[0]}
    label = stack.get_by_role("application").get_attribute("aria-label")
    assert label == "a run; keys hop"


def test_the_name_of_a_level_hides_no_points(stack: Any) -> None:
    hidden = stack.evaluate("""() => {
      const [plan] = document.querySelector(".replay-view").view.shown().plans;
      const text = [...plan.picture.querySelectorAll("text")].find(
        (each) => each.textContent === "a level");
      const { x, y, width, height } = text.getBBox(), points = plan.panel.marks[1];
      return points.x.filter((value, k) => {
        const [a, b] = [plan.x(value), plan.y(points.y[k])];
        return a > x && a < x + width && b > y && b < y + height;
      }).length;
    }""")
    assert hidden == 0


def test_a_mark_is_drawn_with_other_numbers_while_all_else_stays(stack: Any) -> None:
    stack.evaluate("document.querySelectorAll('path').forEach((e) => { e.dataset.old = 1; })")
    old, rings = stack.locator("path[data-old]").count(), stack.locator("[data-mark] circle")
    view(stack, "change(0, 2, {x: [7], y: [0.52]})")
    lab.expect(rings).to_have_count(1)
    there = view(stack, "shown().plans[0].x(7)")
    assert float(rings.get_attribute("cx")) == pytest.approx(there)
    stack.get_by_role("button", name="shown").click()  # what is hidden stays so, and is not lost
    view(stack, "change(0, 2, {x: [8], y: [0.52]})")
    lab.expect(rings).to_have_count(0)
    stack.get_by_role("button", name="shown").click()
    assert float(rings.get_attribute("cx")) > there
    assert old > 3


def test_a_view_goes_to_a_place_as_keys_do(stack: Any) -> None:
    view(stack, "hold({panel: 0, mark: 1, place: 9})")
    assert tooltip(stack) == "ok 9.0"
    stack.locator(".panels").press("ArrowRight")
    assert tooltip(stack) == "ok 10.0"
    stack.locator(".panels").press("Enter")
    assert stack.evaluate("sent.at(-1).place") == 10


def test_a_place_with_a_ring_around_it_gets_no_other_one(stack: Any) -> None:
    signs = "shown().plans[0].marks.childElementCount"
    view(stack, "change(0, 2, {x: [9], y: [0.52]})")
    for place, count in ((8, 1), (9, 0)):
        view(stack, f"hold({{panel: 0, mark: 1, place: {place}}})")
        assert tooltip(stack) == f"ok {place}.0"
        assert view(stack, signs) == count


def test_an_entry_of_a_legend_keeps_the_focus_while_the_chart_goes_on(stack: Any) -> None:
    entry = stack.get_by_role("button", name="ok", exact=True)
    entry.focus()
    given = {**json.loads(pack(stacked())), "label": "a run", "serial": 9}
    stack.evaluate("(chart) => document.querySelector('.replay-view').view.load(chart)", given)
    lab.expect(entry).to_be_focused()


def test_a_zoom_belongs_to_the_chart_of_its_title(stack: Any) -> None:
    before = domains(stack)
    left, right = at(stack, "ok 8.0"), at(stack, "ok 20.0")
    drag(stack, (left[0], left[1] + 30), (right[0], left[1] + 32))
    zoomed = domains(stack)
    assert zoomed[0] == zoomed[1] != before[0]
    for title, wanted in (("a run", zoomed), ("another", before)):
        given = {**json.loads(pack(stacked(title))), "label": "a run", "serial": 9}
        stack.evaluate("(chart) => document.querySelector('.replay-view').view.load(chart)", given)
        assert domains(stack) == wanted


def test_a_legend_has_the_shapes_of_its_marks(stack: Any) -> None:
    signs = stack.locator(".legend button svg")
    assert signs.nth(0).locator("path").get_attribute("d").count("l") == 3  # a diamond
    assert signs.nth(1).locator("circle").get_attribute("fill") == "none"


def test_a_legend_names_what_there_is_and_keeps_the_room_of_what_comes(stack: Any) -> None:
    entry = stack.locator(".legend [data-label=shown]")
    change = "(x) => document.querySelector('.replay-view').view.change(0, 2, {x, y: x})"
    lab.expect(entry).to_be_hidden()
    before = stack.locator(".panels").bounding_box()
    stack.evaluate(change, [0.5])
    lab.expect(entry).to_be_visible()
    stack.evaluate(change, [])
    lab.expect(entry).to_be_hidden()
    assert stack.locator(".panels").bounding_box() == before


def test_a_chart_in_which_nothing_can_be_chosen_is_no_stop_of_the_keyboard(page: Any) -> None:
    square = Panel(
        title="A square", x=Axis(), y=Axis(), equal=True, bare=True, height=380,
        marks=[Area(x=[0, 1, 1, 0], y=[0, 0, 1, 1])],
    )  # fmt: skip
    given = {**json.loads(pack(Chart(panels=[square]))), "label": "a square", "serial": 7}
    page.set_viewport_size({"width": 300, "height": 900})
    page.evaluate("(chart) => document.querySelector('.replay-view').view.load(chart)", given)
    picture = page.get_by_role("img", name="a square")
    assert picture.get_attribute("tabindex") == "-1"
    box = page.locator(".panels svg").bounding_box()
    assert box["height"] < 1.1 * box["width"]  # no taller than it is wide
    page.set_viewport_size({"width": 900, "height": 900})


NODES = """() => {
  const seen = [...document.querySelectorAll('.replay-chart [data-mark] *')];
  const known = (window.nodes ??= new Map());
  seen.forEach((node) => known.has(node) || known.set(node, known.size));
  return seen.map((node) => known.get(node));
}"""
"""Numbers of the parts of all marks, each of which keeps its own as long as it is there."""


def load(page: Any, change: str) -> None:
    """Load the chart that is shown, with a change to a copy of it."""
    page.evaluate(
        f"""() => {{
          const {{ view }} = document.querySelector(".replay-chart"), now = view.shown().chart;
          const chart = {{ ...now }};
          chart.panels = now.panels.map((each) => ({{ ...each, marks: [...each.marks] }}));
          {change};
          view.load(chart);
        }}"""
    )


def test_another_chart_draws_only_what_differs_and_keeps_zoom_and_focus(page: Any) -> None:
    page.locator(".panels").focus()
    box = page.locator("rect.panel[data-panel='1']").bounding_box()
    y = box["y"] + 20
    drag(page, (box["x"] + 40, y), (box["x"] + box["width"] / 2, y))
    before, zoomed = page.evaluate(NODES), domains(page)
    assert zoomed[0] == zoomed[1] != [0, 12]
    load(page, "chart.panels[2].marks[0] = { ...chart.panels[2].marks[0], color: '#ff0000' }")
    after = page.evaluate(NODES)
    panels = page.evaluate(
        "() => document.querySelector('.replay-view').view.shown().plans.map("
        "(plan) => plan.picture.querySelectorAll('[data-mark] *').length)"
    )
    legend = panels[0]  # entries of a legend belong to marks: that panel is drawn anew
    assert after[legend:] == before[legend:]
    assert page.locator("path[fill='#ff0000']").count() == 1
    assert domains(page) == zoomed
    lab.expect(page.locator(".panels")).to_be_focused()
    load(page, "chart.panels[2].marks.length = 1")
    assert len(page.evaluate(NODES)) < len(after)
    load(page, "chart.panels[1] = { ...chart.panels[1], about: 'another text' }")
    assert page.get_by_text("another text").is_visible()
    load(page, "chart.panels[1] = { ...chart.panels[1], x: { ...chart.panels[1].x, label: 'C' } }")
    assert domains(page)[0] == [0, 12]  # another axis is shown whole


def made_page(opened: Any, path: Path, chart: Chart, **begins: Any) -> Any:
    state = {"label": "a chart", "source": "f(1)", "serial": 3, "theme": "light", **begins}
    text = chart_page(b"", "a chart", pack(chart), state)
    path.write_text(f"<!doctype html><meta charset='utf-8'>{text}", encoding="utf-8")
    opened.mouse.move(0, 0)
    opened.goto(path.as_uri())
    opened.wait_for_selector(".replay-view[data-serial='3']")
    return opened


def costs() -> Chart:
    """A heatmap beside two rows of curves over the same costs."""
    x, ticks = np.array([1e6, 31e6, 992e6]), [(0.0, "1"), (1.0, "2")]
    axes = {"x": Axis(domain=(5e3, 2e9), scale="log", label="tokens"), "shares": "cost"}
    lines = [
        Line(x=x[:2], y=[0.2, 0.5], label="choice"),
        Line(x=x[1:], y=[0.5, 0.7], label="choice", note="predicted"),
        Line(x=[7777.0, *x[1:]], y=[0.8, 0.9, 0.3], label="other"),
    ]
    cells = Cells(
        values=np.array([[0.1, 0.2], [0.3, math.nan]]), x0=-0.5, x1=1.5, y0=-0.5, y1=1.5,
        colors=RAMP, texts=[["a", "b"], ["c", "unknown"]], written=[[".10", ".20"], [".30", ""]],
        chosen=2,
    )  # fmt: skip
    square = Axis(domain=(-0.5, 1.5), ticks=ticks)
    unit = Axis(domain=(0.0, 1.0))
    notes = [Label(y=0.99, text="high", dy=-4), Label(y=0.5, text="low", dy=-4)]
    return Chart(
        columns=2,
        panels=[
            Panel(title="Map", x=square, y=square, marks=[cells], rows=2),
            Panel(title="One", y=unit, marks=[*lines, *notes], zoom=True, **axes),
            Panel(title="Two", y=unit, marks=lines, zoom=True, **axes),
        ],
    )


def test_a_tooltip_names_costs_as_the_axis_does_and_each_curve_once(opened: Any, tmp_path) -> None:
    page = made_page(opened, tmp_path / "costs.html", costs())
    page.mouse.move(*at(page, "choice: 0.7"))
    assert tooltip(page).splitlines() == ["choice: 0.7 at 992M, predicted", "other: 0.3 at 992M"]
    page.mouse.move(*at(page, "choice: 0.5"))
    assert tooltip(page).splitlines() == ["other: 0.9 at 31M", "choice: 0.5 at 31M"]
    assert at(page, "other: 0.8 at 7.777k")
    cursors = page.locator("line[stroke-dasharray='3 3']").evaluate_all(
        "all => all.map((each) => Math.round(each.getBoundingClientRect().x))"
    )
    assert len(cursors) == 2
    assert cursors[0] == pytest.approx(cursors[1], abs=2)


def test_a_panel_stands_beside_as_many_rows_as_it_says(opened: Any, tmp_path) -> None:
    page = made_page(opened, tmp_path / "costs.html", costs())
    heads = {t: page.locator(".one b", has_text=t).bounding_box() for t in ("Map", "One", "Two")}
    assert heads["Map"]["y"] == pytest.approx(heads["One"]["y"], abs=1)
    assert heads["Map"]["x"] < heads["One"]["x"] == heads["Two"]["x"]
    whole, one, two = (ax.get_position() for ax in costs().figure().axes)
    assert whole.y1 > 0.5 > whole.y0
    assert one.x0 == pytest.approx(two.x0)
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.panels')).gridTemplateColumns"
        ".split(' ').length === 1"
    )
    page.set_viewport_size({"width": 900, "height": 900})


def test_keys_go_on_from_what_is_chosen_and_cells_without_a_value_are_grey(
    opened: Any, tmp_path: Path
) -> None:
    page = made_page(opened, tmp_path / "costs.html", costs())
    for _ in range(2):  # no further than the end of a row
        page.locator(".panels").press("ArrowRight")
        assert tooltip(page) == "unknown"
    page.keyboard.press("ArrowDown")
    assert tooltip(page) == "b"
    assert page.locator("rect[fill='rgb(136,136,136)']").count() == 1


def test_a_text_at_the_edge_of_a_panel_stays_within_it(opened: Any, tmp_path: Path) -> None:
    page = made_page(opened, tmp_path / "costs.html", costs())
    field = page.locator("rect.panel[data-panel='1']").bounding_box()
    for text in ("high", "low"):
        box = page.locator("svg text.over", has_text=text).bounding_box()
        assert field["y"] - 1 < box["y"] < field["y"] + field["height"]
        assert box["x"] == pytest.approx(field["x"], abs=5)


LINES_AT = """([x, y]) => {
  const box = document.querySelector(".one > svg").getBoundingClientRect();
  const cover = document.querySelector(".panel");
  cover.style.pointerEvents = "none";
  const found = document.elementsFromPoint(box.left + x, box.top + y);
  cover.style.pointerEvents = "";
  return found.filter((each) => each.closest("[data-mark]")).length;
}"""
"""How many marks are seen at a place of the first picture."""


def test_a_line_that_begins_below_the_axis_is_seen_from_the_frame_on(opened, tmp_path) -> None:
    line = Line(x=[0.0, 1.0], y=[0.0, 1.0], width=8)
    panel = Panel(title="", x=Axis(domain=(0, 1)), y=Axis(domain=(0.5, 1.0)), marks=[line])
    made_page(opened, tmp_path / "line.html", Chart(panels=[panel]))
    foot, x, y = opened.evaluate(
        """() => {
          const [plan] = document.querySelector(".replay-view").view.shown().plans;
          return [plan.bottom, plan.x(0.5), plan.y(0.5)];
        }"""
    )
    assert foot == y
    assert opened.evaluate(LINES_AT, [x + 5, foot - 5]) == 1
    assert opened.evaluate(LINES_AT, [x - 5, foot + 5]) == 0


def test_on_paper_a_chart_is_no_wider_than_the_paper(page: Any) -> None:
    page.emulate_media(media="print")
    right = page.evaluate(
        """() => {
          document.body.style.width = "500px";  // nothing is drawn anew before it is printed
          const all = [...document.querySelectorAll(".one > svg")];
          return Math.max(...all.map((each) => each.getBoundingClientRect().right));
        }"""
    )
    page.emulate_media(media="screen")
    assert 400 < right <= 510


def test_a_long_line_is_drawn_with_fewer_points_that_keep_its_peaks(opened, tmp_path) -> None:
    x = np.linspace(0, 1, 20_000)
    y = np.where(np.arange(x.size) == 7_777, 0.9, 0.4)
    panel = Panel(
        title="Long", x=Axis(domain=(0, 1)), y=Axis(domain=(0, 1)), marks=[Line(x=x, y=y)]
    )
    page = made_page(opened, tmp_path / "long.html", Chart(panels=[panel]))
    d = page.locator("[data-mark='0'] path").get_attribute("d")
    assert len(d) < 10_000
    peak = page.evaluate(
        "() => document.querySelector('.replay-view').view.shown().plans[0].y(0.9).toFixed(1)"
    )
    assert f" {peak}L" in d


def test_a_chart_within_another_view_leaves_its_own_marks_to_it(opened: Any, tmp_path) -> None:
    code = (
        module(CHART)
        + """
      const root = html("div", { class: "replay-view" }, document.body);
      window.pen = mountChart(root, window.given);"""
    )
    given = json.loads(pack(costs())) | {"label": "costs", "theme": "light"}
    (tmp_path / "within.html").write_text(
        f"<!doctype html><meta charset='utf-8'><body><script>window.given = {json.dumps(given)}"
        f"</script><script type='module'>{code}</script>", encoding="utf-8",
    )  # fmt: skip
    opened.goto((tmp_path / "within.html").as_uri())
    opened.wait_for_selector(".replay-chart svg")
    assert opened.locator(".replay-view").count() == 1
    assert opened.locator("[data-serial]").count() == 0
    box = opened.locator("rect.panel[data-panel='1']").bounding_box()
    y = box["y"] + 20
    drag(opened, (box["x"] + 40, y), (box["x"] + 90, y))
    assert [opened.evaluate("pen.whole()") for _ in range(2)] == [True, False]


def test_a_level_is_dragged_where_it_says_so(opened: Any, tmp_path: Path) -> None:
    unit = {"x": Axis(domain=(0, 1)), "y": Axis(domain=(0, 1))}
    levels = [Rule(y=0.5), Rule(y=0.75, moves=True)]
    chart = Chart(panels=[Panel(title="Levels", marks=levels, zoom=True, **unit)])
    page = made_page(opened, tmp_path / "levels.html", chart)
    text = (tmp_path / "levels.html").read_text()
    text = text.replace("mount(place, ...given);", "mount(place, ...given, (m) => sent.push(m));")
    (tmp_path / "told.html").write_text(f"<script>window.sent = [];</script>{text}")
    page.goto((tmp_path / "told.html").as_uri())
    ground = page.locator("rect.panel")
    ground.wait_for()
    box = ground.bounding_box()
    x, heights = box["x"] + 100, {y: box["y"] + (1 - y) * box["height"] for y in (0.2, 0.5, 0.75)}
    drag(page, (x, heights[0.5]), (x, heights[0.2]))
    assert page.evaluate("sent") == []
    page.mouse.move(x, heights[0.75])
    lab.expect(ground).to_have_css("cursor", "ns-resize")
    drag(page, (x, heights[0.75]), (x + 200, heights[0.2]))
    told = page.evaluate("sent")
    assert {(m["kind"], m["serial"], m["panel"], m["mark"]) for m in told} == {("move", 3, 0, 1)}
    assert told[-1]["value"] == pytest.approx(0.2, abs=0.01)
    assert domains(page) == [[0, 1]]  # nothing was zoomed
