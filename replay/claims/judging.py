"""One comparison on anybody's logs: greater, less, within a margin or undetermined.

Groups of runs are compared by exchanging runs (`replay.statistics.exchange`): verdict, p and
interval come from one distribution. Policies are compared on pools of runs by the jackknife over
runs (`replay.simulation.effects`). With `sequential=True` groups are compared by evidence that may
be looked at after every run (`replay.statistics.sequential`). The rule of the verdict is that of
`replay.claims.decision`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TypeGuard

import numpy as np
import pandas as pd

from evo.logs.types import Fields
from evo.policies import SETS, PolicyClass
from replay.claims.decision import (
    POWER,
    Outcome,
    checked_margin,
    decide,
    kurtosis_of,
    p_above,
)
from replay.claims.found import Found, cost_of, cost_of_run, mean_cost, verdict_of
from replay.claims.several import (
    TaskPools,
    groups_on_tasks,
    policies_on_tasks,
    shared_tasks,
    strata_of,
)
from replay.claims.sides import SEVERAL_TASKS, Sides, lengths, sides_of
from replay.claims.verdict import NO_SPREAD, PAIRS_EXCHANGED, SKEWED_PAIRS, Verdict
from replay.logs.frames import distinct_runs
from replay.logs.given import check_loaded, check_runs
from replay.simulation.earlier import Earlier
from replay.simulation.pools import Pools
from replay.simulation.simulate import label_of
from replay.simulation.widths import deciding_limits
from replay.statistics.groups import LEAST_PAIRS, Groups, compare_groups, unlike
from replay.statistics.intervals import (
    LEAST,
    FloatArray,
    Interval,
    interval,
    measured,
    student,
    too_few,
)
from replay.statistics.levels import check_level
from replay.statistics.sequential import e_process, pairs_to_settle, sequence

Side = str | PolicyClass | Fields
"""A policy, or the values of columns that single out runs, such as {"children": 8}."""

PER_PULL = (
    "pools of K = {K} of the logged runs, drawn without replacement, {rounds} pulls, {reward}"
)
OFF_SCALE = " (policies on raw rewards are meant for fitness in [0, 1], which this is not)"


def judge(
    frame: pd.DataFrame,
    a: Side,
    b: Side,
    margin: float | None = None,
    *,
    sequential: bool = False,
    bounds: tuple[float, float] | None = None,
    arms: int | None = None,
    rounds: int | None = None,
    calls: int | None = None,
    reward: str = "best_fitness",
    earlier: Earlier | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Verdict:
    """Judges how a compares with b, on logs of ours, imported ones or a table.

    Args:
        frame: Rows of `replay.load`. Several tasks are judged together: effects are then in
            standard deviations within tasks (of all runs of both sides; of policies, of what b
            reaches), runs are exchanged within tasks, and the verdict is of these tasks. What they
            say of further ones stands beside it (`Verdict.further`).
        a: A policy, by name or class, which is best compared with `single`, one run that gets the
            whole budget; or {column: value} such as {"model": "x"} or {"children": 8},
            `generations` being the depth at which runs are compared. Runs of equal seeds are
            pairs, and so are copies (forks) of one run. Where only some runs have a partner, all
            are compared as groups in which the pairs stay together; none is discarded.
        b: The same of what it is compared with.
        margin: Largest difference in fitness (in standard deviations, of several tasks), in either
            direction, that counts as none. It must not be computed from these runs. None: there is
            no margin.
        sequential: Whether verdict and interval must hold however often this is asked, for
            instance after every run. Runs enter in the order of their seeds.
        bounds: Lowest and highest score that is possible. With it, `sequential` bets on bounded
            scores, and other verdicts carry an interval that covers rare jumps, too.
        arms: K of policies; None: a fifth of the runs, at least 2.
        rounds: Pulls of policies; None: the generations of the shortest run.
        calls: Budget at which groups of runs are compared; None: the most that all have.
        reward: The reward that policies receive.
        earlier: Earlier runs from which policies learn, as of `replay.simulate`.
        level: Nominal coverage of the interval.
        seed: Key of all draws.

    Raises:
        ValueError: Runs of several models or N on one side and task; several tasks of which the
            sides share none, or with `sequential` or `bounds`; a policy against a group; a group
            without runs; a run without any fitness, which has no mean; a negative margin; policies
            with `sequential`; a score outside `bounds`.

    Example:
        >>> found = replay.judge(frame, {"children": 2}, {"children": 1}, calls=4)
        >>> found.verdict in ("greater", "less", "undetermined")
        True
    """
    check_loaded("judge", frame, "replay.load")
    check_runs(frame)
    check_level(level)
    frame, margin = distinct_runs(frame), checked_margin(margin)
    if is_policy(a) and is_policy(b):
        if sequential or bounds is not None:
            raise ValueError(
                f"{a!r} and {b!r} are policies, which are judged once, on a number of runs fixed "
                "before; sequential=True (`--sequential`) and bounds= are for two groups of runs, "
                "such as {'model': 'x'} and {'model': 'y'}, where each new pair is new evidence. "
                "All policies are replayed on the same runs, so a further replay is none"
            )
        if "task" in frame and frame["task"].nunique() > 1:
            each = TaskPools(
                frame, arms=arms, rounds=rounds, reward=reward, seed=seed, earlier=earlier
            )
            cost = mean_cost([
                cost_of_run(frame[frame["task"] == task], own.rounds)
                for task, own in each.pools.items()
            ])  # fmt: skip
            found = verdict_of(policies_on_tasks(each, a, b, level, cost), margin, level)
            return dataclasses.replace(found, null_p=each.null_p(a, b))
        pools = Pools(frame, arms=arms, rounds=rounds, reward=reward, seed=seed, earlier=earlier)
        found = judge_pools(frame, pools, a, b, margin, level=level)
        return dataclasses.replace(found, null_p=pools.null_p(a, b))
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        raise not_sides(a, b)
    names = (_named(a), _named(b))
    if tasks := shared_tasks(frame, a, b):
        if sequential or bounds is not None:
            raise ValueError(
                "expected runs of one task with sequential=True or bounds=, got runs of several; "
                + SEVERAL_TASKS
            )
        strata = strata_of(frame, tasks, a, b, calls)
        together = groups_on_tasks(*strata, names, margin, level, seed)
        return verdict_of(together, margin, level)
    sides = sides_of(frame, a, b, calls)
    if sequential:
        return _followed(sides, names, margin, bounds, level, seed)
    return verdict_of(_of_groups(sides, names, margin, bounds, level, seed), margin, level)


def is_policy(side: Side) -> TypeGuard[str | PolicyClass]:
    """Whether a side of a comparison is a policy, by its name or its class."""
    return isinstance(side, str) or callable(side)


def not_sides(a: Side, b: Side) -> ValueError:
    """Returns the error of two sides that cannot be compared with each other."""
    return ValueError(
        "expected two policies or two {column: value} (COLUMN=VALUE on the command line), a policy "
        "being a name or a class, got "
        f"{a!r} and {b!r}; {SETS}"
    )


def judge_pools(
    frame: pd.DataFrame,
    pools: Pools,
    a: str | PolicyClass,
    b: str | PolicyClass,
    margin: float | None,
    *,
    level: float = 0.95,
) -> Verdict:
    """`judge` of two policies on pools of the frame's runs, for several comparisons on them."""
    found = _of_policies(pools, a, b, level, cost_of_run(frame, pools.rounds))
    return verdict_of(found, checked_margin(margin), level)


