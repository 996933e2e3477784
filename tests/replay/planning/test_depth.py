import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame, bilinear_runs

from replay.planning.depth import depth_breadth, envelope


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
    frame = bilinear_runs((-0.5, -1e-6, 0, 0), budget=4, run_noise=0, generation_noise=0)
    cells = depth_breadth(frame).cells
    assert sorted(cells.loc[cells["calls"] == 4, "p_best"]) == [0, 0, 1]  # hardly is not equal


def test_a_clear_best_split_is_sure_and_worth_its_gain():
    frame = bilinear_runs((-0.1, -0.5, -0.05, 0), budget=16, run_noise=0.02)
    grid = depth_breadth(frame)
    row = grid.best.set_index("calls").loc[16]
    assert (row["generations"], row["children"]) == (16, 1)
    assert row["p_best"] > 0.99
    assert row["held_out_low"] < row["held_out"] < row["held_out_high"]
    assert (row["low"], row["high"]) == (row["held_out_low"], row["held_out_high"])
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


def test_missing_fitness_is_counted_and_not_averaged():
    frame = bilinear_runs(budget=8)
    nothing = (frame["run"] == "toy-chain-1-0") & (frame["generation"] <= 1)
    frame.loc[nothing, "best_fitness"] = np.nan
    cells = depth_breadth(frame).cells.set_index(["generations", "children"])
    assert cells.loc[(1, 1), "n_without"] == 1
    assert np.isnan(cells.loc[(1, 1), ["value", "low", "high"]].astype(float)).all()
    assert np.isfinite(cells.loc[(2, 1), "value"])


def test_four_runs_a_cell_have_no_interval_and_five_do():
    for seeds, known in ((range(4), 0), (range(5), 6)):
        grid = depth_breadth(bilinear_runs(budget=4, seeds=seeds))
        assert grid.cells["low"].notna().sum() == known
        assert grid.cells["p_best"].notna().any() == bool(known)


def of_sizes(sizes, depth, seeds=range(6), rng=None):
    """Runs of any N, each `depth` generations deep."""
    rng = rng or np.random.default_rng(0)
    parts = []
    for N in sizes:
        steps = rng.exponential(0.1, (len(seeds), depth)).cumsum(axis=1) * np.sqrt(N)
        best = np.column_stack([np.zeros(len(seeds)), 1 - np.exp(-steps)])
        parts.append(as_frame(best, children=N, seeds=seeds))
    return pd.concat(parts, ignore_index=True)


def test_splits_need_no_powers_of_two():
    grid = depth_breadth(of_sizes((5, 10, 20), 8))
    forty = grid.best.set_index("calls").loc[40]
    assert forty["splits"] == 3
    rules = grid.knowing[grid.knowing["calls"] == 40]
    assert rules[["rule", "generations", "children"]].to_numpy().tolist() == [["square", 8, 5]]
    assert grid.knowing["gain"].notna().all()


def test_of_two_splits_as_near_to_the_middle_the_deeper_is_the_rules():
    knowing = depth_breadth(bilinear_runs(budget=8), resamples=5).knowing
    square = knowing[knowing["rule"] == "square"].set_index("calls")
    assert square.loc[8, ["generations", "children"]].tolist() == [4, 2]
    assert square.loc[2, ["generations", "children"]].tolist() == [2, 1]


def test_a_run_with_nothing_is_the_lowest_and_never_averaged():
    """The lucky three of ten runs do not make their split the best."""
    rare, steady = of_sizes([2], 2, range(10)), of_sizes([1], 4, range(10))
    rare["best_fitness"] = np.where(rare["seed"] < 3, 0.99, np.nan)
    grid = depth_breadth(pd.concat([rare, steady], ignore_index=True))
    cell = grid.cells.set_index(["generations", "children"]).loc[(2, 2)]
    assert cell["n_without"] == 7
    assert np.isnan(cell["value"])
    assert cell["median"] == -np.inf
    best = grid.best.set_index("calls").loc[4]
    assert (best["statistic"], best["generations"], best["children"]) == ("median", 4, 1)
    assert best["p_best"] > 0.9
    assert best["held_out"] > 0
    front = envelope(pd.concat([rare, steady])).points
    assert set(front["statistic"]) == {"median"}
    assert (front["maximum"] < 0.99).all()


def test_the_envelope_rises_and_says_what_it_was_chosen_from():
    points = envelope(bilinear_runs(budget=64)).points
    assert points["maximum"].is_monotonic_increasing
    assert points["cost"].is_monotonic_increasing
    assert points["cost"].is_unique
    assert points["splits"].is_monotonic_increasing
    assert points["splits"].iloc[-1] <= 7 * 8 // 2
    assert (points["value"] <= points["maximum"] + 1e-12).all()


def test_tokens_are_summed_over_generations():
    frame = bilinear_runs(budget=32)
    calls, tokens = envelope(frame).points, envelope(frame, axis="tokens").points
    np.testing.assert_allclose(tokens["cost"], 150 * calls["cost"])
    np.testing.assert_allclose(tokens["maximum"], calls["maximum"])


def test_unknown_costs_are_refused_with_the_known_axes():
    with pytest.raises(ValueError, match=r"knows its flops.*\['calls', 'tokens', 'seconds'\]"):
        envelope(bilinear_runs(budget=8), axis="flops")
    with pytest.raises(ValueError, match="'calls', 'tokens', 'flops', 'dollars', 'seconds'"):
        envelope(bilinear_runs(budget=8), axis="euros")


def test_models_on_one_curve_collapse_and_others_do_not():
    def of(name, level, seed):
        rng = np.random.default_rng(seed)
        frame = bilinear_runs((level, -0.2, -0.2, 0), run_noise=0.02, rng=rng)
        return frame.assign(model=name, run=frame["run"] + name)

    alike = pd.concat([of("small", -0.5, 1), of("large", -0.5, 2)])
    apart = pd.concat([of("small", -0.2, 1), of("large", -1.5, 2)])
    assert envelope(alike).collapse["r2"].item() > 0.97
    assert envelope(apart).collapse["r2"].item() < 0.8
    assert envelope(apart).collapse["models"].item() == 2


def test_an_initial_program_of_unknown_cost_leaves_the_cost_of_its_run_known():
    frame = bilinear_runs(budget=16)
    known = frame.assign(tokens=100.0 * frame["children"] * (frame["generation"] > 0))
    unknown = known.assign(tokens=known["tokens"].where(known["generation"] > 0))
    assert unknown["tokens"].isna().any()
    points = [envelope(each, axis="tokens").points for each in (known, unknown)]
    pd.testing.assert_frame_equal(*points)
