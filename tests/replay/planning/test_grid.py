import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame, bilinear_runs

from replay.planning.grid import (
    MOST_CELLS,
    best_known,
    cells,
    one_sweep,
    sweeps,
    what_to_give,
)


def ragged():
    """N = 2: runs of 4 and 2 generations; N = 1: one run of 3."""
    deep = as_frame(np.array([[0.0, 0.1, 0.2, 0.3, 0.4]]), children=2, seeds=[0])
    short = as_frame(np.array([[0.0, 0.5, 0.6]]), children=2, seeds=[1])
    single = as_frame(np.array([[0.0, 0.7, 0.8, 0.9]]), children=1, seeds=[0])
    return pd.concat([deep, short, single], ignore_index=True)


def test_cells_hold_the_runs_that_are_deep_enough():
    grid = cells(one_sweep(ragged()))
    found = {
        (int(T), int(N)): (round(float(mean), 6), int(count))
        for T, N, mean, count in zip(
            grid.generations, grid.children, grid.means, grid.counts, strict=True
        )
    }
    assert found == {
        (1, 1): (0.7, 1),
        (2, 1): (0.8, 1),
        (3, 1): (0.9, 1),
        (1, 2): (0.3, 2),
        (2, 2): (0.4, 2),
        (4, 2): (0.4, 1),
    }


def test_rows_in_any_order_give_the_same_cells():
    frame = bilinear_runs(budget=16)
    shuffled = frame.sample(frac=1, random_state=3)
    straight, mixed = cells(one_sweep(frame)), cells(one_sweep(shuffled))
    np.testing.assert_allclose(mixed.means, straight.means)
    np.testing.assert_array_equal(mixed.calls, straight.calls)


def test_a_run_without_fitness_leaves_its_cell_without_value():
    frame = ragged()
    frame.loc[(frame["children"] == 2) & (frame["generation"] <= 1), "best_fitness"] = np.nan
    grid = cells(one_sweep(frame))
    of_two = grid.children == 2
    assert np.isnan(grid.means[of_two & (grid.generations == 1)]).all()
    assert np.isfinite(grid.means[of_two & (grid.generations > 1)]).all()


def test_resampling_moves_cells_of_one_n_together_and_others_apart():
    frame = bilinear_runs(budget=8, run_noise=0.5, generation_noise=0.0)
    grid = cells(one_sweep(frame))
    drawn = grid.resampled(4000, seed=1)
    correlation = np.corrcoef(drawn.T)
    same = grid.children[:, None] == grid.children
    assert correlation[same].min() > 0.9
    assert np.abs(correlation[~same]).max() < 0.1
    np.testing.assert_allclose(drawn.mean(axis=0), grid.means, atol=0.01)


def test_left_out_means_agree_with_the_plain_way():
    grid = cells(one_sweep(bilinear_runs(budget=8)))
    left = grid.left_out()
    for run in range(10):
        others = np.delete(grid.values, run, axis=0).mean(axis=0)
        np.testing.assert_allclose(left[run], others)


def test_one_sweep_per_task_and_model_in_order():
    first, second = bilinear_runs(budget=4), bilinear_runs(budget=4)
    second = second.assign(task="other", run=second["run"] + "-other")
    both = pd.concat([second, first])
    assert [sweep.task for sweep in sweeps(both)] == ["other", "toy"]
    with pytest.raises(ValueError, match="one task and one model"):
        one_sweep(both)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="children"), "no column"),
        (lambda frame: frame.iloc[:0], "empty"),
        (lambda frame: frame.assign(run=None), "missing"),
        (lambda frame: frame.assign(children=frame["generation"] + 1), "varies within run"),
    ],
)
def test_frames_that_make_no_sense_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        sweeps(change(bilinear_runs(budget=4)))


def test_initial_programs_alone_are_no_cells():
    frame = bilinear_runs(budget=4)
    with pytest.raises(ValueError, match="at least one generation"):
        cells(one_sweep(frame[frame["generation"] == 0]))


