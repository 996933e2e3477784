import math
import re

import numpy as np
import pytest
from synthetic_runs import as_frame, bilinear_runs

import replay
from replay.claims.questions import QUESTIONS, REPLIES, answer, question
from replay.plots import charts


def row(**changes):
    known = {
        "claim": "a pool beats one run", "why": "", "value": 0.0123, "low": 0.004, "high": 0.0204,
        "n": 10, "p_holm": 0.02, "detectable": 0.011, "verdict": "greater",
    }  # fmt: skip
    return known | changes


def test_an_answer_states_effect_interval_and_runs():
    assert answer(row()) == "Yes: +0.0123 (0.004 to 0.0204), n = 10 runs"
    less = row(value=-0.0123, low=-0.0204, high=-0.004, verdict="less")
    assert answer(less) == "No, the opposite: -0.0123 (-0.0204 to -0.004), n = 10 runs"


def test_an_open_question_says_what_so_many_runs_would_have_shown():
    said = answer(row(verdict="undetermined", p_holm=0.31))
    assert said.startswith("Not shown: +0.0123 (0.004 to 0.0204), n = 10 runs, p = 0.31 after")
    assert said.endswith("so many runs show 0.011 in 80% of studies")
    assert "studies" not in answer(row(verdict="undetermined", detectable=math.nan))
    one = answer(row(verdict="undetermined", high=math.nan))
    assert "(at least 0.004)" in one


def test_an_open_question_whose_interval_excludes_0_says_why_it_is_open():
    chance = answer(row(verdict="undetermined", p_holm=0.4, null_p=0.4))
    assert "p = 0.4 after correction; the interval excludes 0, but where nothing can be" in chance
    assert "at least this effect has probability 0.4; so many runs" in chance
    below = {"value": -0.008, "low": -0.0135, "high": -0.0024, "p_holm": 1.0, "p_opposite": 0.08}
    few = answer(row(verdict="undetermined", **below, held_back=True))
    assert "p of the opposite = 0.08 after correction" in few
    assert "excludes 0, but the wider one that decides below 20 runs does not; so many" in few
    many = answer(row(verdict="undetermined", **below, held_back=False))
    assert "the interval of this question alone excludes 0, the correction for all" in many
    assert "excludes" not in answer(row(verdict="undetermined", low=-0.1))


def test_what_cannot_be_asked_says_why():
    assert answer(row(why="needs 10 runs", value=math.nan)) == (
        "These logs do not tell: needs 10 runs"
    )


def test_every_claim_of_a_ledger_is_a_question_and_keeps_its_name():
    rng = np.random.default_rng(0)
    pool = as_frame(np.sort(rng.random((12, 9)), axis=1), children=1, seeds=range(12))
    regimes = {"toy": "interior"}
    for frame in (pool, bilinear_runs(budget=64, run_noise=0.05)):
        table = replay.ledger({"logs": frame}, regimes=regimes, policies=("ucb1",))
        assert set(QUESTIONS) & set(table["claim"])
        for known in table.to_dict("records"):
            assert known["question"].endswith("?")
            assert known["question"] == question(known["claim"]) != known["claim"]
            assert known["answer"] == answer(known)
            assert len(known["question"]) <= 60  # a picture shows it whole
            if not known["why"]:
                assert known["answer"].lower().startswith(REPLIES[known["verdict"]])
                assert re.search(rf", n = {known['n']} runs", known["answer"])
        said = {mark.text for panel in charts.verdicts(table).panels for mark in panel.marks
                if hasattr(mark, "anchor")}  # fmt: skip
        assert said <= set(REPLIES.values())


@pytest.mark.parametrize("claim", ["something of one's own", "x beats y"])
def test_a_claim_of_ones_own_stands_for_itself(claim):
    assert question(claim) == claim