def _of_policies(
    pools: Pools, a: str | PolicyClass, b: str | PolicyClass, level: float, cost: dict[str, float]
) -> Found:
    one, other, freedom = pools.ends(a), pools.ends(b), pools.n - 1
    limits = pools.effect(a, b, level=level)
    error = (limits.high - limits.low) / 2 / float(student(level, freedom))
    greater = p_above(limits.value, (limits.low, limits.high), pools.n, level)
    about = {
        "a": label_of(a), "b": label_of(b), "interval": limits, "n": pools.n,
        "points": (one, other),
        "null": f"no effect over runs, Student's t with {freedom} degrees of freedom",
        "p": 2 * min(greater, 1 - greater), "p_greater": greater, "p_less": 1 - greater,
        "setting": PER_PULL.format(K=pools.K, rounds=pools.rounds, reward=pools.reward)
        + (OFF_SCALE if pools.off_scale else ""),
    }  # fmt: skip
    decides = deciding_limits(limits, pools.K)
    ratio = (decides[1] - decides[0]) / (limits.high - limits.low)
    wider = f"in worlds where few runs decide it would have to be {ratio:.2g} times as wide, which"
    return Found(about, decides, error, freedom, cost, 1.0, wider=wider)


def _of_groups(
    sides: Sides,
    names: tuple[str, str],
    margin: float,
    bounds: tuple[float, float] | None,
    level: float,
    seed: int,
) -> Found:
    left, right, n = sides.left, sides.right, sides.units
    least = sides.pairs if sides.paired else min(len(left), len(right))
    kind = "pairs" if sides.paired else "groups"
    value, note = float(left.mean() - right.mean()), ""
    found = Groups(value, *[math.nan] * 7)
    if sides.paired and least < LEAST_PAIRS:
        settle = "pair never settles" if least == 1 else "pairs never settle"
        note = f"{least} {settle} anything by their signs (needs {LEAST_PAIRS})"
    elif least < LEAST:
        note = too_few(least, LEAST)
    else:
        found = compare_groups(
            left, right, pairs=sides.pairs, level=level, margin=margin, seed=seed
        )
        note = "" if found.error > 0 else NO_SPREAD
    low, high = found.low, found.high
    if np.isin(np.concatenate([left, right]), (0.0, 1.0)).all() and not math.isnan(low):
        apart = shares_apart(left, right, level)
        low, high, note = min(low, apart[0]), max(high, apart[1]), ""
    if np.isinf([low, high]).any():
        note = "so few exchanges are possible that they exclude no effect"
    shown = (math.nan, math.nan) if note else (low, high)
    limits = Interval(
        value=value, low=shown[0], high=shown[1], n=n, level=level, statistic="difference",
        coverage=math.nan if note else measured(kind, least, level), note=note,
    )  # fmt: skip
    null = PAIRS_EXCHANGED
    if not sides.paired:
        together = ", those of a pair with each other" if sides.pairs else ""
        null = (
            f"runs exchanged between the sides{together}, or equal means by Welch's t, "
            "whichever is the less clear"
        )
    about = {
        "a": names[0], "b": names[1], "interval": limits, "null": null,
        "p": float(np.minimum(1.0, 2 * min(found.p_greater, found.p_less))),
        "p_within": found.p_within,
        "taken_for_granted": SKEWED_PAIRS if sides.paired else "",
        "unlike": "" if sides.paired or math.isnan(found.error) else unlike(left, right),
        "p_greater": found.p_greater, "p_less": found.p_less, "n": n, "points": (left, right),
        "setting": sides.setting, "unit": "pairs" if sides.paired else "runs",
        "bounded": bounded_difference(sides, bounds, level) if bounds else None,
    }  # fmt: skip
    kurtosis = kurtosis_of(*((left - right,) if sides.paired else (left, right)))
    return Found(
        about, (low, high), found.error, found.freedom, sides.cost, sides.runs / n, kurtosis
    )


