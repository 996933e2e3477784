import html
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from synthetic_runs import chain_runs

import replay
from replay.logs.frames import ReplayWarning
from replay.planning.grid import one_sweep
from replay.planning.kernel import fit_kernel
from replay.planning.planner import (
    Choice,
    SplitCosts,
    affordable,
    arms_beside,
    chance,
    own_runs,
    plan,
    simulate_choice,
)
from replay.plots.charts import planner_card

FAST = {"kernels": 6, "arms": (2,), "policies": ("round_robin",)}


@pytest.fixture(scope="module")
def pilot():
    return chain_runs(sizes=(1, 4), budget=8, seeds=range(4), frailty=8)


@pytest.fixture(scope="module")
def made(pilot):
    frame, children = pilot
    return plan(frame, children=children, budget=64, tau=0.6, **FAST)


def test_options_spend_the_budget_and_come_best_first_after_the_recommended_one(made):
    options = made.options
    assert (options["cost"] <= 64).all()
    assert (options["generations"] * options["children"] == options["cost"]).all()
    assert options["value"][1:].is_monotonic_decreasing
    first = options.iloc[0]
    assert (first["generations"], first["children"], first["arms"]) == (8, 8, 1)
    assert made.choice == Choice(generations=8, children=8)
    singles = options[options["arms"] == 1]
    assert sorted(singles["children"]) == [1, 2, 4, 8, 16, 32, 64]
    assert singles["p_best"].sum() == pytest.approx(1)
    assert set(options.loc[options["arms"] > 1, "policy"]) == {"round_robin"}
    assert str(made.choice) in str(made)
    assert "n = 8 runs, 64 calls of the pilot" in str(made)
    assert tuple(str(made).splitlines()[:2]) == made.summary
    assert all(html.escape(line) in made._repr_html_() for line in made.summary)


def test_nothing_is_forecast_beyond_what_the_pilot_saw(made):
    assert not made.inside
    assert np.isnan(made.p_tau)
    assert np.isnan(made.reached).all()
    assert made.budget_for_tau == np.inf
    outside = made.options[~made.options["inside"]]
    assert outside[["low", "high", "p_tau"]].isna().all(axis=None)
    assert "no forecast" in str(made)
    assert "probability" not in str(made)
    assert np.isfinite(made.outcomes).all()


@pytest.fixture(scope="module")
def swept():
    return chain_runs(sizes=(1, 2, 4, 8, 16), budget=16, seeds=range(6))


def test_inside_the_way_to_tau_is_forecast(swept):
    frame, children = swept
    easy, hard = (
        plan(frame, children=children, budget=16, tau=tau, arms=(), kernels=6) for tau in (0.3, 0.9)
    )
    assert easy.inside
    assert 0 < hard.p_tau < easy.p_tau < 1
    assert (np.diff(easy.reached) >= 0).all()
    assert easy.reached[-1] == easy.p_tau
    assert easy.budget_for_tau <= 16 < hard.budget_for_tau
    asked = frame.assign(n_calls=np.where(frame["generation"] > 0, frame["children"], 3))
    later = plan(asked, children=children, budget=19, tau=0.3, arms=(), kernels=6)
    assert later.budget_for_tau == easy.budget_for_tau + 3
    way, way_later = (planner_card(each).panels[2].marks[0].x for each in (easy, later))
    assert np.array_equal(way_later, way + 3)
    spent = int(easy.budget_for_tau / easy.choice.children)  # generations that are paid for
    assert (easy.reached[:spent] >= 0.9).tolist() == [False] * (spent - 1) + [True]
    assert f"probability {easy.p_tau:.2f}" in str(easy)
    option = easy.options.set_index("children").loc[easy.choice.children]
    assert option["p_tau"] == easy.p_tau
    assert len(easy.own) == 6
    assert np.interp(0.3, *easy.expected) == pytest.approx(easy.p_tau, abs=0.01)
    assert option["low"] < option["value"] < option["high"]


def test_one_run_of_one_child_forecasts_nothing():
    frame, children = chain_runs(sizes=(1,), budget=32, seeds=[3])
    made = plan(frame, children=children, budget=16, tau=0.4, arms=(), kernels=4)
    assert not made.options["inside"].any()
    assert np.isnan(made.p_tau)
    assert made.choice == Choice(generations=4, children=4)
    said = f"{made} {replay.advise(made)} {made._repr_html_()}"
    assert "n = 1 run, 32 calls" in said
    assert "one run shows no margin" in said
    assert "inf" not in said
    assert "takes 5 runs of at least 4 children and 4 generations, and one of at most 4" in said


