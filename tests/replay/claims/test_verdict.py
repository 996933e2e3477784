"""What a comparison found, in words: built by hand, so that each clause has its cause."""

import dataclasses
import math

import numpy as np
import pytest

from replay.claims.verdict import Verdict
from replay.statistics.intervals import Interval
from replay.statistics.strata import Further

LIMITS = Interval(value=0.25, low=0.125, high=0.375, n=9, coverage=0.95)
NONE = Interval(value=0.25, low=math.nan, high=math.nan, n=3, note="n = 3 is too small")
FOUND = Verdict(
    verdict="greater", a="deep", b="broad", effect=0.25, interval=LIMITS, margin=0.0,
    null="runs exchanged", p=0.012, p_greater=0.006, p_less=0.994, e_value=math.nan,
    detectable=0.1875, power=0.875, runs_needed=0.0, cost={}, n=9,
    points=(np.ones(4), np.zeros(5)), setting="whole runs",
)  # fmt: skip


def changed(**fields):
    return dataclasses.replace(FOUND, **fields)


def test_a_verdict_names_its_effect_limits_n_and_p_and_what_would_change_it():
    first, then = FOUND.summary
    assert first == (
        "Greater: deep is better than broad. deep less broad is +0.25 in fitness "
        "(95 % interval [0.125, 0.375])."
    )
    assert then == (
        "n = 9 runs, p = 0.012 for this comparison alone. What would change that: new runs "
        "without this difference. As many of them would show it again with probability 0.88."
    )
    assert FOUND.paragraph == (
        "We compared deep with broad on whole runs (n = 9 runs). The mean difference in fitness "
        "was 0.25 (95 % interval [0.125, 0.375]). The verdict is: greater, that is, deep is "
        "better than broad. Under the null (runs exchanged) the two-sided p is 0.012, for this "
        "comparison alone. As many runs detect an effect of 0.1875 with a power of 80%, and the "
        "effect that was seen, shrunk by its error, with one of 88%. What fewer than one run in "
        "3 does may be absent from these runs and is covered by no interval that rests on them "
        "alone."
    )
    assert str(FOUND) == f"{FOUND!r}\n\n{FOUND.paragraph}"
    assert repr(FOUND) == f"{first}\n{then}"


@pytest.mark.parametrize(
    ("verdict", "meaning", "change"),
    [
        ("less", "broad is better than deep", "new runs without this difference"),
        ("within margin", "they differ by less than the margin", "a smaller margin."),
        ("undetermined", "neither is shown to be better", "More runs may decide it."),
    ],
)
def test_each_verdict_has_its_meaning_and_its_way_out(verdict, meaning, change):
    found = changed(verdict=verdict, margin=0.5)
    first, then = found.summary
    assert first.startswith(f"{verdict.capitalize()}: {meaning}. ")
    assert first.endswith("; a margin of 0.5).")
    assert change in then
    assert f"is: {verdict}, that is, {meaning}." in found.paragraph
    assert "A difference of up to 0.5 counts as none." in found.paragraph


def test_without_an_interval_the_note_stands_for_it_and_there_is_no_p():
    few = changed(interval=NONE, p=math.nan, verdict="undetermined", detectable=math.nan)
    assert "(n = 3 is too small)" in few.summary[0]
    assert few.summary[1] == "n = 9 runs. More runs may decide it."
    assert "was 0.25 (n = 3 is too small)." in few.paragraph
    assert "two-sided p" not in few.paragraph
    assert "detect" not in few.paragraph


def test_one_pair_is_counted_as_one():
    one = changed(n=1, unit="pairs")
    assert one.summary[1].startswith("n = 1 pair, p =")
    assert "(n = 1 pair)" in one.paragraph
    assert "(n = 2 pairs)" in changed(n=2, unit="pairs").paragraph


