import numpy as np
import pandas as pd
import pytest
from synthetic_runs import bilinear_runs, chain_runs

from replay.bilinear import fit_bilinear
from replay.depth import depth_breadth, envelope
from replay.forecast import plan
from replay.grid_figures import (
    envelope_curves,
    heatmap,
    planner_card,
    regime_probabilities,
    slices,
    value_of_knowing,
)
from replay.style import THEMES, save


@pytest.fixture(scope="module")
def frame():
    return bilinear_runs(budget=64)


@pytest.fixture(scope="module")
def grid(frame):
    return depth_breadth(frame)


def texts(ax):
    return " ".join(text.get_text() for text in [*ax.texts, ax.title, ax._left_title])


@pytest.fixture(scope="module")
def predicted():
    runs, children = chain_runs(sizes=(1, 2, 4, 8), budget=8)
    return plan(runs, children=children, budget=16, tau=0.5, kernels=4, arms=(2,))


@pytest.mark.parametrize("theme", THEMES)
def test_every_figure_draws_in_every_theme(tmp_path, frame, grid, predicted, theme):
    made = [
        heatmap(grid, fit=fit_bilinear(frame), theme=theme),
        slices(grid, theme=theme),
        value_of_knowing(grid, theme=theme),
        regime_probabilities(fit_bilinear(frame), theme=theme),
        envelope_curves(envelope(frame), theme=theme),
        planner_card(predicted, theme=theme)[0],
    ]
    for number, ax in enumerate(made):
        path = save(ax, tmp_path / f"{number}.png")
        assert path.stat().st_size > 10_000


def test_the_heatmap_shows_each_cell_once_and_n(grid):
    ax = heatmap(grid)
    shown = ax.images[0].get_array().filled(np.nan)
    table = grid.cells
    rows = np.log2(table["children"]).astype(int)
    columns = np.log2(table["generations"]).astype(int)
    np.testing.assert_allclose(shown[rows, columns], table["value"])
    assert np.isfinite(shown).sum() == len(table)
    assert "10 runs per cell" in texts(ax).replace("\n", " ")


def test_rings_mark_the_splits_that_may_be_best(grid):
    ax = heatmap(grid)
    rings = ax.collections[0].get_offsets()
    likely = grid.cells[grid.cells["p_best"] >= 0.1]
    np.testing.assert_allclose(rings[:, 0], np.log2(likely["generations"]))
    np.testing.assert_allclose(rings[:, 1], np.log2(likely["children"]))


def test_slices_show_the_asked_budgets_with_intervals(grid):
    ax = slices(grid, budgets=[64, 16])
    assert len(ax.containers) == 2
    assert all(container.has_yerr for container in ax.containers)
    assert "C = 16" in texts(ax)
    with pytest.raises(ValueError, match=r"got \[48\]"):
        slices(grid, budgets=[48])


def test_a_task_must_be_named_where_there_are_several(frame):
    both = pd.concat([frame, frame.assign(task="other", run=frame["run"] + "-b")])
    grid = depth_breadth(both, resamples=10)
    with pytest.raises(ValueError, match=r"expected a task among \['toy', 'other'\]"):
        heatmap(grid)
    assert "other" in texts(heatmap(grid, task="other"))
    with pytest.raises(ValueError, match="got 'none'"):
        heatmap(grid, task="none")


def test_the_card_has_a_third_panel_only_with_tau():
    runs, children = chain_runs(sizes=(1, 4), budget=8, seeds=range(4))
    settings = {"children": children, "budget": 16, "kernels": 4, "arms": ()}
    assert len(planner_card(plan(runs, **settings))) == 2
    axes = planner_card(plan(runs, tau=0.5, **settings))
    assert len(axes) == 3
    assert "0.5" in texts(axes[2])


def test_regimes_add_up_to_one_at_every_budget(frame):
    ax = regime_probabilities(fit_bilinear(frame), budgets=(8, 64))
    drawn = np.array([line.get_ydata() for line in ax.lines])
    np.testing.assert_allclose(drawn.sum(axis=0), 1.0)


def test_what_knowing_is_worth_is_drawn_for_each_rule(grid):
    text = texts(value_of_knowing(grid)).replace("\n", " ")
    assert {"depth", "breadth", "square"} <= set(text.split())
    assert "10 runs" in text
