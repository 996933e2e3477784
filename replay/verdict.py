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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from replay.arms import pool_of
from replay.effects import pool_interval
from replay.frames import COSTS, distinct_runs, fitness_matrix, is_stand_in, run_lengths
from replay.intervals import LEAST, NOTHING, FloatArray, Interval, compare, interval, student
from replay.simulation import simulate, simulate_many

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Side = str | Mapping[str, Any]
"""A policy's name, or the values of columns that single out runs, such as {"children": 8}."""

MARGIN_SHARE = 0.1
"""Of what hindsight gains over chance: the largest loss that counts as none."""

POWER, DRAWS, REPLICATES = 0.8, 400, 1000
_NULL_REPLICATES = 40

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
        return (
            f"We compared {self.a} with {self.b} on {self.setting} (n = {self.n} runs). The mean "
            f"difference in fitness was {self.effect:.4g} ({limits}). That {self.a} loses no more "
            f"than {self.margin:.4g}, fixed beforehand, is {self.verdict}. Under the null "
            f"({self.null}) a difference at least as large has probability {self.p:.3g}. So many "
            f"runs detect an effect of {self.detectable:.4g} with a power of {POWER:.0%}; at the "
            f"effect seen, {needed} more runs would settle it" + (f" ({known})." if known else ".")
        )

    def __str__(self) -> str:
        """Render as `undetermined: ucb1 less random 0.012 [-0.02, 0.04] ...`."""
        return f"{self.verdict}: {self.a} less {self.b} {self.interval}, margin {self.margin:.3g}"

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
        ax.set(yticks=[], ylim=(-1, 1), xlabel=f"fitness, {self.a} less {self.b}")
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
        found = _of_policies(frame, a, b, arms, rounds, reward, level, seed)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        found = _of_groups(frame, a, b, calls, level, seed)
    else:
        raise ValueError(f"expected two policies or two {{column: value}}, got {a!r} and {b!r}")
    limits, n, freedom = found["interval"], found["n"], found.pop("freedom")
    scale, depth = found.pop("scale"), found.pop("depth")
    margin = MARGIN_SHARE * scale if margin is None else margin
    verdict: Literal["supported", "refuted", "undetermined"] = "undetermined"
    if limits.low > -margin or limits.high < -margin:
        verdict = "supported" if limits.low > -margin else "refuted"
    factor = student(level, freedom)
    error = (limits.high - limits.low) / 2 / factor
    power = student(2 * POWER - 1, freedom) * error
    detectable = power + max(factor * error, found.pop("hurdle"))
    away, total = abs(limits.value + margin), math.inf
    if verdict != "undetermined":
        total = 0.0
    elif away > 0 and math.isfinite(detectable):
        total = n * (detectable / away) ** 2
    more = float(max(math.ceil(total) - n, int(total > 0))) if math.isfinite(total) else math.inf
    return Verdict(
        verdict=verdict, effect=limits.value, margin=margin, detectable=detectable,
        runs_needed=more, cost=_cost(frame, depth, more), **found,
    )  # fmt: skip


