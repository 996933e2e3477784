"""Policies replayed over the runs of a pilot, and plans that follow them."""

import numpy as np
import pytest
from benchmarks import worlds

import replay
from replay.planning.choices import Choice, SplitCosts
from replay.planning.grid import one_sweep
from replay.planning.planner import affordable
from replay.planning.replayed import replayed_arms, replayed_paths

SETTINGS = {"arms": (2, 8), "policies": ("round_robin", "successive_halving"), "chance": 0.05}


def pilot(world, runs, seed=1):
    """A pilot of runs of four children and 16 generations."""
    return worlds.pilot(world, np.random.default_rng([5, seed]), runs, ((4, 16),))


def test_ceilings_that_no_kernel_sees_are_followed_to_several_arms():
    frame, children = pilot("arms", 18)
    settings = {"budget": 64, "best": 1.0, "kernels": 8}
    made = replay.plan(frame, children=children, tau=0.7, **settings)
    assert (made.choice.children, made.choice.generations) == (4, 16)
    assert made.choice.arms > 1
    first = made.options.iloc[0]
    assert first["replayed"]
    assert first["ahead"] > first["margin"]
    assert made.inside
    assert first["low"] <= np.median(made.outcomes) <= first["high"]
    assert 0 < made.p_tau < 1
    assert "replayed on the pilot's runs it leads" in str(made)
    few = frame["run"].isin([f"N4s{seed}" for seed in range(7)])
    fewer = replay.plan(
        frame[few], children=children[children["run"].isin(frame.loc[few, "run"])], **settings
    )
    assert not fewer.options["replayed"].any()


def test_where_nothing_can_be_chosen_no_arm_is_named():
    frame, children = pilot("deep", 16)
    made = replay.plan(frame, budget=64, children=children, best=1.0, kernels=8)
    assert made.choice.arms == 1
    assert made.options["replayed"].any()


def test_only_runs_that_are_deep_enough_are_replayed():
    sweep = one_sweep(pilot("arms", 16)[0])
    found = replayed_arms(sweep, affordable(64, SplitCosts()), **SETTINGS)
    assert found["arms"].tolist() == [2, 2, 8, 8]
    assert set(found["children"]) == {4}
    assert (found["margin"] > 0).all()
    assert replayed_arms(sweep, affordable(128, SplitCosts()), **SETTINGS).empty
    assert replayed_arms(one_sweep(pilot("arms", 7)[0]), {4: 16}, **SETTINGS).empty
    fewer = replayed_arms(one_sweep(pilot("arms", 8)[0]), {4: 16}, **SETTINGS)
    assert set(fewer["arms"]) == {2}


def test_arms_that_pay_more_for_their_initial_programs_have_fewer_generations_to_lead_one_run():
    sweep = one_sweep(pilot("arms", 16)[0])
    free = replayed_arms(sweep, {4: 16}, **SETTINGS)
    paid = replayed_arms(sweep, {4: 16}, **SETTINGS, paid=lambda N, K: 17 - K)
    assert paid["generations"].tolist() == [15, 15]  # of eight arms nine rounds are too few
    same = free[free["arms"] == 2].reset_index(drop=True)
    assert (paid["gain"] <= same["gain"]).all()
    assert paid["gain"].sum() < same["gain"].sum()


def test_a_gain_is_that_of_the_policy_on_the_same_pools():
    sweep = one_sweep(pilot("arms", 16)[0])
    found = replayed_arms(sweep, {4: 16}, **SETTINGS)
    row = found[(found["arms"] == 8) & (found["policy"] == "round_robin")].iloc[0]
    choice = Choice(generations=16, children=4, arms=8, policy="round_robin")
    ends = replayed_paths(sweep, choice)[:, -1]
    single = sweep.values[:, 16].mean()
    assert row["gain"] == pytest.approx(ends.mean() - single, abs=0.03)
    assert row["low"] <= ends.mean() <= row["high"]
