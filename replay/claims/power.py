"""What a study of so many runs would find: power by simulation from a pilot.

The pilot's runs are a law: studies of n runs are drawn from it with replacement, and each is judged
as `judge` would judge it. The share of studies with a verdict is exact for that law, but the pilot
is a sample itself, and an effect that stands out in a pilot is usually too large. So what is
promised first is a band: the effect is moved and the spread is scaled as far as a sample of the
pilot's size leaves them open (Student's t for the effect, chi squared for the variance, both wider
where tails are heavy), and the shares are taken again. The single number beside it is the share for
the effect of the pilot, shrunk by its error. A study's interval moves and scales with its data, so
no study has to be drawn twice: both are taken from the same studies, and the band holds the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evo.logs.inputs import at_least
from evo.policies import PolicyClass
from replay.claims.decision import VERDICTS, checked_margin, kurtosis_of, open_to, shrunk
from replay.claims.judging import Side, is_policy, not_sides, shares_apart
from replay.claims.several import TaskPools, policies_on_tasks, shared_tasks, strata_of
from replay.claims.sides import Sides, sides_of
from replay.logs.frames import distinct_runs
from replay.logs.given import check_loaded
from replay.progress import shown
from replay.simulation.pools import Pools
from replay.simulation.sizes import needed_runs
from replay.simulation.studies import drawn_effects
from replay.simulation.together import Scaled, effects_together
from replay.simulation.widths import deciding_limits
from replay.statistics.exchange import Exchanges, Inverted
from replay.statistics.groups import LEAST_PAIRS, freedom_of
from replay.statistics.intervals import LEAST, FloatArray, student
from replay.statistics.levels import check_level
from replay.statistics.strata import Stratified, Stratum, all_paired, compare_strata, needed_for

LAWS = 2000
"""Effects and spreads that the pilot leaves open, drawn for the bands."""

Study = tuple[float, float, float]
"""A study's estimate with the limits of its interval, NaN where there is none."""


@dataclass(frozen=True, kw_only=True)
class _Pilot:
    """A pilot's estimate of the effect, and how studies are drawn from it and judged.

    `studies` takes the runs of a study, the number of studies, and a source of random numbers.
    """

    effect: float
    error: float  # standard error of the effect
    freedom: float
    inflation: float  # a sample's spread is this much too small to be that of its population
    unit: str
    least: int  # runs below which there is never a verdict
    kurtosis: float  # of the runs, see `decision.kurtosis_of`
    studies: Callable[[int, int, np.random.Generator], Iterable[Study]]


