"""What to do after a comparison, how sure that is, and what would change it, in plain words."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from replay.claims.contrasts import ALPHA
from replay.claims.decision import (
    MANY,
    OPEN,
    VERDICTS,
    decide,
    in_family,
    p_above,
    still_needed,
)
from replay.claims.further import TIMES, UNTIL_THEN, further_runs, new_runs, sentence
from replay.claims.questions import HELD_BACK
from replay.claims.task_advice import advise_over_tasks
from replay.claims.task_comparison import TaskComparison
from replay.claims.verdict import Verdict
from replay.planning.choices import NO_MARGIN, BudgetPlan
from replay.planning.depth import FEWEST, DepthBreadth
from replay.simulation.contest import Contest
from replay.simulation.sizes import lack_of_runs, needed_runs
from replay.simulation.widths import SURE, deciding_limits
from replay.statistics.intervals import EQUAL, Interval, student, too_few
from replay.statistics.numbers import amount, number, with_limits
from replay.statistics.resampling import holm


@dataclass(frozen=True, kw_only=True)
class _Case:
    """One comparison with its verdict after all corrections."""

    a: str
    b: str
    word: str
    effect: float
    limits: tuple[float, float]
    n: str
    note: str = ""
    power: float = math.nan
    more: float = math.nan
    had: float = math.nan  # single runs so far
    within: bool = False  # whether further runs would find it within the margin
    cost: str = ""
    held_back: str = ""
    p: float = math.nan
    shared: float = math.nan  # the same after Holm's rule
    many: bool = False  # alone it would be decided


def advise(
    *found: Verdict | TaskComparison | DepthBreadth | BudgetPlan | Contest | pd.DataFrame,
) -> str:
    """Says what to do, how sure that is, and what would change it.

    Several verdicts share an error of 5 % by Holm's rule, so that trying many policies makes none
    of them look better than `single`; what it says of p names these comparisons beside p alone. It
    says which of them are decided, in which direction, and which are open.

    Args:
        *found: Results of `replay.judge` on the same runs, whose second side is the same; or one
            of these: a comparison over tasks by `replay.compare`, for which configuration to use;
            a plan of `replay.plan`, for how to spend its budget; a grid of `replay.depth_breadth`,
            for which split of its largest budget to use; a contest of `replay.compete` or a ledger
            of `replay.ledger`, for whether a policy over several runs beats one run.

    Returns:
        Sentences, of a grid or a ledger a line for each task: the decision with its effect,
        interval and n; what would change it; where nothing can be decided, how many runs would.

    Raises:
        ValueError: Nothing to go by, verdicts with different second sides, or rows of runs in place
            of a result.

    Example:
        >>> parts = [replay.judge(frame, {"children": n}, {"children": 1}) for n in (2, 4)]
        >>> replay.advise(*parts).split(" ", 2)[:2]
        ['No', 'decision']
    """
    if len(found) == 1 and isinstance(found[0], TaskComparison):
        return advise_over_tasks(found[0])
    if len(found) == 1 and isinstance(found[0], BudgetPlan):
        return _planned(found[0])
    if len(found) == 1 and isinstance(found[0], DepthBreadth):
        return "\n".join(_splits(found[0]))
    if len(found) == 1 and isinstance(found[0], Contest):
        return _contest(found[0])
    if len(found) == 1 and isinstance(found[0], pd.DataFrame):
        _check_ledger(found[0])
        return "\n".join(_policies(found[0]))
    verdicts = [each for each in found if isinstance(each, Verdict)]
    if not verdicts or len(verdicts) < len(found):
        raise ValueError(
            "expected verdicts of replay.judge, or one of replay.compare, replay.plan, "
            "replay.depth_breadth, replay.compete or replay.ledger, got "
            f"{[type(each).__name__ for each in found]}"
        )
    if len(others := {each.b for each in verdicts}) > 1:
        raise ValueError(f"expected verdicts with the same second side, got {sorted(others)}")
    return _of_several([*map(_case, verdicts, *_after_all(verdicts))])


def _check_ledger(table: pd.DataFrame) -> None:
    if "claim" not in table:
        raise ValueError(
            "expected a result, such as of replay.judge, replay.compare or replay.ledger, got a "
            f"table with the columns {', '.join(map(str, [*table][:5]))}, ...; runs are compared "
            "first: replay.advise(replay.compare(frame, by='search'))"
        )


def _of_several(cases: Sequence[_Case], family: int = 0) -> str:
    """The decisions among several sides and the one that they are compared with.

    They share an error among themselves, or with the rest of a larger family.
    """
    if len(cases) == 1:
        return _one(cases[0])
    count = family or len(cases)
    ahead, behind, alike, left = (
        sorted((c for c in cases if c.word == word), key=lambda c: c.effect, reverse=True)
        for word in VERDICTS
    )
    if ahead:
        rest = f" {_leading(ahead[1:])}, too." if ahead[1:] else ""
        return f"{_one(ahead[0])}{rest}{_decided(behind, alike, count)}{_not_decided(left)}"
    base = cases[0].b
    if not left:
        best, decided = max(cases, key=lambda each: each.effect), ""
        if behind and alike:
            decided = _decided(behind, alike, count)
        return (
            f"Stay with {base}: none of {_listed(cases)} is better. {_nearest(best, count)}"
            f"{decided}{_changes(best)}"
        )
    said = _decided(behind, alike, count)
    none = "" if said else "none is shown to be better or worse "
    text = (
        f"{said} No decision between {base} and {_listed(left)}{':' * bool(none)} {none}"
        f"(Holm's rule over {count} comparisons). {_nearest(left[0], count)}{_open(left[0])}"
    )
    return text.strip()


def _listed(cases: Sequence[_Case]) -> str:
    return ", ".join(each.a for each in cases)


def _leading(cases: Sequence[_Case]) -> str:
    return f"{_listed(cases)} lead{'s' * (len(cases) == 1)} {cases[0].b}"


def _nearest(best: _Case, count: int) -> str:
    return f"The best of them, {best.a}, differs by {_effect(best)}{_family(best, count)}."


def _decided(behind: Sequence[_Case], alike: Sequence[_Case], count: int) -> str:
    """Which sides are worse than the one that they are compared with, or within the margin."""
    text = "".join(
        f" {each.b} is better than {each.a}, which differs by {_effect(each)}"
        f"{_family(each, count)}."
        for each in behind
    )
    return f"{text} Within the margin of {alike[0].b}: {_listed(alike)}." if alike else text


def _not_decided(left: Sequence[_Case]) -> str:
    return f" No decision between {left[0].b} and {_listed(left)}." if left else ""


def _family(case: _Case, count: int) -> str:
    """The p of a case alone and among all of them, and whether their number leaves it open."""
    if math.isnan(case.p):
        return ""
    return f", {in_family(case.p, case.shared, count)}{f': {OPEN[MANY]}' if case.many else ''}"


def _after_all(verdicts: Sequence[Verdict]) -> tuple[Sequence[str], list[float]]:
    """The verdicts after Holm's rule over their p, where they have one, and these p."""
    p = np.array([each.p for each in verdicts])
    known = ~np.isnan(p)
    p[known] = holm(p[known])
    words = [
        "undetermined"
        if each.verdict in ("greater", "less") and value > 1 - each.interval.level
        else each.verdict
        for each, value in zip(verdicts, p, strict=True)
    ]
    return words, [float(each) for each in p]


