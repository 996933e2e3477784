"""Configurations over several tasks: tables, verdicts and the nulls behind them."""

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest
from synthetic_runs import tasks

import replay
from replay.claims.decision import CLOSE, FEW, MANY, OPEN, WIDE
from replay.statistics.strata import (
    Stratum,
    compare_strata,
    further_tasks,
    interquartile_mean,
    stratified,
)


def test_a_difference_on_every_task_is_found_where_no_task_alone_shows_it():
    frame = tasks(1.0)
    found = replay.compare(frame, by="search")
    [row] = found.verdicts.to_dict("records")
    assert (row["verdict"], row["tasks"], row["runs"]) == ("greater", 6, 60)
    assert row["low"] > 0
    assert row["p_holm"] == row["p"] < 0.05
    assert found.table["configuration"].tolist() == ["a", "b"]
    assert set(found.tasks) <= set(found.table)
    limits = f"sd [{row['low']:.2g}, {row['high']:.2g}] on 6 tasks"
    assert found.paragraph.startswith(
        f"a is better than b: a less b is {row['effect']:+.2g} {limits}"
    )
    assert "for further tasks" in found.paragraph
    assert isinstance(found.figure(), matplotlib.figure.Figure)
    for figure in (found.figure(), long_names(frame).figure()):
        figure.draw_without_rendering()
        titles = [ax.get_title(loc="left") for ax in figure.axes]
        assert titles == ["Interquartile means", "Differences", "Profiles of the runs"]
        assert min(ax.get_window_extent().width for ax in figure.axes) > 150


def test_a_comparison_says_which_tasks_only_one_side_has():
    shared = tasks(1.0, count=3)
    alone = tasks(1.0, count=5).query("task in ['t3', 't4'] and search == 'a'")
    single = tasks(1.0, count=6).query("task == 't5' and (search == 'a' or seed == 100)")
    found = replay.compare(pd.concat([shared, alone, single]), by="search")
    assert found.tasks == ("t0", "t1", "t2") == tuple(found.budgets)
    assert found.table["runs"].tolist() == [15, 15]
    assert (
        "Left out are 16 runs on tasks on which fewer than two configurations have two runs: "
        "t3 (5 of a); t4 (5 of a); t5 (5 of a, 1 of b)." in found.paragraph
    )
    same = replay.compare(shared, by="search")
    pd.testing.assert_frame_equal(found.verdicts, same.verdicts)
    pd.testing.assert_frame_equal(found.table, same.table)
    assert "eft out" not in same.paragraph
    assert f"{found.table['runs'].sum()} runs on 3 tasks" in replay.advise(found)
    assert "; 5 runs of a configuration on a task." in found.paragraph
    lone = tasks(1.0, count=4).query("task == 't3' and search == 'b' and seed == 100")
    assert "Left out is 1 run on tasks on which" in (
        replay.compare(pd.concat([shared, lone]), by="search").paragraph
    )


def test_a_pair_says_on_which_tasks_it_is_not_compared():
    three = tasks(1.0, count=3, names=("a", "b", "c"))
    found = replay.compare(three.query("not (task == 't2' and search == 'c')"), by="search")
    assert "b and c are not compared on t2, where one of them has fewer" in found.paragraph
    assert "a and b are not compared" not in found.paragraph
    with pytest.raises(ValueError, match=r"got none\. Left out are 10 runs .* t0 \(5 of a\)"):
        replay.compare(
            pd.concat([three.query("task == 't0' and search == 'a'"),
                       three.query("task == 't1' and search == 'b'")]), by="search"
        )  # fmt: skip


@pytest.fixture(scope="module")
def six():
    """Six configurations on one task; the first leads by what a test of one pair finds."""
    return tasks(1.9, runs=8, count=1, seed=1, paired=True, names=tuple("abcdef")).assign(model="m")


