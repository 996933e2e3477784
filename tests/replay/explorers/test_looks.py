"""What every explorer draws, in both themes and at the widths of pages: can it be read?"""

import numpy as np
import pytest
from looks import complaints
from samples import write_sample
from synthetic_runs import chain_runs, sweep_runs

from replay import explorers
from replay.plots.style import arrange

DRAWN = ("run", "live", "allocation", "many policies", "selection", "nothing")
"""Explorers that the browser draws; tests/browser looks at them."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    frame, _ = chain_runs(budget=128, sizes=(1, 2, 4, 8, 16, 32, 64, 128))
    sweep = sweep_runs()
    folder = tmp_path_factory.mktemp("logs")
    log = write_sample(folder / "a.jsonl", generations=6, children=4, seed=3)
    figures = ("configurations", "depth and breadth", "cost and fitness")
    rewards = np.clip(np.random.default_rng(1).normal([[0.2], [0.8], [0.7]], 0.1, (3, 40)), 0, 1)
    found = {
        "allocation": explorers.explore_allocation(frame),
        "many policies": explorers.explore_allocation(frame),
        "run": explorers.browse(log),
        "live": explorers.follow(log, every=60),
        "selection": explorers.explore_selection(rewards),
        "main effects": explorers.explore_sweep(sweep),
        **{name: explorers.explore_sweep(sweep) for name in figures},
        "nothing": explorers.explore_budget(frame.head(0)),
    }
    found["many policies"].choose(policies=("ucb1", "thompson", "exp3ix", "successive_halving"))
    for name in figures:
        found[name].choose(figure=name)
    for each in found.values():
        each.settle()
    yield found
    for each in found.values():
        each.close()


@pytest.mark.parametrize(
    ("dark", "width"), [(False, 640), (True, 810), (True, 1100), (False, 1400)]
)
def test_all_that_is_written_can_be_read(made, dark, width):
    found = {}
    for name, each in made.items():
        if name in DRAWN:
            continue
        each._on_message({"kind": "mounted", "dark": dark, "ratio": 1.0, "width": width})
        each.settle()
        if wrong := complaints(each._canvas.picture.figure):
            found[name] = wrong
    assert not found


@pytest.mark.parametrize(("theme", "gap"), [("light", 4), ("dark", 0)])
def test_budgets_on_paper_can_be_read(theme, gap):
    tables = chain_runs(budget=16, sizes=(1, 2, 4, 8, 16))
    frame, children = (table[table["children"] != gap] for table in tables)
    made = explorers.explore_budget(frame, child_table=children)
    figure = made.figure(theme)
    arrange(figure)
    assert not complaints(figure)
    made.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", DRAWN)
def test_what_the_browser_draws_can_be_read_on_paper(made, name, theme):
    figure = made[name].figure(theme)
    arrange(figure)
    assert not complaints(figure)


def test_everything_drawn_can_be_pointed_at(made):
    for name, each in made.items():
        if name in DRAWN:
            continue
        each._on_message({"kind": "mounted", "dark": False, "ratio": 1.0, "width": 810})
        each.settle()
        figure = each._canvas.picture.figure
        assert each._hits.marks or each._hits.curves, name
        for mark in each._hits.marks:
            (x0, y0), (x1, y1) = mark.axes.transData.transform([mark.box[:2], mark.box[2:]])
            assert mark.text
            assert figure.bbox.padded(1).overlaps(mark.axes.bbox)
            if np.isfinite([x0, y0, x1, y1]).all():
                assert -1 <= min(x0, x1) <= max(x0, x1) <= figure.bbox.width + 1, (name, mark.text)
