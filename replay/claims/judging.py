"""One comparison on anybody's logs: supported, refuted or undetermined, and what would settle it.

"a is no worse than b" is supported if the interval of the effect, a less b, lies above minus a
margin that was fixed beforehand, refuted if it lies below, and undetermined otherwise; with
margin 0 it reads "a is better than b". Beside it stands how often a null, in which there is no such
effect, does as well; the effect that this many runs would detect in four of five repetitions; and
how many more runs it would take at the effect that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from replay.logs.frames import COSTS, distinct_runs, fitness_matrix, is_stand_in, run_lengths
from replay.simulation.effects import pool_interval
from replay.simulation.pools import ENOUGH, Pools
from replay.statistics.intervals import (
    LEAST,
    NOTHING,
    FloatArray,
    Interval,
    compare,
    interval,
    student,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = str | Mapping[str, Any]
"""A policy's name, or the values of columns that single out runs, such as {"children": 8}."""

MARGIN_SHARE = 0.1
"""Of what hindsight gains over chance: the largest loss that counts as none."""

POWER = 0.8
EXCHANGES = 2000
"""Draws of the null of two groups of runs."""

_SAME = ("task", "model", "children", "search")
"""Columns of which one side may hold one value only."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What `judge` found.

    Attributes:
        verdict: `supported`, `refuted` or `undetermined`: that a is no worse than b by `margin`.
        a: The one side, in words.
        b: The other.
        effect: Mean of a less that of b, in fitness.
        interval: The effect with its interval over runs.
        margin: Loss that counts as none, fixed beforehand.
        null: What the null says.
        p: How often the null does at least as well as was seen (one-sided).
        p_opposite: How often it does at most as well; where draws tie with what was seen, both are
            large.
        detectable: Effect that as many runs would tell from none, and from the null, in four of
            five repetitions.
        runs_needed: Runs still needed at the effect that was seen; infinite if it is none.
        cost: What these would cost, by unit, where it is known.
        n: Runs that it rests on.
        points: What is compared, of a and of b: by run, or by replicate of the policies.
        setting: On what, in words.
    """

    verdict: Literal["supported", "refuted", "undetermined"]
    a: str
    b: str
    effect: float
    interval: Interval
    margin: float
    null: str
    p: float
    p_opposite: float
    detectable: float
    runs_needed: float
    cost: dict[str, float]
    n: int
    points: tuple[FloatArray, FloatArray]
    setting: str

    @property
    def paragraph(self) -> str:
        """A paragraph for a methods section."""
        found, more = self.interval, self.runs_needed
        limits = found.note or (
            f"{found.label} [{found.low:.4g}, {found.high:.4g}], called by the worst coverage "
            "measured on normal, lognormal and beta data at this n"
        )
        known = ", ".join(f"{value:,.4g} {unit}" for unit, value in self.cost.items())
        needed = "an unknown number of" if not math.isfinite(more) else f"{more:,.0f}"
        power = (
            f"So many runs detect an effect of {self.detectable:.4g} with a power of {POWER:.0%}; "
            f"at the effect seen, {needed} more runs would settle it"
            + (f" ({known})." if known else ".")
            if math.isfinite(self.detectable)
            else "What effect so few runs would detect cannot be said."
        )
        return (
            f"We compared {self.a} with {self.b} on {self.setting} (n = {self.n} runs). The mean "
            f"difference in fitness was {self.effect:.4g} ({limits}). That {self.a} loses no more "
            f"than {self.margin:.4g}, fixed beforehand, is {self.verdict}. Under the null "
            f"({self.null}) a difference at least as large has probability {self.p:.3g}. {power}"
        )

    def __str__(self) -> str:
        """Render as `undetermined: ucb1 less random 0.012 [-0.02, 0.04] ...`."""
        return f"{self.verdict}: {self.a} less {self.b} {self.interval}, margin {self.margin:.3g}"

    __repr__ = __str__

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the effect with its interval, no effect, and the margin.

        Args:
            ax: Where to draw; None: a new figure.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 1.8), layout="constrained").subplots()
        ax.axvline(0, color="0.3", linewidth=1)
        ax.axvline(-self.margin, color="0.5", linestyle="--", label=f"margin {self.margin:.3g}")
        if not self.interval.note:
            ax.hlines(0, self.interval.low, self.interval.high, linewidth=3, color="C0")
        ax.plot([self.effect], [0], "o", color="C0", label=f"{self.interval.label}, n = {self.n}")
        names = f"{self.a} less {self.b}".replace("$", r"\$")  # a dollar sign begins no formula
        ax.set(yticks=[], ylim=(-1, 1), xlabel=f"fitness, {names}")
        ax.set_title(self.verdict, loc="left")
        ax.legend(frameon=False, loc="upper right", fontsize="small")
        return ax


