"""Whether a bandit can help on such runs at all.

A bandit spends one budget over K runs where a single run could have all of it. It pays for having
looked: the run that it goes on with is less deep. It gains if the arms differ, if the arm that
leads early still leads late, and if depth is worth little by then. All three are properties of the
logged runs, without any policy.

The yardstick is explore, then commit: K of the n runs are advanced t generations each, the leader
gets what is left of T pulls. Over all choices of K runs its expected fitness is a sum over ranks,
so nothing is simulated. It is compared with the mean of one run of T generations. Where no K and t
gain, an early lead is worth too little, or lasts too short, to pay for the search. A policy that
reallocates more often can do somewhat better than this yardstick, but it uses the same leads.

With a margin the question is whether any way gains more than that, and it can be answered with no.
Then fewer ways are tested, those of FEW arms that look early, since the largest of many gains is
never known to be small; and beside them the gain of `freeze_thaw`, which learns in each replicate
from the runs that are not its arms (`tests/benchmarks/diagnosis_worlds.py` has the power of both).

Intervals are Student's t with the delete-one jackknife over runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from replay.logs.given import check_loaded
from replay.markup import card
from replay.simulation.arms import pool_of
from replay.simulation.earlier import FEWEST_OTHERS, OTHERS
from replay.simulation.pools import Pools
from replay.simulation.sizes import default_arms, more_runs, needed_runs
from replay.statistics.intervals import LEAST, FloatArray, Interval, student
from replay.statistics.levels import check_level
from replay.statistics.numbers import brackets
from replay.statistics.resampling import check_size

ARMS = (2, 3, 4, 5, 8, 10)
"""Numbers of arms that are tried, as far as the runs suffice for them (`needed_runs`)."""

FEW = (2, 3)
"""Numbers of arms that are tested against a margin."""

LOOKS = 1 / 6
"""Share of the generations after which those ways have looked at the latest."""

LEARNER, REPLICATES = "freeze_thaw", 5000
"""The policy whose gain is tested against a margin, and its number of replicates."""

_EARLY = (1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Shares of the generations after which ranks are compared with the final ones."""


