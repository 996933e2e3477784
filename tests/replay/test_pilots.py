import numpy as np
import pandas as pd
import pytest
from synthetic_runs import chain_runs

from replay.pilots import backtest, corner_split, summarise

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
