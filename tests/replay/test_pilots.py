import numpy as np
import pandas as pd
import pytest
from benchmarks.backtests import backtest, backtest_arms, corner_split, summarise, summarise_arms
from synthetic_runs import chain_runs

SETTINGS = {"budgets": (16, 32), "pilots": 3, "kernels": 4, "pilot": {1: 4, 4: 2}}


@pytest.fixture(scope="module")
def corpus():
    return chain_runs(sizes=(1, 2, 4, 8, 16, 32), budget=32)


@pytest.fixture(scope="module")
def table(corpus):
    return backtest(*corpus, **SETTINGS)


def test_every_rule_spends_every_budget_once(table):
    assert (table["generations"] * table["children"] == table["calls"]).all()
    assert len(table) == 3 * 2 * 5
    assert set(table["rule"]) == {"depth", "breadth", "square", "corner", "plan"}
    assert (table["regret"] >= 0).all()


def test_choices_are_judged_on_seeds_outside_the_pilot(corpus, table):
    frame, children = corpus
    spoilt = frame.copy()
    row = table[(table["rule"] == "breadth") & (table["calls"] == 32)].iloc[0]
    rng = np.random.default_rng([0, 10])
    drawn = rng.choice(np.arange(10), 4, replace=False)
    last = (spoilt["children"] == 32) & spoilt["seed"].isin(drawn)
    spoilt.loc[last & (spoilt["generation"] == 1), "best_fitness"] = 0.99
    again = backtest(spoilt, children, **(SETTINGS | {"pilots": 1}))
    same = again[(again["rule"] == "breadth") & (again["calls"] == 32)].iloc[0]
    assert same["value"] == row["value"]


def test_the_pilot_is_all_that_a_rule_sees(corpus, table):
    """Changing what the pilot's design does not log changes no choice."""
    frame, children = corpus
    late = children["generation"] > children["children"].map({1: 4, 4: 2}).fillna(0)
    changed = children.copy()
    changed.loc[late, "fitness"] = 0.0
    changed.loc[late, "improved"] = False
    again = backtest(frame, changed, **SETTINGS)
    pd.testing.assert_frame_equal(again, table)


def test_the_summary_compares_with_the_plan(table):
    summary = summarise(table).set_index("rule")
    assert summary["regret"].is_monotonic_increasing
    assert summary.loc["plan", "excess"] == 0
    expected = table.groupby("rule")["regret"].mean()
    np.testing.assert_allclose(summary["regret"], expected[summary.index])
    np.testing.assert_allclose(summary["excess"], summary["regret"] - expected["plan"], atol=1e-12)
    assert (summary["n"] == 3).all()


@pytest.mark.parametrize(
    ("a", "b", "c", "calls", "split"),
    [
        (-0.3, -0.1, 0.0, 64, (64, 1)),
        (-0.1, -0.3, -0.02, 64, (1, 64)),
        (-0.2, -0.2, -0.1, 64, (8, 8)),
        (-0.6, -0.1, -0.04, 8, (8, 1)),
    ],
)
def test_the_papers_rule(a, b, c, calls, split):
    fit = {name: {"value": value} for name, value in {"a": a, "b": b, "c": c}.items()}
    assert corner_split(fit, calls) == split


def test_too_few_seeds_and_lacking_splits_are_refused(corpus):
    frame, children = corpus
    few = frame["seed"] < 5
    with pytest.raises(ValueError, match="at least 6 seeds"):
        backtest(frame[few], children, **SETTINGS)
    with pytest.raises(ValueError, match=r"lacks a fitness for the splits.*\(4, 8\)"):
        backtest(frame[frame["children"] != 8], children, **SETTINGS)


POOLS = {
    "runs": 3,
    "generations": 8,
    "pilots": 1,
    "arms": (2, 9),
    "policies": ("random", "ucb1"),
    "replicates": 20,
    "kernels": 2,
}


@pytest.fixture(scope="module")
def arms_corpus(corpus):
    frame, children = corpus
    frame = frame[(frame["children"] == 1) & (frame["seed"] < 6)]
    children = children[children["run"].isin(frame["run"])]
    return frame[frame["generation"] <= 16], children


@pytest.fixture(scope="module")
def pools(arms_corpus):
    return backtest_arms(*arms_corpus, **POOLS)


def test_pools_hold_no_run_of_the_pilot_and_none_twice(pools):
    assert set(pools["arms"]) <= {1, 2}
    assert (pools["regret"] >= 0).all()
    fixed = pools[pools["rule"] != "plan"]
    assert (fixed.groupby("pilot")["regret"].min() == 0).all()
    assert len(fixed) == 6 * (1 + 2)
    assert sorted(fixed.groupby("pilot")["left_out"].first()) == list(range(6))


def test_the_plan_of_arms_sees_the_pilot_alone(arms_corpus, pools):
    frame, children = arms_corpus
    changed = children.copy()
    changed.loc[children["generation"] > 8, ["fitness", "improved"]] = [0.0, False]
    pd.testing.assert_frame_equal(backtest_arms(frame, changed, **POOLS), pools)


def test_the_run_left_out_changes_nothing(arms_corpus, pools):
    frame, children = arms_corpus
    out = frame["run"].unique()[0]
    spoilt = frame.copy()
    spoilt.loc[(frame["run"] == out) & (frame["generation"] > 0), "best_fitness"] = 0.999
    again = backtest_arms(spoilt, children, **POOLS)
    same = (pools["left_out"] == 0) & (pools["rule"] != "plan")
    pd.testing.assert_frame_equal(again[same], pools[same])


def test_the_summary_of_pools_rests_on_runs(pools):
    two = pools.assign(pilot=pools["pilot"] + 6, regret=pools["regret"] / 2)
    pools = pd.concat([pools, two])
    summary = summarise_arms(pools)
    assert summary["regret"].is_monotonic_increasing
    assert (summary["n"] == 6).all()
    assert (summary["low"] <= summary["regret"]).all()
    expected = pools.groupby("rule")["regret"].mean()
    np.testing.assert_allclose(summary["regret"], expected[summary["rule"]])


def test_a_backtest_of_arms_needs_runs_to_judge(arms_corpus):
    frame, children = arms_corpus
    few = frame[frame["seed"] < 5]
    with pytest.raises(ValueError, match=r"at least 6 runs .* got 5"):
        backtest_arms(few, children, **POOLS)


def test_a_pilot_that_finds_nothing_plans_one_run(arms_corpus):
    frame, children = arms_corpus
    blind = children.assign(fitness=np.nan, parent_fitness=np.nan, improved=False)
    pools = backtest_arms(frame, blind, **POOLS)
    assert set(pools.loc[pools["rule"] == "plan", "policy"]) == {"single"}