def shares_apart(left: FloatArray, right: FloatArray, level: float) -> tuple[float, float]:
    """Limits of a difference of shares by squaring and adding (Newcombe 1998, method 10)."""
    a, b = interval(left, "share", level), interval(right, "share", level)
    apart = a.value - b.value
    down = math.hypot(a.value - a.low, b.high - b.value)
    return apart - down, apart + math.hypot(a.high - a.value, b.value - b.low)


def bounded_difference(sides: Sides, bounds: tuple[float, float], level: float) -> Interval:
    """Interval of the difference by betting on scores within bounds; pairs by their differences.

    Of groups it is that of two means, each at half the error.
    """
    low, high = _checked_bounds(sides, bounds)
    width = high - low
    if sides.paired:
        unit = (sides.differences / width + 1) / 2
        found = interval(unit, "mean", level, method="betting")
        limits = [width * (2 * limit - 1) for limit in (found.low, found.high)]
    else:
        one, other = (
            interval((side - low) / width, "mean", (1 + level) / 2, method="betting")
            for side in (sides.left, sides.right)
        )
        limits = [width * (one.low - other.high), width * (one.high - other.low)]
    value = float(sides.left.mean() - sides.right.mean())
    return Interval(
        value=value, low=limits[0], high=limits[1], n=sides.units, coverage=level, level=level,
        statistic="difference",
    )  # fmt: skip


