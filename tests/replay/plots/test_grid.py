"""Figures of the depth-breadth grid and of what is planned with it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PatchCollection
from plotted import (
    marks,
    words,
)
from synthetic_runs import as_frame, chain_runs

import replay
from replay import plots
from replay.planning.bilinear import fit_bilinear
from replay.plots import charts
from replay.plots.grid import _quarters


def test_odds_are_those_of_the_kernels_of_resampled_runs():
    kernel = replay.fit_kernel(chain_runs(budget=16)[1])
    [line] = [each for each in plots.odds(kernel, draws=5).lines if each.get_linewidth() > 1]
    seen = kernel.seen & np.isfinite(kernel.fitness)
    seen[0] = False
    shares = [each.better[seen] for each in kernel.resampled(5)]
    np.testing.assert_allclose(line.get_ydata(), 100 * np.median(shares, axis=0))
    np.testing.assert_allclose(line.get_xdata(), kernel.fitness[seen])


def test_the_heatmap_shows_each_cell_once_and_frames_what_may_be_best(grid):
    ax = plots.heatmap(grid)
    cells, _ = [each for each in ax.collections if isinstance(each, PatchCollection)]
    boxes = [path.get_extents() for path in cells.get_paths()]
    at = list(zip(np.log2(grid.cells["generations"]), np.log2(grid.cells["children"]), strict=True))
    assert sorted(((b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2) for b in boxes) == sorted(at)
    [frames] = marks(charts.heatmap(grid), "spans")
    assert len(frames.x0) == (grid.cells["p_best"] >= 0.1).sum()
    drawn = {
        text.get_position(): text.get_text() for text in ax.texts if type(text).__name__ == "Text"
    }
    for place, value in zip(at, grid.cells["value"], strict=True):
        assert float(drawn[place]) == pytest.approx(value, abs=0.006)
    assert "n = 10 runs per cell" in words(ax)


def test_a_map_of_other_depths_than_powers_of_two_says_which_it_has(grid):
    runs = pd.concat(
        as_frame(np.tile(np.arange(T + 1) / 30, (6, 1)), children=N, seeds=range(6))
        for N, T in ((1, 24), (4, 6), (12, 2))
    )
    said = "Columns: T that are powers of two, ends of runs, or make equal budgets."
    design = replay.depth_breadth(runs, resamples=10)
    assert said in words(plots.heatmap(design))
    assert "is a diagonal" not in words(plots.heatmap(design))
    assert said not in words(plots.heatmap(grid))
    assert "is a diagonal" in words(plots.heatmap(grid))
    assert [len(each.y_low) for each in marks(charts.slices(design, budgets=[12]), "points")] == [3]
    shown = words(plots.slices(design))
    assert [C for C in (4, 8, 12, 16, 24) if f"C = {C}" in shown] == [4, 24]
    for budget in (1, 7, 512):
        powers = [2**k for k in range(budget.bit_length())]
        assert _quarters(powers) == powers[::-2][:4][::-1]
    assert _quarters([]) == []


def test_slices_show_the_asked_budgets_with_intervals(grid):
    chart = charts.slices(grid, budgets=[64, 16])
    assert [len(each.y_low) for each in marks(chart, "points")] == [5, 7]
    assert "C = 16" in words(chart.draw())
    with pytest.raises(ValueError, match=r"got \[48\]"):
        plots.slices(grid, budgets=[48])


def test_a_task_must_be_named_where_there_are_several(runs):
    both = pd.concat([runs, runs.assign(task="other", run=runs["run"] + "-b")])
    grid = replay.depth_breadth(both, resamples=10)
    with pytest.raises(ValueError, match=r"expected a task among \['toy', 'other'\]"):
        plots.heatmap(grid)
    assert "other" in words(plots.heatmap(grid, task="other"))
    with pytest.raises(ValueError, match="got 'none'"):
        plots.heatmap(grid, task="none")


def test_the_card_has_a_third_panel_only_with_tau_and_one_where_nothing_is_forecast(planned):
    forecast = dataclasses.replace(planned, inside=True)
    assert len(plots.planner_card(dataclasses.replace(forecast, tau=None))) == 2
    assert "0.5" in words(plots.planner_card(forecast)[2])
    [alone] = plots.planner_card(planned)
    assert "No forecast" in words(alone)


def test_both_panels_of_a_card_state_one_probability_of_tau() -> None:
    frame, children = chain_runs(sizes=(1, 2, 4, 8), budget=8, seeds=range(6))
    plan = replay.plan(frame, children=children, budget=8, tau=0.5, kernels=4, arms=())
    assert plan.inside
    curve, way = (charts.planner_card(plan).panels[k].marks[0] for k in (1, 2))
    at_tau = curve.y[np.searchsorted(curve.x, plan.tau)]
    assert at_tau == pytest.approx(plan.p_tau, abs=1e-9)
    assert way.y[-1] == plan.p_tau
    assert (plan.outcomes >= plan.tau).mean() != pytest.approx(plan.p_tau, abs=1e-9)


def test_a_card_of_one_run_has_no_margins() -> None:
    frame, children = chain_runs(sizes=(1,), budget=16, seeds=[3])
    plan = replay.plan(frame, children=children, budget=16, arms=(), kernels=4)
    drawn = words(plots.planner_card(plan)[0])
    assert "No bars: one run shows no margin" in drawn
    assert "Arrows" not in drawn


def test_regimes_add_up_to_one_at_every_budget(runs):
    chart = charts.regime_probabilities(fit_bilinear(runs), budgets=(8, 64))
    drawn = np.array([line.y for line in marks(chart, "line")])
    np.testing.assert_allclose(drawn.sum(axis=0), 1.0)
    ax = chart.draw()
    assert "draws of the coefficients from the multivariate t distribution" in words(ax)
    assert "resample" not in words(ax)


def test_slices_show_the_largest_budget_and_smaller_ones_each_a_quarter_of_the_next(grid):
    known = set(grid.cells.loc[grid.cells["p_best"].notna(), "calls"])
    wanted = [C for C in (max(known) // 4**k for k in range(4)) if C in known]
    assert len(known) > len(wanted) > 1
    ax, stated = plots.slices(grid), plots.slices(grid, budgets=wanted)
    assert words(ax) == words(stated)
    assert len(ax.lines) == len(stated.lines) < len(plots.slices(grid, budgets=known).lines)


def test_runs_of_one_size_are_told_that_knowing_a_split_takes_two():
    grid = replay.depth_breadth(chain_runs(sizes=(4,), budget=16)[0], resamples=20)
    with pytest.raises(ValueError, match="split in two ways, got none; make runs of another"):
        plots.value_of_knowing(grid, task=grid.cells["task"].iloc[0])


def test_an_envelope_without_a_curve_for_all_cells_does_not_name_its_fit():
    rising = np.linspace(0.1, 0.8, 9) * np.ones((6, 1)) + 0.02 * np.arange(6)[:, None]
    about = words(
        plots.envelope_curves(replay.envelope(as_frame(rising, children=2, seeds=range(6))))
    )
    assert "One curve for all cells: R² = " in about
    flat = as_frame(np.full((6, 9), 0.2), children=2, seeds=range(6))
    with pytest.warns(UserWarning, match="no collapse"):
        found = replay.envelope(flat)
    about = words(plots.envelope_curves(found))
    assert "n = 6 runs." in about
    assert "curve" not in about
    assert "nan" not in about