def _case(verdict: Verdict, word: str, shared: float) -> _Case:
    return _Case(
        a=verdict.a, b=verdict.b, word=word, effect=verdict.effect,
        limits=(verdict.interval.low, verdict.interval.high), note=verdict.interval.note,
        n=verdict.counted, power=verdict.power, more=verdict.runs_needed,
        cost=", ".join(f"{number(value)} {unit}" for unit, value in verdict.cost.items()),
        had=verdict.runs, within=verdict.nearer_none,
        held_back=verdict.held_back, p=verdict.p, shared=shared, many=word != verdict.verdict,
    )  # fmt: skip


def _contest(contest: Contest) -> str:
    """Whether policies beat one run on the pools of a contest."""
    rows = contest.effects[contest.effects["effect"] == "policy"].to_dict("records")
    if not rows:
        reason = (
            contest.notes[0]
            if contest.identical
            else next((note for note in contest.notes if "effect over one run" in note), "")
        )
        return f"No decision: {reason or 'no effect over one run is known'}."
    return _of_several(_contested(contest, rows))


def _contested(contest: Contest, rows: Sequence[Mapping[Any, Any]]) -> list[_Case]:
    """The policies of a contest against one run, which share an error by Holm's rule."""
    n, cases = contest.runs, []
    limits = [
        deciding_limits(
            Interval(value=row["value"], low=row["low"], high=row["high"], n=n), contest.arms
        )
        for row in rows
    ]
    above = np.array([
        p_above(row["value"], decides, n, 0.95) for row, decides in zip(rows, limits, strict=True)
    ])  # fmt: skip
    alone = 2 * np.minimum(above, 1 - above)
    shared = alone.copy()
    known = ~np.isnan(shared)
    shared[known] = holm(shared[known])
    for row, decides, p, own in zip(rows, limits, shared, alone, strict=True):
        word = decide(*decides) if p <= ALPHA else "undetermined"
        low, high = row["low"], row["high"]
        error = (high - low) / 2 / float(student(0.95, n - 1))
        more = still_needed(n, row["value"], 0, error, n - 1, word)
        held = (low > 0 or high < 0) and decides[0] <= 0 <= decides[1]
        if more and held:  # as `judge` says
            more = max(more, SURE - n)
        cases.append(_Case(
            a=row["policy"], b="one run", word=word, effect=row["value"],
            limits=(low, high), n=f"n = {n} runs", note=_without_interval(contest),
            more=more, had=n, held_back=sentence(HELD_BACK) if held else "", p=own, shared=p,
            many=word != decide(*decides),
        ))  # fmt: skip
    return cases