def judge(
    frame: pd.DataFrame,
    a: Side,
    b: Side,
    margin: float | None = None,
    *,
    arms: int | None = None,
    rounds: int | None = None,
    calls: int | None = None,
    reward: str = "best_fitness",
    level: float = 0.95,
    seed: int = 0,
) -> Verdict:
    """Judges whether a is no worse than b, on logs of ours, imported ones or a table.

    Args:
        frame: Rows of `replay.load`, of one task.
        a: A policy's name; or {column: value} such as {"model": "x"} or {"children": 8},
            `generations` being the depth at which runs are compared. Runs of equal seeds are
            paired, or copies of forks: those of one root run and number; intervals are over roots.
        b: The same of what it is compared with.
        margin: Loss in fitness that counts as none; None: a tenth of what hindsight gains over
            chance: the best arm of a pool less `random`, the best run less the mean run.
        arms: K of policies; None: a fifth of the runs, so that there are five disjoint pools.
        rounds: Pulls of policies; None: the generations of the shortest run.
        calls: Budget at which groups of runs are compared; None: the most that all have.
        reward: What policies are told.
        level: Nominal coverage of the interval.
        seed: Key of all draws.

    Raises:
        ValueError: Runs of several tasks, or of several models or N on one side; a policy against
            a group; a group without runs; a run without any fitness, which has no mean.
    """
    frame = distinct_runs(frame)
    if isinstance(a, str) and isinstance(b, str):
        pools = Pools(frame, arms=arms, rounds=rounds, reward=reward, seed=seed)
        return judge_pools(frame, pools, a, b, margin, level=level)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return _judged(frame, _of_groups(frame, a, b, calls, level, seed), margin, level)
    raise ValueError(f"expected two policies or two {{column: value}}, got {a!r} and {b!r}")


def judge_pools(
    frame: pd.DataFrame, pools: Pools, a: str, b: str, margin: float | None, *, level: float = 0.95
) -> Verdict:
    """`judge` of two policies on pools of the frame's runs, for several comparisons on them."""
    return _judged(frame, _of_policies(pools, a, b, level), margin, level)


class _Found(NamedTuple):
    """What two sides came to."""

    about: dict[str, Any]  # fields of the verdict, of which the rest follows from:
    freedom: float
    hurdle: float  # effect that the null itself reaches in 1 of 20 draws
    scale: float  # what a margin is a share of
    depth: int  # generations of the runs


def _judged(frame: pd.DataFrame, found: _Found, margin: float | None, level: float) -> Verdict:
    limits, n = found.about["interval"], found.about["n"]
    margin = MARGIN_SHARE * found.scale if margin is None else margin
    verdict: Literal["supported", "refuted", "undetermined"] = "undetermined"
    if limits.low > -margin or limits.high < -margin:
        verdict = "supported" if limits.low > -margin else "refuted"
    factor = float(student(level, found.freedom))
    error = (limits.high - limits.low) / 2 / factor
    power = float(student(2 * POWER - 1, found.freedom)) * error
    detectable = power + max(factor * error, found.hurdle)
    away, total = abs(limits.value + margin), math.inf
    if verdict != "undetermined":
        total = 0.0
    elif away > 0 and math.isfinite(detectable):
        total = n * (detectable / away) ** 2
    more = float(max(math.ceil(total) - n, int(total > 0))) if math.isfinite(total) else math.inf
    return Verdict(
        verdict=verdict, effect=limits.value, margin=margin, detectable=detectable,
        runs_needed=more, cost=_cost(frame, found.depth, more), **found.about,
    )  # fmt: skip


