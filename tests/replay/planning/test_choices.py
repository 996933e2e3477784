"""Ways to spend a budget, what they cost, and how a plan says which one it advises."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from replay.planning.choices import BudgetPlan, Choice, SplitCosts

USUAL = Choice(generations=8, children=8)
DEEP = Choice(generations=16, children=4)
POOL = Choice(generations=8, children=8, arms=3, policy="ucb1")


def options(*rows):
    """Rows of (choice, ahead, margin), the recommended one first."""
    return pd.DataFrame(
        [
            {
                "generations": each.generations, "children": each.children, "arms": each.arms,
                "policy": each.policy, "cost": 64.0, "value": 0.5, "inside": True, "low": 0.4,
                "high": 0.6, "p_tau": np.nan, "ahead": ahead, "margin": margin, "p_best": 0.5,
                "tied": True, "replayed": False,
            }
            for each, ahead, margin in rows
        ]
    )  # fmt: skip


def made(table, choice=USUAL, **changes):
    fields = {
        "task": "toy", "model": "offline", "budget": 64, "costs": SplitCosts(), "choice": choice,
        "usual": USUAL, "over": USUAL, "inside": True, "options": table,
        "outcomes": np.linspace(0.5, 0.7, 101), "tau": None, "p_tau": None,
        "budget_for_tau": None, "reached": np.empty(0), "pilot_runs": 8, "pilot_calls": 512,
    }  # fmt: skip
    return BudgetPlan(**{**fields, **changes})


PLAIN = options((USUAL, 0.0, 0.0), (DEEP, 0.02, 0.05), (POOL, 0.01, 0.04))


@pytest.mark.parametrize(
    ("costs", "children", "cost"),
    [((1, 0, 0), 8, 8), ((2, 0.5, 0), 8, 20), ((1, 0, 3), 8, 11), ((1, 2, 3), 1, 6)],
)
def test_a_generation_costs_its_children_and_what_it_costs_whatever_they_are(costs, children, cost):
    assert SplitCosts(*costs).of_generation(children) == cost


def test_a_choice_says_what_it_is():
    assert str(USUAL) == "one run of T = 8 generations of N = 8 children"
    single = replace(USUAL, generations=1, children=1)
    assert str(single) == "one run of T = 1 generation of N = 1 child"
    assert str(POOL) == "K = 3 arms of N = 8 children under ucb1 (reward: the rank), 8 rounds"


def test_a_plan_that_departs_says_by_how_much_and_from_what():
    table = options((DEEP, 0.08, 0.05), (USUAL, 0.0, 0.0), (POOL, 0.01, 0.04))
    plan = made(table, DEEP)
    assert plan.departs
    assert "on one run of T = 16" in str(plan)
    assert (
        "in simulation it leads T = N and one run by +0.0800, beyond its margin of 0.0500"
        in str(plan)
    )
    table.loc[0, "replayed"] = True
    assert "replayed on the pilot's runs it leads" in str(made(table, DEEP))
    pool = made(table, POOL, over=DEEP)
    assert "it leads one run of T = 16 generations of N = 4 children by" in str(pool)
    assert not made(PLAIN).departs


def test_what_would_have_been_needed_is_the_best_split_and_the_best_pool():
    other = Choice(generations=32, children=2)
    table = options(
        (USUAL, 0.0, 0.0),
        (DEEP, 0.02, 0.05),
        (other, 0.03, 0.01),
        (POOL, 0.01, 0.04),
        (replace(POOL, arms=5), 0.2, 0.3),
    )
    needed = made(table).needed
    # The one with a clear lead before one that is ahead of it in the list.
    assert needed[["children", "arms"]].to_numpy().tolist() == [[2, 1], [8, 3]]
    assert "clear" not in needed
    text = str(made(table))
    assert "N = 2 leads T = N and one run by +0.0300 too, beyond its margin of 0.0100" in text
    assert "K = 3 arms (ucb1) would have been advised for a lead of more than 0.0400" in text
    assert "in simulation it leads by +0.0100" in text
    base = options((USUAL, 0.0, 0.0), (DEEP, 0.0, 0.0))
    assert made(base).needed.empty  # without a margin it is what others are compared with


@pytest.mark.parametrize(("ahead", "leads"), [(0.05, False), (0.0500001, True)])
def test_a_lead_that_equals_its_margin_is_not_clear(ahead, leads):
    table = options((USUAL, 0.0, 0.0), (DEEP, ahead, 0.05))
    assert ("beyond its margin" in str(made(table))) == leads
    assert ("would have been advised" in str(made(table))) != leads


def test_the_usual_split_is_called_t_equals_n_only_where_it_is():
    near = Choice(generations=9, children=7)
    assert "ahead of the split nearest to T = N and one run" in str(made(PLAIN, near, usual=near))
    assert "ahead of T = N and one run" in str(made(PLAIN))


def test_splits_that_cannot_be_told_apart_are_listed_where_there_are_several():
    assert "the pilot cannot tell apart N = 4, 8" in str(made(PLAIN))
    apart = PLAIN.assign(tied=[True, False, True])  # pools are no splits
    assert "cannot tell apart" not in str(made(apart))


def test_the_price_of_a_child_is_said_unless_it_is_one():
    words = "each child with its evaluation costs"
    assert words not in str(made(PLAIN))
    assert f"{words} 1.5 of the budget" in str(made(PLAIN, costs=SplitCosts(1, 0.5, 9)))


def test_outcomes_are_shown_by_their_middle_and_ninety_percent():
    text = str(made(PLAIN))
    assert "fitness: median 0.6000, 90 % of searches in [0.5060, 0.6940]" in text
    beyond = made(PLAIN, inside=False)
    assert str(beyond).endswith(f"no forecast of the fitness: {beyond.beyond}")
    assert "median" not in str(beyond)
    assert "5 runs of at least 8 children and 8 generations, and one of at most" in beyond.beyond
    assert not made(PLAIN).beyond


@pytest.mark.parametrize(
    ("bound", "words"),
    [(128.0, "90 % need a budget of 128"), (np.inf, "90 % need a budget of more than 64")],
)
def test_the_way_to_tau_is_said_where_one_was_asked_for(bound, words):
    plan = made(PLAIN, tau=0.65, p_tau=0.25, budget_for_tau=bound)
    assert f"reaches 0.65 with probability 0.25; {words}" in str(plan)
    assert "reaches" not in str(made(PLAIN))
