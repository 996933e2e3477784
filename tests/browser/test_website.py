"""The static page of runs, opened from the disk and used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import lab
from samples import write_sample
from tiers import thorough_after

import replay

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("site")
    logs = [write_sample(folder / f"run-{seed}.jsonl", seed=seed) for seed in range(9, 13)]
    made = replay.site(logs, folder / "page")
    with lab.browser(width=1200, height=900) as (opened, errors):
        asked: list[str] = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(made.as_uri())
        yield opened
        assert errors == []
        assert {url.partition(":")[0] for url in asked} <= {"file", "blob", "data"}


def names(page: Any) -> list[str]:
    return list(page.locator("#runs tbody tr:visible td:first-child").all_inner_texts())


def test_the_table_sorts_and_finds(page: Any) -> None:
    page.get_by_role("button", name="run", exact=True).click()
    assert names(page) == ["run-12", "run-11", "run-10", "run-9"]  # numbers as numbers
    page.get_by_role("button", name="best", exact=True).click()
    best = page.locator("#runs tbody tr td:nth-child(3)").all_inner_texts()
    assert list(map(float, best)) == sorted(map(float, best), reverse=True)
    page.get_by_label("find runs").fill("run-1 sample")
    page.get_by_label("find runs").fill("run-11")
    assert names(page) == ["run-11"]
    assert page.locator("#found").inner_text() == "1 of 4 runs"
    page.get_by_label("find runs").fill("")


def test_long_names_keep_their_ends_and_are_found_by_all_of_them(page: Any, tmp_path: Path) -> None:
    before = page.url
    stem = "a-task-with-a-long-name-by-a-model-with-a-long-name-N16"
    logs = [write_sample(tmp_path / f"{stem}-s{seed}.jsonl", seed=seed) for seed in (1, 2)]
    page.goto(replay.site(logs, tmp_path / "page").as_uri())
    shown = names(page)
    assert [name[-4:] for name in shown] == ["6-s1", "6-s2"]
    assert all("…" in name for name in shown)
    cell = page.locator("#runs tbody td:first-child").first
    assert cell.evaluate("(each) => each.scrollWidth <= each.clientWidth")
    page.get_by_label("find runs").fill("model-with-a-long")
    assert len(names(page)) == 2
    page.goto(before)


def test_a_link_to_what_is_not_there_says_so(page: Any) -> None:
    lost, child = page.locator("#lost"), page.locator("#child")
    for link, words in (
        ("run-1", "There is no such run."),  # numbers change as runs are added
        ("run/xyz/1-1", "There is no run named xyz here."),
        ("run/run-13", re.compile(r"no run named run-13 here. Near it: (run-1\d(, )?){3}$")),
        ("run/run-%", re.compile("no run named run-% here. Near it: ")),
    ):
        page.evaluate(f"location.hash = '{link}'")
        lab.expect(lost).to_have_text(words)
        lab.expect(page.locator("#runs")).to_be_visible()
        page.evaluate("location.hash = 'runs'")
        lab.expect(lost).to_be_empty()
    page.evaluate("location.hash = 'run/run-13'")
    lost.get_by_role("link", name="run-10").click()
    page.get_by_role("heading", name="run-10").wait_for()
    lab.expect(lost).to_be_empty()
    for link in ("run/run-10/999-9", "run/run-10/xyz"):
        page.evaluate(f"location.hash = '{link}'")
        lab.expect(child).to_have_text("There is no such child.")
        page.evaluate("location.hash = 'run/run-10/1-1'")
        lab.expect(child).to_be_empty()
    page.get_by_role("link", name="all runs").click()
    lab.expect(page.locator("#runs")).to_be_visible()


def test_names_without_a_hyphen_do_not_widen_a_page(page: Any, tmp_path: Path) -> None:
    before = page.url
    path = write_sample(tmp_path / f"{'a_long_name_' * 14}.jsonl")
    title = f"Runs of {'another_long_name_' * 12}"
    page.goto(replay.site([path], tmp_path / "page", title=title).as_uri())
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    page.locator("#runs tbody tr").click()
    page.get_by_role("heading", name="a_long_name_a").wait_for()
    assert page.evaluate(fits)
    page.goto(before)


def test_a_run_opens_says_what_lies_under_the_mouse_and_shows_its_differences(page: Any) -> None:
    page.locator("#runs tbody tr", has_text="run-10").click()
    page.get_by_role("heading", name="run-10").wait_for()
    lab.expect(page.locator("#runs")).to_be_hidden()
    ticks = page.locator(".replay-run .one > svg").first.locator("text[text-anchor=end]")
    places = ticks.evaluate_all("all => all.map((each) => each.getAttribute('y'))")
    assert len(places) > 3
    assert len({*places}) == len(places)
    tip = lab.click(page, "better than all before")
    assert "better than all before" in tip
    shown = page.locator("details[open]")
    lab.expect(shown.locator("summary")).to_contain_text(tip.partition(":")[0])
    lab.expect(shown.locator(".plus").first).to_be_visible()
    page.get_by_role("link", name="all runs").click()
    lab.expect(page.locator("#runs")).to_be_visible()


def test_pictures_of_a_group_answer_to_the_mouse_in_the_theme_of_the_screen(page: Any) -> None:
    for theme, other in (("light", "dark"), ("dark", "light")):
        page.emulate_media(color_scheme=theme)
        picture = page.locator(f"figure img.{theme}").first  # a figure of texts, such as a blame
        picture.scroll_into_view_if_needed()
        lab.expect(picture).to_be_visible()
        lab.expect(page.locator(f"figure img.{other}").first).to_be_hidden()
        page.mouse.move(*lab.point(page, "median"))
        lab.expect(page.locator("figure .replay-view .tip:visible")).to_contain_text("median")


def test_on_paper_a_long_table_is_whole_and_the_page_is_read_in_dark_ink(page: Any) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate(
        """() => {
          const body = document.querySelector("#runs tbody");
          for (let k = 0; k < 20; k++) body.append(body.lastElementChild.cloneNode(true));
        }"""
    )
    box = page.locator("#runs .scroll")
    assert box.evaluate("(each) => each.clientHeight") > 520
    assert box.evaluate("(each) => each.scrollHeight - each.clientHeight") <= 1
    assert not page.get_by_label("find runs").is_visible()
    ink = page.evaluate("() => getComputedStyle(document.body).color.match(/\\d+/g).map(Number)")
    assert max(ink) < 128
    page.emulate_media(media="screen", color_scheme="light")
    page.reload()


def test_tables_of_several_models_and_searches_are_no_wider_than_paper(
    page: Any, tmp_path: Path
) -> None:
    before = page.url
    corpus = Path(__file__).parents[2] / "logs" / "corpus"
    logs = [next(corpus.glob(f"{each}/**/*.jsonl*")) for each in ("islands", "local-tsp", "pilots")]
    page.goto(replay.site(logs, tmp_path / "page").as_uri())
    page.emulate_media(media="print")
    lab.resize(page, 672)  # seven inches, as a letter has within margins
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(media="screen")
    lab.resize(page, 1200)
    page.goto(before)


@pytest.mark.parametrize(
    ("theme", "width"),
    thorough_after(2, [("dark", 900), ("light", 1400), ("light", 900), ("dark", 1400)]),
)
def test_everyone_can_read_and_use_the_site(page: Any, theme: str, width: int) -> None:
    page.emulate_media(color_scheme=theme)
    lab.resize(page, width)
    assert lab.faults(page) == []
    assert lab.small(page) == []
    page.locator("#runs tbody tr", has_text="run-10").click()
    page.get_by_role("heading", name="run-10").wait_for()
    page.locator("#run details summary").first.click()
    assert lab.faults(page) == []
    assert lab.small(page) == []
    page.get_by_role("link", name="all runs").click()
    lab.expect(page.locator("#runs")).to_be_visible()