Row = dict[Hashable, Any]


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The conditions for a bandit on these runs; `replay.plots.gains` draws `ways`.

    Attributes:
        task: Name of the task.
        model: Name of the model.
        children: N of the runs.
        runs: Number of runs, n.
        rounds: Generations T of the shortest run, at which all are compared.
        spread: Standard deviation of the final fitness over runs.
        initial: Mean fitness of the initial programs; `spread` does not include them.
        persistence: One row per generation t: correlation (Spearman's, of the ranks at t with those
            at T) and lasts (how often the better of two runs at t is still the better one at T, a
            tie at T counting half), each with `_low` and `_high`; NaN where no run has moved.
        ways: One row per number of arms K and pulls of each before the choice, explored: committed
            (expected fitness of the leader at the end), single (mean of one run of T generations),
            gain (committed less single) with low and high, persists (share of the lead of the best
            arm that choosing early keeps), needed (the share that makes up for the lost depth;
            above 1 nothing can).
        verdict: `greater`: some way gains; `less`: all lose; `within margin`: no way gains more
            than the margin; else `undetermined`.
        low: Lower limit of the largest gain over all ways that were tested, which shares the error
            among them.
        high: Upper limit of it.
        margin: The gain in fitness that is not worth having, or None.
        learned: With a margin, the gain of `freeze_thaw` over one run, where there are enough runs
            to learn from; else None.
        learned_arms: K of that policy.
        level: Nominal coverage of the intervals.
    """

    task: str
    model: str
    children: int
    runs: int
    rounds: int
    spread: Interval
    initial: float
    persistence: pd.DataFrame
    ways: pd.DataFrame
    verdict: Literal["greater", "less", "within margin", "undetermined"]
    low: float
    high: float
    level: float
    margin: float | None = None
    learned: Interval | None = None
    learned_arms: int = 0

    @property
    def best(self) -> Row:
        """The way with the largest gain, which is chosen from all of them."""
        return self.ways.iloc[int(self.ways["gain"].argmax())].to_dict()

    @property
    def summary(self) -> tuple[str, str]:
        """Whether a bandit can help, in a sentence; then n, and what would change it."""
        conclusion = {
            "greater": "A bandit can help here",
            "less": "It does not pay here to look at several arms",
            "within margin": f"No bandit that was tested gains more than {self.margin} here",
            "undetermined": f"These runs{', which all end alike,' * (self.spread.value == 0)} do "
            "not tell whether a bandit can help"
            + ("" if self.margin is None else f" by more than {self.margin}"),
        }[self.verdict]
        change = {
            "greater": "What would change that: new runs whose leads do not last.",
            "less": "What would change that: new runs whose leads last.",
            "within margin": "What would change that: a smaller margin.",
            "undetermined": "More runs narrow that range"
            + ("; margin= asks for a gain that is worth having." if self.margin is None else "."),
        }[self.verdict]
        return (
            f"{conclusion}: the largest gain over one run lies in "
            f"{_range(self.low, self.high, 4)}.",
            f"{self.task}, {self.model}: n = {self.runs} runs of N = {self.children}, "
            f"T = {self.rounds}. {change}",
        )

    @property
    def details(self) -> str:
        """The numbers that the verdict rests on, in words."""
        best, gained = self.best, float(self.best["single"] - self.initial)
        lines = [
            f"Runs differ by {self.spread.value:.4f} "
            f"{_range(self.spread.low, self.spread.high, 4)} (standard deviation of the final "
            f"fitness); the mean run gains {gained:.4f}.",
            self._leads,
            f"Best of {len(self.ways)} ways: K = {best['arms']:.0f} arms of "
            f"{best['explored']:.0f} pulls each, then the leader: {best['gain']:+.4f} "
            f"{_range(best['low'], best['high'], 4)} over one run. Of the lead of the best arm "
            f"{_share(best['persists'])} persists, and {_share(best['needed'])} would have to.",
        ]
        if self.learned is not None:
            lines.append(
                f"{LEARNER}, which learns from the runs that are not its K = {self.learned_arms} "
                f"arms: {self.learned.value:+.4f} "
                f"{_range(self.learned.low, self.learned.high, 4)} over one run."
            )
        return "\n".join(lines)

    @property
    def _leads(self) -> str:
        """How long a lead lasts that there is after half of the generations."""
        away = (self.persistence["generation"] - self.rounds / 2).abs()
        middle = self.persistence.iloc[int(away.argmin())].to_dict()
        when = f"After {middle['generation']:.0f} generations"
        if np.isnan(middle["lasts"]):
            return f"{when} all runs are alike, so they say nothing of how long a lead lasts."
        if np.isnan(middle["correlation"]):
            return f"{when} some runs lead, but all end alike: no lead lasts."
        return (
            f"{when} the ranks correlate with the final ones by {_limits(middle, 'correlation')}; "
            "the better of two runs stays the better one with probability "
            f"{_limits(middle, 'lasts')}."
        )

    def __str__(self) -> str:
        """The summary, then the details."""
        return "\n".join([*self.summary, *(f"  {line}" for line in self.details.splitlines())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card(*self.summary, self.details)


def diagnose(frame: pd.DataFrame, margin: float | None = None, *, level: float = 0.95) -> Diagnosis:
    """Says whether a bandit can help on such runs: how far they differ, how long a lead lasts.

    Where nothing is ok yet, a run counts with the lowest fitness of all.

    Args:
        frame: Rows of `replay.load`, of one task, model and N.
        margin: A gain in fitness that would not be worth having, above 0 and fixed before these
            runs were seen. With it the verdict may be `within margin`: no way of choosing that was
            tested gains more. Some fifty runs are needed to exclude a third of their spread.
        level: Nominal coverage of the intervals.

    Raises:
        ValueError: Runs of several tasks, models or N; fewer than five runs, or a run of fewer than
            three generations; no fitness at all; a margin that is not above 0.

    Example:
        >>> runs = frame[frame["children"] == 1]
        >>> replay.diagnose(runs).verdict
        'undetermined'
    """
    check_loaded("diagnose", frame, "replay.load")
    check_level(level)
    if margin is not None and not margin > 0:
        raise ValueError(f"expected a margin above 0, got {margin!r}")
    fitness, lengths = pool_of(frame, "a bandit is diagnosed")
    n, rounds = len(fitness), int(lengths.min())
    if n < LEAST:
        raise ValueError(f"a diagnosis needs at least {LEAST} runs, {more_runs(n, LEAST)}")
    if rounds < 3:
        raise ValueError(
            f"a diagnosis needs runs of 3 generations or more; the shortest has {rounds}"
        )
    if np.isnan(fitness).all():
        raise ValueError("expected runs with a fitness, but nothing was ever ok in any of them")
    values = fitness[:, : rounds + 1]
    values = np.where(np.isnan(values), np.nanmin(values), values)
    check_size(values)
    ways = _ways(values, level)
    # The largest of m gains is at least each of them, and at most the largest upper limit.
    learned, K = (None, 0) if margin is None else _learned_gain(values, level)
    tested = ways
    if margin is not None:
        early = ways["explored"] <= max(1.0, LOOKS * rounds)
        tested = ways[early & ways["arms"].isin(FEW)]
    gains, errors = tested["gain"].to_numpy(), tested["error"].to_numpy()
    high = float(tested["high"].max())
    if learned is not None:
        gains = np.append(gains, learned.value)
        half = (learned.high - learned.low) / 2
        errors = np.append(errors, half / float(student(level, n - 1)))
        high = max(high, learned.high)
    shared = 1 - (1 - level) / len(gains)
    low = float((gains - student(shared, n - 1) * errors).max())
    spread, [below], [above], _ = _jackknife(lambda v: v[:, -1:].std(axis=0, ddof=1), values, level)
    first = frame.iloc[0]
    return Diagnosis(
        task=str(first["task"]), model=str(first["model"]), children=int(first["children"]),
        runs=n, rounds=rounds, initial=float(values[:, 0].mean()), level=level,
        spread=Interval(
            value=float(spread[0]), low=max(float(below), 0.0), high=float(above), n=n, level=level,
            statistic="standard deviation",
        ),
        persistence=_persistence(values, level), ways=ways.drop(columns="error"),
        verdict=_verdict(low, high, margin), low=low, high=high, margin=margin, learned=learned,
        learned_arms=K,
    )  # fmt: skip


def _verdict(
    low: float, high: float, margin: float | None
) -> Literal["greater", "less", "within margin", "undetermined"]:
    """What the limits of the largest gain say."""
    if low > 0:
        return "greater"
    if high < 0:
        return "less"
    return "within margin" if margin is not None and high < margin else "undetermined"


def _learned_gain(values: FloatArray, level: float) -> tuple[Interval | None, int]:
    """The gain of LEARNER over one run and its number of arms; none where the runs are too few."""
    n, rounds = len(values), values.shape[1] - 1
    K = min(default_arms(n), n - FEWEST_OTHERS)
    if K < 2:
        return None, 0
    pools = Pools.of(
        values, np.full(n, rounds), arms=K, rounds=rounds, replicates=REPLICATES, earlier=OTHERS
    )
    found = pools.effect(LEARNER, "single", level=level)
    return (None, 0) if np.isnan(found.low) else (found, K)


def _range(low: float, high: float, digits: int) -> str:
    return brackets(low, high, f"{{:z.{digits}f}}".format)


def _limits(row: Row, name: str) -> str:
    """A number of a row with its limits, or why it has none."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if np.isnan(low):
        return f"{row[name]:.2f} (no interval: without one of the runs the others are alike)"
    return f"{row[name]:.2f} {_range(low, high, 2)}"


