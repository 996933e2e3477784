"""One choice of the budget explorer in words and as a table."""

import math

import numpy as np
import pytest
from explored import without

from replay.explorers.budget_data import NAMES, outlook
from replay.explorers.budget_view import BudgetView, costs_in_words, limits_in_words
from replay.statistics.intervals import Interval
from replay.statistics.numbers import number


@pytest.fixture(scope="module")
def known(sweep):
    return outlook(sweep[0], None)


def view_of(known, *splits, axis="calls", tau=0.5, **how):
    """The view of these splits, each as (T, N), or None."""
    found = [place and known.split(*place, axis=axis, tau=tau) for place in splits]
    return BudgetView(outlook=known, axis=axis, tau=tau, splits=tuple(found), **how)


def test_the_words_name_the_choice_its_cost_and_those_neighbours_that_there_are(known):
    words = view_of(known, (4, 4), (8, 2), (2, 8)).words
    assert words.startswith("toy, chain: T = 4 generations of N = 4 children (C = 16 calls)")
    assert "(n = 10 runs, logged)" in words
    assert "A run reaches τ = 0.5 with probability" in words
    assert "A run costs 16 calls, " in words
    for name, (T, N) in zip(NAMES[1:], ((8, 2), (2, 8)), strict=True):
        value = known.split(T, N, axis="calls", tau=0.5).fitness.last
        assert f"{name.capitalize()}, T = {T} and N = {N}: {value}." in words
    single = view_of(known, (1, 8), None, None).words
    assert "T = 1 generation of N = 8 children (C = 8 calls)" in single
    alone = view_of(known, (4, 4), None, None).words
    assert not any(f"{name.capitalize()}, T" in alone for name in NAMES[1:])
    assert "Runs chosen" not in alone
    assert "predicted" not in words
    assert known.behind[4, 4].words() in words


def test_runs_that_are_chosen_are_named_with_what_they_reach(known):
    runs = tuple(known.one_run(f"toy-chain-4-{k}", "calls") for k in (1, 0))
    words = view_of(known, (4, 4), None, None, runs=runs).words
    assert f"Runs chosen: {runs[0].words(4)}; {runs[1].words(4)}." in words


@pytest.mark.parametrize("axis", ["calls", "generation", "tokens"])
def test_a_table_has_a_row_for_each_generation_of_each_split(known, axis):
    view = view_of(known, (4, 4), None, (2, 8), axis=axis)
    table = view.table()
    assert table["split"].tolist() == [NAMES[0]] * 4 + [NAMES[2]] * 2
    assert table["generation"].tolist() == [1, 2, 3, 4, 1, 2]
    assert table["logged"].all()
    column = "cost" if axis == "generation" else axis
    assert table[column].tolist() == [x for s in view.splits if s for x in s.fitness.x]
    own = table[table["split"] == NAMES[0]]
    assert own["fitness"].tolist() == view.splits[0].fitness.value.tolist()
    assert own["reached"].tolist() == view.splits[0].reached.value.tolist()


def test_a_prediction_beside_what_was_logged_is_explained(sweep):
    known = outlook(*without(sweep, 4))
    words = view_of(known, (8, 2), (4, 4), None).words
    assert "(n = 10 runs, logged)" in words
    assert " (predicted)." in words
    assert "of logged means" in words
    assert "of predictions" in words
    never = view_of(known, (4, 4), None, None).words
    assert "never run: the kernel's prediction" in never
    assert "of logged means" not in never


def test_generations_that_nobody_ran_are_not_said_to_be_logged(known):
    view = view_of(known, (4, 4), None, None)
    split = view.splits[0]
    object.__setattr__(split.fitness, "logged", 3)
    try:
        assert view.table()["logged"].tolist() == [True, True, True, False]
    finally:
        object.__setattr__(split.fitness, "logged", 4)


@pytest.mark.parametrize("logged", [True, False])
@pytest.mark.parametrize("predicted", [True, False])
@pytest.mark.parametrize("interval", ["95 % interval", "no interval"])
def test_brackets_are_explained_for_what_is_shown(logged, predicted, interval):
    words = limits_in_words(interval, logged=logged, predicted=predicted)
    assert ("of logged means" in words) == (logged and interval != "no interval")
    assert ("of predictions" in words) == predicted
    assert words.endswith("of the probability.")
    assert words.count(";") == words.count(", of ") - 1


def made(value, low=math.nan, high=math.nan):
    return Interval(value=value, low=low, high=high, n=5)


def test_costs_are_stated_with_their_interval_and_unknown_ones_are_named():
    costs = {"tokens": made(1500.0, 1400.0, 1600.0), "dollars": made(math.nan)}
    words = costs_in_words(4, 8, costs, offline=False)
    limits = ", ".join(map(number, (1400.0, 1600.0)))
    assert words == (f"32 calls, {number(1500.0)} tokens [{limits}] (FLOPs and dollars unknown)")
    roughly = costs_in_words(4, 8, {"tokens": made(1500.0)}, offline=True)
    assert roughly == f"32 calls, about {number(1500.0)} tokens"


def test_the_offline_model_has_no_price_that_could_be_unknown_but_tokens():
    assert costs_in_words(1, 2, {}, offline=True) == "2 calls (tokens unknown)"
    assert costs_in_words(1, 1, {}, offline=True) == "1 call (tokens unknown)"
    assert costs_in_words(1, 2, {}, offline=False).endswith(
        "(tokens and FLOPs and dollars unknown)"
    )
    stated = {"tokens": made(3.0), "flops": made(2.0)}
    assert "FLOPs" in costs_in_words(1, 2, stated, offline=True)
    assert "unknown" not in costs_in_words(1, 2, stated, offline=True)


def test_probabilities_lie_between_nothing_and_certainty(known):
    for tau in (0.0, 0.5, 2.0):
        table = view_of(known, (4, 4), (8, 2), (2, 8), tau=tau).table()
        assert np.logical_and(table["reached"] >= 0, table["reached"] <= 1).all()


def test_calls_that_are_not_for_children_are_stated_beside_those_for_them():
    costs = {"calls": made(44.0, 40.0, 48.0), "tokens": made(1500.0)}
    assert costs_in_words(4, 2, costs, offline=True) == (
        "8 calls for children, 44 calls of all kinds [40, 48], about 1.5k tokens"
    )
