"""Policies against each other on the same logged runs: what a report shows of them."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evo.policies import ALIASES, POLICIES, PolicyClass, find_policy
from replay.effects import effect, normalised_regret, pool_interval, time_to_threshold
from replay.frames import distinct_runs, fitness_matrix, one_family, run_lengths
from replay.intervals import NOTHING, Interval
from replay.simulation import Replay, simulate, simulate_many

FloatArray = NDArray[np.float64]

BASELINES = ("single", "random")
"""Always there: `single` to `random` is the pool effect, `random` to a policy the allocation's."""

LEAST_RUNS = 3


@dataclass(frozen=True, kw_only=True)
class Contest:
    """What policies make of the same pools of logged runs. Intervals are over runs.

    Attributes:
        children: N of the runs.
        runs: Number of runs, n.
        arms: K, runs drawn as arms of each replicate, without replacement.
        rounds: Pulls of each replicate.
        replicates: Number of replicates.
        reward: What the policies are told.
        tau: The fitness to reach; None if many replicates find nothing at all.
        curves: policy, round, value, low, high, n: mean best fitness over the arms.
        finals: The same after all rounds.
        pulls: policy, rank, value, low, high, n: share of the pulls by rank of the arm.
        times: policy and the fields of `replay.effects.ThresholdTime`, for shares 0.9 and 0.5.
        effects: policy, effect (`pool` or `allocation`), value, low, high, n.
        regrets: policy, oracle, value, low, high, n, and as a share of what chance gives up
            normalised, normalised_low, normalised_high (NaN where that is not clearly above 0).
        notes: Warnings of policies, and how to read the numbers.
    """

    children: int
    runs: int
    arms: int
    rounds: int
    replicates: int
    reward: str
    tau: float | None
    curves: pd.DataFrame
    finals: pd.DataFrame
    pulls: pd.DataFrame
    times: pd.DataFrame
    effects: pd.DataFrame
    regrets: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def setting(self) -> str:
        """On what it rests, in a few words."""
        return (
            f"N = {self.children}, K = {self.arms} arms of n = {self.runs} runs, "
            f"reward {self.reward}, {self.replicates:,} replicates"
        )


def named_policies(
    names: Sequence[str], settings: Mapping[str, Mapping[str, Sequence[float]]] | None = None
) -> dict[str, str | PolicyClass]:
    """Policies by label, one for each combination of the values of its parameters.

    Args:
        names: Out of `POLICIES`; `all` stands for every one of them.
        settings: By name and parameter, the values to try.

    Raises:
        ValueError: A policy or parameter is unknown, or settings are given for one not listed.
    """
    listed = [*POLICIES] if "all" in names else [ALIASES.get(name, name) for name in names]
    settings = {ALIASES.get(name, name): values for name, values in (settings or {}).items()}
    if stray := sorted(set(settings) - set(listed)):
        raise ValueError(f"expected settings of the policies {listed}, got some of {stray}")
    found: dict[str, str | PolicyClass] = {}
    for name in dict.fromkeys(listed):
        build: Any = find_policy(name)
        chosen = settings.get(name, {})
        known = set(inspect.signature(build).parameters) - {"shape", "rounds", "rng"}
        if unknown := sorted(set(chosen) - known):
            raise ValueError(f"{name} has the parameters {sorted(known)}, got {unknown}")
        for values in itertools.product(*chosen.values()):
            given = dict(zip(chosen, values, strict=True))
            label = " ".join([name, *(f"{key}={value:g}" for key, value in given.items())])
            found[label] = functools.partial(build, **given) if given else name
    return found


