"""What several tasks say of each pair, in words: tables by hand, so that each clause has its cause.

The comparison itself is tested in `test_tasks.py`.
"""

import math

import pandas as pd
import pytest

from replay.claims.decision import CLOSE, FEW, MANY, OPEN
from replay.claims.task_comparison import TaskComparison, limits_of
from replay.claims.verdict import NO_SPREAD

ROW = {
    "a": "deep", "b": "broad", "tasks": 3, "runs": 30, "effect": 0.8, "low": 0.25, "high": 1.35,
    "p": 0.004, "p_holm": 0.012, "verdict": "greater", "why": "", "alone_low": 0.4,
    "alone_high": 1.2, "further": 0.7, "further_low": -0.2, "further_high": 1.6,
}  # fmt: skip
NOWHERE = {"low": math.nan, "high": math.nan}


def compared(*rows, tasks=("t0", "t1", "t2"), margin=0.0, notes=("A note.",)):
    table = pd.DataFrame({"configuration": ["deep", "broad"], "runs": [16, 14]})
    return TaskComparison(
        by="search", measure="final", tasks=tasks, budgets=dict.fromkeys(tasks, 24), table=table,
        verdicts=pd.DataFrame([ROW | row for row in rows]), effects=pd.DataFrame(),
        profiles=pd.DataFrame(), margin=margin, notes=notes,
    )  # fmt: skip


def test_one_pair_is_a_sentence_with_its_limits_its_runs_and_further_tasks():
    found = compared({})
    assert found.summary == ("deep is better than broad.", "n = 30 runs on 3 tasks.")
    assert found.paragraph == (
        "deep is better than broad: deep less broad is +0.8 sd [0.25, 1.4] on 3 tasks (30 runs, "
        "p = 0.004); for further tasks, whose effects may differ, the mean effect is +0.7 "
        "[-0.2, 1.6] (random effects over tasks): undetermined. A note."
    )


def test_verdicts_that_find_something_come_first_and_reasons_are_counted():
    open_pair = {"verdict": "undetermined", "why": CLOSE}
    found = compared(
        open_pair, {"verdict": "less", "a": "x", "b": "y"}, {"verdict": "within margin"},
        open_pair, {"verdict": "undetermined", "why": FEW},
    )  # fmt: skip
    first, then = found.summary
    assert first == "y is better than x; deep and broad differ by less than the margin."
    assert then == (
        "n = 30 runs on 3 tasks; verdicts share their error among 5 pairs (Holm). "
        f"Undetermined, by reason: {CLOSE} (2), {FEW} (1)."
    )


def test_two_pairs_share_their_error_and_one_has_its_own():
    assert "share their error among 2 pairs (Holm)" in compared({}, {}).summary[1]
    assert "share" not in compared({}).summary[1]


def test_where_no_pair_is_decided_the_summary_says_so():
    found = compared({"verdict": "undetermined", "why": CLOSE, "tasks": 1}, tasks=("t0",))
    assert found.summary[0] == "No pair is shown to differ."
    assert found.summary[1].startswith("n = 30 runs on 1 task. ")
    assert found.paragraph.startswith("Neither deep nor broad is shown to be better: ")
    assert " on 1 task (30 runs" in found.paragraph


def test_a_pair_among_several_has_both_of_its_p():
    text = compared({}, {"why": MANY, "verdict": "undetermined"}).paragraph
    assert "p = 0.004 alone, 0.012 among 2 comparisons (Holm)" in text
    assert text.count(f": {OPEN[MANY]}") == 1


def test_too_few_tasks_for_further_ones_are_passed_over():
    few = {"further_low": math.nan, "further_high": math.nan}
    assert "further" not in compared(few).paragraph
    assert "undetermined" in compared({}).paragraph
    inside = {"further_low": -0.2, "further_high": 0.2}
    assert "over tasks): within margin" in compared(inside, margin=0.25).paragraph


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "[0.25, 1.4]"),
        (NOWHERE, "(alone [0.4, 1.2]; none at the level that all pairs ask for)"),
        ({"low": -math.inf, "high": math.inf}, "(alone [0.4, 1.2]; none at the level that all"),
        (NOWHERE | {"alone_low": math.nan, "why": FEW}, "(too few runs for an interval)"),
        (NOWHERE | {"alone_low": math.nan}, f"({NO_SPREAD})"),
    ],
)
def test_limits_are_those_of_all_pairs_then_of_the_pair_alone(limits, words):
    assert limits_of(ROW | limits).startswith(words)


def test_printed_and_in_a_cell_it_is_the_summary_the_paragraph_and_the_table():
    found = compared({"a": "<deep>"})
    assert repr(found) == "\n".join(found.summary)
    first, then, rest = str(found).split("\n", 2)
    assert (first, then) == found.summary
    assert rest == f"\n{found.paragraph}\n\n{found.table.to_string(index=False)}"
    shown = found._repr_html_()
    assert "&lt;deep&gt; is better" in shown
    assert "<deep>" not in shown
    assert "<table" in shown
