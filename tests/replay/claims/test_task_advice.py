"""What to do after a comparison over tasks: tables by hand, so that each clause has its cause."""

import math

import numpy as np
import pandas as pd
import pytest
from synthetic_runs import as_frame

import replay
from replay.claims.decision import CLOSE, FEW
from replay.claims.task_advice import ALONE, advise_over_tasks
from replay.claims.task_comparison import TaskComparison

CLEAR = {
    "tasks": 2, "runs": 20, "effect": 0.8, "low": 0.25, "high": 1.35, "p": 0.004, "p_holm": 0.012,
    "verdict": "greater", "why": "", "alone_low": 0.4, "alone_high": 1.2, "runs_needed": 0.0,
}  # fmt: skip
OPEN = CLEAR | {"verdict": "undetermined", "why": CLOSE, "low": -0.2, "runs_needed": 40.0}


def compared(names, *pairs, by="search", margin=0.0, of=0, tasks=("t0", "t1")):
    """A comparison of some names, best mean first, with (a, b, row) of each pair."""
    table = pd.DataFrame({"configuration": names, "runs": [10] * len(names)})
    rows = [row | {"a": a, "b": b} for a, b, row in pairs]
    return TaskComparison(
        by=by, measure="final", tasks=tasks, budgets=dict.fromkeys(tasks, 8), table=table,
        verdicts=pd.DataFrame(rows), effects=pd.DataFrame(), profiles=pd.DataFrame(),
        margin=margin, notes=(), of=of,
    )  # fmt: skip


def turned(row):
    """The same pair, written the other way round."""
    other = {"greater": "less", "less": "greater"}
    ends = {"low": -row["high"], "high": -row["low"], "effect": -row["effect"]}
    ends |= {"alone_low": -row["alone_high"], "alone_high": -row["alone_low"]}
    return row | ends | {"verdict": other.get(row["verdict"], row["verdict"])}


@pytest.mark.parametrize("row", [CLEAR, OPEN, OPEN | {"effect": -0.3}, OPEN | {"why": FEW}])
def test_it_does_not_matter_which_of_a_pair_is_written_first(row):
    one = advise_over_tasks(compared(["x", "y"], ("x", "y", row)))
    assert one == advise_over_tasks(compared(["x", "y"], ("y", "x", turned(row))))


def test_what_beats_or_equals_all_others_is_used_and_the_nearest_of_them_would_change_it():
    alike = CLEAR | {"verdict": "within margin", "effect": 0.1, "low": -0.1, "high": 0.3}
    said = advise_over_tasks(
        compared(
            ["x", "y", "z"], ("x", "y", CLEAR), ("x", "z", alike), ("y", "z", OPEN), margin=0.4
        )
    )
    assert said == (
        "Use x. Compared were 30 runs on 2 tasks. x is better than y. Within the margin of it: z. "
        "What would change that: new runs without this difference; z is the nearest, 0.1 [-0.1, "
        "0.3] standard deviations behind."
    )


def test_where_each_is_worse_than_another_nothing_is_decided():
    cycle = compared(["x", "y", "z"], *((a, b, CLEAR) for a, b in ("xy", "yz", "zx")))
    said = "No decision: each of x, y, z is worse than another of them."
    assert advise_over_tasks(cycle) == said


def test_what_is_open_is_named_with_the_lead_and_how_many_runs_would_show_it():
    said = advise_over_tasks(compared(["x", "y"], ("x", "y", OPEN)))
    assert said.startswith(
        "No decision between x, which has the highest interquartile mean, and y."
    )
    assert "Its lead over y is 0.8 [-0.2, 1.4] standard deviations" in said
    assert "its interval includes 0. " in said
    assert "40 more runs" in said
    behind = advise_over_tasks(compared(["x", "y"], ("x", "y", OPEN | {"effect": -0.3})))
    assert "Task by task y is ahead of it, by 0.3 [-1.4, 0.2] standard deviations" in behind
    assert "p =" not in advise_over_tasks(compared(["x", "y"], ("x", "y", OPEN | {"p": math.nan})))


def test_that_there_are_too_few_runs_for_an_interval_is_said_once():
    nowhere = dict.fromkeys(("low", "high", "alone_low", "alone_high", "p", "p_holm"), math.nan)
    said = advise_over_tasks(compared(["x", "y"], ("x", "y", OPEN | nowhere | {"why": FEW})))
    assert said.count("too few runs") == 1
    assert "Its lead over y is 0.8 (too few runs for an interval) standard deviations. " in said


def test_a_pair_is_asked_alone_only_where_there_are_several():
    several = compared(["x", "y", "z"], ("x", "y", OPEN), ("x", "z", OPEN), ("y", "z", OPEN))
    assert advise_over_tasks(several).endswith(ALONE)
    assert ALONE not in advise_over_tasks(compared(["x", "y"], ("x", "y", OPEN)))


@pytest.mark.parametrize(("needed", "told"), [(30.0, True), (50.0, False), (math.inf, False)])
def test_of_further_open_pairs_the_one_that_fewer_runs_settle_is_told_too(needed, told):
    later = OPEN | {"runs_needed": needed, "effect": 0.9}
    found = compared(["x", "y", "z"], ("x", "y", OPEN), ("x", "z", later), ("y", "z", OPEN))
    assert ("Its lead over z is 0.9" in advise_over_tasks(found)) == told


def test_a_pair_that_was_not_compared_is_open_without_a_number():
    said = advise_over_tasks(compared(["x", "y", "z"], ("x", "y", CLEAR), ("y", "z", OPEN)))
    assert said.startswith(
        "No decision between x, which has the highest interquartile mean, and z."
    )
    assert "Its lead" not in said


def test_numbers_of_children_and_names_with_commas_can_be_told_apart():
    assert "between N = 4, " in advise_over_tasks(
        compared(["4", "8"], ("4", "8", OPEN), by="children")
    )
    names = ["x, islands=2", "y", "z"]
    pairs = [(names[0], other, OPEN) for other in names[1:]]
    assert "and y, z." in advise_over_tasks(compared(names, *pairs))
    names = ["x", "y, islands=2", "z"]
    pairs = [("x", other, OPEN) for other in names[1:]]
    assert "and y, islands=2; z." in advise_over_tasks(compared(names, *pairs))


def test_where_only_the_highest_are_compared_it_is_said_of_how_many():
    chosen = compared(["x", "y"], ("x", "y", CLEAR), of=7, tasks=("t0",))
    assert "20 runs on 1 task, of the 2 of the highest values of 7 configurations." in (
        advise_over_tasks(chosen)
    )


def test_over_tasks_the_mean_may_be_decided_against_the_highest_interquartile_mean() -> None:
    rng = np.random.default_rng(0)
    steady = np.sort(0.5 + 0.1 * rng.normal(size=40))
    uneven = steady + np.repeat([-0.5, 0.005, 0.0], [10, 20, 10])
    parts = []
    for name, ends in {"uneven": uneven, "steady": steady}.items():
        made = as_frame(np.repeat(ends[:, None], 5, axis=1), children=1, seeds=range(40))
        parts.append(made.assign(search=name, task="t", run=name + made["run"].astype(str)))
    found = replay.compare(pd.concat(parts, ignore_index=True), by="search")
    assert [*found.table["configuration"]] == ["uneven", "steady"]
    assert replay.advise(found).startswith("Use steady. Compared were 80 runs on 1 task. steady is")