@pytest.mark.parametrize(
    ("budget", "costs", "says"),
    [
        ({"calls": np.nan}, None, "expected a number of calls, got {'calls': nan}"),
        (64, {"call": 0.001}, "got 64, which pays for 64,000 at 0.001 each"),
    ],
)
def test_a_budget_that_is_refused_is_named(pilot, budget, costs, says):
    frame, children = pilot
    with pytest.raises(ValueError, match=re.escape(says)):
        plan(frame, children=children, budget=budget, costs=costs)


def test_a_pilot_without_children_is_named(pilot):
    frame, children = pilot
    with pytest.raises(ValueError, match=r"expected children of one task.*got generation 0 alone"):
        plan(frame, children=children[:0], budget=64)


def test_a_search_without_any_fitness_is_worth_minus_infinity():
    """Initial programs that fail: the rule says minus infinity, not the lowest that was logged."""
    frame, children = chain_runs(sizes=(1, 4), budget=8, seeds=range(8))
    start = frame["best_fitness"].min()
    frame["best_fitness"] = frame["best_fitness"].where(frame["best_fitness"] > start)
    at_start = children["parent_fitness"] == start
    children["parent_fitness"] = children["parent_fitness"].where(~at_start)
    children["fitness"] = children["fitness"].where(children["fitness"] != start)
    children["improved"] = children["improved"] | (at_start & children["fitness"].notna())
    kernel = fit_kernel(children)
    paths = simulate_choice([kernel], Choice(generations=8, children=1), rounds=8, runs=400)
    assert np.isneginf(paths[:, 0]).any()
    assert (paths[:, -1] >= paths[:, 0]).all()
    made = plan(frame, children=children, budget=8, tau=start, kernels=4, arms=(2,))
    assert 0 < (made.outcomes == -np.inf).mean() < 1
    assert "no forecast" in str(made) or made.p_tau < 1
    moved = plan(
        frame.assign(best_fitness=frame["best_fitness"] - 5),
        children=children.assign(
            fitness=children["fitness"] - 5, parent_fitness=children["parent_fitness"] - 5
        ),
        budget=8, tau=start - 5, best=-4.0, kernels=4, arms=(2,),
    )  # fmt: skip
    assert moved.choice == made.choice


def test_dear_generations_favour_breadth_and_dear_calls_depth(pilot):
    frame, children = pilot

    def breadth(costs, budget):
        made = plan(frame, children=children, budget=budget, costs=costs, arms=(), kernels=6)
        return made.options.set_index("children")["value"].idxmax()

    assert breadth({"generation": 60, "call": 1}, 512) > breadth(None, 64)


def test_a_rescored_log_beside_its_original_changes_no_plan(pilot, made):
    frame, children = pilot
    run = frame["run"].iloc[0]
    again = []
    for table in (frame, children):
        copy = table[table["run"] == run].assign(run="again", rescored=True)
        again.append(pd.concat([table.assign(rescored=False), copy], ignore_index=True))
    with pytest.warns(ReplayWarning, match="rescored logs of other runs"):
        found = plan(again[0], children=again[1], budget=64, tau=0.6, **FAST)
    assert str(found) == str(made)


def test_affordable_generations():
    assert affordable(8, SplitCosts()) == {1: 8, 2: 4, 4: 2, 8: 1}
    assert affordable(10, SplitCosts(call=1, evaluation=1, generation=2)) == {1: 2, 2: 1, 4: 1}
    assert affordable(0.3, SplitCosts(call=0.1)) == {1: 3, 2: 1}
    with pytest.raises(ValueError, match="at least one call"):
        affordable(0.5, SplitCosts())
    assert affordable(20_000, SplitCosts())[1] == 20_000
    with pytest.raises(ValueError, match=r"at most 20,000 generations of one child.* got 20001"):
        affordable(20_001, SplitCosts())


def test_a_budget_in_calls_is_said_as_elsewhere(pilot):
    how = {"children": pilot[1], "kernels": 2, "arms": ()}
    plain = plan(pilot[0], budget=32, **how)
    pd.testing.assert_frame_equal(
        plan(pilot[0], budget={"calls": 32}, **how).options, plain.options
    )
    for wrong in ({"dollars": 2}, "calls=32", True, None):
        with pytest.raises(TypeError, match="budget: expected a number of calls"):
            plan(pilot[0], budget=wrong, **how)
    with pytest.raises(TypeError, match="with costs= a number"):
        plan(pilot[0], budget={"calls": 32}, costs={"call": 1.0}, **how)


