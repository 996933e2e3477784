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
            Mark(cells, (c - 0.5, r - 0.5, c + 0.5, r + 0.5), f"T = {r}, N = {c}: {HOSTILE}")
            for r in range(2)
            for c in range(3)
        ],
        curves=[Curve(lines, x, [0.2, 0.5, 0.9], ["0.2 at 1", "0.5 at 10", "0.9 at 100"], "ucb1 ")],
    )
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=90)
    packed = pack(figure, hits, dpi=90)
    height = figure.canvas.get_width_height()[1]

    def pixel(ax: Any, at: tuple[float, float]) -> tuple[float, float]:
        px, py = ax.transData.transform(at)
        return float(px), float(height - py)

    places = {"cell": pixel(cells, (2, 1)), "curve": pixel(lines, (10, 0.3))}
    return stream.getvalue(), packed, places


@pytest.fixture(scope="module")
def opened(chromium: str) -> Iterator[Any]:
    with lab.browser(width=900, height=500) as (page, _):
        yield page


@pytest.fixture
def page(opened: Any, tmp_path: Path) -> Any:
    png, hits, places = make()
    text = still(png, hits, "a heatmap and a curve")
    (tmp_path / "p.html").write_text(f"<!doctype html><body style='margin:0'>{text}")
    page = opened
    page.goto((tmp_path / "p.html").as_uri())
    page.wait_for_selector("[data-ready]")
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


def test_arrow_keys_go_from_mark_to_mark(page: Any) -> None:
    page.locator(".replay-picture").focus()
    for key, cell in (
        ("Right", "T = 0, N = 0"),
        ("Right", "T = 0, N = 1"),
        ("Down", "T = 1, N = 1"),
    ):
        page.keyboard.press(f"Arrow{key}")
        assert tooltip(page) == f"{cell}: {HOSTILE}"
