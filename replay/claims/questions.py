"""The paper's claims as questions that a newcomer understands, with their answers.

A claim keeps its name in the column `claim` of a ledger, by which scripts find it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from replay.claims.contrasts import ALPHA
from replay.claims.decision import POWER
from replay.simulation.widths import SURE
from replay.statistics.numbers import number

QUESTIONS = {
    "the best split is corner": "Is the best split at an end, all depth or all breadth?",
    "the best split is interior": "Is the best split between all depth and all breadth?",
    "the best in sweep rises with the budget": "Does a larger budget give a better best program?",
    "it follows a smooth curve": "Does the best program get better along a smooth curve?",
    "a pool beats one run": "Do random pulls over several runs beat one run?",
}
"""Name of a claim -> the question that it answers; those about policies have patterns."""

_PATTERNS = (
    (r"(\S+) beats random allocation", r"Does \1 beat random pulls over the same runs?"),
    (r"(\S+) beats one run", r"Does \1 over several runs beat one run?"),
)

_UNITS = {
    "the best in sweep rises with the budget": " for each doubling of the calls",
    "it follows a smooth curve": " as the standard deviation of that curve",
}
"""What the effect of a claim is, where it is no plain difference in fitness."""

REPLIES = {
    "greater": "yes",
    "less": "no, the opposite",
    "within margin": "no difference",
    "undetermined": "not shown",
    "descriptive": "described, not tested",
    "does not apply": "no data",
}
"""Verdict -> its short answer to a question."""


def question(claim: str) -> str:
    """The question that a claim answers; a claim that is not known stands for itself.

    Args:
        claim: Name of a claim in a ledger.
    """
    for pattern, text in _PATTERNS:
        if found := re.fullmatch(pattern, claim):
            return found.expand(text)
    return QUESTIONS.get(claim, claim)


def answer(row: Mapping[str, Any]) -> str:
    """The answer to a claim's question, with its effect, interval and number of runs.

    Args:
        row: A row of a ledger, or as much of a protocol's claim, with its verdict.

    Returns:
        Such as `Yes: +0.0663 (0.052 to 0.0806) for each doubling of the calls, n = 100 runs`, or
        what so many runs would have shown, or why these logs cannot answer.
    """
    if row["why"]:
        return f"These logs do not tell: {row['why']}"
    effect = f"{'+' if row['value'] > 0 else ''}{number(row['value'])}"
    if not (math.isnan(row["low"]) or math.isnan(row["high"])):
        effect += f" ({number(row['low'])} to {number(row['high'])})"
    elif not math.isnan(row["low"]):
        effect += f" (at least {number(row['low'])})"
    text = f"{REPLIES[row['verdict']].capitalize()}: {effect}{_UNITS.get(row['claim'], '')}"
    text += f", n = {row['n']} runs"
    if row["verdict"] != "undetermined":
        return text
    p, of = row["p_holm"], ""
    if row["value"] < 0 and not math.isnan(row.get("p_opposite", math.nan)):
        p, of = row["p_opposite"], " of the opposite"
    if not math.isnan(p):
        text += f", p{of} = {number(p)} after correction"
    text += _reason(row)
    if math.isnan(row["detectable"]):
        return text
    return f"{text}; so many runs show {number(row['detectable'])} in {POWER:.0%} of studies"


HELD_BACK = f"the interval excludes 0, but the wider one that decides below {SURE} runs does not"
"""Why few runs alone keep a verdict back."""


def _reason(row: Mapping[str, Any]) -> str:
    """Why nothing is shown although the interval excludes 0; else empty."""
    if not (row["low"] > 0 or row["high"] < 0):
        return ""
    chance = row.get("null_p", math.nan)
    if row["low"] > 0 and chance > ALPHA:
        return (
            "; the interval excludes 0, but where nothing can be chosen (increments of the runs "
            f"exchanged) at least this effect has probability {number(chance)}"
        )
    if row.get("held_back") is True:
        return f"; {HELD_BACK}"
    return "; the interval of this question alone excludes 0, the correction for all asked does not"