def _of_policies(
    frame: pd.DataFrame,
    a: str,
    b: str,
    arms: int | None,
    rounds: int | None,
    reward: str,
    level: float,
    seed: int,
) -> dict[str, Any]:
    fitness, lengths = pool_of(frame, "policies are judged")
    n, rounds = len(fitness), int(lengths.min()) if rounds is None else rounds
    K = max(2, min(10, n // 5)) if arms is None else arms
    if n < 2 * K or rounds < 1:
        raise ValueError(
            f"expected at least {2 * K} runs with a generation for pools of {K} arms, got {n} runs "
            f"of {rounds} or more generations"
        )
    settings: dict[str, Any] = {"rounds": rounds, "reward": reward, "seed": seed}
    played = simulate_many(
        fitness, [*{a, b, "random", "oracle_arm"}], arms=K, lengths=lengths,
        replicates=REPLICATES, replace=False, **settings,
    )  # fmt: skip
    ends = {name: replay.best_fitness[:, -1] for name, replay in played.items()}
    if any(np.isnan(end).any() for end in ends.values()):
        raise ValueError(NOTHING)
    name = f"{a} less {b}"
    limits = pool_interval(ends[a] - ends[b], played[a].arms, level=level, name=name)
    if "single" in (a, b):
        null, hurdle = "no difference between disjoint pools, Student's t", -math.inf
        p = _student_p(limits, n / K - 1, level)
        opposite = 1 - p
    else:
        null = "increments permuted across arms at each generation"
        drawn = permuted_effects(fitness[:, : int(lengths.min()) + 1], a, b, K, settings)
        hurdle = float(np.quantile(drawn, 0.95))  # the null need not be no effect
        p, opposite = _tails(limits.value, drawn, 0.0)
    return {
        "a": a, "b": b, "interval": limits, "null": null, "p": p, "p_opposite": opposite,
        "hurdle": hurdle,
        "n": n, "points": (ends[a], ends[b]), "freedom": n / K - 1, "depth": rounds,
        "scale": float(np.mean(ends["oracle_arm"] - ends["random"])),
        "setting": f"pools of K = {K} of the logged runs, drawn apart, {rounds} pulls, {reward}",
    }  # fmt: skip


def permuted_effects(
    fitness: FloatArray, a: str, b: str, K: int, settings: dict[str, Any]
) -> FloatArray:
    """Effects where no arm is better than another: increments go to any arm, (draws,).

    What an arm gained before then says nothing of what it gains next, which is all that a choice
    among arms can use.
    """
    rng = np.random.default_rng([int(settings["seed"]), 7])
    known = np.where(np.isnan(fitness), np.fmin.reduce(fitness, axis=None), fitness)
    steps = np.diff(known, axis=1, prepend=0.0)
    n, rounds = len(known), min(int(settings["rounds"]), known.shape[1] - 1)
    order = rng.random((DRAWS, *steps.shape)).argsort(axis=1)
    worlds = np.take_along_axis(steps[None], order, axis=1).cumsum(axis=2)
    pools = rng.random((DRAWS, _NULL_REPLICATES, n)).argsort(axis=2)[:, :, :K]
    rows = (pools + n * np.arange(DRAWS)[:, None, None]).reshape(-1, K)
    settings = {**settings, "rounds": rounds, "replicates": len(rows), "arms": rows}
    ends = [
        simulate(worlds.reshape(-1, worlds.shape[2]), name, **settings).best_fitness[:, -1]
        for name in (a, b)
    ]
    return np.asarray((ends[0] - ends[1]).reshape(DRAWS, -1).mean(axis=1))


def _of_groups(
    frame: pd.DataFrame,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    calls: int | None,
    level: float,
    seed: int,
) -> dict[str, Any]:
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
    return {
        "a": names[0], "b": names[1], "interval": limits, "null": null,
        "p": p, "p_opposite": opposite,
        "n": len(one) if paired else len(together), "points": (one, other),
        "freedom": max(freedom, 1.0), "depth": max(depths), "hurdle": -math.inf,
        "scale": float(together.max() - together.mean()),
        "setting": f"whole runs after {depths[0]} and {depths[1]} generations"
        + (f", paired by {by}" if paired else "") + given,
    }  # fmt: skip


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
        signs = rng.choice([-1.0, 1.0], size=(5 * DRAWS, len(left)))
        return np.asarray((signs * (left - right)).mean(axis=1))
    together = np.concatenate([left, right])
    order = rng.random((5 * DRAWS, len(together))).argsort(axis=1)
    mixed = together[order]
    return np.asarray(mixed[:, : len(left)].mean(axis=1) - mixed[:, len(left) :].mean(axis=1))


def _tails(value: float, drawn: FloatArray, slack: float) -> tuple[float, float]:
    """Shares of draws, the value included, that do at least and at most as well, up to `slack`."""
    above, below = (drawn >= value - slack).sum(), (drawn <= value + slack).sum()
    return float((1 + above) / (1 + len(drawn))), float((1 + below) / (1 + len(drawn)))


def _student_p(found: Interval, freedom: float, level: float) -> float:
    """One-sided probability of at least this value where there is no effect; NaN without limits."""
    from scipy.special import stdtr

    error = (found.high - found.low) / 2 / student(level, freedom)
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