def _of_policies(pools: Pools, a: str, b: str, level: float) -> _Found:
    one, other, K = pools.ends(a), pools.ends(b), pools.K
    limits = pool_interval(one - other, pools.played(a).arms, level=level, name=f"{a} less {b}")
    freedom, hurdle = pools.n / K - 1, -math.inf
    if "single" in (a, b):
        null = "no difference between disjoint pools, Student's t"
        p = _student_p(limits, freedom, level)
        opposite = 1 - p
    else:
        null = "increments permuted across arms at each generation"
        drawn = pools.permuted_effects(a, b, limits.value)
        p, opposite = _tails(limits.value, drawn, 0.0)
        if len(hits := np.flatnonzero(drawn >= limits.value)) >= ENOUGH:
            p = ENOUGH / float(1 + hits[ENOUGH - 1])  # Besag and Clifford 1991
        hurdle = float(np.quantile(drawn, 0.95))  # the null need not be no effect
    about = {
        "a": a, "b": b, "interval": limits, "null": null, "p": p, "p_opposite": opposite,
        "n": pools.n, "points": (one, other),
        "setting": f"pools of K = {K} of the logged runs, drawn apart, {pools.rounds} pulls, "
        f"{pools.reward}",
    }  # fmt: skip
    scale = float(np.mean(pools.ends("oracle_arm") - pools.ends("random")))
    return _Found(about, freedom, hurdle, scale, pools.rounds)


