"""The documentation site, with one notebook, opened from the disk in both themes and on paper."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import lab

pytest.importorskip("furo", reason="the documentation needs the extra [docs]")
pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # CI has the extra where it runs these

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SHOWN = "00_quickstart"


def named_after(png: bytes) -> str:
    """The name of a picture's dark twin."""
    return f"{hashlib.sha256(png).hexdigest()[:12]}.png"


def twins() -> list[str]:
    """Those of the pictures on the page: the one with which it opens, and those of its cells."""
    opening = (NOTEBOOKS / "pictures" / "opening" / f"{SHOWN}.png").read_bytes()
    cells = json.loads((NOTEBOOKS / f"{SHOWN}.ipynb").read_text())["cells"]
    kept = [output["data"] for cell in cells for output in cell.get("outputs", ())]
    pngs = [b64decode(data["image/png"]) for data in kept if "image/png" in data]
    return [named_after(png) for png in (opening, *pngs)]


@pytest.fixture(scope="module")
def page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page of the notebook, of whose pictures the last has no dark twin."""
    folder = tmp_path_factory.mktemp("documentation")
    source, site = folder / "notebooks", folder / "site"
    shutil.copytree(NOTEBOOKS / "pictures", source / "pictures")
    for name in ("conf.py", "site.css", f"{SHOWN}.ipynb"):
        shutil.copy(NOTEBOOKS / name, source)
    (source / "pictures" / "dark" / twins()[-1]).unlink()
    settings = ("-D", f"root_doc={SHOWN}", "-D", "exclude_patterns=pictures,reference")
    build = [sys.executable, "-m", "sphinx", "-q", *settings, source, site]
    subprocess.run(build, check=True, capture_output=True)
    with lab.browser(width=1280, height=900) as (opened, errors):
        asked: list[str] = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto((site / f"{SHOWN}.html").as_uri())
        yield opened
        assert errors == []
        assert {url.partition(":")[0] for url in asked} <= {"file", "data"}


SEEN = """() => [...document.querySelectorAll("article img")]
  .filter((each) => each.checkVisibility())
  .map((each) => ({
    name: each.getAttribute("src").split("/").pop(),
    words: each.alt,
    is_card: getComputedStyle(each).filter !== "none",
  }))"""


def seen(page: Any, *, chosen: str, screen: str, media: str = "screen") -> list[dict[str, Any]]:
    """The pictures that a reader sees who chose a theme, on such a screen."""
    page.evaluate("(theme) => localStorage.setItem('theme', theme)", chosen)
    page.emulate_media(media=media, color_scheme=screen)
    page.reload()
    return page.evaluate(SEEN)


@pytest.mark.parametrize("screen", ["light", "dark"])
@pytest.mark.parametrize("chosen", ["auto", "light", "dark"])
def test_a_picture_is_that_of_the_theme(page: Any, chosen: str, screen: str) -> None:
    light = seen(page, chosen="light", screen="light")
    found = seen(page, chosen=chosen, screen=screen)
    if (screen if chosen == "auto" else chosen) == "light":
        assert found == light
        assert not any(each["is_card"] for each in found)
    else:
        *others, without = twins()
        assert [each["name"] for each in found] == [*others, light[-1]["name"]]
        assert without != light[-1]["name"]
        assert [each["is_card"] for each in found] == [False] * len(others) + [True]
        assert [each["words"] for each in found] == [each["words"] for each in light]


def test_on_paper_pictures_are_those_of_the_light_theme(page: Any) -> None:
    light = seen(page, chosen="light", screen="light")
    assert seen(page, chosen="dark", screen="dark", media="print") == light
    assert seen(page, chosen="auto", screen="dark", media="print") == light


def test_what_comes_late_moves_nothing(page: Any) -> None:
    seen(page, chosen="dark", screen="dark")
    last = page.locator(".only-dark img").last
    assert last.get_attribute("loading") == "lazy"
    before = page.evaluate("document.documentElement.scrollHeight")
    last.scroll_into_view_if_needed()
    last.evaluate("(each) => each.decode()")
    after = page.evaluate("document.documentElement.scrollHeight")
    assert abs(after - before) <= 2  # a height with a part of a pixel is rounded either way


EMPTY = """() => [...document.querySelectorAll("article a:has(img)")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !each.querySelector("img").checkVisibility()).length"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_have_words_and_no_link_is_empty(page: Any, theme: str) -> None:
    for each in seen(page, chosen=theme, screen="light"):
        assert " " in each["words"]
        assert ".png" not in each["words"]
    assert page.evaluate(EMPTY) == 0