def test_a_pair_that_only_the_number_of_pairs_leaves_open_says_so(six):
    found = replay.compare(six, by="search")
    held = found.verdicts[found.verdicts["why"] == MANY]
    assert len(held) > 0
    for row in held.to_dict("records"):
        judged = replay.judge(six, {"search": row["a"]}, {"search": row["b"]})
        assert judged.verdict in ("greater", "less")
        assert judged.p == pytest.approx(row["p"])  # one number wherever the question is asked
        assert row["verdict"] == "undetermined"
        assert row["p_holm"] > 0.05
        assert row["alone_low"] > 0 or row["alone_high"] < 0
        family = f"p = {row['p']:.3g} alone, {row['p_holm']:.3g} among 15 comparisons (Holm)"
        assert f"{family}): {OPEN[MANY]}" in found.paragraph
    assert "too few runs" not in found.paragraph + replay.advise(found)
    assert f"{MANY} ({len(held)})" in found.summary[1]
    assert "`replay judge A B LOGS`" in replay.advise(found)
    pair = six[six["search"].isin([held["a"].iloc[0], held["b"].iloc[0]])]
    alone = replay.compare(pair, by="search")
    assert alone.verdicts["why"].tolist() == [""]
    assert "comparisons (Holm)" not in alone.paragraph
    assert "replay judge" not in replay.advise(alone)


def test_the_highest_are_summarised_once_as_if_they_had_been_compared_alone(six, monkeypatch):
    counted = []

    def once(parts, **how):
        counted.append(len(parts))
        return stratified(parts, **how)

    elsewhere = six[six["search"] == "f"].assign(task="left")
    frame = pd.concat([six, elsewhere, elsewhere.assign(search="e")])
    monkeypatch.setattr("replay.claims.tasks.stratified", once)
    found = replay.compare(frame, by="search", highest=2)
    assert len(counted) == found.of == 6
    best = found.table["configuration"].tolist()
    alone = replay.compare(frame[frame["search"].isin(best)], by="search")
    pd.testing.assert_frame_equal(found.table, alone.table)
    assert [each for each in found.table if each in frame["task"].unique()] == [*found.tasks]


def test_an_open_pair_has_its_true_reason(six):
    two = six[six["search"].isin(["b", "c"])]
    assert replay.compare(two, by="search").verdicts["why"].tolist() == [CLOSE]
    assert replay.compare(two, by="search", margin=0.1).verdicts["why"].tolist() == [WIDE]
    few = two[two["seed"] < 3]
    assert replay.compare(few, by="search").verdicts["why"].tolist() == [FEW]


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


def test_runs_of_one_seed_are_pairs():
    rng = np.random.default_rng(6)
    level = 10 * rng.normal(size=8)
    paired = Stratum(level + 0.5 + 0.1 * rng.normal(size=8), level, 8)
    found = compare_strata([paired.over(paired.scale)] * 3)
    assert found.low > 0
    apart = Stratum(paired.left, paired.right)
    assert compare_strata([apart.over(apart.scale)] * 3).low < 0


@pytest.mark.thorough
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


def test_scores_that_are_not_scaled_to_one_keep_their_order():
    frame = tasks(3.0, count=2)
    scaled = frame.assign(best_fitness=200 + 100 * frame["best_fitness"])
    found, plain = (replay.compare(each, by="search") for each in (scaled, frame))
    assert found.table["configuration"].tolist() == plain.table["configuration"].tolist()
    assert found.table["value"].max() <= 1
    assert "stands for the best known one" in found.paragraph
    assert "stands for the best known one" not in plain.paragraph
    given = replay.compare(scaled, by="search", best=300)
    assert given.table["value"].tolist() == pytest.approx(plain.table["value"].tolist())
    with pytest.raises(ValueError, match="best: expected a fitness above that of the initial"):
        replay.compare(scaled, by="search", best=1.0)


def test_a_list_of_columns_is_answered_with_how_to_make_one():
    with pytest.raises(TypeError, match=r"the name of one column, got \['search', 'model'\]"):
        replay.compare(tasks(1.0, count=1), by=["search", "model"])