def test_a_verdict_that_is_held_back_says_why_before_all_else():
    held = changed(verdict="undetermined", held_back="Fewer than 20 runs.", runs_needed=11.0)
    assert held.summary[1].endswith(" for this comparison alone. Fewer than 20 runs.")
    assert held.paragraph.index("Fewer than 20 runs.") < held.paragraph.index("Under the null")
    assert "11 more runs" in held.paragraph


def test_evidence_that_is_followed_has_an_e_value_in_place_of_p():
    found = changed(sequential=True, e_value=31.0, unit="pairs")
    assert "confidence sequence at 95 % [0.125, 0.375]" in found.summary[0]
    assert found.summary[1].startswith("n = 9 pairs, e-value 31, valid at every look. ")
    assert "with probability" not in found.summary[1]  # power at a fixed n is not theirs
    assert "null: runs exchanged" in found.paragraph
    assert "20 settles the question" in found.paragraph
    assert "two-sided p" not in found.paragraph
    strict = changed(sequential=True, e_value=31.0, interval=dataclasses.replace(LIMITS, level=0.9))
    assert "; 10 settles the question" in strict.paragraph


@pytest.mark.parametrize(
    ("unit", "more", "words"),
    [
        ("runs", 7.0, "7 more runs show it"),
        ("runs", 1.0, "1 more run shows it"),
        ("pairs", 1400.0, "1,400 more runs, 700 on each side (300 calls) show it"),
    ],
)
def test_further_runs_are_counted_and_those_of_pairs_by_side(unit, more, words):
    cost = {"calls": 300.0} if unit == "pairs" else {}
    found = changed(verdict="undetermined", unit=unit, runs_needed=more, cost=cost)
    assert f"If the true difference is the one that was seen, {words}" in found.paragraph


@pytest.mark.parametrize("more", [0.0, math.inf, math.nan])
def test_runs_that_settle_nothing_are_not_counted(more):
    assert "more run" not in changed(runs_needed=more).paragraph


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.2, None),
        (1.21, "on average 1.2 times the true one, so this one is likely exaggerated"),
        (math.inf, "So small an effect gets a verdict by chance alone, and is exaggerated."),
        (math.nan, None),
    ],
)
def test_an_effect_is_called_exaggerated_from_a_fifth_on(factor, words):
    text = changed(exaggeration=factor).paragraph
    assert words in text if words else "exaggerated" not in text


def test_unlike_groups_choices_bounds_and_tasks_add_a_sentence_each():
    assert "too unlike" not in FOUND.paragraph
    unlike = changed(unlike="the spreads differ threefold").paragraph
    assert "of means alone: the spreads differ threefold. With equal means" in unlike
    assert "The p rests on this." in changed(taken_for_granted="The p rests on this.").paragraph
    assert "The p rests" not in changed(taken_for_granted="The p rests.", p=math.nan).paragraph
    assert "at least this effect has probability 0.034." in changed(null_p=0.034).paragraph
    bounded = changed(bounded=dataclasses.replace(LIMITS, low=-0.5, high=0.75)).paragraph
    assert bounded.endswith("For scores in the given range, betting covers it: [-0.5, 0.75].")
    further = Further(0.5, -0.25, 1.25, 0.2, 0.3, np.zeros(3))
    tasks = changed(further=further, scale="standard deviations within tasks").paragraph
    assert "The verdict for these tasks is: greater" in tasks
    assert "the mean effect is +0.5 [-0.25, 1.25]" in tasks
    assert "in standard deviations within tasks was" in tasks


def test_a_cell_shows_the_verdict_and_folds_the_paragraph_away():
    shown = changed(a="<b>deep</b>")._repr_html_()
    assert "<b>deep" not in shown
    assert "&lt;b&gt;deep&lt;/b&gt; is better" in shown
    assert shown.index("<strong>Greater") < shown.index("<details>") < shown.index("We compared")


def test_it_is_drawn_as_its_chart_is():
    found = changed(margin=0.0625, a="$5 models")
    axes = found.plot(theme="dark")
    assert axes.get_xlabel() == "fitness, $5 models minus broad"
    assert axes.get_title(loc="left") == "greater"
    assert found.plot(axes) is axes