def _without_interval(contest: Contest) -> str:
    """Why an effect of a contest has no interval, where it has none."""
    few = contest.runs < needed_runs(contest.arms)
    return lack_of_runs(contest.runs, contest.arms) if few else EQUAL


def _policies(ledger: pd.DataFrame) -> Iterator[str]:
    """Whether policies beat one run, by task and model of a ledger."""
    for (task, model), part in ledger.groupby(["task", "model"], sort=False):
        family = part[(part["family"] == "policies") & (part["why"] == "")]
        cases = [
            _Case(a=name[1], b="one run", word=row["verdict"], effect=row["value"],
                  limits=(row["low"], row["high"]), n=f"n = {row['n']} runs",
                  more=row["runs_needed"], had=row["n"],
                  held_back=sentence(HELD_BACK) if row["held_back"] is True else "")
            for row in family.to_dict("records")
            if (name := re.fullmatch(r"(\S+) beats one run", row["claim"]))
        ]  # fmt: skip
        if cases:
            yield f"{task}, {model}: {_of_several(cases, len(family))}"
        elif not (asked := part[part["family"] == "policies"]).empty:
            yield (
                f"{task}, {model}: No decision between one run and policies: the question "
                f"{asked['why'].iloc[0]}. More runs would change that."
            )


def _splits(grid: DepthBreadth) -> Iterator[str]:
    """Whether the split that looks best leads the usual one, T = N, by task and model."""
    rules = grid.knowing[grid.knowing["rule"] == "square"]
    for (task, model), cells in grid.cells.groupby(["task", "model"], sort=False):
        usual = rules[(rules["task"] == task) & (rules["model"] == model)]
        if usual.empty:
            yield (
                f"{task}, {model}: No decision: no budget was split in two ways. Runs of another "
                "number of children would change that."
            )
            continue
        row = usual.sort_values("calls").to_dict("records")[-1]
        [top] = grid.best.merge(pd.DataFrame([row])[["task", "model", "calls"]]).to_dict("records")
        least = int(cells.loc[cells["calls"] == row["calls"], "n"].min())
        start = f"{task}, {model}, {int(row['calls']):,} calls: "
        if least < FEWEST:
            few = f"No decision among {top['splits']} splits: {too_few(least, FEWEST)}."
            yield f"{start}{few} More seeds would change that."
        else:
            yield start + _between_splits(row, top, grid.level)