def test_several_arms_are_the_best_of_runs_that_share_the_rounds(pilot):
    """Round robin over K arms of R rounds is the best of K runs of R / K generations."""
    kernel = fit_kernel(pilot[1])
    choice = Choice(generations=16, children=2, arms=4, policy="round_robin")
    arms = simulate_choice([kernel], choice, rounds=16, runs=2000)[:, -1]
    runs = kernel.simulate(4, 2, runs=8000, seed=9)[:, -1].reshape(-1, 4).max(axis=1)
    error = np.hypot(arms.std(), runs.std()) / np.sqrt(2000)
    assert abs(arms.mean() - runs.mean()) < 4 * error


def test_without_children_the_logs_must_be_known(pilot):
    with pytest.raises(ValueError, match="pass children="):
        plan(pilot[0], budget=8)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": 0}, "at least one call"),
        ({"budget": 8, "costs": {"tokens": 1}}, "'call', 'evaluation', 'generation'"),
        ({"budget": 8, "costs": {"call": -1}}, "at least 0"),
        ({"budget": 8, "costs": {"generation": 1}}, "above 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(pilot, settings, words):
    with pytest.raises(ValueError, match=words):
        plan(pilot[0], children=pilot[1], **settings)


def test_arms_have_their_lead_over_one_run_and_its_margin(swept):
    worlds = list(fit_kernel(swept[1]).resampled(6))
    single = Choice(generations=8, children=2)
    small = {"arms": (2, 5), "policies": ("ucb1", "round_robin")}
    alone = simulate_choice(worlds, single, rounds=8, runs=50)[:, -1].reshape(6, -1).mean(axis=1)
    table = arms_beside(worlds, single, alone, 6, **small)
    assert table["arms"].tolist() == [2, 2]  # five arms would have less than two rounds each
    # Two rivals share the error; the deviation over worlds is that of the lead.
    pools = simulate_choice(worlds, replace(single, arms=2, policy="ucb1"), rounds=8)[:, -1]
    gaps = pools.reshape(6, -1).mean(axis=1) - alone
    factor = student.ppf(1 - 0.05 / 2, 5) * np.sqrt(6 / 5)
    first = table.iloc[0]
    assert first["ahead"] == pytest.approx(gaps.mean())
    assert first["margin"] == pytest.approx(factor * gaps.std(ddof=1))


def test_a_plan_without_proof_says_so_and_what_would_have_to_be_true(made):
    assert not made.departs
    first, then = made.summary
    assert first.startswith("No advice: no other way to spend 64 is clearly ahead of T = N")
    assert "would have been advised" in then
    split, pool = made.needed.itertuples()
    assert (split.arms, pool.arms) == (1, 2)
    for row in (split, pool):
        assert row.ahead <= row.margin
        assert f"more than {row.margin:.4f}; in simulation it leads by {row.ahead:+.4f}" in str(
            made
        )
    assert "would have been advised for a lead of more than" in str(made)
    others = made.options[(made.options["arms"] == 1) & (made.options["children"] != 8)]
    assert split.value == others["value"].max()


def test_t_equals_n_is_not_said_of_a_split_that_is_only_near_it(pilot):
    frame, children = pilot
    text = str(plan(frame, children=children, budget=32, arms=(), kernels=4))
    assert "clearly ahead of the split nearest to T = N and one run" in text


def test_a_lead_beyond_its_margin_is_followed_and_nothing_leads_what_is_advised():
    """Each generation costs as much as 200 calls, so breadth is far ahead."""
    frame, children = chain_runs(sizes=(1, 4, 16), budget=32, seeds=range(12))
    costs = {"generation": 400, "call": 1}
    made = plan(frame, children=children, budget=2048, costs=costs, arms=(), kernels=24)
    assert made.usual == Choice(generations=5, children=8)
    assert made.departs
    row = made.options.iloc[0]
    assert row["children"] == made.choice.children > 8
    assert row["ahead"] > row["margin"] > 0
    clear = made.options[made.options["ahead"] > made.options["margin"]]
    assert row["value"] >= clear["value"].max() or len(clear) > 1
    text = " ".join(str(made).split())
    assert f"leads the split nearest to T = N and one run by {row['ahead']:+.4f}" in text
    assert "No advice" not in text
    assert text.startswith("Spend the budget of 2048 on")


def test_a_clear_lead_is_named_before_a_larger_one_that_luck_accounts_for(made):
    """N = 1 is ahead by .1 with a margin of .05, and N = 2 by .2 with one of .3."""
    options = made.options.sort_values("children", ascending=False, kind="stable")
    first = made.options.index[:1]
    options = pd.concat([options.loc[first], options.drop(first)])
    options.loc[options["children"] == 1, ["ahead", "margin"]] = 0.1, 0.05
    options.loc[options["children"] == 2, ["ahead", "margin"]] = 0.2, 0.3
    changed = replace(made, options=options)
    assert changed.needed.iloc[0]["children"] == 1
    assert "N = 1 leads T = N and one run by +0.1000 too, beyond its margin of 0.0500" in str(
        changed
    )


def test_runs_of_the_pilot_count_for_every_depth_that_they_reached(pilot):
    sweep = one_sweep(pilot[0])
    deepest = int(sweep.depth[sweep.children == 4].max())
    whole = own_runs(sweep, deepest, 4)
    assert len(whole) == 4
    for T in range(1, deepest):
        np.testing.assert_array_equal(own_runs(sweep, T, 4), whole[:, :T])
    assert own_runs(sweep, deepest + 1, 4).shape == (0, deepest + 1)


def test_the_chance_of_a_fitness_counts_what_is_equal_to_it_and_the_pilots_own_runs():
    paths = np.array([[0.1, 0.5], [0.5, 0.5]])
    none, some = np.empty((0, 2)), np.array([[0.0, 0.5], [0.0, 0.4]])
    alone = chance(paths, none, 0.5)
    assert alone == pytest.approx([20.5 / 41, 40.5 / 41])
    assert ((alone > 0) & (alone < 1)).all()
    assert chance(paths, some, 0.5) == pytest.approx([20.5 / 43, 41.5 / 43])


def test_the_pool_with_the_largest_clear_lead_is_advised(swept, monkeypatch):
    frame, children = swept
    found = pd.DataFrame(
        {"generations": 4, "children": 4, "arms": [2, 2, 2], "policy": ["ucb1", "random", "single"],
         "value": 0.5, "ahead": [0.1, 0.3, 0.9], "margin": [0.05, 0.05, 2.0]}
    )  # fmt: skip
    monkeypatch.setattr("replay.planning.planner.arms_beside", lambda *_, **__: found)
    made = plan(frame, children=children, budget=16, arms=(2,), kernels=4)
    assert (made.choice.arms, made.choice.policy) == (2, "random")


@pytest.mark.parametrize(("rounds", "arms"), [(3, []), (4, [2]), (9, [2]), (10, [2, 5])])
def test_every_arm_has_two_rounds_at_least(swept, rounds, arms):
    kernel = fit_kernel(swept[1])
    single = Choice(generations=rounds, children=1)
    found = arms_beside([kernel] * 3, single, np.zeros(3), 6, arms=(2, 5), policies=["ucb1"])
    assert found.get("arms", pd.Series(dtype=int)).tolist() == arms


def test_a_run_of_the_pilot_says_nothing_of_a_search_with_several_arms(swept, monkeypatch):
    frame, children = swept
    found = pd.DataFrame(
        {"generations": 4, "children": 4, "arms": [2], "policy": ["random"], "value": 0.5,
         "ahead": [0.1], "margin": [0.05]}
    )  # fmt: skip

    def reached(fitness: float, arms: pd.DataFrame) -> list[float]:
        own = np.full((6, 4), fitness)
        monkeypatch.setattr("replay.planning.planner.own_runs", lambda *_: own)
        monkeypatch.setattr("replay.planning.planner.arms_beside", lambda *_, **__: arms)
        made = plan(frame, children=children, budget=16, arms=(2,), kernels=4, tau=0.5)
        return made.reached.tolist()

    assert reached(0.0, found) == reached(1.0, found)
    assert reached(0.0, found[:0]) != reached(1.0, found[:0])


def test_calls_that_an_evaluation_makes_itself_are_paid_for(pilot, made):
    frame, children = pilot
    asked = frame.assign(n_calls=np.where(frame["generation"] > 0, 5 * frame["children"], 4))
    found = plan(asked, children=children, budget=5 * 64 + 4, tau=0.6, **FAST)
    assert found.choice == made.choice
    assert found.pilot_calls == asked["n_calls"].sum() == 5 * made.pilot_calls + 4 * made.pilot_runs
    single = found.options["arms"] == 1
    assert (found.options["cost"] == 5 * made.options["cost"] + 4)[single].all()
    assert "each initial program costs 4" in str(found)
    assert "each child with its evaluation costs 5" in str(found)
    assert "each child with its evaluation" not in str(made)


def test_each_arm_of_a_plan_pays_for_its_initial_program(pilot):
    frame, children = pilot
    asked = frame.assign(n_calls=np.where(frame["generation"] > 0, frame["children"], 6))
    budget = 64 + 6
    found = plan(asked, children=children, budget=budget, **FAST | {"arms": (2, 3)}).options
    assert {*found["arms"]} == {1, 2, 3}
    spent = found["generations"] * found["children"] + 6 * found["arms"]
    assert found["cost"].tolist() == spent.tolist()
    assert found["cost"].max() <= budget
    assert (found["cost"] + found["children"]).min() > budget  # and no further generation is paid
