"""Configurations over several tasks: tables, verdicts and the nulls behind them."""

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame

import replay
from replay.claims.tasks import _holm_shares
from replay.statistics.strata import (
    Stratum,
    compare_strata,
    further_tasks,
    interquartile_mean,
    stratified,
)


def tasks(effect, *, runs=5, count=6, seed=0, paired=False, names=("a", "b")):
    """Runs of some configurations on tasks of scales of their own; the first is better."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(count):
        scale = float(np.exp(rng.normal())) / 100
        for k, name in enumerate(names):
            gain = effect[number] if np.ndim(effect) else effect
            end = 0.5 + scale * (rng.normal(size=runs) + (gain if k == 0 else 0))
            best = np.stack([np.full(runs, 0.2), (end + 0.2) / 2, end], axis=1)
            seeds = range(runs) if paired else range(100 * k, 100 * k + runs)
            part = as_frame(best, children=4, seeds=seeds, task=f"t{number}", model=name)
            parts.append(part.assign(search=name))
    return pd.concat(parts, ignore_index=True)


def test_a_difference_on_every_task_is_found_where_no_task_alone_shows_it():
    frame = tasks(1.0)
    found = replay.compare(frame, by="search")
    [row] = found.verdicts.to_dict("records")
    assert (row["verdict"], row["tasks"], row["runs"]) == ("greater", 6, 60)
    assert row["low"] > 0
    assert row["p_holm"] == row["p"] < 0.05
    assert found.table["configuration"].tolist() == ["a", "b"]
    assert set(found.tasks) <= set(found.table)
    assert found.paragraph.startswith("a is better than b: a less b is +")
    assert "for further tasks" in found.paragraph
    assert isinstance(found.figure(), matplotlib.figure.Figure)
    for figure in (found.figure(), long_names(frame).figure()):
        figure.draw_without_rendering()
        assert all(ax.lines for ax in figure.axes)
        assert min(ax.get_window_extent().width for ax in figure.axes) > 150


def test_the_paragraph_says_which_side_is_better_or_that_neither_is_shown_to_be():
    worse = replay.compare(tasks(-1.5), by="search").paragraph
    assert worse.startswith("b is better than a: a less b is -")
    same = replay.compare(tasks(0.0), by="search")
    assert same.verdicts["verdict"].tolist() == ["undetermined"]
    assert same.paragraph.startswith("Neither a nor b is shown to be better: a less b is ")


def long_names(frame):
    """The comparison of sides whose names leave no room for panels beside each other."""
    names = {"a": "a search of many settings, one", "b": "a search of many settings, two"}
    return replay.compare(frame.assign(search=frame["search"].map(names)), by="search")


def test_the_scale_of_a_task_and_the_order_of_its_runs_change_nothing():
    frame = tasks(0.6, seed=3)
    first = frame["task"] == "t0"
    other = frame.assign(
        best_fitness=frame["best_fitness"].where(~first, 1000 * frame.best_fitness)
    )
    one, two = (replay.compare(each, by="search", best=2000.0).verdicts for each in (frame, other))
    pd.testing.assert_frame_equal(one, two)


def test_names_decide_nothing():
    frame = tasks(0.8, seed=4)
    swapped = frame.assign(search=frame["search"].map({"a": "b", "b": "a"}))
    one, two = (replay.compare(each, by="search").verdicts for each in (frame, swapped))
    assert (two["a"].iloc[0], two["b"].iloc[0]) == ("b", "a")
    pd.testing.assert_frame_equal(one.drop(columns=["a", "b"]), two.drop(columns=["a", "b"]))


def test_holm_verdicts_and_intervals_agree():
    frame = tasks(0.9, seed=5, names=("a", "b", "c"))
    table = replay.compare(frame, by="search").verdicts
    assert len(table) == 3
    for row in table.to_dict("records"):
        assert (row["p_holm"] <= 0.05) == (row["low"] > 0 or row["high"] < 0)
    np.testing.assert_allclose(_holm_shares(np.array([0.001, 0.9, 0.02]), 0.05), [1 / 3, 1, 0.5])
    np.testing.assert_allclose(_holm_shares(np.array([0.04, 0.9, np.nan]), 0.05), [0.5, 0.5, 1])


def test_runs_of_one_seed_are_pairs():
    rng = np.random.default_rng(6)
    level = 10 * rng.normal(size=8)
    paired = Stratum(level + 0.5 + 0.1 * rng.normal(size=8), level, 8)
    found = compare_strata([paired.over(paired.scale)] * 3)
    assert found.low > 0
    apart = Stratum(paired.left, paired.right)
    assert compare_strata([apart.over(apart.scale)] * 3).low < 0


def test_where_nothing_differs_a_difference_is_seldom_called():
    """Of 8 tasks with 5 + 5 runs; the draws here are few (see benchmarks/task_nulls.py)."""
    rng, called = np.random.default_rng(7), 0
    for _ in range(60):
        strata = [Stratum(*rng.normal(size=(2, 5))) for _ in range(8)]
        found = compare_strata([each.over(each.scale) for each in strata])
        called += 2 * min(found.p_greater, found.p_less) <= 0.05
    assert called <= 8


def test_further_tasks_are_no_surer_than_the_tasks_differ():
    errors = np.full(6, 0.2)
    alike = further_tasks(np.full(6, 0.5), errors)
    apart = further_tasks(np.array([2.0, -1, 2, -1, 2, -1]), errors)
    assert alike.low > 0 > apart.low
    assert alike.spread == 0 < apart.spread
    np.testing.assert_allclose(alike.pooled, 0.5)
    assert np.isnan(further_tasks(np.ones(2), np.ones(2)).low)


def test_the_interquartile_mean_is_that_of_scipy_and_cuts_in_part():
    from scipy.stats import trim_mean

    values = np.random.default_rng(8).normal(size=(3, 16))
    np.testing.assert_allclose(interquartile_mean(values), trim_mean(values, 0.25, axis=1))
    assert interquartile_mean(np.array([0.0, 1.0, 5.0])) == pytest.approx(
        (0 * 0.25 + 1 + 1.25) / 1.5
    )
    value, low, high = stratified([*values])
    assert low < value < high
    assert np.isnan(stratified([values[0][:1]])[1])


@pytest.mark.parametrize("measure", ["area", "calls"])
def test_other_measures_are_higher_where_the_first_is_better(measure):
    target = {f"t{k}": 0.35 for k in range(6)} if measure == "calls" else None
    found = replay.compare(tasks(2.5, seed=9), by="search", measure=measure, target=target)
    assert found.verdicts["effect"].iloc[0] > 0
    assert found.table.iloc[0]["configuration"] == "a"


@pytest.mark.parametrize("measure", ["final", "calls"])
def test_a_value_is_the_share_of_what_was_possible_on_each_task(measure):
    frame = tasks(1.0, count=2, runs=5, seed=2)
    alike = frame.groupby(["task", "search", "generation"])["best_fitness"].transform("median")
    frame = frame.assign(best_fitness=alike)
    # Between the sides' fitness after one generation: one of them reaches it then, the other later.
    between = frame[frame["generation"] == 1].groupby("task")["best_fitness"].mean().to_dict()
    target = between if measure == "calls" else None
    found = replay.compare(frame, by="search", measure=measure, target=target, best=2.0).table
    for row in found.to_dict("records"):
        shown = np.array([row["t0"], row["t1"]])
        share = 1 - shown / 8 if measure == "calls" else (shown - 0.2) / (2.0 - 0.2)
        assert row["value"] == pytest.approx(share.mean())


def test_what_cannot_be_compared_is_said():
    frame = tasks(0.5)
    with pytest.raises(ValueError, match="expected a column to compare by, got 'tool'"):
        replay.compare(frame, by="tool")
    with pytest.raises(ValueError, match="at least two values"):
        replay.compare(frame[frame["search"] == "a"], by="search")
    with pytest.raises(ValueError, match="expected a target="):
        replay.compare(frame, by="search", measure="calls")
    with pytest.raises(ValueError, match="a frame alone"):
        replay.compare(frame, frame)
    with pytest.raises(ValueError, match="runs of 800 calls"):
        replay.compare(frame, by="search", calls=800)
    few = replay.compare(frame[frame["seed"] % 100 < 2].query("task == 't0'"), by="search")
    assert few.verdicts["verdict"].tolist() == ["undetermined"]
    assert "too few runs" in few.paragraph
