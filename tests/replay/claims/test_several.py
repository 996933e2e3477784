"""`judge` of several tasks together: groups of runs and policies."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic_runs import as_frame

import replay
from replay.logs.frames import ReplayWarning
from replay.simulation.effects import spread_of

A, B = {"search": "a"}, {"search": "b"}


def sides(effects, runs=5, seed=0, paired=False):
    """Runs of two searches on tasks of scales of their own; `a` is better by the effect."""
    rng, parts = np.random.default_rng(seed), []
    for number, effect in enumerate(effects):
        scale = float(np.exp(rng.normal())) / 100
        for k, name in enumerate("ab"):
            ends = 0.5 + scale * (rng.normal(size=runs) + (effect if k == 0 else 0))
            best = np.stack([np.full(runs, 0.2), (ends + 0.2) / 2, ends], axis=1)
            seeds = range(runs) if paired else range(100 * k, 100 * k + runs)
            part = as_frame(best, children=4, seeds=seeds, task=f"t{number}", model="m")
            parts.append(part.assign(search=name, run=f"{name}{number} " + part["run"]))
    return pd.concat(parts, ignore_index=True)


def arms(tasks=3, n=12, rounds=12, seed=0):
    """Runs of which every second climbs while the others stay, on tasks of scales of their own."""
    rng, parts = np.random.default_rng(seed), []
    for number in range(tasks):
        best = np.full((n, rounds + 1), 0.1)
        best[::2] = np.linspace(0.1, 0.9, rounds + 1)
        best = (best + 0.02 * rng.random((n, 1))) / (1 + number)
        part = as_frame(best, children=1, seeds=range(n), task=f"t{number}")
        parts.append(part.assign(run=f"{number} " + part["run"]))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("paired", [False, True])
def test_the_verdict_is_that_of_the_comparison_over_tasks(paired):
    frame = sides([1.0] * 6, paired=paired)
    found = replay.judge(frame, A, B)
    [row] = replay.compare(frame, by="search").verdicts.to_dict("records")
    assert (found.verdict, found.unit) == ("greater", "pairs" if paired else "runs")
    for mine, theirs in (
        (found.effect, "effect"), (found.interval.low, "low"), (found.interval.high, "high"),
        (found.p, "p"), (found.further.value, "further"), (found.further.low, "further_low"),
    ):  # fmt: skip
        assert mine == pytest.approx(row[theirs])
    assert found.n == (30 if paired else 60)
    assert bool(found.taken_for_granted) == paired
    assert found.effects["task"].tolist() == [f"t{k}" for k in range(6)]
    assert found.effect == pytest.approx(found.effects["effect"].mean())
    assert "standard deviations within tasks" in found.paragraph
    assert "verdict for these tasks is: greater" in found.paragraph
    assert "For further tasks" in found.paragraph
    other = replay.judge(frame, B, A)
    assert (other.verdict, other.effect) == ("less", pytest.approx(-found.effect))


def test_opposite_effects_are_none_for_further_tasks():
    found = replay.judge(sides([3.0, -3.0, 3.0, -2.0], runs=8), A, B)
    assert found.further.spread > 0.5
    assert found.further.low < 0 < found.further.high
    assert found.further.high - found.further.low > found.interval.high - found.interval.low


def test_the_scale_of_a_task_changes_nothing():
    frame = sides([0.6] * 4, seed=3)
    other = frame.assign(
        best_fitness=frame["best_fitness"].where(frame["task"] != "t0", 1000 * frame.best_fitness)
    )
    one, two = (replay.judge(each, A, B) for each in (frame, other))
    assert one.effect == pytest.approx(two.effect)
    assert one.p == two.p


def test_a_margin_is_in_standard_deviations():
    frame = sides([0.0] * 6, runs=10, seed=1)
    near = replay.judge(frame, A, B, margin=1.5)
    assert near.verdict == "within margin"
    assert near.p_within < 0.05
    assert replay.judge(frame, A, B, margin=0.01).verdict == "undetermined"


def test_tasks_of_one_side_alone_are_left_out_aloud():
    frame = sides([1.0] * 4)
    part = frame[(frame["task"] != "t3") | (frame["search"] == "a")]
    with pytest.warns(ReplayWarning, match="tasks t3 are left out"):
        found = replay.judge(part, A, B)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.effect == replay.judge(frame[frame["task"] != "t3"], A, B).effect
    apart = frame[(frame["task"] == "t0") == (frame["search"] == "a")]
    with pytest.raises(ValueError, match="a task of which both sides have runs"):
        replay.judge(apart, A, B)
    with pytest.raises(ValueError, match="one task with sequential"):
        replay.judge(frame, A, B, sequential=True)


def test_policies_are_judged_over_tasks(monkeypatch):
    monkeypatch.setattr("replay.claims.several.MOST", 100)
    frame = arms()
    found = replay.judge(frame, "ucb1", "random", arms=2, reward="rank")
    assert found.effects["effect"].mean() == pytest.approx(found.effect)
    assert found.effects["task"].tolist() == ["t0", "t1", "t2"]
    assert found.verdict == "greater"
    assert (found.n, found.scale) == (36, "standard deviations within tasks")
    assert (found.interval.low > 0) == (found.p < 0.05)
    assert found.null_p < 0.05
    error = np.sqrt((found.effects["error"] ** 2).sum()) / 3  # those of tasks are independent
    half = found.interval.high - found.effect
    assert half == pytest.approx(stats.t.ppf(0.975, 33) * error, rel=0.02)


def test_effects_of_lists_are_of_several_tasks():
    frame, settings = arms(), {"rounds": 12, "arms": 2, "replicates": 2000}
    replays = {
        name: [replay.simulate(part, name, **settings) for _, part in frame.groupby("task")]
        for name in ("single", "random", "ucb1")
    }
    found = replay.policy_effect(replays["single"], replays["ucb1"])
    alone = [
        replay.policy_effect(one, other).value / spread_of(one)
        for one, other in zip(replays["single"], replays["ucb1"], strict=True)
    ]
    assert found.value == pytest.approx(np.mean(alone))
    assert found.n == 36
    assert found.low < found.value < found.high
    pool = replay.pool_effect(replays["single"], replays["random"])
    assert pool.value < found.value
    with pytest.raises(ValueError, match="for each task"):
        replay.policy_effect(replays["single"], replays["ucb1"][:2])
    with pytest.raises(ValueError, match="list of replays of both"):
        replay.policy_effect(replays["single"][0], replays["ucb1"])


def test_a_task_whose_runs_are_all_alike_is_named():
    frame = arms()
    alike = frame["task"] == "t1"
    frame.loc[alike, "best_fitness"] = 0.5
    with pytest.raises(ValueError, match=r"interval, t1 has none: .*; leave out its runs"):
        replay.judge(frame, "ucb1", "single")


def test_power_over_tasks_grows_with_the_runs_and_is_that_of_studies():
    frame = sides([0.5] * 6, runs=8, seed=2)
    found = replay.power(frame, A, B, runs=[3, 12], studies=40)
    shares = found[found["verdict"] == "greater"].set_index("runs")
    assert shares.loc[12, "probability"] > shares.loc[3, "probability"]
    assert (shares["low"] <= shares["high"]).all()
    assert (found.groupby("runs")["probability"].sum().round(9) == 1).all()
    paired = replay.power(sides([0.5] * 3, paired=True), A, B, runs=4, studies=10)
    assert set(paired["unit"]) == {"pairs"}
    with pytest.raises(ValueError, match="one task with pooled"):
        replay.power(frame, A, B, runs=4, pooled=True)


def test_power_of_policies_over_tasks():
    settings = {"arms": 2, "reward": "rank", "studies": 3}
    found = replay.power(arms(tasks=2), "ucb1", "random", runs=12, **settings)
    shares = found.set_index("verdict")["probability"]
    assert shares["greater"] > shares["less"]
    assert shares.sum() == pytest.approx(1)


def test_sides_without_any_spread_have_no_interval_and_one_verdict_on_one_task_or_several():
    for count in (1, 2):
        frame = sides([1.0] * count, paired=False)
        better = frame["search"] == "a"
        last = frame["generation"] == frame["generation"].max()
        frame.loc[last, "best_fitness"] = np.where(better, 0.9, 0.2)[last]
        found = replay.judge(frame, A, B)
        assert found.verdict == "greater"
        assert np.isnan([found.interval.low, found.interval.high]).all()
        assert found.interval.note == "no run of a side differs from another: no spread"
        [row] = replay.compare(frame, by="search").verdicts.to_dict("records")
        assert row["verdict"] == "greater"
