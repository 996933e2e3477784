"""The budget explorer as the browser draws it, in a page without kernel, server or network."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser import lab
from samples import write_sample
from synthetic_runs import as_frame, chain_runs

import replay
from replay.explorers import explore_budget, film
from replay.explorers.budget import link
from replay.explorers.budget_values import behind_in_cell
from replay.explorers.scripts import script
from replay.explorers.widgets import copyable

pytestmark = pytest.mark.slow

AXES = ("generation", "calls", "tokens")
TAU = 0.6

NUMBERS = """(states) => {
  const root = document.querySelector(".replay-view");
  const known = (x) => Number.isNaN(x) ? null : x;
  const plain = (curve) => Object.values(curve).map((each) => [...each].map(known));
  const points = /([\\d.]+) ([\\d.-]+)/g;
  return states.map((state) => {
    root.view.set(state);
    const { splits, plans } = root.view.shown();
    const drawn = plans.slice(1).map(({ picture, x, y }) => {
      const path = picture.querySelector(`path[data-line="choice"]:not([stroke-dasharray="6 3"])`);
      const found = [...(path?.getAttribute("d") || "").matchAll(points)];
      return found.map((at) => [x.back(+at[1]), y.back(+at[2])]);
    });
    return {
      words: root.dataset.description, source: root.dataset.source, drawn,
      splits: splits.map((each) => each && [
        [...each.x], plain(each.fitness), plain(each.reached), each.logged, each.n,
      ]),
    };
  });
}"""
"""What is shown for each of some states: words, numbers, and points read off the curves."""


@pytest.fixture(scope="module")
def explorer():
    frame, children = chain_runs(budget=16, sizes=(1, 2, 4, 8, 16))
    gap = [table[table["children"] != 4] for table in (frame, children)]
    made = explore_budget(gap[0], child_table=gap[1], tau=TAU)
    made.settle()
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(explorer, chromium, tmp_path_factory):
    path = explorer.save(tmp_path_factory.mktemp("view") / "budget.html")
    with lab.browser(width=900, height=800) as (opened, errors):
        asked: list[str] = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(path.as_uri())
        opened.wait_for_selector(".replay-view svg")
        yield opened
        assert errors == []
        assert {url.partition(":")[0] for url in asked} <= {"file", "blob", "data"}


def states(explorer: Any) -> list[dict[str, Any]]:
    """Every split that is known, with each cost axis."""
    options, now = explorer.controls, explorer.settings
    found = []
    for T, N, axis in itertools.product(
        options["generations"].options, options["children"].options, AXES
    ):
        asked = {**now, "generations": T, "children": N, "calls": T * N, "axis": axis}
        if explorer._spec.view(now, False).outlook.cell(T, N) is not None:
            found.append(asked)
    return found


def same(shown: list[float | None], wanted: Any) -> bool:
    """Whether two columns hold the same numbers, to the last digit."""
    return np.array_equal(np.array(shown, dtype=float), wanted, equal_nan=True)


def test_every_number_of_every_split_is_that_of_the_python_table(page, explorer) -> None:
    asked = states(explorer)
    assert len(asked) > 30
    runs = explorer.controls["runs"].options
    asked = [{**state, "runs": runs[k : k + 2]} for k, state in enumerate(asked)]
    kinds = set()
    for state, shown in zip(asked, page.evaluate(NUMBERS, asked), strict=True):
        view = explorer._spec.view(state, False)
        assert shown["words"] == view.words
        for drawn, split in zip(shown["splits"], view.splits, strict=True):
            assert (drawn is None) == (split is None)
            if split is None:
                continue
            x, fitness, reached, logged, n = drawn
            assert same(x, split.fitness.x)
            for curve, wanted in ((fitness, split.fitness), (reached, split.reached)):
                for column, name in zip(curve, ("value", "low", "high"), strict=True):
                    assert same(column, getattr(wanted, name)), (state, name)
            assert (logged, n) == (split.fitness.logged, split.fitness.n)
            kinds.add(split.logged)
    assert kinds == {True, False}


def test_what_is_drawn_lies_where_the_numbers_say(page, explorer) -> None:
    asked = states(explorer)
    for state, shown in zip(asked, page.evaluate(NUMBERS, asked), strict=True):
        split = explorer._spec.view(state, False).splits[0]
        for points, curve in zip(shown["drawn"], (split.fitness, split.reached), strict=True):
            known = curve.logged
            assert len(points) == known
            if known:
                x, y = np.transpose(points)
                assert np.allclose(x, curve.x[:known], rtol=2e-3)
                assert np.allclose(y, curve.value[:known], atol=2e-3)


CUT = """all => all.filter((list) => list.offsetParent).flatMap((list) => {
  const look = getComputedStyle(list), pen = document.createElement("canvas").getContext("2d");
  pen.font = `${look.fontWeight} ${look.fontSize} ${look.fontFamily}`;
  const room = list.clientWidth - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight);
  const texts = [...list.options].map((each) => each.text);
  return texts.filter((text) => pen.measureText(text).width > room - 12);  // beside the arrow
})"""
"""The choices of lists that are not shown whole."""


@pytest.mark.parametrize("width", [420, 860, 1240])
def test_no_choice_of_a_list_is_cut(page, width: int) -> None:
    lab.resize(page, width, 800)
    lists = page.locator(".replay-view select")
    assert "tokens (prompt and completion)" in lists.first.inner_text()
    assert lists.evaluate_all(CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    lab.resize(page, 900, 800)


def test_a_curve_is_thin_where_only_some_runs_go_on(chromium, tmp_path) -> None:
    frame, _ = chain_runs(budget=32, sizes=(2, 4))
    ended = frame["run"].isin(sorted(frame.loc[frame["children"] == 4, "run"].unique())[:3])
    frame = frame[~ended | (frame["generation"] <= 5)]
    with contextlib.closing(explore_budget(frame, generations=8, children=4, calls=32)) as made:
        path = made.save(tmp_path / "budget.html")
        curve = made._spec.view(made.settings, False).splits[0].fitness
        words = made.words
    with lab.browser(width=1280, height=800) as (opened, errors):
        opened.goto(path.as_uri())
        view = opened.locator(".replay-view")
        assert view.get_attribute("data-description") == words
        fitness = opened.locator(".one", has_text="Best fitness so far")
        drawn = fitness.locator("path[data-line=choice]").all()
        points = [len(re.findall("[ML]", each.get_attribute("d"))) for each in drawn]
        assert points == [curve.whole, curve.logged - curve.whole + 1]
        widths = [float(each.get_attribute("stroke-width")) for each in drawn]
        assert widths[0] > 2 * widths[1]
        about = opened.get_by_text("thin if not all runs")
        assert about.bounding_box()["x"] + about.bounding_box()["width"] <= 1280
        end = curve.x[curve.logged - 1]
        opened.mouse.move(*lab.point(opened, f"at {end:g}, of the runs that go on"))
        lab.expect(opened.locator(".tip")).to_contain_text("of the runs that go on")
        assert errors == []


def test_any_tau_counts_the_logged_runs(page, explorer) -> None:
    now = {**explorer.settings, "generations": 4, "children": 2, "calls": 8}
    asked = [{**now, "tau": tau} for tau in (-1.0, 0.3, 0.45, 0.777, 2.0)]
    for state, shown in zip(asked, page.evaluate(NUMBERS, asked), strict=True):
        wanted = explorer._spec.view(state, False).splits[0].reached
        for column, name in zip(shown["splits"][0][2], ("value", "low", "high"), strict=True):
            assert same(column, getattr(wanted, name))


CELLS = """() => {
  const { plans: [{ picture, panel, x, y }] } = document.querySelector(".replay-view").view.shown();
  const [{ values }] = panel.marks, texts = [...picture.querySelectorAll("[data-mark='0'] text")];
  const name = (axis, at) => +axis.ticks.find(([value]) => value === Math.round(at))[1];
  return [...picture.querySelectorAll("[data-mark='0'] :is(rect, ellipse)")].map((cell) => {
    const { x: left, y: top, width, height } = cell.getBBox();
    const [column, row] = [x.back(left + width / 2), y.back(top + height / 2)];
    const text = texts.find((each) => {
      const at = each.getBBox(), [cx, cy] = [at.x + at.width / 2, at.y + at.height / 2];
      return cx > left && cx < left + width && cy > top && cy < top + height;
    });
    const value = values[Math.round(row)][Math.round(column)];
    return [name(panel.x, column), name(panel.y, row), value, text?.textContent || ""];
  });
}"""
"""The cells that are drawn: T and N where they lie, the value there, and what is written."""


def cell(page: Any, T: int, N: int) -> tuple[float, float]:
    """The middle of a cell on the page."""
    return lab.point(page, f"T = {T}, N = {N}, C = {T * N}\n")


def test_every_cell_of_the_map_shows_its_value(page, explorer) -> None:
    cells = page.evaluate(CELLS)
    known = explorer._spec.view(explorer.settings, False).outlook
    rows, columns, values, _ = known.grid
    wanted = {
        (T, N): values[r, c]
        for (r, N), (c, T) in itertools.product(enumerate(rows), enumerate(columns))
        if known.cell(T, N) is not None
    }
    assert len(cells) == len(wanted)
    assert {(T, N): value for T, N, value, _ in cells} == wanted
    written = {(T, N): f"{value:.2f}".removeprefix("0") for (T, N), value in wanted.items()}
    assert {(T, N): text for T, N, _, text in cells} == written


def test_the_map_shows_how_far_splits_lie_behind_the_best_of_their_budget(page, explorer) -> None:
    page.get_by_label("Map", exact=True).select_option("behind")
    known = explorer._spec.view(explorer.settings, False).outlook
    cells = page.evaluate(CELLS)
    assert any(value < 0 for *_, value, _ in cells)
    for T, N, value, text in cells:
        found = known.behind.get((T, N))
        assert text == ("" if found is None else behind_in_cell(found.value))
        assert math.isnan(value) if found is None else value == found.value
    T, N = next(place for place, each in known.behind.items() if each.value < 0)
    page.mouse.move(*cell(page, T, N))
    shown = page.locator(".replay-view .tip").inner_text().split()
    assert " ".join(shown).endswith(known.behind[T, N].words())
    assert "map='behind'" in page.locator(".replay-view").get_attribute("data-source")
    page.get_by_label("Map", exact=True).select_option("fitness")


def test_moves_are_linked_as_in_python(page) -> None:
    rows, columns = [1, 2, 3, 4, 8, 12, 16], [1, 2, 4, 8, 16]
    asked = []
    for T, N in itertools.product(columns, rows):
        before = {"generations": T, "children": N, "calls": T * N}
        moves = [("generations", T) for T in columns] + [("children", N) for N in rows]
        moves += [("calls", T * N) for T, N in itertools.product(columns, rows)]
        asked += [(name, {**before, name: value}) for name, value in moves]
    found = page.evaluate(
        """async ([script, asked, rows, columns]) => {
          const code = URL.createObjectURL(new Blob([script], {type: "text/javascript"}));
          const { link } = await import(code);
          return asked.map(([name, state]) => link(name, state, rows, columns));
        }""",
        [script("view"), asked, rows, columns],
    )
    assert found == [link(name, state, rows, columns) for name, state in asked]


def test_it_is_moved_by_mouse_and_by_keys(page) -> None:
    root = page.locator(".replay-view")
    page.mouse.click(*cell(page, 4, 2))
    assert "generations=4, children=2, calls=8" in root.get_attribute("data-source")
    tip = page.locator(".replay-view .tip")
    assert tip.inner_text().startswith("T = 4, N = 2, C = 8\nbest fitness 0.")
    page.get_by_label("generations T").press("ArrowRight")
    assert "generations=8, children=1, calls=8" in root.get_attribute("data-source")
    page.get_by_role("button", name="twice as broad").click()
    assert "generations=4, children=2, calls=8" in root.get_attribute("data-source")
    page.get_by_role("application").press("ArrowRight")
    page.get_by_role("application").press("Enter")
    assert "generations=8, children=2, calls=16" in root.get_attribute("data-source")
    page.get_by_label("Cost axis").select_option("tokens")
    assert "axis='tokens'" in root.get_attribute("data-source")
    page.get_by_label("τ", exact=True).fill("0.5")
    assert "tau=0.5" in root.get_attribute("data-source")


def test_tau_is_dragged_and_one_drag_is_undone_at_once(page, explorer) -> None:
    root, tau = page.locator(".replay-view"), page.get_by_label("τ", exact=True)
    page.mouse.click(*cell(page, 4, 2))
    now = {**explorer.settings, "tau": 0.5}
    page.evaluate("(now) => document.querySelector('.replay-view').view.set(now)", now)
    x, begins, ends = page.evaluate("""() => {
      const [, { y, left }] = document.querySelector(".replay-view").view.shown().plans;
      return [left + 60, y(0.5), y(0.4)];
    }""")
    picture = page.locator(".one", has_text="Best fitness so far").locator("svg").bounding_box()
    page.mouse.move(picture["x"] + x, picture["y"] + begins)
    page.mouse.down()
    page.mouse.move(picture["x"] + x + 50, picture["y"] + ends, steps=5)
    page.mouse.up()
    assert float(tau.input_value()) == pytest.approx(0.4, abs=0.01)
    assert f"tau={tau.input_value()}," in root.get_attribute("data-source")
    page.get_by_role("button", name="Undo").click()
    assert "tau=0.5," in root.get_attribute("data-source")


def test_choices_are_undone_one_by_one(page, explorer) -> None:
    root = page.locator(".replay-view")
    page.evaluate(
        "(now) => document.querySelector('.replay-view').view.set(now)", explorer.settings
    )
    page.mouse.click(*cell(page, 4, 2))
    before = root.get_attribute("data-source")
    for _ in range(2):  # one slide
        page.get_by_label("generations T").press("ArrowLeft")
    page.get_by_label("Cost axis").select_option("tokens")
    slid = root.get_attribute("data-source").replace("axis='tokens'", "axis='calls'")
    page.get_by_role("button", name="Undo").click()
    assert root.get_attribute("data-source") == slid != before
    page.get_by_label("generations T").press("Escape")
    assert root.get_attribute("data-source") == before


def test_the_address_of_a_saved_page_restores_its_view(page, explorer) -> None:
    root = page.locator(".replay-view")
    page.get_by_label("τ", exact=True).fill("0.55")
    page.mouse.click(*cell(page, 4, 2))
    page.locator(".runs button").first.click()
    page.get_by_label("Cost axis").select_option("tokens")
    page.wait_for_url("**axis=tokens**")
    shown, link = root.get_attribute("data-source"), page.url
    assert "generations=4, children=2" in shown
    assert "runs=[" in shown
    for where in ("about:blank", link):
        page.goto(where)
    root.wait_for()
    assert root.get_attribute("data-source") == shown
    page.goto(link.replace("generations=4", "generations=70"))  # no run has got so far
    page.wait_for_function(
        "(now) => document.querySelector('.replay-view').dataset.source !== now", arg=shown
    )
    begun = explorer.settings["generations"]
    assert f"generations={begun}, children=2" in root.get_attribute("data-source")
    page.goto(link.partition("#")[0] + "#")
    page.wait_for_function(
        "(now) => document.querySelector('.replay-view').dataset.source === now", arg=explorer.code
    )


RUNS = """(states) => {
  const root = document.querySelector(".replay-view"), { set, shown } = root.view;
  return states.map((state) => {
    set(state);
    const at = /([\\d.]+) ([\\d.-]+)/g, [, { x, y, panel, picture }] = shown().plans;
    const back = (m) => [x.back(+m[1]), y.back(+m[2])];
    // Every second point is the corner before a step, and the last one the end of the run.
    const points = (path) => [...path.getAttribute("d").matchAll(at)].filter((_, k) => k % 2 === 0);
    const drawn = panel.marks.flatMap((mark, m) => mark.step ? [
      [mark.label, points(picture.querySelector(`[data-mark="${m}"] path`)).slice(0, -1).map(back)]
    ] : []);
    return [[...root.querySelectorAll(".runs button")].map((each) => each.title), drawn];
  });
}"""
"""The runs that are listed, and the steps of those that are drawn, as (cost, fitness)."""


def test_the_runs_of_every_split_are_listed_and_drawn_where_they_are(page, explorer) -> None:
    asked = [state for state in states(explorer) if state["axis"] != "generation"]
    names = explorer.controls["runs"].options
    asked = [{**state, "runs": [names[k % len(names)]]} for k, state in enumerate(asked)]
    known = explorer._spec.view(explorer.settings, False).outlook
    for state, (listed, drawn) in zip(asked, page.evaluate(RUNS, asked), strict=True):
        here = [name for name, _ in known.runs_of(state["generations"], state["children"])]
        [chosen] = state["runs"]
        assert listed == [*here, *([chosen] if chosen not in here else [])]
        run = known.one_run(chosen, state["axis"])
        [[name, points]] = drawn
        assert chosen.endswith(name)
        x, y = np.transpose(points)
        at = np.abs(np.subtract.outer(x, run.x)).argmin(axis=1)
        assert np.allclose(run.x[at], x, rtol=2e-3)
        assert np.allclose(run.value[at], y, atol=2e-3)
        steps = np.flatnonzero(np.diff(run.value, prepend=np.nan) != 0)
        assert at.tolist() == steps.tolist()


def test_a_cell_leads_to_its_runs_and_a_run_to_its_curve(page) -> None:
    root = page.locator(".replay-view")
    for pressed in root.locator(".runs [aria-pressed=true]").all():
        pressed.click()
    page.mouse.click(*cell(page, 2, 8))
    buttons = root.get_by_role("group", name="runs").get_by_role("button")
    first = buttons.first
    run = first.get_attribute("title")
    first.click()
    assert f"runs=['{run}']" in root.get_attribute("data-source")
    assert first.get_attribute("aria-pressed") == "true"
    drawn = root.locator(f"path[data-line='{first.inner_text().split()[0]}']")
    assert drawn.count() == 1
    first.press("Enter")
    assert drawn.count() == 0
    assert "runs" not in root.get_attribute("data-source")


def test_a_drag_zooms_both_panels_and_a_double_click_shows_all(page) -> None:
    plans = "document.querySelector('.replay-view').view.shown().plans.slice(1)"
    ends = f"{plans}.map(({{ x, left, right }}) => [x.back(left), x.back(right)])"
    whole = page.evaluate(ends)
    before = whole[0]
    assert whole[1] == before
    box = page.locator("rect.panel[data-panel='1']").bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 24, steps=3)
    page.mouse.up()
    (low, high), other = page.evaluate(ends)
    assert other == [low, high]
    assert math.isclose(math.log(high / low), 0.5 * math.log(before[1] / before[0]), rel_tol=0.02)
    page.get_by_label("generations T").press("ArrowLeft")  # a move keeps what is zoomed
    assert page.evaluate(ends) == [[low, high], [low, high]]
    page.locator("rect.panel[data-panel='2']").dblclick()
    assert page.evaluate(ends) == whole


def test_code_is_copied_where_the_clipboard_is_denied(page) -> None:
    page.evaluate(
        """(made) => {
          document.body.insertAdjacentHTML("beforeend", `<div id="made">${made}</div>`);
          const denied = { writeText: () => Promise.reject(new Error("denied")) };
          Object.defineProperty(navigator, "clipboard", { value: denied });
          document.addEventListener("copy", () => { window.copied = String(getSelection()); });
        }""",
        copyable("f(a='1', b=\"x\")"),
    )
    for part, code in (("#made", "f(a='1', b=\"x\")"), (".replay-view", "replay.explorers.")):
        page.locator(part).get_by_role("button", name="Copy as code").click()
        page.wait_for_function("(code) => window.copied?.startsWith(code)", arg=code)


def test_nothing_is_smaller_than_nine_pixels_and_nothing_is_clipped(page) -> None:
    for width in (420, 900, 1400):
        lab.resize(page, width)
        drawn = page.locator(".replay-view .panels").evaluate("(all) => all.clientWidth")
        assert abs(drawn - width) < 40
        small = page.evaluate(
            """() => [...document.querySelectorAll('.replay-view svg text')].filter((each) => {
              const box = each.getBoundingClientRect();
              const all = each.ownerSVGElement.getBoundingClientRect();
              return parseFloat(getComputedStyle(each).fontSize) < 9 || box.left < all.left - 1
                || box.right > all.right + 1 || box.bottom > all.bottom + 1;
            }).map((each) => each.textContent)"""
        )
        assert small == []


HALF_SEEN = """(list) => {
  const room = list.getBoundingClientRect();
  return [...list.children].map((each) => each.getBoundingClientRect()).filter(
    (each) => each.top < room.bottom - 1 && each.bottom > room.bottom + 1).length;
}"""
"""How many buttons of a list are seen in part."""


def test_no_button_of_a_run_is_cut_and_choices_are_whole(page) -> None:
    runs, choices = page.get_by_role("group", name="runs"), page.locator(".picks")
    for width in (900, 520, 400, 320):
        lab.resize(page, width)
        assert runs.evaluate("(list) => list.children.length") >= 10
        assert runs.evaluate(HALF_SEEN) == 0
        wide = choices.evaluate(
            "(list) => [...list.children].filter((e) => e.scrollWidth > e.clientWidth).length"
        )
        assert wide == 0
    lab.resize(page, 900)


def test_a_mean_that_is_unknown_is_said_in_the_words_of_the_python_view(chromium, tmp_path) -> None:
    runs = as_frame(np.full((3, 4), np.nan), children=2, seeds=range(3))
    with contextlib.closing(explore_budget(runs)) as made, lab.browser() as (opened, errors):
        opened.goto(made.save(tmp_path / "nothing.html").as_uri())
        opened.wait_for_selector(".replay-view svg")
        assert opened.locator(".replay-view").get_attribute("data-description") == made.words
        assert "have a mean best fitness that is unknown, as some run has nothing ok" in made.words
        assert errors == []


def test_its_style_leaves_other_views_of_the_page_alone(page) -> None:
    height = page.evaluate(
        """() => {
          const stage = `<div class="stage"><svg height="200"></svg></div>`;
          document.body.insertAdjacentHTML("beforeend", `<div class="replay-view">${stage}</div>`);
          const other = document.body.lastElementChild, { height } = other.getBoundingClientRect();
          other.remove();
          return height;
        }"""
    )
    assert height >= 200


def test_the_saved_page_is_accessible(page) -> None:
    assert lab.faults(page) == []


@pytest.mark.thorough
def test_a_film_plays_to_its_end(page, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(film, "SECONDS", 0.05)
    made = replay.film(write_sample(tmp_path / "run.jsonl", generations=4, children=3))
    path, last = made.save(tmp_path / "run.html"), len(made.steps)
    assert last > 2
    opened, errors = page.context.browser.new_page(), []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(path.as_uri())
    output, words = opened.locator("output"), opened.locator(".words")
    assert output.inner_text() == f"step {last} of {last}"
    opened.get_by_role("slider", name="step").press("Home")
    assert words.inner_text() == made.steps[0].words
    assert opened.locator("figure:visible").count() == 1
    opened.get_by_role("button", name="Play").click()
    opened.get_by_role("button", name="Play").wait_for()  # it is called Pause meanwhile
    assert output.inner_text() == f"step {last} of {last}"
    assert words.inner_text() == made.steps[-1].words
    host = tmp_path / "host.html"
    body = f"<body data-jp-theme-light='false'>{made._repr_html_()}</body>"
    host.write_text(f"<meta charset='utf-8'>{body}", encoding="utf-8")
    opened.goto(host.as_uri())
    inside = opened.frame_locator("iframe")
    for light, ground in (("false", "rgb(17, 20, 24)"), ("true", "rgb(255, 255, 255)")):
        opened.evaluate("(light) => { document.body.dataset.jpThemeLight = light; }", light)
        lab.expect(inside.locator("body")).to_have_css("background-color", ground)
        media = "all" if light == "false" else "not all"
        lab.expect(inside.locator("source").first).to_have_attribute("media", media)
    assert errors == []
    opened.close()


def test_a_map_of_splits_without_others_of_their_budget_says_so(chromium, tmp_path) -> None:
    frame, children = chain_runs(budget=32, sizes=(2,), seeds=range(3))
    with contextlib.closing(explore_budget(frame, child_table=children)) as made:
        path = made.save(tmp_path / "budget.html")
    with lab.browser(width=900, height=800) as (opened, errors):
        opened.goto(path.as_uri())
        panel = opened.locator(".one").first
        lab.expect(panel.locator("p")).to_have_text("mean best fitness")
        bar = panel.locator("svg rect[fill^='url']").bounding_box()
        ticks = [each.bounding_box() for each in panel.locator("svg text.tick").all()]
        beside = [box for box in ticks if box["x"] > bar["x"]]
        assert len(beside) == 2  # the ends of its colours
        assert all(box["x"] + box["width"] < bar["x"] + 66 for box in beside)
        opened.get_by_role("combobox", name="Map").select_option("behind")
        lab.expect(panel).to_contain_text("no two splits of one budget are known")
        menu = opened.locator(".takes summary")
        lab.expect(menu).to_be_visible()
        opened.emulate_media(media="print")
        lab.expect(menu).to_be_hidden()
        assert errors == []


def test_a_page_offers_no_task_whose_numbers_it_lacks(chromium, tmp_path) -> None:
    toy, other = (
        chain_runs(budget=4, sizes=(1, 2), seeds=range(3), task=t) for t in ("toy", "tic")
    )
    frame, children = (pd.concat(each, ignore_index=True) for each in zip(toy, other, strict=True))
    with contextlib.closing(explore_budget(frame, child_table=children, task="toy")) as made:
        path = made.save(tmp_path / "budget.html")
    with lab.browser(width=900, height=800) as (opened, errors):
        opened.goto(f"{path.as_uri()}#task=tic")
        tasks = opened.get_by_role("combobox", name="Task")
        lab.expect(tasks).to_have_value("toy")
        offered = tasks.evaluate("(e) => [...e.options].map((o) => [o.value, !o.disabled])")
        assert sorted(offered) == [["tic", False], ["toy", True]]
        assert opened.locator("label", has=tasks).get_attribute("title") == (
            "This page holds the numbers of one task"
        )
        assert errors == []


def test_a_slide_changes_the_address_once(page) -> None:
    before = page.url
    page.evaluate("""() => {
      window.written = 0;
      const replace = history.replaceState.bind(history);
      history.replaceState = (...given) => { window.written += 1; replace(...given); };
    }""")
    page.evaluate("""() => {
      const slider = document.querySelector("[aria-label='fitness to reach']");
      for (let k = 0; k < 300; k++) {
        slider.value = k;
        slider.dispatchEvent(new Event("input"));
      }
    }""")
    page.wait_for_url(lambda url: url != before)
    assert page.evaluate("window.written") == 1
