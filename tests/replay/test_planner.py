import numpy as np
import pandas as pd
import pytest
from synthetic_runs import chain_runs

from replay.forecast import (
    HORIZON,
    Choice,
    affordable,
    choose_split,
    plan,
    simulate_choice,
    tied_splits,
)

FAST = {"kernels": 6, "arms": (2,), "policies": ("round_robin",)}


@pytest.fixture(scope="module")
def pilot():
    return chain_runs(sizes=(1, 4), budget=8, seeds=range(4), frailty=8)


@pytest.fixture(scope="module")
def made(pilot):
    frame, children = pilot
    return plan(frame, children=children, budget=64, tau=0.6, **FAST)


def test_options_spend_the_budget_and_come_best_first(made):
    options = made.options
    assert (options["cost"] <= 64).all()
    assert (options["generations"] * options["children"] == options["cost"]).all()
    assert options["value"].is_monotonic_decreasing
    singles = options[options["arms"] == 1]
    assert sorted(singles["children"]) == [1, 2, 4, 8, 16, 32, 64]
    assert singles["p_best"].sum() == pytest.approx(1)
    assert (singles["regret"] >= 0).all()
    assert set(options.loc[options["arms"] > 1, "policy"]) == {"round_robin"}


def test_the_choice_is_among_the_options(made):
    choice = made.choice
    rows = made.options[["generations", "children", "arms", "policy"]].itertuples(index=False)
    assert (choice.generations, choice.children, choice.arms, choice.policy) in set(
        map(tuple, rows)
    )
    text = str(made)
    assert str(choice) in text
    assert "8 runs, 64 calls" in text


def test_the_way_to_tau(made):
    assert 0 <= made.p_tau <= 1
    assert (np.diff(made.reached) >= 0).all()
    assert made.reached[made.choice.generations - 1] == pytest.approx(made.p_tau)
    assert len(made.reached) == HORIZON * made.choice.generations
    if np.isfinite(made.budget_for_tau):
        rounds = round(made.budget_for_tau / made.choice.children)
        assert made.reached[rounds - 1] >= 0.9 > made.reached[rounds - 2]


def test_a_harder_goal_is_less_likely_and_dearer(pilot):
    frame, children = pilot
    easy, hard = (
        plan(frame, children=children, budget=32, tau=tau, arms=(), kernels=6) for tau in (0.4, 0.9)
    )
    assert easy.p_tau > hard.p_tau
    assert easy.budget_for_tau < hard.budget_for_tau


def test_equal_seeds_give_equal_plans(pilot, made):
    frame, children = pilot
    again = plan(frame, children=children, budget=64, tau=0.6, **FAST)
    pd.testing.assert_frame_equal(again.options, made.options)
    np.testing.assert_array_equal(again.outcomes, made.outcomes)


def test_dear_generations_favour_breadth_and_dear_calls_depth(pilot):
    frame, children = pilot

    def breadth(costs, budget):
        return plan(
            frame, children=children, budget=budget, costs=costs, arms=(), kernels=6
        ).choice.children

    assert breadth({"generation": 60, "call": 1}, 512) > breadth(None, 64)


def test_affordable_generations():
    from replay.forecast import Costs

    assert affordable(8, Costs()) == {1: 8, 2: 4, 4: 2, 8: 1}
    assert affordable(10, Costs(call=1, evaluation=1, generation=2)) == {1: 2, 2: 1, 4: 1}
    assert affordable(0.3, Costs(call=0.1)) == {1: 3, 2: 1}
    with pytest.raises(ValueError, match="at least one call"):
        affordable(0.5, Costs())


def test_several_arms_are_the_best_of_runs_that_share_the_rounds(pilot):
    """Round robin over K arms of R rounds is the best of K runs of R / K generations."""
    from replay.kernel import fit_kernel

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


def test_splits_that_worlds_cannot_tell_apart_are_tied():
    """N = 1, 2, 4, 8: the second is best; the first is worse in every world, the third in some."""
    by_world = np.array([[0.5, 0.6, 0.5, 0.1], [0.5, 0.6, 0.69, 0.1], [0.5, 0.6, 0.6, 0.1]])
    assert tied_splits(by_world).tolist() == [False, True, True, False]
    assert choose_split(by_world, {1: 8, 2: 4, 4: 2, 8: 1}) == 2
    assert choose_split(by_world, {1: 64, 2: 32, 4: 16, 8: 8}) == 4
    sure = np.array([[0.9, 0.6, 0.5, 0.1]])
    assert choose_split(sure, {1: 8, 2: 4, 4: 2, 8: 1}) == 1
