"""The picture that answers to the mouse, in a page without a kernel."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import lab

from replay.plots.hits import Curve, Hits, Mark, pack, still

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror='document.title=1'> </script>"


def make() -> tuple[bytes, bytes, dict[str, Any]]:
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), dpi=90)
    FigureCanvasAgg(figure)
    cells, lines = figure.subplots(1, 2)
    cells.imshow(np.arange(6).reshape(2, 3), aspect="auto")
    x = np.array([1.0, 10.0, 100.0])
    lines.plot(x, [0.2, 0.5, 0.9])
    lines.set_xscale("log")
    lines.set_xlabel("calls")
    lines.set_ylabel("fitness")
    hits = Hits(
        marks=[
            Mark(
                cells, (c - 0.5, r - 0.5, c + 0.5, r + 0.5), f"T = {r}, N = {c}: {HOSTILE}", (r, c)
            )
            for r in range(2)
            for c in range(3)
        ],
        curves=[Curve(lines, x, [0.2, 0.5, 0.9], ["0.2 at 1", "0.5 at 10", "0.9 at 100"], "ucb1 ")],
        zoom=[lines],
    )
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=90)
    packed = pack(figure, hits, serial=7, dpi=90)
    height = figure.canvas.get_width_height()[1]

    def pixel(ax: Any, at: tuple[float, float]) -> tuple[float, float]:
        px, py = ax.transData.transform(at)
        return float(px), float(height - py)

    places = {"cell": pixel(cells, (2, 1)), "curve": pixel(lines, (10, 0.3))}
    places |= {"left": pixel(lines, (2, 0.4)), "right": pixel(lines, (50, 0.4))}
    return stream.getvalue(), packed, places


@pytest.fixture(scope="module")
def opened(chromium: str) -> Iterator[Any]:
    with lab.browser(width=900, height=500) as (page, _):
        yield page


@pytest.fixture
def page(opened: Any, tmp_path: Path) -> Any:
    png, hits, places = make()
    spy = "<script>window.sent = [];</script>"
    text = still(png, hits, "a heatmap and a curve")
    text = text.replace("() => {});", "(m) => window.sent.push(m));")
    text = text.replace("const given", "window.given").replace("\nmount(", "\nwindow.it = mount(")
    (tmp_path / "p.html").write_text(f"<!doctype html><body style='margin:0'>{spy}{text}")
    page = opened
    page.goto((tmp_path / "p.html").as_uri())
    page.wait_for_selector("[data-serial='7']")
    page.places = places
    return page


def tooltip(page: Any) -> str:
    return str(page.locator(".replay-picture [role=status]").inner_text())


def test_hovering_a_cell_says_its_text_and_nothing_but_text(page: Any) -> None:
    page.mouse.move(*page.places["cell"])
    assert tooltip(page) == f"T = 1, N = 2: {HOSTILE}"
    assert page.title() == ""
    assert page.locator("img").first.get_attribute("aria-label") == "a heatmap and a curve"


def test_hovering_near_a_curve_says_its_value_there(page: Any) -> None:
    page.mouse.move(*page.places["curve"])
    assert tooltip(page) == "ucb1 0.5 at 10"


def test_clicks_drags_and_double_clicks_are_told(page: Any) -> None:
    page.mouse.click(*page.places["cell"])
    page.mouse.move(*page.places["left"])
    page.mouse.down()
    page.mouse.move(*page.places["right"], steps=4)
    page.mouse.up()
    page.mouse.dblclick(*page.places["right"])
    sent = page.evaluate("window.sent")
    assert [m["kind"] for m in sent] == ["click", "zoom", "reset"]
    assert sent[0]["mark"] == 5
    assert all(m["serial"] == 7 for m in sent)
    assert sent[1]["x"] == pytest.approx([2, 50], rel=0.05)


def test_a_click_on_what_is_still_being_drawn_is_taken_once_it_is(page: Any) -> None:
    page.evaluate("window.hits = given.hits; given.hits = null; it.update()")
    page.mouse.click(*page.places["cell"])
    told = "window.sent.filter((m) => m.kind === 'click').map((m) => m.mark)"
    assert page.evaluate(told) == []
    page.evaluate("given.hits = window.hits; it.update(); it.update()")
    assert page.evaluate(told) == [5]


def test_a_picture_that_is_replaced_under_a_resting_mouse_says_what_lies_there(page: Any) -> None:
    page.mouse.move(*page.places["cell"])
    page.evaluate("window.hits = given.hits; given.hits = null; it.update()")
    assert tooltip(page) == ""
    page.evaluate("given.hits = window.hits; it.update()")
    assert tooltip(page).startswith("T = 1, N = 2: ")