def _share(value: float) -> str:
    """A share in per cent; unknown where no arm leads."""
    return "an unknown share" if np.isnan(value) else f"{100 * value:.0f} %"


def _jackknife(
    statistic: Callable[[FloatArray], FloatArray], values: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """A statistic (m,) of runs with the limits and standard errors of the delete-one jackknife."""
    n, found = len(values), statistic(values)
    without = np.stack([statistic(np.delete(values, k, axis=0)) for k in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    half = student(level, n - 1) * error
    return found, found - half, found + half, error


def _ways(values: FloatArray, level: float) -> pd.DataFrame:
    """See `Diagnosis.ways`; error is the standard error of the gain."""
    n, rounds = len(values), values.shape[1] - 1
    sizes = [K for K in ARMS if n >= needed_runs(K)]
    tried = [(K, t) for K in sizes for t in _doublings((rounds - 1) // K)]
    if not tried:
        tried = [(2, 1)]

    def numbers(runs: FloatArray) -> FloatArray:
        """Of each way: committed, single, gain, (3 * ways,)."""
        single, found = runs[:, -1].mean(), []
        for K, t in tried:
            committed = expected_leader(runs[:, t], runs[:, rounds - (K - 1) * t], K)
            found += [committed, single, committed - single]
        return np.array(found)

    value, low, high, error = (each.reshape(-1, 3) for each in _jackknife(numbers, values, level))
    rows = []
    for number, (K, t) in enumerate(tried):
        committed, single, gain = value[number]
        depth = values[:, rounds - (K - 1) * t]
        lead = expected_leader(depth, depth, K) - depth.mean()
        rows.append({
            "arms": K, "explored": t, "committed": committed, "single": single, "gain": gain,
            "low": low[number, 2], "high": high[number, 2], "error": error[number, 2],
            "persists": (committed - depth.mean()) / lead if lead > 0 else np.nan,
            "needed": (single - depth.mean()) / lead if lead > 0 else np.nan,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _doublings(most: int) -> list[int]:
    """1, 2, 4, ... up to `most`."""
    return [2**power for power in range(max(most, 0).bit_length())]


def expected_leader(early: FloatArray, late: FloatArray, arms: int) -> float:
    """Expected late value of the early leader among K of n runs drawn without replacement.

    Args:
        early: Value by which the leader is chosen, (n,); ties are broken at random.
        late: Value that it has in the end, (n,).
        arms: K, at most n.
    """
    from scipy.special import comb

    n = len(early)
    order = np.argsort(early, kind="stable")
    chance = comb(np.arange(n), arms - 1) / comb(n, arms)  # by rank, the lowest first
    _, tied, counts = np.unique(early[order], return_inverse=True, return_counts=True)
    among = np.bincount(tied, late[order]) / counts
    return float(np.bincount(tied, chance) @ among)


def _persistence(values: FloatArray, level: float) -> pd.DataFrame:
    """See `Diagnosis.persistence`."""
    rounds = values.shape[1] - 1
    at = sorted({max(1, round(share * rounds)) for share in _EARLY})

    def numbers(runs: FloatArray) -> FloatArray:
        return np.concatenate(
            [[_correlation(runs[:, t], runs[:, -1]), _lasts(runs[:, t], runs[:, -1])] for t in at]
        )

    value, low, high, _ = (each.reshape(-1, 2) for each in _jackknife(numbers, values, level))
    table: dict[str, object] = {"generation": at}
    for column, (name, least) in enumerate((("correlation", -1.0), ("lasts", 0.0))):
        table[name] = value[:, column]
        table[f"{name}_low"] = np.clip(low[:, column], least, 1.0)
        table[f"{name}_high"] = np.clip(high[:, column], least, 1.0)
    return pd.DataFrame(table)


def _correlation(early: FloatArray, late: FloatArray) -> float:
    """Spearman's correlation of ranks; NaN where one side has a single rank."""
    from scipy.stats import rankdata

    one, other = rankdata(early), rankdata(late)
    if one.std() == 0 or other.std() == 0:
        return np.nan
    return float(np.corrcoef(one, other)[0, 1])


def _lasts(early: FloatArray, late: FloatArray) -> float:
    """Returns how often the better of two runs stays better; NaN if none differ early."""
    ahead = early[:, None] > early
    stays = (late[:, None] > late) + 0.5 * (late[:, None] == late)
    return float(stays[ahead].mean()) if ahead.any() else np.nan
