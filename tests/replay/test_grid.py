import numpy as np
import pandas as pd
import pytest
from synthetic_runs import bilinear_runs

from replay.grid import RULES, depth_breadth, fixed_split


def test_every_cell_and_budget_is_there():
    grid = depth_breadth(bilinear_runs(budget=64))
    assert len(grid.cells) == 7 * 8 // 2
    assert (grid.cells["n"] == 10).all()
    assert (grid.cells["calls"] == grid.cells["generations"] * grid.cells["children"]).all()
    assert grid.best["calls"].tolist() == [2, 4, 8, 16, 32, 64]
    assert grid.best["splits"].tolist() == [2, 3, 4, 5, 6, 7]
    assert (grid.cells["low"] <= grid.cells["value"]).all()
    assert (grid.cells["value"] <= grid.cells["high"]).all()


def test_probabilities_of_being_best_add_up_per_budget():
    cells = depth_breadth(bilinear_runs(budget=32)).cells
    known = cells[cells["p_best"].notna()]
    np.testing.assert_allclose(known.groupby("calls")["p_best"].sum(), 1.0)


def test_ties_share_the_probability():
    frame = bilinear_runs((-0.5, 0, 0, 0), budget=4, run_noise=0, generation_noise=0)
    cells = depth_breadth(frame).cells
    np.testing.assert_allclose(cells.loc[cells["calls"] == 4, "p_best"], 1 / 3)


def test_a_clear_best_split_is_sure_and_worth_its_gain():
    frame = bilinear_runs((-0.1, -0.5, -0.05, 0), budget=16, run_noise=0.02)
    grid = depth_breadth(frame)
    row = grid.best.set_index("calls").loc[16]
    assert (row["generations"], row["children"]) == (16, 1)
    assert row["p_best"] > 0.99
    gains = grid.knowing[grid.knowing["calls"] == 16].set_index("rule")["gain"]
    assert gains["depth"] == 0
    assert gains["breadth"] > gains["square"] > 0


def test_choosing_among_equal_splits_is_worth_nothing():
    """The largest of equal noisy means flatters; judged on runs left out, it does not."""
    maxima, held = [], []
    for draw in range(30):
        frame = bilinear_runs((-0.5, 0, 0, 0), budget=64, rng=np.random.default_rng(draw))
        row = depth_breadth(frame, resamples=10).best.set_index("calls").loc[64]
        maxima.append(row["value"])
        held.append(row["held_out"])
    truth = 1 - np.exp(-0.5 + (0.3**2 + 0.1**2) / 2)
    error = np.std(held, ddof=1) / np.sqrt(len(held))
    assert np.mean(maxima) > truth + 0.04
    assert abs(np.mean(held) - truth) < 3 * error


def test_tasks_are_kept_apart_and_equal_seeds_give_equal_tables():
    one = bilinear_runs(budget=8)
    other = bilinear_runs(budget=8, rng=np.random.default_rng(5))
    other = other.assign(task="other", run=other["run"] + "-other")
    both = depth_breadth(pd.concat([one, other]), seed=3)
    pd.testing.assert_frame_equal(
        both.cells[both.cells["task"] == "toy"], depth_breadth(one, seed=3).cells
    )
    assert "toy, chain" in str(both)
    assert "other, chain" in str(both)


def test_missing_fitness_is_counted_and_not_averaged():
    frame = bilinear_runs(budget=8)
    nothing = (frame["run"] == "toy-chain-1-0") & (frame["generation"] <= 1)
    frame.loc[nothing, "best_fitness"] = np.nan
    cells = depth_breadth(frame).cells.set_index(["generations", "children"])
    assert cells.loc[(1, 1), "n_without"] == 1
    assert np.isnan(cells.loc[(1, 1), ["value", "low", "high"]].astype(float)).all()
    assert np.isfinite(cells.loc[(2, 1), "value"])


def test_one_run_per_cell_has_values_but_no_intervals():
    grid = depth_breadth(bilinear_runs(budget=8, seeds=[4]))
    assert grid.cells["value"].notna().all()
    assert grid.cells["low"].isna().all()
    assert grid.best["held_out"].isna().all()
    assert (grid.best["n"] == 0).all()


@pytest.mark.parametrize("calls", [1, 2, 8, 64, 512])
def test_fixed_splits_spend_the_budget(calls):
    for rule in RULES:
        T, N = fixed_split(rule, calls)
        assert calls == T * N
    T, N = fixed_split("square", calls)
    assert T in {N, 2 * N}


def test_fixed_splits_refuse_what_they_cannot_do():
    with pytest.raises(ValueError, match="power of two"):
        fixed_split("depth", 12)
    with pytest.raises(ValueError, match="'depth', 'breadth', 'square'"):
        fixed_split("deep", 16)
