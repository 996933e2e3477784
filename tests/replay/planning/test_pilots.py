import pandas as pd
import pytest
from benchmarks.planner_backtest import backtest, summarise
from synthetic_runs import chain_runs

SETTINGS = {"budgets": (16, 32), "pilots": 3, "kernels": 4, "pilot": {1: 4, 4: 2}}


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
