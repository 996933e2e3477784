"""What to do after a comparison over tasks, in plain words; a part of `replay.advise`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from replay.claims.decision import FEW, OPEN, in_family
from replay.claims.further import UNTIL_THEN, further_runs, nearer_none, sentence
from replay.claims.task_comparison import TaskComparison, limits_of

Row = Mapping[str, Any]
"""A row of `TaskComparison.verdicts`."""

ALONE = (
    "If one pair was your question before you saw these results, ask it alone: "
    "`replay.judge(frame, A, B)`, or `replay judge A B LOGS`."
)
"""How to ask one of several questions by itself."""


def advise_over_tasks(found: TaskComparison) -> str:
    """The decision of a comparison over tasks: the leader, whom it beats, and what is open."""
    first, *_ = every = [*found.table["configuration"]]
    leader = _unbeaten(found, every)
    if leader is None:
        return f"No decision: each of {_named(found, every)} is worse than another of them."
    others = [name for name in every if name != leader]
    pairs = {other: _against(found, leader, other) for other in others}
    words = {other: row.get("verdict") for other, row in pairs.items()}
    beaten = [other for other in others if words[other] == "greater"]
    alike = [other for other in others if words[other] == "within margin"]
    left = [other for other in others if other not in beaten and other not in alike]
    text = f"Use {_named(found, [leader])}." if not left else (
        f"No decision between {_named(found, [leader])}, which "
        f"{'has the highest interquartile mean' if leader == first else 'none is shown to beat'}, "
        f"and {_named(found, left)}."
    )  # fmt: skip
    count = len(found.tasks)
    text += f" Compared were {found.table['runs'].sum()} runs on {count} task{'s' * (count > 1)}"
    text += f", of {found.chosen} configurations." if found.chosen else "."
    if beaten:
        text += f" {_named(found, [leader])} is better than {_named(found, beaten)}."
    if alike:
        text += f" Within the margin of it: {_named(found, alike)}."
    return f"{text} {_missing(found, pairs, left)}"


def _unbeaten(found: TaskComparison, names: Sequence[str]) -> str | None:
    """The first that no pair finds worse: a mean may be decided against an interquartile mean."""
    rows = found.verdicts.to_dict("records")
    worse = {row["b"] for row in rows if row["verdict"] == "greater"}
    worse |= {row["a"] for row in rows if row["verdict"] == "less"}
    return next((name for name in names if name not in worse), None)


def _missing(found: TaskComparison, pairs: Mapping[str, Row], left: Sequence[str]) -> str:
    """What would change or make the decision."""
    if not left:
        name, row = min(pairs.items(), key=lambda pair: float(pair[1]["effect"]))
        return (
            f"What would change that: new runs without this difference; {_named(found, [name])} is "
            f"the nearest, {_between(row)} standard deviations behind."
        )
    said = [_ahead_of(found, left[0], pairs[left[0]])]
    known = [name for name in left[1:] if 0 < pairs[name].get("runs_needed", 0) < math.inf]
    if known:
        soonest = min(known, key=lambda name: float(pairs[name]["runs_needed"]))
        if not pairs[left[0]].get("runs_needed", 0) <= pairs[soonest]["runs_needed"]:
            said.append(_ahead_of(found, soonest, pairs[soonest]))
    alone = f" {ALONE}" if len(found.verdicts) > 1 else ""
    return f"{' '.join(said)} {UNTIL_THEN}{alone}"


def _ahead_of(found: TaskComparison, name: str, row: Row) -> str:
    """How far the leader is ahead of one other, and how many runs would show it."""
    if not row:
        return sentence(further_runs(math.nan))
    text = f"Its lead over {_named(found, [name])} is {_between(row)} standard deviations"
    if row["effect"] < 0:
        text = (
            f"Task by task {_named(found, [name])} is ahead of it, by "
            f"{_between(_turned(row))} standard deviations"
        )
    if not math.isnan(row["p"]):
        text += f" ({in_family(row['p'], row['p_holm'], found.family)})"
    within = nearer_none(row["effect"], found.margin)
    more = further_runs(
        row["runs_needed"], had=row["runs"], within=within, of=" of the two", among=found.family
    )
    text += "" if row["why"] == FEW else f": {OPEN[row['why']]}"  # few are named beside the effect
    return f"{text}. {sentence(more)}"


def _turned(row: Row) -> Row:
    """The difference seen from the other side."""
    return dict(row) | {
        "effect": -row["effect"], "low": -row["high"], "high": -row["low"],
        "alone_low": -row["alone_high"], "alone_high": -row["alone_low"],
    }  # fmt: skip


def _named(found: TaskComparison, names: Sequence[str]) -> str:
    apart = "; " if any("," in name for name in names) else ", "
    return apart.join(f"N = {name}" if found.by == "children" else name for name in names)


def _between(row: Row) -> str:
    return f"{row['effect']:.2g} {limits_of(row)}"


def _against(found: TaskComparison, leader: str, other: str) -> Row:
    """The verdict of the leader against another, seen from the leader; empty: not compared."""
    turned = {"greater": "less", "less": "greater"}
    for row in found.verdicts.to_dict("records"):
        if (row["a"], row["b"]) == (leader, other):
            return {str(key): value for key, value in row.items()}
        if (row["a"], row["b"]) == (other, leader):
            word = turned.get(row["verdict"], row["verdict"])
            return {**_turned({str(key): v for key, v in row.items()}), "verdict": word}
    return {}
