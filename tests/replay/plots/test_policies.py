"""Figures of policies, of races and of verdicts."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from looks import complaints
from plotted import (
    POLICIES,
    made_curves,
    made_effects,
    made_ledger,
    made_pulls,
    made_times,
    marks,
    raced,
    words,
)
from synthetic_runs import as_frame, sweep_runs

import replay
from replay import plots
from replay.claims.decision import VERDICTS as OUTCOMES
from replay.plots import charts
from replay.plots.policies import VERDICTS, outcome


def test_too_few_runs_for_an_interval_are_said():
    curves = made_curves()
    assert "Mean and 95 % interval over runs" in words(plots.policy_curves(curves))
    measured = curves.assign(coverage=0.917)
    assert "Mean and 92 % interval over runs" in words(plots.policy_curves(measured))
    few = curves.assign(low=np.nan, high=np.nan, n=3)
    assert "too few runs for an interval; n = 3 runs" in words(plots.policy_curves(few))


def test_verdicts_are_coloured_and_only_those_that_apply():
    chart = charts.verdicts(made_ledger(), columns=["task"])
    ax = chart.draw()
    found = {
        (round(mark.x0[0] + 0.48, 6), round(mark.y0[0] + 0.44, 6)): mark.color
        for mark in marks(chart, "spans", opacity=1.0)
    }
    kinds = ("greater", "less", "undetermined", "within margin")
    assert set(kinds) == set(OUTCOMES)
    colours = [VERDICTS[kind] for kind in kinds]
    assert len(set(colours)) == len(kinds)
    assert found == dict(zip([(0, 0), (1, 0), (0, 1), (0, 2)], colours, strict=True))
    assert [each.get_text() for each in ax.get_xticklabels()] == ["a", "b"]
    long = [made_ledger().assign(source=f"a_model-of-{k}b-parameters") for k in range(4)]
    assert not complaints(plots.verdicts(pd.concat(long)).get_figure())


def test_shares_of_pulls_are_in_percent():
    table = made_pulls()
    for line, policy in zip(marks(charts.pulls_per_arm(table), "line"), POLICIES, strict=True):
        own = table.loc[table["policy"] == policy, "value"]
        np.testing.assert_allclose(line.y, 100 * own)


@pytest.mark.parametrize(
    ("function", "table"),
    [
        (plots.policy_curves, made_curves()),
        (plots.pulls_per_arm, made_pulls()),
        (plots.threshold_times, made_times()),
        (plots.pool_vs_allocation, made_effects()),
    ],
)
def test_empty_tables_give_a_sentence_and_missing_columns_an_error(function, table):
    assert words(function(table[:0])).startswith("No ")
    for column in table.columns:
        with pytest.raises(ValueError, match=f"{column} missing"):
            function(table.drop(columns=column))


def test_an_unreached_threshold_says_how_many_do():
    said = words(plots.threshold_times(made_times()))
    assert "; only 62 % of single reach 0.9" in said
    assert "Fitness 0.8" in words(plots.threshold_times(made_times().query("tau == 0.8")))
    never = made_times().assign(time=np.inf, low=np.inf, high=np.inf)
    names = ", ".join(never["policy"].unique())
    for tau in never["tau"].unique():
        assert f"only 62 % of {names} reach {tau:g}" in words(plots.threshold_times(never))
    one = never.query("tau == 0.8")
    assert f"Fitness 0.8; only 62 % of {names} reach it" in words(plots.threshold_times(one))
    apart = one.assign(share_reached=[0.1 * k for k in range(len(one))])
    assert words(plots.threshold_times(apart)).count(" reach it") == len(one) + 1


@pytest.mark.parametrize("limits", [np.nan, np.inf])
def test_a_policy_that_never_reaches_the_threshold_has_an_arrow(limits):
    """Also where there are too few runs for an interval; a row without a mark says nothing."""
    times = made_times().query("tau == 0.8").assign(time=30.0, low=20.0, high=40.0)
    times.loc[times["policy"] == "random", ["time", "low", "high"]] = [np.inf, limits, limits]
    chart = charts.threshold_times(times)
    [arrows], [dots] = (marks(chart, "points", shape=shape) for shape in ("later", "dot"))
    assert np.flatnonzero(np.isfinite(arrows.x)).tolist() == [1]  # the row of `random`
    assert np.flatnonzero(np.isfinite(dots.x)).tolist() == [0, 2, 3, 4]
    assert dots.y == [0, 1, 2, 3, 4]


def test_a_race_has_a_winner_only_where_that_is_certain():
    race = SimpleNamespace(winner=1, labels=["a", "b"])
    for end, found in (
        ("certain", "winner b"),
        ("exhausted", "not certain, as there are no further samples; b was ahead"),
        ("budget", "not certain, as the budget is spent; b was ahead"),
        ("stopped", "not certain, as it was stopped; b was ahead"),
    ):
        race.end = end
        assert outcome(race, 40) == found
    race.winner = None
    assert outcome(race, 40) == "no configuration is left"


def test_configurations_of_a_race_can_be_told_apart():
    found = replay.select(sweep_runs(12, 8, noise=0.05))
    ax = plots.race(found)
    names = [name.rpartition(" (n")[0] for name in vars(ax)["rows"]]
    assert len(set(names)) == len(names) == len(found.labels)
    said = " ".join(text.get_text().replace("\n", " ") for text in ax.texts)
    assert "named by model, temperature, children" in said
    [first, *_] = vars(plots.race(raced()))["rows"]
    assert first.startswith("configuration")  # short names stay as they are


def test_a_race_shows_each_configuration_up_to_the_round_in_which_it_was_retired():
    found = raced()
    texts = [text for bars in marks(charts.race(found), "bars") for text in bars.texts]
    alive = np.array([each.alive[0] for each in found.rounds])
    assert not alive[-1].all()
    for k, label in enumerate(found.labels):
        words = [text for text in texts if text.startswith(f"{label}\n")]
        last = max(int(text.split("round ")[1].split(":")[0]) for text in words)
        retired = np.flatnonzero(~alive[:, k])
        assert last == (retired[0] + 1 if len(retired) else len(found.rounds))


def test_the_intervals_of_effects_are_called_as_the_effects_call_them():
    steps = np.random.default_rng(1).exponential(0.05, (10, 8)).cumsum(axis=1)
    frame = as_frame(np.c_[np.zeros(10), 1 - np.exp(-steps)], children=2, seeds=range(10))
    found = replay.compete(frame, ["ucb1"], replicates=100)
    played = replay.simulate_many(
        replay.fitness_matrix(frame), ["single", "ucb1"], arms=2, rounds=8, replicates=100
    )
    label = replay.policy_effect(played["single"], played["ucb1"]).label
    assert "nominal, at least" in label
    ax = plots.pool_vs_allocation(found.effects)
    assert f"Mean difference and {label}, over runs" in words(ax)
    assert "nominal" not in words(plots.policy_curves(found.curves))


def test_a_race_says_by_which_comparison_and_against_whom_configurations_lost():
    found = raced()
    chart = charts.race(found)
    [panel] = chart.panels
    assert f"x: retired by paired bets on shared samples, p ≤ {found.decisive:.2g}" in panel.about
    crosses = marks(chart, "points", shape="cross")
    assert crosses
    words_of = {text for mark in crosses for text in mark.texts}
    lost = [k for k in range(3) if found.loss(k)]
    assert words_of == {f"{found.labels[k]}\n{found.loss(k)}" for k in lost}
    halved = replay.select(found.outcomes, selector="successive_halving", missing="drop")
    assert "retired by a lower mean alone" in charts.race(halved).panels[0].about