def power(
    frame: pd.DataFrame,
    a: Side,
    b: Side,
    *,
    runs: int | Sequence[int],
    margin: float = 0.0,
    arms: int | None = None,
    rounds: int | None = None,
    calls: int | None = None,
    reward: str = "best_fitness",
    level: float = 0.95,
    band: float = 0.8,
    pooled: bool = False,
    studies: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Estimates the probability of each verdict of `judge` by the number of further runs.

    Args:
        frame: The pilot: rows of `replay.load`. Several tasks are judged together, as in `judge`:
            effects and margin are then in standard deviations within tasks.
        a: A policy, its name or class; or {column: value}; as in `judge`, for this and the next.
        b: What it is compared with.
        runs: Numbers of runs of the study: on each side, or logged runs in all for policies; of
            several tasks on each of them. Where every run of the pilot has its partner, they are
            pairs.
        margin: Largest difference that counts as none; 0: there is no margin.
        arms: K of policies; None: as `judge` chooses for the pilot. It is the same at all `runs`.
        rounds: As in `judge`, like `calls`, `reward` and `level`.
        calls: Budget at which groups of runs are compared.
        reward: The reward that policies receive.
        level: Nominal coverage of the interval that decides.
        band: Nominal coverage of the band. Measured with pilots of ten runs a side, a band of .8
            held the true power in at least .75 of pilots of normal, uniform, exponential,
            lognormal and Beta(.2, 2) runs (`tests/benchmarks/power_bands.py`).
        pooled: Whether each side has the shape of both sides together (standardised), which gives
            a small side the other's tails. Groups of runs without pairs alone.
        studies: Simulated studies of each number of runs; a share of .8 of 1,000 has a Monte Carlo
            error of .013.
        seed: Key of all draws.
        progress: Whether to show a progress bar; None: where it takes more than a few seconds and
            the output is not redirected.

    Returns:
        One row per number of runs and verdict: runs, unit (`runs` or `pairs`), verdict, low, high
        (band over what the pilot leaves open), probability (in studies drawn from the pilot, moved
        to its effect shrunk by its error: one pilot's promise has a standard deviation of .25 to
        .35, so plan by the band, which always holds it).

    Raises:
        ValueError: As of `judge`; too few runs to draw from; or a number of runs, a band or a
            number of studies that is out of range.

    Example:
        >>> runs = frame[frame["children"] == 4]
        >>> table = replay.power(runs, "ucb1", "single", runs=[6], arms=2, studies=50)
        >>> table.columns.tolist()
        ['runs', 'unit', 'verdict', 'low', 'high', 'probability']
    """
    check_loaded("power", frame, "replay.load")
    check_level(level)
    numbers = list(runs) if isinstance(runs, Iterable) else [runs]
    sizes = [at_least("runs", each, 2) for each in numbers]
    if not sizes or not 0 < band < 1 or studies < 1:
        raise ValueError(
            "expected numbers of runs, a band between 0 and 1 and at least one study, "
            f"got runs={runs!r}, band={band!r} and studies={studies!r}"
        )
    frame, margin = distinct_runs(frame), checked_margin(margin)
    if is_policy(a) and is_policy(b):
        settings: Any = {"arms": arms, "rounds": rounds, "reward": reward, "seed": seed}
        if "task" in frame and frame["task"].nunique() > 1:
            pilot = _of_policies_on_tasks(TaskPools(frame, **settings), a, b, level)
        else:
            pilot = _of_policies(Pools(frame, **settings), a, b, level)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        if tasks := shared_tasks(frame, a, b):
            if pooled:
                raise ValueError("expected runs of one task with pooled=True, got several")
            strata, _ = strata_of(frame, tasks, a, b, calls)
            pilot = _of_strata([*strata.values()], level, seed)
        else:
            pilot = _of_groups(sides_of(frame, a, b, calls), level, pooled, seed)
    else:
        raise not_sides(a, b)
    rows = [
        row
        for n in sizes
        for row in _rows(pilot, n, _drawn(pilot, n, studies, seed, progress), margin, band, seed)
    ]
    return pd.DataFrame(rows)


def _drawn(pilot: _Pilot, n: int, studies: int, seed: int, progress: bool | None) -> FloatArray:
    """Studies of n runs, (studies, 3); NaN where no study of so few runs settles anything."""
    found = np.full((studies, 3), np.nan)
    if n >= pilot.least:
        made = pilot.studies(n, studies, np.random.default_rng([seed, 11, n]))
        label = f"studies of {n} {pilot.unit}"
        found[:] = [*shown(made, label, "study", progress=progress, total=studies)]
    return found


def _rows(
    pilot: _Pilot, n: int, drawn: FloatArray, margin: float, band: float, seed: int
) -> Iterator[dict[str, object]]:
    """The table's rows of one number of runs, of the studies drawn."""
    rng = np.random.default_rng([seed, 13, n])
    value, low, high = drawn.T
    # Runs that are drawn twice into one pool move the effect of policies, which is undone here.
    centre = value[~np.isnan(value)].mean() if not np.isnan(value).all() else 0.0
    below, above = low - centre, high - centre
    at = shrunk(pilot.effect, pilot.error)
    stated = _shares(at + below[None], at + above[None], margin)[:, 0]
    # A chi squared draw for the variance and a normal one for the effect: Student's t together.
    freedom, wider = open_to(pilot.freedom, pilot.kurtosis)
    spread = np.sqrt(freedom / rng.chisquare(freedom, LAWS))[:, None]
    effect = pilot.effect + wider * spread * pilot.error * rng.standard_normal((LAWS, 1))
    scale = spread * pilot.inflation
    shares = _shares(effect + scale * below, effect + scale * above, margin)
    ends = np.quantile(shares, [(1 - band) / 2, (1 + band) / 2], axis=1)
    # No effect gives `undetermined` more often than none, so what is stated may be an extreme.
    ends = np.stack([np.minimum(ends[0], stated), np.maximum(ends[1], stated)])
    for k, verdict in enumerate(VERDICTS):
        if margin or verdict != "within margin":
            yield {
                "runs": n, "unit": pilot.unit, "verdict": verdict, "low": float(ends[0, k]),
                "high": float(ends[1, k]), "probability": float(stated[k]),
            }  # fmt: skip


def _shares(low: FloatArray, high: FloatArray, margin: float) -> FloatArray:
    """Share of the intervals (laws, studies) with each verdict of `decide`, (verdicts, laws)."""
    within = (low > -margin) & (high < margin)
    greater, less = (low > 0) & ~within, (high < 0) & ~within
    of = {"greater": greater, "less": less, "within margin": within}
    of["undetermined"] = ~(greater | less | within)
    return np.stack([of[verdict].mean(axis=1) for verdict in VERDICTS])


def _one_by_one(
    study: Callable[[int, np.random.Generator], Study],
) -> Callable[[int, int, np.random.Generator], Iterator[Study]]:
    """Returns a function that draws any number of studies, one after another."""
    return lambda n, studies, rng: (study(n, rng) for _ in range(studies))


def _of_groups(sides: Sides, level: float, pooled: bool, seed: int) -> _Pilot:
    left, right, paired = sides.left, sides.right, sides.paired
    if min(len(left), len(right)) < 3:
        raise ValueError(
            f"expected a pilot of at least 3 runs on each side, got {len(left)} and {len(right)}"
        )
    if pooled and not paired:
        left, right = _pooled(left, right)
    pilot = Exchanges(sides.left, sides.right, pairs=sides.pairs if paired else 0, seed=seed)
    effect, binary = pilot.value, bool(np.isin(np.concatenate([left, right]), (0.0, 1.0)).all())

    def study(n: int, rng: np.random.Generator) -> Study:
        rows = rng.integers(0, len(left), n)
        one, other = left[rows], right[rows if paired else rng.integers(0, len(right), n)]
        return _judged(one, other, n if paired else 0, effect, level, binary, seed)

    n = min(len(sides.left), len(sides.right))
    return _Pilot(
        effect=effect, error=pilot.error, studies=_one_by_one(study),
        unit="pairs" if paired else "runs",
        freedom=freedom_of(sides.left, sides.right, n if paired else 0),
        kurtosis=kurtosis_of(*((left - right,) if paired else (sides.left, sides.right))),
        inflation=float(np.sqrt(n / (n - 1))), least=LEAST_PAIRS if paired else LEAST,
    )  # fmt: skip


def _judged(
    left: FloatArray,
    right: FloatArray,
    pairs: int,
    effect: float,
    level: float,
    binary: bool,
    seed: int,
) -> Study:
    """A study's estimate and limits; of zeros and ones they are those of shares, where wider."""
    exchanges = Exchanges(left, right, pairs=pairs, seed=seed)
    freedom = math.nan if pairs else freedom_of(left, right)
    value, low, high = _limits(exchanges, freedom, effect, level)
    if binary and not math.isnan(low):
        apart = shares_apart(left, right, level)
        low, high = min(low, apart[0]), max(high, apart[1])
    return value, low, high


def _limits(exchanges: Inverted, freedom: float, effect: float, level: float) -> Study:
    """A study's estimate and limits, on the sides of zero on which the exchanges put them.

    The limits use the exchanges at the true effect, so that one pass over them suffices. Pairs,
    whose `freedom` is NaN, are judged by their signs alone.
    """
    value, error, alpha = exchanges.value, exchanges.error, (1 - level) / 2
    if not error > 0:
        return value, np.nan, np.nan
    t = np.quantile(exchanges.statistic(effect), [1 - alpha, alpha])
    low, high = (value - float(limit) * error for limit in t)
    half = 0.0
    if not math.isnan(freedom):
        half = float(student(level, freedom)) * error
        low, high = min(low, value - half), max(high, value + half)
    tiny = 1e-12 * (abs(value) + error)
    above, below = exchanges.tails(0.0)
    low = max(low, tiny) if above <= alpha and value > half else min(low, 0.0)
    high = min(high, -tiny) if below <= alpha and value < -half else max(high, 0.0)
    return value, low, high


def _of_strata(strata: Sequence[Stratum], level: float, seed: int) -> _Pilot:
    """Two groups on several tasks; studies have as many runs a side on each of them.

    Runs of a study are in units of the pilot's spread, so that its effect is that of the pilot.
    """
    paired = all_paired(strata)
    pilot = compare_strata(strata, level=level, seed=seed)

    def study(n: int, rng: np.random.Generator) -> Study:
        drawn = []
        for each in strata:
            rows = rng.integers(0, len(each.left), n)
            others = rows if paired else rng.integers(0, len(each.right), n)
            drawn.append(Stratum(each.left[rows], each.right[others], n if paired else 0))
        test = Stratified(drawn, seed)
        return _limits(test, math.nan if paired else test.freedom, pilot.value, level)

    n = float(np.mean([min(len(each.left), len(each.right)) for each in strata]))
    sides = [
        part
        for each in strata
        for part in ((each.left - each.right,) if paired else (each.left, each.right))
    ]
    return _Pilot(
        effect=pilot.value, error=pilot.error, freedom=pilot.freedom, studies=_one_by_one(study),
        unit="pairs" if paired else "runs", kurtosis=kurtosis_of(*sides),
        inflation=math.sqrt(n / (n - 1)), least=max(2, math.ceil(needed_for(strata) / len(strata))),
    )  # fmt: skip


def _pooled(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both sides with their own mean and spread, and the shape of both together."""
    spreads = [side.std() or 1.0 for side in (left, right)]
    shape = np.concatenate(
        [(side - side.mean()) / s for side, s in zip((left, right), spreads, strict=True)]
    )
    return left.mean() + spreads[0] * shape, right.mean() + spreads[1] * shape


def _of_policies(pools: Pools, a: str | PolicyClass, b: str | PolicyClass, level: float) -> _Pilot:
    limits = pools.effect(a, b, level=level)

    def drawn(n: int, studies: int, rng: np.random.Generator) -> Iterator[Study]:
        for found in drawn_effects(pools, a, b, n, studies=studies, level=level, rng=rng):
            yield found.value, *deciding_limits(found, pools.K)

    error = (limits.high - limits.low) / 2 / float(student(level, pools.n - 1))
    return _Pilot(
        effect=limits.value, error=error if np.isfinite(error) else 0.0, freedom=pools.n - 1.0,
        inflation=float(np.sqrt(pools.n / (pools.n - 1))), unit="runs", kurtosis=0.0,
        least=needed_runs(pools.K), studies=drawn,
    )  # fmt: skip


def _of_policies_on_tasks(
    pools: TaskPools, a: str | PolicyClass, b: str | PolicyClass, level: float
) -> _Pilot:
    """Two policies on several tasks; studies have as many logged runs on each of them."""
    each, scales = [*pools.pools.values()], pools.scales(b)
    found = policies_on_tasks(pools, a, b, level)

    def drawn(n: int, studies: int, rng: np.random.Generator) -> Iterator[Study]:
        alone = [drawn_effects(own, a, b, n, studies=studies, level=level, rng=rng) for own in each]
        for gains in zip(*alone, strict=True):
            if any(math.isnan(gain.low) for gain in gains):
                value = float(np.mean([gain.value for gain in gains] / scales))
                yield value, math.nan, math.nan
                continue
            parts = map(Scaled, gains, scales.tolist(), [own.K for own in each])
            together = effects_together([*parts], level=level, name="effect")
            yield together.interval.value, *together.limits

    n = float(np.mean([own.n for own in each]))
    return _Pilot(
        effect=found.about["interval"].value, error=found.error, freedom=found.freedom,
        inflation=math.sqrt(n / (n - 1)), unit="runs", kurtosis=0.0,
        least=needed_runs(max(own.K for own in each)), studies=drawn,
    )  # fmt: skip
