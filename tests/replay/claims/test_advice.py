"""Decisions in words: what to do, how sure that is, what would change it."""

import re
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame, chain_runs

import replay


def sides(lead: float, seeds: int = 12, noise: float = 0.1) -> pd.DataFrame:
    """Runs under two searches, of which `a` leads."""
    rng, parts = np.random.default_rng(1), []
    for name, more in (("a", lead), ("b", 0.0)):
        best = 0.5 + more + noise * rng.normal(size=(seeds, 1)) + np.zeros((seeds, 5))
        first = 100 * (name == "b")
        made = as_frame(best, children=1, seeds=range(first, first + seeds))
        parts.append(made.assign(search=name, run=name + made["run"].astype(str)))
    return pd.concat(parts, ignore_index=True)


def judged(lead: float, **settings: float) -> replay.claims.verdict.Verdict:
    return replay.judge(sides(lead), {"search": "a"}, {"search": "b"}, **settings)


@pytest.mark.parametrize(
    ("lead", "says"), [(0.5, "Use search = a rather"), (-0.5, "Use search = b")]
)
def test_the_better_side_is_named_with_its_n(lead: float, says: str) -> None:
    verdict = judged(lead)
    said = replay.advise(verdict)
    assert said.startswith(says)
    assert f"n = {verdict.n} runs" in said
    assert verdict.power > 0.995
    assert "with a probability of more than 0.99." in said


def test_what_is_open_says_how_many_runs_would_decide_it() -> None:
    verdict = judged(0.02)
    said = replay.advise(verdict)
    assert said.startswith("No decision")
    assert f"{verdict.runs_needed:,.0f} more runs" in said
    assert replay.advise(judged(0.0, margin=0.5)).startswith("Take either")


def test_many_policies_make_none_look_better_than_it_is() -> None:
    rng = np.random.default_rng(0)
    frame = as_frame(np.sort(rng.random((20, 17)), axis=1), children=1, seeds=range(20))
    verdicts = [replay.judge(frame, name, "single") for name in ("random", "ucb1", "thompson")]
    said = replay.advise(*verdicts)
    assert all(each.a in said for each in verdicts)
    assert said.count("n = 20 runs") == 1


def searches(**leads: float) -> pd.DataFrame:
    """Runs under several searches, each with its lead."""
    parts = [sides(lead).query("search == 'a'").assign(search=n) for n, lead in leads.items()]
    return pd.concat([part.assign(run=part["search"] + part["run"]) for part in parts])


@pytest.mark.parametrize("ahead", [0.0, 0.5])
def test_several_verdicts_name_what_is_worse_and_what_is_open(ahead: float) -> None:
    frame = pd.concat([searches(a=ahead, c=-0.5, d=-0.01), sides(0.0).query("search == 'b'")])
    verdicts = [replay.judge(frame, {"search": name}, {"search": "b"}) for name in "acd"]
    said = replay.advise(*verdicts)
    assert "search = b is better than search = c, which differs by -0.476 [" in said
    assert "none is shown" not in said
    if ahead:
        assert said.startswith("Use search = a rather than search = b")
        assert "No decision between search = b and search = d." in said
    else:
        assert "No decision between search = b and search = a, search = d (Holm's" in said


def test_verdicts_must_have_one_baseline() -> None:
    frame = sides(0.5)
    one, other = ({"search": name} for name in "ab")
    verdicts = replay.judge(frame, one, other), replay.judge(frame, other, one)
    with pytest.raises(ValueError, match="same second side"):
        replay.advise(*verdicts)
    with pytest.raises(ValueError, match="expected verdicts"):
        replay.advise()


def test_a_verdict_that_only_others_hold_back_says_so_with_both_p() -> None:
    frame = sides(0.04, seeds=14)
    parts = [frame, *(sides(0.0, seeds=14).query("search == 'a'").assign(search=n) for n in "cdef")]
    frame = pd.concat([part.assign(run=part["search"] + part["run"]) for part in parts])
    verdicts = [replay.judge(frame, {"search": name}, {"search": "b"}) for name in "acdef"]
    first = verdicts[0]
    assert first.verdict == "greater"
    said = replay.advise(*verdicts)
    assert said.startswith("No decision")
    assert f"p = {first.p:.3g} alone, {5 * first.p:.3g} among 5 comparisons (Holm)" in said
    assert "alone it would be decided" in said
    assert "alone" not in replay.advise(first)


def test_runs_in_place_of_a_result_are_answered_with_the_call() -> None:
    with pytest.raises(ValueError, match=r"expected a result.*replay\.advise\(replay\.compare"):
        replay.advise(sides(0.5))


