"""Policies against each other on the same logged runs: what a report shows of them."""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from evo.policies import ALIASES, POLICIES, PolicyClass, find_policy, learns
from replay.logs.frames import FAILURES, Brief, bounds_of
from replay.logs.given import check_loaded
from replay.simulation.arms import IDENTICAL, nothing_to_choose, pool_of, used_up
from replay.simulation.earlier import Earlier, earlier_runs
from replay.simulation.effects import ThresholdTime, pool_times
from replay.simulation.pools import REPLICATES, Played, PoolEnds, Pools
from replay.simulation.simulate import Policies, Replay, labelled
from replay.simulation.sizes import default_arms
from replay.statistics.intervals import NOTHING, Interval
from replay.statistics.numbers import amount, floored, four_digits, unit_of, with_limits

BASELINES = ("single", "random")
"""Always there: a policy is compared with `single`, one run that gets the whole budget.

That is the sum of the pool effect, from `single` to `random`, and the allocation effect, from
`random` to the policy.
"""

LEAST_RUNS = 3

_LIMITS = ("value", "low", "high", "n", "coverage")
_Rows = list[tuple[Mapping[str, object], Interval]]
_OF_EFFECTS = (*_LIMITS, "least")
_EFFECTS = ["policy", "effect", "null_p", *_OF_EFFECTS]
_TIMES = ["policy", "tau", "time", "low", "high", "share", "share_reached", "rule", "n", "coverage"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Contest(Brief):
    """Results of several policies on the same pools of logged runs.

    Intervals are over runs; `coverage`, the worst that was measured for their kind and number of
    pools, is what they are to be called by.

    Attributes:
        children: N of the runs.
        runs: Number of runs, n.
        arms: K, runs drawn as arms of each replicate, without replacement.
        rounds: Pulls of each replicate.
        replicates: Number of replicates.
        reward: The reward that policies receive.
        tau: The fitness to reach; None if many replicates find nothing at all.
        curves: policy, round, value, low, high, n, coverage: mean best fitness over the arms.
        finals: The same after all rounds.
        pulls: policy, rank, value, low, high, n, coverage: share of the pulls by rank of the arm.
        times: policy and the fields of `effects.ThresholdTime`, for shares 0.9 and 0.5.
        effects: policy, effect, null_p, value, low, high, n, coverage (the nominal one) and least
            (measured in any world). The effect `policy` is the policy less `single`; it is there
            where every run is as deep as the budget. Its null_p is the probability of at least this
            effect in worlds where the increments of the runs are exchanged, so that nothing can be
            chosen: that choosing helped rests on it. `pool` is `random` less `single`, and
            `allocation` the policy less `random`.
        regrets: policy, oracle, value, low, high, n, coverage.
        identical: Whether all policies do alike by construction, since there is one arm or one
            pull, or the rounds pull every arm to the end of its log; then `effects` and `regrets`
            are empty, and the first of `notes` says why.
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
    identical: bool
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Render the setting, and the final fitness and the effect of each policy as a table."""
        shown = {f"best fitness after {self.rounds} pulls": _written(self.finals)}
        if len(self.effects):
            over = self.effects[self.effects["effect"] == "policy"]
            if len(over):
                shown["above single"] = _written(over)
                p = over.set_index("policy")["null_p"]
                shown["null p"] = p.dropna().map("{:.3f}".format)
            allocation = self.effects[self.effects["effect"] == "allocation"]
            shown["above random"] = _written(allocation)
        table = pd.DataFrame(shown).reindex(self.finals["policy"]).fillna("")
        return f"Contest: {self.setting}\n{table.rename_axis(None).to_string()}"

    @property
    def setting(self) -> str:
        """On what it rests, in a few words."""
        return (
            f"N = {self.children}, K = {amount(self.arms, 'arm')} of n = {self.runs} runs, "
            f"reward {self.reward}, {self.replicates:,} replicates"
        )


def _written(rows: pd.DataFrame) -> pd.Series[str]:
    """Values with their intervals, where there are some, by policy."""
    texts = [
        four_digits(value) if math.isnan(low) else with_limits(value, low, high)
        for value, low, high in zip(rows["value"], rows["low"], rows["high"], strict=True)
    ]
    return pd.Series(texts, index=rows["policy"], dtype=object)


def usual_tau(random: Replay) -> float:
    """Fitness that 90 % of the replicates reach in the end, rounded down; may be -inf.

    It has three digits of the range that fitness has over all rounds, however far from 0 that is.
    """
    reached = random.best_fitness
    final = reached[:, -1]
    value = float(np.quantile(np.where(np.isnan(final), -np.inf, final), 0.1, method="lower"))
    spread = float(np.nanmax(reached) - np.nanmin(reached)) if np.isfinite(value) else 0.0
    if not spread > 0:
        return value
    return floored(value, unit_of(spread))


def named_policies(
    names: Sequence[str],
    settings: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    *,
    learned: bool = False,
) -> dict[str, str | PolicyClass]:
    """Policies by label, one for each combination of the values of its parameters.

    Of names, `all` stands for every one, those that learn from earlier runs only with `learned`;
    settings are values to try by name and parameter.
    """
    every = [name for name, build in POLICIES.items() if learned or not learns(build)]
    listed = every if "all" in names else [ALIASES.get(name, name) for name in names]
    settings = {ALIASES.get(name, name): values for name, values in (settings or {}).items()}
    if stray := sorted(set(settings) - set(listed)):
        raise ValueError(f"expected settings of the policies {listed}, got some of {stray}")
    found: dict[str, str | PolicyClass] = {}
    for name in dict.fromkeys(listed):
        build = find_policy(name)
        chosen = settings.get(name, {})
        known = set(inspect.signature(build).parameters) - {"shape", "rounds", "rng"}
        if unknown := sorted(set(chosen) - known):
            raise ValueError(f"{name} has the parameters {sorted(known)}, got {unknown}")
        for values in itertools.product(*chosen.values()):
            given = dict(zip(chosen, values, strict=True))
            label = " ".join([name, *(f"{key}={value:g}" for key, value in given.items())])
            found[label] = find_policy(name, **given) if given else name
    return found


def compete(
    frame: pd.DataFrame,
    policies: Policies,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    tau: float | None = None,
    reward: str = "best_fitness",
    replicates: int = REPLICATES,
    earlier: Earlier | None = None,
    seed: int = 0,
) -> Contest:
    """Replays policies and the baselines over runs of one task, model and N.

    Args:
        frame: Rows of `replay.load`.
        policies: A list of names out of `POLICIES` (`all`: every one) and of policies of one's own,
            or either by label.
        rounds: Pulls; None: the generations of the shortest run.
        arms: K; None: a fifth of the runs, at least 2. There are no intervals below five runs, nor
            where each pool holds all runs.
        tau: Fitness whose time to reach it is shown; None: what 90 % of the replicates of
            `random` reach in the end.
        reward: Name in `evo.policies.rewards.REWARDS`.
        replicates: Replicates; each draws its arms anew. By default as many as `judge` has, so that
            both state the same numbers.
        earlier: Earlier runs from which policies learn, as of `replay.simulate`. Without them `all`
            leaves those policies out.
        seed: Key of all draws.

    Raises:
        ValueError: Fewer than three runs, a run without a generation, or a setting is wrong.

    Example:
        >>> runs = frame[frame["children"] == 4]
        >>> contest = replay.compete(runs, ["ucb1"], arms=3, replicates=200)
        >>> contest.finals["policy"].tolist()
        ['single', 'random', 'ucb1']
    """
    check_loaded("compete", frame, "replay.load")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitness, lengths = pool_of(frame, "policies are compared")
    n, shortest = len(fitness), int(lengths.min())
    if n < LEAST_RUNS:
        raise ValueError(
            f"policies are compared on at least {LEAST_RUNS} runs of one task, model and N, got {n}"
        )
    if rounds is None and shortest < 1:
        raise ValueError("a run has no complete generation yet; finish it, or give the rounds")
    rounds = shortest if rounds is None else rounds
    arms = default_arms(n) if arms is None else arms
    pools = Pools.of(
        fitness, lengths, arms=arms, rounds=rounds, replicates=replicates, seed=seed, reward=reward,
        earlier=earlier_runs(earlier, frame), bounds=bounds_of(frame),
    )  # fmt: skip
    everyone = _with_baselines(policies, learned=earlier is not None)
    random = pools.play(everyone["random"])
    arms_drawn, ok = random.replay.arms, not np.isnan(random.replay.best_fitness).any()
    usual = usual_tau(random.replay) if tau is None else -math.inf
    tau = usual if usual > -math.inf else tau
    baseline = _seen(random, tau)
    del random  # replays are large: one at a time
    seen = {
        label: baseline if label == "random" else _seen(pools.play(policy), tau)
        for label, policy in everyone.items()
    }
    notes = [str(each.message) for each in caught]
    notes += [text for each in seen.values() for text in each.end.warnings]
    if (note := seen["random"].curve.note) and (ok or NOTHING not in note):
        notes.append(note)
    if not ok:
        notes.append(f"pulls without a mean: {NOTHING}. {FAILURES}")
    alike = nothing_to_choose(arms, rounds)
    if identical := bool(alike) or used_up(lengths[arms_drawn], rounds):
        notes.insert(0, alike or IDENTICAL)
    if usual > -math.inf:
        notes.append(f"tau = {tau:g} is what 90 % of the replicates of `random` reach")
    effects, regrets = ([], []) if identical else _compared(pools, everyone)
    if not identical and rounds > shortest:
        notes.append(
            f"no effect over one run: with {rounds} rounds a single run would have to be deeper "
            f"than the shortest one, which has {shortest} generations; random is the baseline"
        )
    curves = _table([(_numbered(label, "round", e.curve), e.curve) for label, e in seen.items()])
    times = [{"policy": label, **asdict(t)} for label, e in seen.items() for t in e.times]
    return Contest(
        children=int(frame["children"].iloc[0]), runs=n, arms=arms, rounds=rounds,
        replicates=replicates, reward=reward, tau=tau, curves=curves,
        finals=curves[curves["round"] == rounds],
        pulls=_table([(_numbered(label, "rank", e.pulls), e.pulls) for label, e in seen.items()]),
        times=pd.DataFrame(times, columns=_TIMES),
        effects=_table(effects, _OF_EFFECTS),
        regrets=_table(regrets),
        identical=identical,
        notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _with_baselines(policies: Policies, *, learned: bool) -> dict[str, str | PolicyClass]:
    """The baselines and these policies by label; `learned` as of `named_policies`."""
    found: dict[str, str | PolicyClass] = {name: name for name in BASELINES}
    for label, policy in labelled(policies).items():
        named = isinstance(policy, str) and policy == label
        found |= named_policies([label], learned=learned) if named else {label: policy}
    return found


class _Seen(NamedTuple):
    """What is shown of a policy, without its replay."""

    curve: Interval
    pulls: Interval
    times: list[ThresholdTime]
    end: PoolEnds


def _seen(played: Played, tau: float | None) -> _Seen:
    times = [] if tau is None else pool_times(played.replay, tau, (0.9, 0.5))
    return _Seen(played.curve, played.pulls, times, played.end)


def _compared(pools: Pools, chosen: Mapping[str, str | PolicyClass]) -> tuple[_Rows, _Rows]:
    """Effects, and regrets to the best arm of the same pool."""
    effects: _Rows = []
    regrets: _Rows = []
    ends = {label: pools.ended(policy) for label, policy in chosen.items()}
    pool, oracle = ends["random"].less(ends["single"]), pools.ended("oracle_arm")
    for label, end in ends.items():
        about = {"policy": label}
        if label not in BASELINES:
            if pools.rounds <= int(pools.lengths.min()):
                policy = chosen[label]
                nothing = pools.nothing(policy) or pools.nothing("single")
                null_p = math.nan if nothing else pools.null_p(policy, "single")
                over = about | {"effect": "policy", "null_p": null_p}
                effects.append((over, end.less(ends["single"])))
            effects.append((about | {"effect": "pool", "null_p": math.nan}, pool))
            gain = end.less(ends["random"])
            effects.append((about | {"effect": "allocation", "null_p": math.nan}, gain))
        regrets.append((about | {"oracle": "oracle_arm"}, oracle.less(end)))
    return effects, regrets


def _numbered(label: str, of: str, found: Interval) -> dict[str, object]:
    return {"policy": label, of: np.arange(1, len(found.value) + 1)}


def _table(rows: _Rows, limits: Sequence[str] = _LIMITS) -> pd.DataFrame:
    """Intervals, of one value or of columns, each under what it is about."""
    parts = [
        pd.DataFrame({**about, **{name: np.atleast_1d(getattr(found, name)) for name in limits}})
        for about, found in rows
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_EFFECTS)
