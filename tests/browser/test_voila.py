"""A notebook that Voila serves as a small app: its explorer answers."""

from __future__ import annotations

import pytest
from browser import lab

CELLS = (
    "from synthetic_runs import chain_runs\nimport replay",
    "frame, children = chain_runs(budget=64)\n"
    "replay.explorers.explore_budget(frame, child_table=children)",
)


@pytest.mark.slow
@pytest.mark.thorough
def test_an_explorer_answers_in_voila(notebooks, screenshots):
    pytest.importorskip("voila", reason="needs the extra [voila]")
    url, folder, log = notebooks
    lab.write_notebook(folder / "app.ipynb", CELLS)
    with lab.browser() as (page, _):
        page.goto(f"{url}voila/render/app.ipynb")
        live = page.locator(".jupyter-widgets .replay-view svg")  # not the one that is stored
        live.first.wait_for()
        assert "T = 4, N = 8" in lab.click(page, "T = 4, N = 8")
        lab.sees(page, "T = 4 generations of N = 8 children (C = 32 calls)")
        lab.press(page, "generations T", "ArrowRight")
        lab.sees(page, "T = 8 generations of N = 4 children (C = 32 calls)")
        assert lab.faults(page) == []
        assert lab.small(page) == []
        page.screenshot(path=screenshots / "voila.png")
    assert lab.tracebacks(log) == []