def _between_splits(row: Mapping[Hashable, Any], top: Mapping[Hashable, Any], level: float) -> str:
    """The decision between the usual split of a budget and the one that looks best."""
    usual, best = (f"T = {of['generations']}, N = {of['children']}" for of in (row, top))
    n, limits = int(row["n"]), (float(row["low"]), float(row["high"]))
    if usual == best:
        return (
            f"Stay with {usual}, the split that is T = N or nearest to it: it looks best of "
            f"{top['splits']}, too, with probability {top['p_best']:.2f} (n = {n} runs of each). "
            "What would change that: more runs, in which another split looks best."
        )
    word, gain = decide(*limits), float(row["gain"])
    error = (limits[1] - limits[0]) / 2 / float(student(level, n - 1))
    case = _Case(
        a=f"the best of {top['splits']} splits ({best}, the best with probability "
        f"{top['p_best']:.2f})",
        b=usual, word=word, effect=gain, limits=limits, n=f"held out, n = {n} runs of each",
        more=top["splits"] * still_needed(n, gain, 0, error, n - 1, word),
        had=top["splits"] * n,
    )  # fmt: skip
    return _one(case)


def _planned(plan: BudgetPlan) -> str:
    """How to spend the budget of a plan, and which lead would change that."""
    pilot = (
        f"(n = {amount(plan.pilot_runs, 'run')} of the pilot, {amount(plan.pilot_calls, 'call')})"
    )
    if plan.departs:
        row = plan.options.iloc[0]
        return (
            f"Spend the budget of {plan.budget:g} on {plan.choice}: in simulation it leads by "
            f"{row['ahead']:+.3g}, beyond its margin of {row['margin']:.3g} {pilot}. What would "
            "change that: a pilot in which the lead is no larger than the margin."
        )
    text = (
        f"Stay with {plan.usual} for the budget of {plan.budget:g}: no other way to spend it leads "
        f"by more than chance explains {pilot}."
    )
    for other in plan.needed.to_dict("records"):
        if math.isinf(other["margin"]):
            return f"{text} What would change that: a pilot of several runs, as {NO_MARGIN}."
        name = f"one run of N = {other['children']}"
        if other["arms"] > 1:
            name = f"{other['arms']} runs under {other['policy']}"
        text += (
            f" What would change that: {name}, with a lead of more than {other['margin']:.3g}; in "
            f"simulation it is {other['ahead']:+.3g}"
        )
        if 0 < other["ahead"] < other["margin"]:
            times = float(other["margin"] / other["ahead"]) ** 2
            text += f", and {_pilot_that_shows(plan.pilot_runs, times)}, were it the true one"
        text += "."
    return text


def _pilot_that_shows(runs: int, times: float) -> str:
    """The pilot that would show a lead: one with so many times the runs of this pilot."""
    if times > TIMES:
        return f"only a pilot of more than {TIMES} times as many runs would show it"
    return f"about {runs * times:,.0f} runs in the pilot would show it"


def _one(case: _Case) -> str:
    if case.word == "undetermined":
        start = f"No decision between {case.a} and {case.b}"
        return f"{start}: the difference is {_effect(case)}.{_open(case)}"
    if case.word == "within margin":
        return (
            f"Take either {case.a} or {case.b}: the difference is {_effect(case)}, within the "
            "margin. A smaller margin would change that."
        )
    use, leave = (case.a, case.b) if case.word == "greater" else (case.b, case.a)
    return f"Use {use} rather than {leave}: the difference is {_effect(case)}.{_changes(case)}"


def _effect(case: _Case) -> str:
    low, high = case.limits
    if math.isnan(low):
        return f"{case.effect:+.3g} ({case.n}; no interval: {case.note})"
    found = with_limits(case.effect, low, high, "{:+.3g}".format, "{:.3g}".format)
    return f"{found} ({case.n})"


def _changes(case: _Case) -> str:
    """What would change a decision that was made."""
    return f" {new_runs(case.power)}"


def _open(case: _Case) -> str:
    """What would decide what is open."""
    held = f" {case.held_back}" if case.held_back else ""
    more = further_runs(case.more, had=case.had, within=case.within, cost=case.cost)
    return f"{held} {sentence(more)} {UNTIL_THEN}"
