from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import worlds
from synthetic_runs import chain_runs

import replay
from replay.planning.borrowing import pool
from replay.planning.leads import follow, lead_and_margin
from replay.planning.planner import plan

FAST = {"budget": 64, "best": 1.0, "kernels": 6, "arms": ()}
SMALL = ((1, 16), (4, 4))


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def others(world, count=3):
    made = [
        worlds.pilot(world, np.random.default_rng([1, k]), 3, task=f"{world}-{k}")[1]
        for k in range(count)
    ]
    return pd.concat(made, ignore_index=True).assign(best=1.0)


def leads_of(rng, mean, spread, count=24):
    """Fitness of the T = N split and of one that leads it by `mean`, in worlds of a pilot."""
    noise = rng.standard_normal(count)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    base = rng.normal(0.5, 0.1, count)
    return np.column_stack([base, base + mean + spread * noise])


def test_a_small_pilot_follows_what_other_tasks_agree_on(rng):
    by_world = leads_of(rng, 0.1, 0.08)
    leads = np.column_stack([np.zeros(5), [0.11, 0.12, 0.13, 0.12, 0.12]])
    assert follow(by_world, 0, 4) == 0
    pooled, deviation, weight = pool(by_world, 0, 4, leads)
    ahead, margin = lead_and_margin(pooled, 0, 4)
    assert follow(pooled, 0, 4) == 1
    assert 0.1 < ahead[1] < 0.12
    assert margin[1] < lead_and_margin(by_world, 0, 4)[1][1]
    assert deviation[1] == pytest.approx(leads[:, 1].std(ddof=1) * np.sqrt(1.2))
    assert 0 < weight[1] < 0.05
    np.testing.assert_array_equal(pooled[:, 0], by_world[:, 0])


@pytest.mark.parametrize("lead", [-0.2, 0.0, 0.2])
def test_a_large_pilot_is_as_it_would_be_alone(rng, lead):
    by_world = leads_of(rng, lead, 0.002)
    leads = np.column_stack([np.zeros(4), [0.1, 0.14, 0.08, 0.12]])
    pooled, _, weight = pool(by_world, 0, 40, leads)
    for alone, shared in zip(*(lead_and_margin(x, 0, 40) for x in (by_world, pooled)), strict=True):
        np.testing.assert_allclose(alone, shared, atol=5e-4)
    assert weight[1] > 0.99


def test_a_pilot_of_another_kind_lets_go_of_other_tasks(rng):
    by_world = leads_of(rng, -0.3, 0.05)
    leads = np.column_stack([np.zeros(5), [0.119, 0.12, 0.121, 0.12, 0.12]])
    pooled, deviation, weight = pool(by_world, 0, 6, leads)
    assert weight[1] > 0.95
    assert deviation[1] > 0.4
    assert lead_and_margin(pooled, 0, 6)[0][1] == pytest.approx(-0.3, abs=0.02)
    assert follow(pooled, 0, 6) == 0


def test_one_run_knows_what_other_tasks_know_and_no_more(rng):
    leads = np.column_stack([np.zeros(4), [0.1, 0.14, 0.08, 0.12]])
    pooled, _, weight = pool(leads_of(rng, -0.1, 0.01), 0, 1, leads)
    ahead, margin = lead_and_margin(pooled, 0, 2)
    assert weight[1] == 0
    assert ahead[1] == pytest.approx(leads[:, 1].mean())
    expected = 2.3533634 * leads[:, 1].std(ddof=1) * np.sqrt(1.25)  # Student's t, 3 degrees, 5 %
    assert margin[1] == pytest.approx(expected, rel=1e-6)


def test_intervals_of_a_further_task_hold_as_often_as_they_say():
    """Of one run's pilot the margin alone decides: 5 % of further tasks lie beyond it."""
    rng, beyond = np.random.default_rng(5), 0
    by_world = leads_of(rng, 0.0, 0.01)
    for _ in range(2000):
        leads = np.column_stack([np.zeros(4), rng.normal(0.1, 0.05, 4)])
        ahead, margin = lead_and_margin(pool(by_world, 0, 1, leads)[0], 0, 2)
        beyond += rng.normal(0.1, 0.05) < ahead[1] - margin[1]
    assert 0.035 < beyond / 2000 < 0.065


def test_a_plan_says_what_it_borrowed_and_decides_what_its_pilot_could_not():
    frame, children = worlds.pilot("deep", np.random.default_rng(4), 2, SMALL)
    alone = plan(frame, children=children, **FAST)
    made = plan(frame, children=children, earlier=others("deep"), **FAST)
    assert not alone.departs
    assert made.departs
    assert made.choice.children < alone.choice.children
    assert alone.borrowed is None
    assert "borrowed" not in str(alone)
    assert "borrowed from 27 runs of 3 other tasks (deep-0 with m, deep-1" in str(made)
    assert made.borrowed.leads.shape == (3, 7)
    np.testing.assert_array_equal(
        made.options["value"].iloc[0] - made.options.set_index("children").loc[8, "value"],
        pytest.approx(made.options["ahead"].iloc[0]),
    )


def test_plans_do_not_depend_on_the_scale_of_the_pilot():
    frame, children = worlds.pilot("broad", np.random.default_rng(3), 2, SMALL)
    columns = {"fitness": lambda t: 5 * t["fitness"] - 2}
    columns |= {"parent_fitness": lambda t: 5 * t["parent_fitness"] - 2}
    moved = frame.assign(best_fitness=5 * frame["best_fitness"] - 2)
    one = plan(frame, children=children, earlier=others("broad"), **FAST)
    other = plan(
        moved, children=children.assign(**columns), earlier=others("broad"), **FAST | {"best": 3.0}
    )
    assert one.choice == other.choice
    singles = [made.options.sort_values("children") for made in (one, other)]
    np.testing.assert_allclose(5 * singles[0]["ahead"], singles[1]["ahead"], atol=1e-6)
    np.testing.assert_allclose(one.borrowed.weight, other.borrowed.weight, atol=1e-6)


def test_runs_of_the_planned_task_and_too_few_tasks_are_refused():
    frame, children = chain_runs(sizes=(1, 4), budget=8, seeds=range(3))
    ours = pd.concat([others("flat"), children])
    with pytest.raises(ValueError, match="runs of toy with chain, which is planned"):
        plan(frame, children=children, earlier=ours, **FAST)
    with pytest.raises(ValueError, match=r"at least 3 tasks besides .* got 2"):
        plan(frame, children=children, earlier=others("flat", 2), **FAST)
    far = others("flat").drop(columns="best")
    far[["fitness", "parent_fitness"]] /= 1000
    with pytest.raises(ValueError, match=r"earlier: flat-0, m: .* whose column best holds it"):
        plan(frame, children=children, earlier=far, **FAST)
    with pytest.raises(ValueError, match="does not say which logs it came from"):
        plan(frame, children=children, earlier=frame.assign(task="other"), **FAST)


@pytest.mark.slow
def test_logs_frames_and_tables_say_the_same():
    corpus = Path(__file__).parents[3] / "logs" / "corpus" / "offline"
    logs = sorted(corpus.glob("*/*-N4-s4[01].jsonl.gz"))
    assert len(logs) == 6
    frame, children = chain_runs(sizes=(1, 4), budget=8, seeds=range(3))
    given = (logs, replay.load(*logs, progress=False), replay.children(*logs))
    plans = [plan(frame, children=children, earlier=each, **FAST | {"budget": 8}) for each in given]
    for made in plans[1:]:
        pd.testing.assert_frame_equal(made.options, plans[0].options)
        assert made.borrowed.tasks == plans[0].borrowed.tasks