def contest(
    frame: pd.DataFrame,
    policies: Mapping[str, str | PolicyClass],
    *,
    rounds: int | None = None,
    arms: int | None = None,
    tau: float | None = None,
    reward: str = "best_fitness",
    replicates: int = 1000,
    seed: int = 0,
) -> Contest:
    """Replays policies and the baselines over runs of one task, model and N.

    Args:
        frame: Rows of `replay.load`.
        policies: By label.
        rounds: Pulls; None: the generations of the shortest run.
        arms: K; None: a fifth of the runs, from 2 to 10. Beyond half the runs there are no
            intervals.
        tau: Fitness whose time to reach it is shown; None: what 90 % of the replicates of
            `random` reach in the end.
        reward: Name in `evo.rewards.REWARDS`.
        replicates: Replicates; each draws its arms anew.
        seed: Key of all draws.

    Raises:
        ValueError: Fewer than three runs, a run without a generation, or a setting is wrong.
    """
    frame = distinct_runs(frame)
    one_family(frame, "policies are compared")
    fitness, lengths = fitness_matrix(frame), run_lengths(frame)
    n, shortest = len(fitness), int(lengths.min())
    if n < LEAST_RUNS:
        raise ValueError(
            f"policies are compared on at least {LEAST_RUNS} runs of one task, model and N, got {n}"
        )
    if rounds is None and shortest < 1:
        raise ValueError("a run has no complete generation yet; finish it, or give the rounds")
    rounds = shortest if rounds is None else rounds
    arms = max(1, min(n // 2, max(2, min(10, n // 5)))) if arms is None else arms
    common: dict[str, Any] = {
        "rounds": rounds,
        "arms": arms,
        "replicates": replicates,
        "seed": seed,
        "reward": reward,
        "lengths": lengths,
        "replace": False,
    }
    everyone = {**{name: name for name in BASELINES}, **policies}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        replays = simulate_many(fitness, everyone, **common)
    notes = list(dict.fromkeys(str(each.message) for each in caught))
    oracle = simulate(fitness, "oracle_arm", **common)
    reach = np.fmax.accumulate(fitness, axis=1)[np.arange(n), np.minimum(lengths, rounds)]
    if np.isnan(replays["random"].best_fitness).any():
        notes.append(f"pulls without a mean: {NOTHING}")
    if rounds > shortest:
        notes.append(
            f"the shortest run has {shortest} generations: an arm that has ended is closed, and "
            "`single` goes on with the next"
        )
    if tau is None and (usual := _usual(replays["random"])) > -math.inf:
        tau = usual
        notes.append(f"tau = {tau:g} is what 90 % of the replicates of `random` reach")
    curves = _curves(replays, fitness)
    return Contest(
        children=int(frame["children"].iloc[0]),
        runs=n,
        arms=arms,
        rounds=rounds,
        replicates=replicates,
        reward=reward,
        tau=tau,
        curves=curves,
        finals=curves[curves["round"] == rounds],
        pulls=_pulls(replays, np.where(np.isnan(reach), -np.inf, reach)),
        times=_times(replays, tau),
        effects=_effects(replays),
        regrets=_regrets(replays, oracle),
        notes=tuple(notes),
    )


def _usual(random: Replay) -> float:
    """Fitness that 90 % of the replicates reach in the end, to three digits; may be -inf."""
    final = random.best_fitness[:, -1]
    value = float(np.quantile(np.where(np.isnan(final), -np.inf, final), 0.1, method="lower"))
    if value == 0 or math.isinf(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return float(f"{math.floor(value / unit + 1e-9) * unit:.12g}")


def _curves(replays: Mapping[str, Replay], fitness: FloatArray) -> pd.DataFrame:
    least, most = np.fmin.reduce(fitness, axis=None), np.fmax.reduce(fitness, axis=None)
    parts = []
    for label, replay in replays.items():
        band = pool_interval(replay.best_fitness, replay.arms)
        limits = {"low": np.maximum(band.low, least), "high": np.minimum(band.high, most)}
        at = np.arange(1, len(band.value) + 1)
        made = {"policy": label, "round": at, "value": band.value, **limits, "n": band.n}
        parts.append(pd.DataFrame(made))
    return pd.concat(parts, ignore_index=True)


def _pulls(replays: Mapping[str, Replay], reach: FloatArray) -> pd.DataFrame:
    """Share of the pulls that go to the best arm of a replicate, the second best, ..."""
    parts = []
    for label, replay in replays.items():
        rows = np.arange(len(replay.arms))[:, None]
        order = np.argsort(-reach[replay.arms], axis=1, kind="stable")
        made = replay.pulls >= 0
        counts = np.zeros((len(replay.arms), len(reach)))
        np.add.at(counts, (np.broadcast_to(rows, made.shape)[made], replay.pulls[made]), 1.0)
        copies = np.zeros_like(counts)
        np.add.at(copies, (rows, replay.arms), 1.0)
        share = (counts / np.maximum(copies, 1))[rows, replay.arms] / made.sum(axis=1)[:, None]
        band = pool_interval(share[rows, order], replay.arms)
        limits = {"value": band.value, "low": band.low, "high": band.high, "n": band.n}
        at = np.arange(1, order.shape[1] + 1)
        parts.append(pd.DataFrame({"policy": label, "rank": at, **limits}))
    return pd.concat(parts, ignore_index=True)


def _times(replays: Mapping[str, Replay], tau: float | None) -> pd.DataFrame:
    columns = ["policy", "tau", "time", "low", "high", "share", "share_reached", "rule", "n"]
    rows = []
    if tau is not None:
        for label, replay in replays.items():
            for share in (0.9, 0.5):
                time = time_to_threshold(replay, tau, share=share)
                rows.append((label, *(getattr(time, name) for name in columns[1:])))
    return pd.DataFrame(rows, columns=columns)


def _effects(replays: Mapping[str, Replay]) -> pd.DataFrame:
    random = replays["random"]
    pool = effect(replays["single"], random)
    rows = []
    for label, replay in replays.items():
        if label in BASELINES:
            continue
        gain = effect(random, replay)
        rows += [_row(label, "pool", pool), _row(label, "allocation", gain)]
    return pd.DataFrame(rows, columns=["policy", "effect", "value", "low", "high", "n"])


def _regrets(replays: Mapping[str, Replay], oracle: Replay) -> pd.DataFrame:
    """Regret in final fitness to the best arm of the same pool."""
    columns = ["policy", "oracle", "value", "low", "high", "n"]
    columns += ["normalised", "normalised_low", "normalised_high"]
    rows = []
    for label, replay in replays.items():
        share = normalised_regret(replay, oracle, replays["random"])
        row = _row(label, "oracle_arm", effect(replay, oracle))
        rows.append((*row, share.value, share.low, share.high))
    return pd.DataFrame(rows, columns=columns)


def _row(label: str, name: str, found: Interval) -> tuple[Any, ...]:
    return (label, name, found.value, found.low, found.high, found.n)