def _of_groups(
    frame: pd.DataFrame,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    calls: int | None,
    level: float,
    seed: int,
) -> _Found:
    parts = [_part(frame, side) for side in (a, b)]
    if len({part["task"].iloc[0] for part, _ in parts}) > 1:
        raise ValueError("expected runs of one task on both sides, got two")
    sizes = [int(part["children"].iloc[0]) for part, _ in parts]
    budget = calls or min(
        int(run_lengths(part).min()) * N for (part, _), N in zip(parts, sizes, strict=True)
    )
    depths = [depth or budget // N for (_, depth), N in zip(parts, sizes, strict=True)]
    left, right = (_ends(part, depth) for (part, _), depth in zip(parts, depths, strict=True))
    one, other, by, given = _matched(left, right)
    if paired := bool(by):
        limits = interval(one - other, level=level)
        freedom, null = len(one) - 1.0, "the sides of each pair exchanged"
    else:
        limits = compare(other, one, level=level).difference
        freedom, null = float(min(len(one), len(other)) - 1), "runs exchanged between the sides"
    drawn = exchanged_effects(one, other, paired, np.random.default_rng([seed, 8]))
    together = np.concatenate([one, other])
    p, opposite = _tails(limits.value, drawn, 1e-12 * np.abs(together).max())
    names = [", ".join(f"{key} = {value}" for key, value in side.items()) for side in (a, b)]
    about = {
        "a": names[0], "b": names[1], "interval": limits, "null": null, "p": p,
        "p_opposite": opposite, "n": len(one) if paired else len(together), "points": (one, other),
        "setting": f"whole runs after {depths[0]} and {depths[1]} generations"
        + (f", paired by {by}" if paired else "") + given,
    }  # fmt: skip
    scale = float(together.max() - together.mean())
    return _Found(about, max(freedom, 1.0), -math.inf, scale, max(depths))


def _ends(part: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Value at a depth of each run that is so deep, with its seed, root and copy, -1 for none."""
    deep = run_lengths(part) >= depth
    if not deep.any():
        deepest = run_lengths(part).max()
        raise ValueError(f"expected runs of {depth} generations, the deepest has {deepest}")
    first = part.groupby("run", sort=False).first()
    if "root" not in first:
        first = first.assign(root=first.index, copy=-1)
    found = first.loc[deep, ["seed", "root", "copy"]].reset_index(drop=True)
    found["value"] = fitness_matrix(part)[deep, depth]
    if found["value"].isna().any():
        raise ValueError(NOTHING)
    return found


def _matched(left: pd.DataFrame, right: pd.DataFrame) -> tuple[FloatArray, FloatArray, str, str]:
    """Values of both sides, by what they are paired (empty: not), and what copies are given.

    Copies of forks pair with those of the same root and number, other runs with those of the same
    seed where enough do. Copies of one root are no independent runs: they count as their mean,
    unless there is one root alone.
    """
    forks = [bool((side["copy"] >= 0).all()) for side in (left, right)]
    keys, by = (["root", "copy"], "root and copy") if all(forks) else (["seed"], "seed")
    both = left.merge(right, on=keys, suffixes=("", "_other"))
    if any(side.duplicated(keys).any() for side in (left, right)) or len(both) < LEAST:
        by = ""
    else:
        left, right = both, both.assign(value=both["value_other"])
    given = ""
    if any(forks):
        given = ", given this state"
        if max(side["root"].nunique() for side in (left, right)) > 1:
            given = ", copies of a run taken together"
            left, right = (side.groupby("root")[["value"]].mean() for side in (left, right))
    one, other = (side["value"].to_numpy(np.float64) for side in (left, right))
    return one, other, by, given


def _part(frame: pd.DataFrame, side: Mapping[str, Any]) -> tuple[pd.DataFrame, int | None]:
    """The rows of one side, and the depth at which it wants to be compared."""
    wanted = dict(side)
    depth = wanted.pop("generations", None)
    if unknown := sorted(set(wanted) - set(frame.columns)):
        raise ValueError(f"expected columns among {sorted(frame.columns)}, got {unknown}")
    part = frame
    for column, value in wanted.items():
        part = part[part[column] == value]
    if part.empty:
        raise ValueError(f"no run has {dict(side)!r}")
    for column in _SAME:
        if column in part and part[column].nunique(dropna=False) > 1:
            found = sorted(map(str, part[column].unique()))
            raise ValueError(f"expected runs of one {column} in {dict(side)!r}, got {found}")
    return part, None if depth is None else int(depth)


def exchanged_effects(
    left: FloatArray, right: FloatArray, paired: bool, rng: np.random.Generator
) -> FloatArray:
    """Effects where the sides are exchanged at random, (draws,)."""
    if paired:
        signs = rng.choice([-1.0, 1.0], size=(EXCHANGES, len(left)))
        return np.asarray((signs * (left - right)).mean(axis=1))
    together = np.concatenate([left, right])
    order = rng.random((EXCHANGES, len(together))).argsort(axis=1)
    mixed = together[order]
    return np.asarray(mixed[:, : len(left)].mean(axis=1) - mixed[:, len(left) :].mean(axis=1))


def _tails(value: float, drawn: FloatArray, slack: float) -> tuple[float, float]:
    """Shares of draws, the value included, that do at least and at most as well, up to `slack`."""
    above, below = (drawn >= value - slack).sum(), (drawn <= value + slack).sum()
    return float((1 + above) / (1 + len(drawn))), float((1 + below) / (1 + len(drawn)))


def _student_p(found: Interval, freedom: float, level: float) -> float:
    """One-sided probability of at least this value where there is no effect; NaN without limits."""
    from scipy.special import stdtr

    error = (found.high - found.low) / 2 / float(student(level, freedom))
    return float(1 - stdtr(freedom, found.value / error)) if error > 0 else math.nan


def _cost(frame: pd.DataFrame, depth: int, runs: float) -> dict[str, float]:
    """What so many runs of this depth would cost, by unit, where the logs know it.

    The FLOPs and dollars of the offline model are invented.
    """
    inside = frame[(frame["generation"] > 0) & (frame["generation"] <= depth)]
    stand_in = "model" in frame and frame["model"].map(is_stand_in).any()
    if not 0 < runs < math.inf:
        return {}
    spent = {
        unit: float(inside.groupby("run")[column].sum(min_count=1).mean())
        for unit, column in COSTS.items()
        if column in inside and not (stand_in and unit in ("flops", "dollars"))
    }
    return {unit: runs * each for unit, each in spent.items() if math.isfinite(each) and each > 0}
