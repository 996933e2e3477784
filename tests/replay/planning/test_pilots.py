from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import planner_worlds
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


WORLDS = Path(__file__).parents[3] / "logs" / "corpus" / "planner" / "worlds.csv"


def test_regrets_in_known_worlds_are_those_of_the_shipped_table():
    """Rules differ by what they are worth in truth, which is simulated again here."""
    table = pd.read_csv(WORLDS)
    assert set(table["world"]) == set(planner_worlds.worlds.CHILDREN)
    assert set(table["rule"]) == {"plan", *planner_worlds.RULES}
    assert (table["regret"] >= 0).all()
    wide = table.pivot(index=["world", "runs", "calls"], columns="rule", values="regret")
    again = [
        planner_worlds.truth("broad", planner_worlds.RULES[rule]) for rule in ("T = 1", "T = N")
    ]
    found = wide.loc["broad"]
    np.testing.assert_allclose(found["T = N"] - found["T = 1"], again[0] - again[1], atol=2e-5)
    large = wide.xs(1152, level="calls").loc[["deep", "broad"]]
    assert (large["plan"] <= 0.2 * large["T = N"]).all()  # the bar: four fifths of what there is


def test_a_regret_is_what_the_best_way_has_more_than_the_plan(monkeypatch):
    gains = pd.DataFrame({"gain": [0.02, 0.1]})
    monkeypatch.setattr(planner_worlds, "plans", lambda *_: gains)
    monkeypatch.setattr(planner_worlds, "best_way", lambda _: 0.6)
    monkeypatch.setattr(planner_worlds, "truth", lambda _, N: 0.5 if N == 8 else 0.4)
    table = planner_worlds.regrets("deep", 2)
    plan = table[table["rule"] == "plan"]
    assert plan["regret"].tolist() == pytest.approx([0.04] * len(plan))
    assert plan["error"].tolist() == pytest.approx([0.04] * len(plan))
    rules = table[table["rule"] != "plan"].groupby("rule")["regret"].first()
    assert rules.to_dict() == pytest.approx({"T = N": 0.1, "N = 1": 0.2, "T = 1": 0.2})
