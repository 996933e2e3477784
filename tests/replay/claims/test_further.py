"""Further runs and further tasks are spoken of in one way, wherever a comparison is open."""

import math

import numpy as np
import pytest
from benchmarks.power_bands import as_frame as groups
from synthetic_runs import tasks

import replay
from replay.claims.further import further_runs, further_tasks, new_runs, sentence

A, B = {"model": "a"}, {"model": "b"}


def open_verdict(apart=0.3, **how):
    rng = np.random.default_rng(2)
    frame = groups(rng.normal(apart, 1, 8), rng.normal(0, 1, 8))
    found = replay.judge(frame, A, B, **how)
    assert found.verdict == "undetermined"
    return found


def test_a_verdict_and_advice_say_alike_what_further_runs_would_show():
    found = open_verdict()
    start = f"If the true difference is the one that was seen, {found.runs_needed:,.0f} more runs ("
    assert start in found.paragraph
    assert start in replay.advise(found)
    assert "over the effects and spreads" in found.paragraph
    assert further_runs(found.runs_needed, cost="8 calls").endswith("show it with a power of 80%")


def test_evidence_that_is_followed_has_no_power_at_a_fixed_number():
    found = open_verdict(apart=1.5, sequential=True)
    assert 0 < found.runs_needed < math.inf
    assert "settle it with a power of 80%." in found.paragraph
    assert "over the effects and spreads" not in found.paragraph


def test_a_comparison_over_tasks_and_a_verdict_of_them_say_alike_what_they_mean_for_further_ones():
    frame = tasks(1.0)
    far = replay.judge(frame, {"search": "a", "model": "a"}, {"search": "b", "model": "b"})
    clause = further_tasks(far.further.value, far.further.low, far.further.high, 0.0)
    assert sentence(clause) in far.paragraph
    found = replay.compare(frame, by="search")
    [row] = found.verdicts.to_dict("records")
    limits = (row["further"], row["further_low"], row["further_high"])
    assert f"; {further_tasks(*limits, 0.0)}." in found.paragraph
    assert further_tasks(*limits, 0.0).endswith(row["further_verdict"])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (1.0, "1 more run shows"),
        (12.4, "12 more runs show"),
        (math.inf, "no number of runs would find a difference that is 0"),
        (math.nan, "more runs may decide it"),
        (0.0, "more runs may decide it"),
    ],
)
def test_numbers_of_runs_are_words(more, words):
    assert words in further_runs(more)


def test_an_effect_that_is_nothing_beside_its_error_has_no_number_of_runs() -> None:
    assert "2,000 more runs show it" in further_runs(2000.0, had=20)
    said = further_runs(2001.0, had=20, cost="9 calls")
    assert "only more than 100 times as many runs would show it" in said
    assert "2,001" not in said
    assert "more runs settle it" in further_runs(2001.0, had=20, sequential=True)


def test_two_tasks_say_nothing_of_further_ones():
    paragraph = replay.judge(
        tasks(1.0, count=2), A | {"search": "a"}, B | {"search": "b"}
    ).paragraph
    assert "Fewer than three tasks say nothing of further ones." in paragraph


def test_no_power_is_stated_as_certain():
    assert "with probability 0.80." in new_runs(0.8)
    assert "1.00" not in new_runs(0.9999)
    assert "probability" not in new_runs(math.nan)
