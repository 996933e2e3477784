"""What every explorer draws for paper, in both themes: can it be read? Pages: tests/browser."""

import numpy as np
import pytest
from looks import complaints
from samples import write_sample
from synthetic_runs import chain_runs, sweep_runs
from tiers import thorough_after

from replay import explorers
from replay.plots.arranging import arrange

FIGURES = ("main effects", "configurations", "depth and breadth", "cost and fitness")
EVERY = ("allocation", "many policies", "run", "live", "selection", "nothing", *FIGURES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    frame, _ = chain_runs(budget=128, sizes=(1, 2, 4, 8, 16, 32, 64, 128))
    sweep = sweep_runs()
    folder = tmp_path_factory.mktemp("logs")
    log = write_sample(folder / "a.jsonl", generations=6, children=4, seed=3)
    rewards = np.clip(np.random.default_rng(1).normal([[0.2], [0.8], [0.7]], 0.1, (3, 40)), 0, 1)
    found = {
        "allocation": explorers.explore_allocation(frame),
        "many policies": explorers.explore_allocation(frame),
        "run": explorers.browse(log),
        "live": explorers.follow(log, every=60),
        "selection": explorers.explore_selection(rewards),
        **{name: explorers.explore_sweep(sweep) for name in FIGURES},
        "nothing": explorers.explore_budget(frame.head(0)),
    }
    found["many policies"].choose(policies=("ucb1", "thompson", "exp3ix", "successive_halving"))
    for name in FIGURES:
        found[name].choose(figure=name)
    for each in found.values():
        each.settle()
    yield found
    for each in found.values():
        each.close()


@pytest.mark.parametrize(("theme", "gap"), [("light", 4), ("dark", 0)])
def test_budgets_on_paper_can_be_read(theme, gap):
    tables = chain_runs(budget=16, sizes=(1, 2, 4, 8, 16))
    frame, children = (table[table["children"] != gap] for table in tables)
    made = explorers.explore_budget(frame, child_table=children)
    figure = made.figure(theme)
    arrange(figure)
    assert not complaints(figure)
    made.close()


@pytest.mark.parametrize("theme", thorough_after(1, ["dark", "light"]))
@pytest.mark.parametrize("name", EVERY)
def test_explorers_on_paper_can_be_read(made, name, theme):
    figure = made[name].figure(theme)
    arrange(figure)
    assert not complaints(figure)
