"""Frames of runs: which of them count, how they are told apart, and their matrices."""

import warnings

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame

from replay.logs.frames import (
    ReplayWarning,
    begun_runs,
    bounds_of,
    cost_matrices,
    counted_once,
    distinct_runs,
    fitness_matrix,
    independent_runs,
    is_stand_in,
    one_family,
    require_greedy,
    run_lengths,
    split_repeats,
)


def runs(**depths):
    """Runs by name, each of so many generations."""
    parts = []
    for k, (name, depth) in enumerate(depths.items()):
        best = np.linspace(0.1, 0.1 * (k + 2), depth + 1)[None]
        parts.append(as_frame(best, children=2, seeds=[k]).assign(run=name))
    return pd.concat(parts, ignore_index=True)


def repeating(frame, **of):
    return frame.assign(repeat_of=[of.get(name, "") for name in frame["run"]])


def names(frame):
    return [*frame["run"].unique()]


@pytest.mark.parametrize(
    ("of", "kept"),
    [
        ({}, ["a", "b", "c"]),
        ({"b": "a"}, ["a", "c"]),
        ({"b": "a", "c": "a"}, ["a"]),
        ({"b": "x", "c": "x"}, ["a", "c"]),  # of two that repeat an absent run the longer
        ({"a": "x"}, ["a", "b", "c"]),  # what it repeats is not here
        ({"a": "x", "b": "y"}, ["a", "b", "c"]),
    ],
)
def test_a_run_counts_once_whatever_repeats_it(of, kept):
    frame = repeating(runs(a=2, b=3, c=4), **of)
    found, left = split_repeats(frame)
    assert names(found) == kept
    assert left == 3 - len(kept)
    if left:
        with pytest.warns(ReplayWarning, match=f"{left} of 3 runs repeat(s another| others) here"):
            assert names(counted_once(frame)) == kept
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert counted_once(frame).equals(frame)


def test_of_repeats_that_are_as_long_the_first_stays():
    found, _ = split_repeats(repeating(runs(a=3, b=3), a="x", b="x"))
    assert names(found) == ["a"]


def test_a_run_that_has_just_begun_is_none_beside_others():
    frame = runs(a=0, b=1, c=2)
    with pytest.warns(ReplayWarning, match="1 of 3 runs have no complete generation"):
        assert names(begun_runs(frame)) == ["b", "c"]
    alone = runs(a=0, b=0)
    assert begun_runs(alone) is alone
    whole = runs(a=1)
    assert begun_runs(whole) is whole


def test_forks_and_rescored_logs_are_left_out_beside_others_and_forks_alone_are_kept():
    frame = runs(a=2, b=2, c=2).assign(forked_from="", rescored=False)
    forks = frame.assign(forked_from=frame["run"].map({"a": "", "b": "h1", "c": "h1"}))
    with pytest.warns(ReplayWarning, match="2 of 3 runs are forks"):
        assert names(independent_runs(forks)) == ["a"]
    all_forks = forks[forks["run"] != "a"]
    with pytest.warns(ReplayWarning, match="all 2 runs are forks of 1 state: intervals hold given"):
        assert names(independent_runs(all_forks)) == ["b", "c"]
    again = frame.assign(rescored=frame["run"] == "c")
    with pytest.warns(ReplayWarning, match="1 of 3 runs are rescored logs"):
        assert names(independent_runs(again)) == ["a", "b"]
    with pytest.warns(ReplayWarning, match="1 of 3 runs are rescored logs"):
        assert len(fitness_matrix(again)) == 2
    assert len(fitness_matrix(again, repeats=True)) == 3
    only = again[again["rescored"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert names(independent_runs(only)) == ["c"]
        assert names(independent_runs(frame)) == ["a", "b", "c"]


def test_two_logs_of_one_name_are_two_runs_and_one_log_loaded_twice_is_one(tmp_path):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.touch()
    one, two = (runs(x=1).assign(source=str(path), header=f"h{k}") for k, path in enumerate(paths))
    both = distinct_runs(pd.concat([one, two], ignore_index=True))
    assert len(names(both)) == 2
    link = tmp_path / "link.jsonl"
    link.symlink_to(paths[0])
    again = runs(y=1).assign(source=str(link), header="h0")
    same = distinct_runs(pd.concat([one, again], ignore_index=True))
    assert names(same) == ["x"]
    assert len(same) == 2
    plain = runs(x=1)
    assert distinct_runs(plain) is plain


def test_a_matrix_has_a_row_for_each_run_and_ends_where_the_run_does():
    frame = runs(b=1, a=3)
    matrix = fitness_matrix(frame)
    assert matrix.shape == (2, 4)
    assert np.isnan(matrix[0, 2:]).all()
    assert matrix[1] == pytest.approx(np.linspace(0.1, 0.3, 4))
    shuffled = frame.sample(frac=1, random_state=1).sort_values("run", key=lambda s: s != "b")
    np.testing.assert_array_equal(fitness_matrix(shuffled), matrix)
    assert run_lengths(frame).tolist() == [1, 3]
    costs = cost_matrices(frame.drop(columns="dollars"))
    assert [*costs] == ["calls", "tokens", "flops", "seconds"]
    assert costs["calls"][1].tolist() == [0, 2, 2, 2]
    assert fitness_matrix(frame.iloc[:0]).shape == (0, 0)


def test_repeats_have_rows_of_their_own_where_they_are_asked_for():
    frame = repeating(runs(a=1, b=1), b="a")
    assert fitness_matrix(frame, repeats=True).shape == (2, 2)
    with pytest.warns(ReplayWarning, match="repeats another"):
        assert fitness_matrix(frame).shape == (1, 2)


def test_bounds_are_those_that_no_run_leaves():
    frame = runs(a=2, b=2)  # both begin at 0.1
    assert bounds_of(frame) == (0.1, np.inf)
    unit = frame.assign(unit_scale=True)
    assert bounds_of(unit) == (0.1, 1.0)
    assert bounds_of(unit.assign(unit_scale=[True] * 5 + [False])) == (0.1, np.inf)
    beyond = unit.assign(best_fitness=unit["best_fitness"] + 1)
    assert bounds_of(beyond) == (1.1, np.inf)
    below = unit.copy()
    below.loc[below.index[-1], "best_fitness"] = 0.05
    assert bounds_of(below) == (-np.inf, 1.0)
    apart = unit.copy()
    apart.loc[0, "best_fitness"] = 0.2  # one begins elsewhere
    assert bounds_of(apart) == (0.0, 1.0)
    assert bounds_of(unit[unit["generation"] > 0]) == (0.0, 1.0)  # nobody says where
    failed = frame.assign(best_fitness=frame["best_fitness"].where(frame["generation"] > 0))
    assert bounds_of(failed) == (-np.inf, np.inf)


def test_an_analysis_of_one_family_refuses_two():
    frame = runs(a=1, b=1)
    one_family(frame, "a plan")
    with pytest.raises(ValueError, match="a plan on runs of one model, got chain, other; select"):
        one_family(frame.assign(model=["chain"] * 2 + ["other"] * 2), "a plan")
    require_greedy(frame.assign(search="greedy"), "a grid")
    with pytest.raises(ValueError, match=r"a grid needs runs .* these are of islands, tree"):
        require_greedy(frame.assign(search=["greedy", "tree", "islands", "tree"]), "a grid")


def test_the_offline_models_are_no_llms():
    assert is_stand_in("offline")
    assert is_stand_in("offline-2")
    assert not is_stand_in("qwen2.5-coder-1.5b")