def test_over_tasks_the_leader_and_what_is_open_are_named() -> None:
    clear, close = sides(0.6).assign(task="t"), sides(0.02).assign(task="t")
    assert replay.advise(replay.compare(clear, by="search")).startswith("Use a.")
    found = replay.compare(close, by="search")
    [needed] = found.verdicts["runs_needed"]
    start = r"No decision between [ab], which has the highest interquartile mean"
    assert re.match(start, replay.advise(found))
    assert f"{needed:,.0f} more runs" in replay.advise(found)
    assert replay.compare(clear, by="search").verdicts["runs_needed"].tolist() == [0]


def test_a_grid_says_whether_to_leave_the_usual_split() -> None:
    rng, parts = np.random.default_rng(0), []
    for size in (1, 2, 4, 8, 16):
        best = 0.5 + 0.3 * (size == 1) + 0.01 * rng.normal(size=(10, 1)) + np.zeros(16 // size + 1)
        parts.append(as_frame(best, children=size, seeds=range(10)))
    said = replay.advise(replay.depth_breadth(pd.concat(parts, ignore_index=True), resamples=50))
    assert "16 calls: Use the best of 5 splits (T = 16, N = 1" in said
    assert "rather than T = 4, N = 4" in said


def usual_split_ahead(seeds: int) -> pd.DataFrame:
    """Runs of a budget of 16 calls, of which T = N = 4 reaches most."""
    rng, parts = np.random.default_rng(0), []
    for size in (1, 4, 16):
        ends = 0.5 + 0.3 * (size == 4) + 0.01 * rng.normal(size=(seeds, 1))
        parts.append(as_frame(ends + np.zeros(16 // size + 1), children=size, seeds=range(seeds)))
    return pd.concat(parts, ignore_index=True)


def test_of_the_usual_split_that_looks_best_a_grid_says_what_would_change_it() -> None:
    said = replay.advise(replay.depth_breadth(usual_split_ahead(10), resamples=50))
    assert "16 calls: Stay with T = 4, N = 4" in said
    assert "with probability 1.00 (n = 10 runs of each). What would change that:" in said


@pytest.mark.parametrize("seeds", [1, 2, 4])
def test_a_grid_of_few_seeds_decides_nothing_and_says_how_many_it_takes(seeds: int) -> None:
    said = replay.advise(replay.depth_breadth(usual_split_ahead(seeds), resamples=50))
    assert f"No decision among 3 splits: n = {seeds} is too small for an interval" in said
    assert "More seeds would change that." in said
    assert "nan" not in said


def test_a_grid_of_one_size_says_that_a_budget_has_to_be_split() -> None:
    frame = usual_split_ahead(6)
    said = replay.advise(replay.depth_breadth(frame[frame["children"] == 4], resamples=50))
    assert "No decision: no budget was split in two ways." in said


def test_a_ledger_says_whether_policies_beat_one_run() -> None:
    rng = np.random.default_rng(0)
    frame = as_frame(np.sort(rng.random((20, 17)), axis=1), children=1, seeds=range(20))
    table = replay.ledger({"toy": frame}, policies=("ucb1", "random"))
    said = replay.advise(table)
    assert "ucb1" in said
    assert said.count("one run") == 1
    family = int((table["family"] == "policies").sum())
    left_open = replay.advise(table.assign(verdict="undetermined"))
    assert family == 4
    assert f"(Holm's rule over {family} comparisons)" in left_open


def test_a_ledger_of_few_runs_decides_nothing_and_says_how_many_it_takes() -> None:
    rng = np.random.default_rng(0)
    frame = as_frame(np.sort(rng.random((6, 17)), axis=1), children=1, seeds=range(6))
    said = replay.advise(replay.ledger({"toy": frame}))
    assert "No decision between one run and policies: the question needs 10 runs" in said
    assert "has 6 of 16. More runs would change that." in said


def test_a_plan_says_how_to_spend_its_budget_and_what_would_change_that() -> None:
    frame, children = chain_runs(sizes=(1, 4), budget=16, seeds=range(4))
    plan = replay.plan(frame, budget=64, children=children, arms=(), kernels=6)
    said = replay.advise(plan)
    start = "Spend the budget of 64 on" if plan.departs else "Stay with one run of"
    assert said.startswith(start)
    assert f"n = {plan.pilot_runs} runs" in said
    assert "What would change that" in said


def test_of_ways_that_a_plan_leaves_those_ahead_say_which_pilot_would_show_it() -> None:
    frame, children = chain_runs(sizes=(1, 4), budget=16, seeds=range(4))
    plan = replay.plan(frame, budget=64, children=children, arms=(), kernels=6)
    first = plan.needed.iloc[:1]
    assert not plan.departs
    for ahead, says in ((0.5, True), (-0.5, False), (2.0, False)):
        needed = first.assign(ahead=ahead, margin=1.0)
        with patch.object(type(plan), "needed", needed):
            said = replay.advise(plan)
        assert ("runs in the pilot would show it" in said) == says


def test_a_pilot_of_more_than_a_hundred_times_as_many_runs_is_not_counted_in_runs() -> None:
    frame, children = chain_runs(sizes=(1, 4), budget=16, seeds=range(4))
    plan = replay.plan(frame, budget=64, children=children, arms=(), kernels=6)
    first = plan.needed.iloc[:1]
    for ahead, counted in ((0.11, True), (0.09, False)):
        with patch.object(type(plan), "needed", first.assign(ahead=ahead, margin=1.0)):
            said = replay.advise(plan)
        assert ("runs in the pilot would show it" in said) == counted
        assert ("only a pilot of more than 100 times as many runs would show it" in said) != counted


def test_a_contest_of_several_policies_is_decided_by_holms_rule_over_those_with_a_p() -> None:
    rng = np.random.default_rng(0)
    frame = as_frame(np.sort(rng.random((20, 17)), axis=1), children=1, seeds=range(20))
    contest = replay.compete(frame, ["thompson", "ucb1"], arms=4)
    said = replay.advise(contest)
    assert said.startswith("Stay with one run: none of thompson, ucb1 is better. The best of them")
    rows = contest.effects["policy"] == "ucb1"
    contest.effects.loc[rows, ["low", "high"]] = np.nan  # as where it cannot be told
    said = replay.advise(contest)
    assert said.startswith("one run is better than thompson, which differs by")
    assert "No decision between one run and ucb1 (Holm" in said


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.thorough
def test_a_contest_needs_as_many_more_runs_as_judge_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = 0.04 * rng.random((10, 1)) * (rng.random((10, 17)) < 0.5)
    frame = as_frame(steps.cumsum(axis=1), children=1, seeds=range(10))
    verdict = replay.judge(frame, "thompson", "single", arms=2)
    said = replay.advise(replay.compete(frame, ["thompson"], arms=2))
    assert verdict.verdict == "undetermined"
    assert f"{verdict.runs_needed:,.0f} more runs" in said
    both = replay.advise(replay.compete(frame, ["thompson", "ucb1"], arms=2))
    assert both.startswith("No decision")
    assert "alone it would be decided" not in both


def test_a_contest_says_that_few_runs_keep_a_decision_back() -> None:
    fitness = np.sort(np.random.default_rng(0).random((10, 9)), axis=1)
    contest = replay.compete(as_frame(fitness, children=1, seeds=range(10)), ["ucb1"], arms=2)
    rows = contest.effects["effect"] == "policy"
    for low, held in ((0.01, True), (-0.01, False)):
        contest.effects.loc[rows, ["value", "low", "high"]] = [0.06, low, 0.12 - low]
        said = replay.advise(contest)
        assert said.startswith("No decision between ucb1 and one run")
        assert (
            "excludes 0, but the wider one that decides below 20 runs does not." in said
        ) == held


def test_a_contest_says_why_an_effect_has_no_interval() -> None:
    fitness = np.random.default_rng(0).random((5, 9)).cumsum(axis=1)
    fitness -= fitness[:, :1]
    few = replay.compete(as_frame(fitness, children=1, seeds=range(5)), ["ucb1"], arms=3)
    assert "no interval: policies need at least five runs" in replay.advise(few)
    assert "for K = 3 there are 5: 1 more is needed" in replay.advise(few)
    equal = as_frame(np.tile(fitness[0], (5, 1)), children=1, seeds=range(5))
    said = replay.advise(replay.compete(equal, ["ucb1"], arms=2))
    assert "all values are equal" in said
    assert "too small" not in said


def test_an_open_comparison_names_the_lead_over_the_next_best() -> None:
    rng, parts = np.random.default_rng(0), []
    for name, mean in {"first": 0.6, "second": 0.6, "third": 0.55}.items():
        ends = mean + 0.1 * rng.normal(size=(8, 1)) + np.zeros(5)
        parts.append(as_frame(ends, children=1, seeds=range(8)).assign(search=name, task="t"))
        parts[-1]["run"] = name + parts[-1]["run"].astype(str)
    found = replay.compare(pd.concat(parts, ignore_index=True), by="search")
    _leader, runner, *_ = found.table["configuration"]
    said = replay.advise(found)
    assert f"Its lead over {runner} is" in said or f"{runner} is ahead of it" in said
    assert "show it among 3 comparisons" in said
