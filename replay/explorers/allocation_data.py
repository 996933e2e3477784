"""Numbers of the allocation explorer: policies replayed over the logged runs of one N.

Replays are kept: when a control moves, only the policies that it concerns are simulated again.
Replicate i does not depend on how many there are, so the few of a moving slider are the first of
the many at rest.
"""

from __future__ import annotations

import functools
import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.policies import POLICIES, find_policy
from replay.logs.frames import bounds_of
from replay.simulation.arms import pool_of
from replay.simulation.contest import BASELINES as BASELINES  # noqa: PLC0414 - the explorer's, too
from replay.simulation.contest import LEAST_RUNS, usual_tau
from replay.simulation.effects import ThresholdTime, time_to_threshold
from replay.simulation.pools import Played, play
from replay.statistics.intervals import Interval
from replay.statistics.numbers import brackets, with_limits

if TYPE_CHECKING:
    import pandas as pd

EXPLORATION: dict[str, tuple[str, tuple[float, ...]]] = {
    "c": ("weight of the confidence term", (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)),
    "gamma": ("exploration of EXP3", (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)),
    "epsilon": ("share of random pulls", (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)),
    "noise_std": ("noise that Thompson assumes", (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
    "prior_std": ("spread of Thompson's prior", (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
}
"""Exploration parameters: what they are, and values to choose from."""

MOST_POLICIES = 4
SHARE = 0.9
"""Share of replicates that the threshold time asks for, as in arXiv 2605.29268."""


class RunsAsArms:
    """Runs of one task, model and N as arms."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.fitness, self.lengths = pool_of(frame, "policies are compared")
        self.bounds = bounds_of(frame)
        if len(self.lengths) < LEAST_RUNS or self.lengths.min() < 1:
            raise ValueError(
                f"policies are compared on at least {LEAST_RUNS} runs of one task, model and N "
                f"with a complete generation each, got {int((self.lengths > 0).sum())}"
            )
        # Of this object and not of its class, so that replays go when it goes.
        self.play = functools.lru_cache(maxsize=256)(self._play)
        self.time = functools.lru_cache(maxsize=2048)(self._time)
        self.limits = functools.lru_cache(maxsize=64)(self._limits)

    @property
    def runs(self) -> int:
        """Number of runs, n."""
        return len(self.fitness)

    def _limits(self, rounds: int) -> tuple[float, float]:
        """The lowest mean fitness of the runs in so many rounds, and the best of any run."""
        known = self.fitness[np.isfinite(self.fitness)]
        if not known.size:
            return 0.0, 1.0
        first = self.fitness[:, 1 : rounds + 1]
        means = [each[np.isfinite(each)].mean() for each in first.T if np.isfinite(each).any()]
        return float(min(means, default=known.min())), float(known.max())

    def usual_tau(self, arms: int, rounds: int) -> float:
        """What 90 % of the replicates of `random` reach, to three digits."""
        tau = usual_tau(self.play("random", (), arms, rounds, "best_fitness", 200).replay)
        known = self.fitness[np.isfinite(self.fitness)]
        return tau if math.isfinite(tau) else float(known.min()) if known.size else 0.0

    def _play(
        self,
        policy: str,
        settings: tuple[tuple[str, float], ...],
        arms: int,
        rounds: int,
        reward: str,
        replicates: int,
    ) -> Played:
        return play(
            self.fitness, find_policy(policy, **dict(settings)), lengths=self.lengths,
            rounds=rounds, arms=arms, reward=reward, replicates=replicates,
            bounds=self.bounds,
        )  # fmt: skip

    def _time(self, tau: float, *key: Any) -> ThresholdTime:
        return time_to_threshold(self.play(*key).replay, tau, share=SHARE)

    def baseline(self, rounds: int) -> str:
        """What policies are compared with: one run, where every run is as deep as the budget."""
        return "single" if rounds <= int(self.lengths.min()) else "random"

    def effects(self, keys: dict[str, tuple[Any, ...]], rounds: int) -> dict[str, Interval]:
        """What each other policy gains over the baseline, by name."""
        base = self.baseline(rounds)
        against = self.play(*keys[base]).end
        others = (name for name in keys if name not in {base, "single"})
        return {name: self.play(*keys[name]).end.less(against) for name in others}


@functools.cache
def parameters_of(policy: str) -> tuple[str, ...]:
    """The exploration parameters that a policy has."""
    known = inspect.signature(POLICIES[policy]).parameters
    return tuple(name for name in EXPLORATION if name in known)


@dataclass(frozen=True, kw_only=True)
class AllocationView:
    """The view for one setting of the controls."""

    pools: RunsAsArms  # the runs
    arms: int  # K
    rounds: int  # pulls of each replicate
    replicates: int  # number of replicates
    coarse: bool  # whether something moves
    tau: float  # the fitness to reach
    shown: str  # policy whose pulls are shown
    played: dict[str, Played]  # by policy, the baselines first
    times: dict[str, ThresholdTime]  # rounds to reach tau, by policy
    effects: dict[str, Interval]  # gain over the baseline, by policy

    @property
    def baseline(self) -> str:
        """What policies are compared with."""
        return self.pools.baseline(self.rounds)

    @property
    def interval(self) -> str:
        """What the intervals are called."""
        return self.played["random"].curve.label

    def _of_intervals(self) -> list[str]:
        """What stands in brackets, and why some numbers have none."""
        curve = self.played["random"].curve
        if np.isnan(curve.low).all():
            return [f"No interval: {curve.note}."]
        text = [f"In brackets: {self.interval} over runs."]
        lacking: dict[str, list[str]] = {}
        for name, each in self.effects.items():
            lacking.setdefault(each.note, []).append(name)
        lacking.pop("", None)
        for why, names in lacking.items():
            text.append(f"No interval of the gain of {', '.join(names)}: {why}.")
        return text

    @property
    def words(self) -> str:
        """Threshold times and effects in sentences."""
        text = [
            when(name, time, self.arms, self.rounds)
            for name, time in self.times.items()
            if name != "single"
        ]
        over = "one run with the whole budget" if self.baseline == "single" else "random pulls"
        text += [f"{name} gains {_signed(f)} over {over}." for name, f in self.effects.items()]
        if self.baseline == "random":
            shortest = int(self.pools.lengths.min())
            text.append(f"No run alone spends this budget: the shortest has {shortest} rounds.")
        best, low, high = (
            100 * getattr(self.played[self.shown].pulls, name)[0]
            for name in ("value", "low", "high")
        )
        known = ""
        if math.isfinite(low):
            known = f" {brackets(max(low, 0), min(high, 100), '{:.0f}'.format)}"
        text.append(f"{self.shown} gives its best arm {best:.0f} %{known} of the pulls.")
        text += self._of_intervals()
        text.append(f"n = {self.pools.runs} runs, {self.replicates:,} replicates.")
        if any(np.isnan(each.replay.best_fitness).any() for each in self.played.values()):
            text.append("Pulls at which some pool has nothing ok have no mean.")
        for each in self.played.values():
            text += [f"Note: {warning}" for warning in each.warnings]
        return " ".join(dict.fromkeys(text))

    def table(self) -> pd.DataFrame:
        """One row per policy and round."""
        import pandas as pd

        parts = [
            pd.DataFrame(
                {
                    "policy": name,
                    "round": np.arange(1, self.rounds + 1),
                    "value": played.curve.value,
                    "low": played.curve.low,
                    "high": played.curve.high,
                    "n": played.curve.n,
                    "rounds_to_tau": self.times[name].time,
                }
            )
            for name, played in self.played.items()
        ]
        return pd.concat(parts, ignore_index=True)


def when(name: str, time: ThresholdTime, arms: int, rounds: int) -> str:
    """Threshold time in words."""
    if math.isinf(time.time):
        return (
            f"{name} with {arms} arms does not reach {time.tau:g} in {rounds} rounds: "
            f"{100 * time.share_reached:.3g} % of the replicates do, {100 * SHARE:g} % should."
        )
    text = f"{name} with {arms} arms reaches {time.tau:g} after {time.time:g} rounds"
    if math.isnan(time.low):
        return f"{text}."
    high = f"{time.high:g}" if math.isfinite(time.high) else f"beyond {rounds}"
    return f"{text}, interval {time.low:g} to {high}."


def _signed(found: Interval) -> str:
    if math.isnan(found.value):
        return "an unknown amount"
    if not math.isfinite(found.low):
        return f"{found.value:+z.4f}"
    return with_limits(found.value, found.low, found.high, "{:+z.4f}".format)


def taus(fitness: np.typing.NDArray[np.float64], now: float) -> list[float]:
    """Forty fitness values from low to the best, and the one that is set."""
    known = fitness[:, 1:][np.isfinite(fitness[:, 1:])]
    if not known.size:
        return [now]
    found = np.linspace(np.quantile(known, 0.05), known.max(), 40)
    return sorted({*np.round(found, 4).tolist(), now})