def _checked_bounds(sides: Sides, bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = (float(each) for each in bounds)
    both = np.concatenate([sides.left, sides.right])
    if not low < high or both.min() < low or both.max() > high:
        raise ValueError(
            f"expected bounds (lowest, highest) around all scores, from {both.min():g} to "
            f"{both.max():g}, got {bounds!r}"
        )
    return low, high


def _followed(
    sides: Sides,
    names: tuple[str, str],
    margin: float,
    bounds: tuple[float, float] | None,
    level: float,
    seed: int,
) -> Verdict:
    """The sequential verdict, on pairs in the order of their seeds."""
    d = sides.differences
    half_range, null = None, "the two runs of a pair are exchangeable; signs flipped"
    if bounds is not None:
        low, high = _checked_bounds(sides, bounds)
        half_range, null = high - low, f"equal means of scores in [{low:g}, {high:g}]; betting"
    found = sequence(d, level=level, half_range=half_range)
    ends = (found.low, found.high)
    verdict: Outcome = decide(*ends, margin) if np.isfinite(ends).all() else "undetermined"
    settled = 1 / (1 - level)
    more = 0.0
    if verdict == "undetermined":
        more = 2.0 * pairs_to_settle(
            d, share=POWER, level=level, half_range=half_range, margin=margin, seed=seed
        )
    note = ""
    if not np.isfinite(ends).all():
        least = math.floor(math.log2(2 * settled)) + 1
        note = f"{len(d)} pairs exclude no effect yet, and fewer than {least} never can"
        ends = (math.nan, math.nan)
    left_out = abs(len(sides.left) - len(sides.right))
    waiting = f", {left_out} runs still without a partner" if left_out else ""
    together = f"by {sides.by}" if sides.paired else "in the order of their seeds"
    return Verdict(
        verdict=verdict, a=names[0], b=names[1], effect=found.value, margin=margin, null=null,
        interval=Interval(
            value=found.value, low=ends[0], high=ends[1], n=len(d), level=level, note=note,
            coverage=math.nan if note else level, statistic="confidence sequence",
        ),
        p=1 / max(found.e_value, 1.0), p_greater=1 / max(found.e_greater, 1.0),
        p_less=1 / max(found.e_less, 1.0), e_value=found.e_value,
        e_within=min(float(e_process(sign * d, half_range, -margin)[-1]) for sign in (1, -1))
        if margin else math.nan,
        detectable=math.nan,
        power=math.nan, runs_needed=more, cost=cost_of(more, sides.cost), n=len(d),
        points=(sides.left, sides.right), unit="pairs", sequential=True,
        setting=f"whole runs after {lengths(*sides.depths)}, paired {together}{sides.given}"
        f"{waiting}",
    )  # fmt: skip


def _named(side: Fields) -> str:
    return ", ".join(f"{key} = {value}" for key, value in side.items())