@pytest.mark.parametrize(("low", "high"), [(5.0, 5.01), (-4.8, -4.2), (0.002, 0.009), (0.3, 0.3)])
def test_one_is_not_taken_for_the_best_known_where_it_is_far_from_what_was_reached(low, high):
    if high > 1:
        assert best_known(None, low, high) == 1.0  # and `best` is then refused as no best at all
    else:
        with pytest.raises(ValueError, match="expected best="):
            best_known(None, low, high)
    assert best_known(7.0, low, high) == 7.0


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.4001), (0.0, 0.9), (0.9, 1.02)])
def test_one_is_the_best_known_where_runs_come_within_three_ranges(low, high):
    assert best_known(None, low, high) == 1.0
    if high < 0.5:
        with pytest.raises(ValueError, match="expected best="):
            best_known(None, low, high - 0.001)


def of_depths(depths, runs=2):
    """Runs of each N to its depth."""
    parts = [
        as_frame(np.tile(np.arange(T + 1.0), (runs, 1)), children=N, seeds=range(runs))
        for N, T in depths.items()
    ]
    return pd.concat(parts, ignore_index=True)


ENDS = {1: 24, 4: 6, 12: 2}


def test_equal_budgets_and_ends_of_other_n_have_cells_at_every_n_that_was_logged_so_far():
    grid = cells(one_sweep(of_depths(ENDS)), every=True)
    found = {(T, N) for T, N in zip(grid.generations, grid.children, strict=True)}
    assert (
        {N for T, N in found if T * N == 12} == {N for T, N in found if T * N == 24} == {1, 4, 12}
    )
    for T in {T for T, _ in found}:  # there is no hole in the map
        assert {N for at, N in found if at == T} == {N for N, end in ENDS.items() if end >= T}


def test_further_cells_leave_the_others_as_they_are():
    rng = np.random.default_rng(0)
    parts = [
        as_frame(np.sort(rng.uniform(size=(5, T + 1))), children=N, seeds=range(5))
        for N, T in ENDS.items()
    ]
    sweep = one_sweep(pd.concat(parts, ignore_index=True))
    few, every = cells(sweep), cells(sweep, every=True)
    drawn = [grid.resampled(20, 0) for grid in (few, every)]
    known = list(zip(every.generations, every.children, strict=True))
    at = [known.index(split) for split in zip(few.generations, few.children, strict=True)]
    assert len(at) < len(known)
    np.testing.assert_array_equal(every.values[:, at], few.values)
    np.testing.assert_array_equal(drawn[1][:, at], drawn[0])


def test_powers_of_two_need_no_further_cells_and_there_are_never_very_many():
    even = cells(one_sweep(of_depths({2**k: 64 >> k for k in range(7)})), every=True)
    assert {int(T).bit_count() for T in even.generations} == {1}
    odd = {N: 997 // N + N % 5 for N in range(1, 40)}
    grid = cells(one_sweep(of_depths(odd, runs=1)), every=True)
    assert len(grid.calls) <= MOST_CELLS
    for N, T in odd.items():
        assert grid.generations[grid.children == N].max() == T


def test_a_budget_that_n_does_not_divide_makes_no_cell():
    sweep = one_sweep(of_depths({1: 16, 3: 7}))
    few, every = cells(sweep), cells(sweep, every=True)
    assert few.generations[few.children == 3].tolist() == [1, 2, 4, 7]
    assert every.generations[every.children == 3].tolist() == [1, 2, 3, 4, 6, 7]
    assert {3, 6, 12} <= set(every.generations[every.children == 1].tolist())  # as 3 x 1, 2 and 4


def test_runs_that_are_all_alike_do_not_say_what_the_best_might_be():
    assert "best=3" in what_to_give(1.0, 2.0)
    words = what_to_give(0.0, 0.0)
    assert "none of their programs is better than another" in words
    assert "best=0" not in words
