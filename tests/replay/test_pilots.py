import pandas as pd
import pytest
from benchmarks.planner_backtest import backtest, backtest_arms, summarise
from synthetic_runs import chain_runs

SETTINGS = {"budgets": (16, 32), "pilots": 3, "kernels": 4, "pilot": {1: 4, 4: 2}}
POOLS = {
    "runs": 3, "generations": 8, "pilots": 1, "arms": (2, 9), "policies": ("random", "ucb1"),
    "replicates": 20, "kernels": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus():
    return chain_runs(sizes=(1, 2, 4, 8, 16, 32), budget=32)


def test_rules_spend_every_budget_and_see_the_pilot_alone(corpus):
    frame, children = corpus
    table = backtest(frame, children, **SETTINGS)
    assert (table["generations"] * table["children"] == table["calls"]).all()
    assert len(table) == 3 * 2 * 4
    assert (table["regret"] >= 0).all()
    late = children["generation"] > children["children"].map(SETTINGS["pilot"]).fillna(0)
    changed = children.copy()
    changed.loc[late, ["fitness", "improved"]] = [0.0, False]
    pd.testing.assert_frame_equal(backtest(frame, changed, **SETTINGS), table)
    summary = summarise(table, "pilot").set_index("rule")
    assert summary.loc["plan", "excess"] == 0
    assert summary.loc["depth", "regret"] == pytest.approx(
        table[table["rule"] == "depth"]["regret"].mean()
    )


def test_pools_hold_no_run_of_the_pilot_nor_the_one_left_out(corpus):
    frame, children = corpus
    frame = frame[(frame["children"] == 1) & (frame["seed"] < 6) & (frame["generation"] <= 16)]
    children = children[children["run"].isin(frame["run"])]
    pools = backtest_arms(frame, children, **POOLS)
    assert set(pools["arms"]) <= {1, 2}
    fixed = pools[pools["rule"] != "plan"]
    assert (fixed.groupby("pilot")["regret"].min() == 0).all()
    assert sorted(fixed.groupby("pilot")["left_out"].first()) == list(range(6))
    changed = children.copy()
    changed.loc[children["generation"] > 8, ["fitness", "improved"]] = [0.0, False]
    pd.testing.assert_frame_equal(backtest_arms(frame, changed, **POOLS), pools)
    spoilt = frame.copy()
    out = (frame["run"] == frame["run"].unique()[0]) & (frame["generation"] > 0)
    spoilt.loc[out, "best_fitness"] = 0.999
    same = (pools["left_out"] == 0) & (pools["rule"] != "plan")
    again = backtest_arms(spoilt, children, **POOLS)
    pd.testing.assert_frame_equal(again[same], pools[same])
