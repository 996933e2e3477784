"""Post-hoc replay: what a policy would have done with the runs that were logged."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from evo.logs.inputs import at_least
from evo.plugins import MistakenType
from evo.policies import POLICIES as POLICIES  # noqa: PLC0414 - public as replay.POLICIES
from evo.policies import (
    SETS,
    Draws,
    LearnedPolicy,
    Policy,
    PolicyClass,
    PolicyWarning,
    Single,
    find_policy,
    learns,
    name_of,
)
from evo.policies.base import Floats, Ints, built
from evo.policies.draws import BLOCK
from evo.policies.rewards import Reward
from evo.studies.allocation.goal import AllocationGoal, goal_of
from evo.studies.allocation.loop import Allocations, InOrder, allocate
from replay.logs.frames import Brief
from replay.logs.given import check_loaded, named
from replay.simulation.arms import (
    HINDSIGHT,
    Logged,
    LoggedArms,
    Missing,
    Schedule,
    checked,
    draw_arms,
    pool_of,
    warn_of_ends,
)
from replay.simulation.earlier import Earlier, earlier_runs, others_of

Policies = Sequence[str | PolicyClass] | Mapping[str, str | PolicyClass]
"""Several policies: a list of names and of policies of one's own, or either by label."""

_CHUNK = 64 * BLOCK
"""Replicates simulated at once; results do not depend on it. A quarter as many take up to twice the
time, since each round is many small operations."""


@dataclass(frozen=True, repr=False)
class Replay(Brief):
    """The pulls, rewards and fitness of a policy in each replicate.

    Attributes:
        pulls: (replicates, rounds) int, row of `fitness` pulled; -1 once the replicate is over.
        best_fitness: (replicates, rounds), best over the arms so far, initial program included,
            carried on once over; NaN while nothing is ok. With several rounds in flight, after so
            many rounds were completed, as is `spent`.
        arms: (replicates, K) int, which rows served as arms.
        rewards: (replicates, rounds), what the policy received; NaN once over.
        spent: By unit of `costs`, (replicates, rounds), spent so far; carried on once over.
    """

    pulls: Ints
    best_fitness: Floats
    arms: Ints
    rewards: Floats
    spent: dict[str, Floats]


def simulate(
    fitness: npt.ArrayLike | pd.DataFrame,
    policy: str | PolicyClass,
    *,
    rounds: int,
    replicates: int = 1000,
    arms: int | npt.ArrayLike | None = None,
    seed: int = 0,
    reward: str | Reward = "best_fitness",
    missing: Missing | Sequence[Missing] = "close",
    cap: int | None = None,
    replace: bool = False,
    costs: Mapping[str, npt.ArrayLike] | None = None,
    budget: Mapping[str, float] | None = None,
    target: float | None = None,
    patience: int | None = None,
    lengths: npt.ArrayLike | None = None,
    earlier: Earlier | None = None,
    in_flight: int = 1,
    completion_order: Sequence[int] = (),
    told: Sequence[int] = (),
) -> Replay:
    """Let a policy pull logged runs instead of live ones, in many replicates.

    Replicate i depends on (seed, i) alone, and a live allocation with this seed is replicate 0.
    Which rows serve as arms depends on the seed but not on the policy: policies simulated with the
    same seed are paired.

    Args:
        fitness: Rows of `replay.load` of one task, model and N; or (runs, generations + 1), best
            fitness by generation, generation 0 first. NaN
            before a row's first number: nothing was ok yet, or generation 0 was not logged. NaN
            after its last: the run had ended. A row without any number is a run that found nothing
            in all its generations.
        policy: A name out of `POLICIES` or `HINDSIGHT`, or a callable (shape, *, rounds, rng) ->
            policy; `functools.partial` sets parameters.
        rounds: Pulls of each replicate at most.
        replicates: Number of replicates.
        arms: None: every row, in order. A number K: K different rows drawn for each replicate. Or
            the rows themselves, (replicates, K).
        seed: Not negative.
        reward: A name out of `evo.policies.rewards.REWARDS`, or a function of a pull.
        missing: "close": an arm with no next logged generation is closed to the policy. "stop": it
            stays open, and a replicate that asks for it is over (logs of live allocations). Or
            one of them for each row: in a live allocation over engines "close" for an engine that
            was over, "stop" for all others.
        cap: Generations after which an arm is closed whatever is logged, as with `cap` of
            a live allocation.
        replace: Whether K rows are drawn with replacement. Without it, replicates in turn are
            disjoint pools of one shuffle of the runs, as intervals need. With it, a run may be
            several arms of one replicate, which biases the best of K arms low.
        costs: By unit, (runs, generations + 1): what each generation cost; generation 0 is
            charged at an arm's first pull, and free where it is NaN.
        budget: By unit, where a replicate ends: no pull once what is spent has reached it.
        target: Fitness at which a replicate ends, whichever arm reaches it.
        patience: Generations in a row that do not raise the best fitness of an arm, after which it
            is closed, as with `patience` of a live allocation.
        lengths: (runs,), last logged generation of each row, for rows without any number. Of a
            frame, how many generations of each run are used; None: all, but none from which a run
            took programs of others (column `mixed`), with a warning.
        earlier: Earlier runs of the same task, model and N, for policies that learn from them
            (`optimal_stopping`, `freeze_thaw`): rows of `replay.load`, logs as it takes them, or
            (runs, generations + 1). "others": each replicate learns from the runs that are not its
            arms, of which there must be at least 20.
        in_flight: Rounds in flight: the policy is asked for round r before it learns the reward of
            round r - in_flight + 1, as if every pull took as long. An arm has one in flight at
            most, so more than there are open arms are never in flight. With 1 nothing is delayed.
            Where runs end early, replicates that have to wait for it are simulated one by one:
            slowly.
        completion_order: Rounds in the order of completion instead, as in
            `Allocation.completion_order`; after its end the oldest in flight comes first.
        told: The earlier name of `completion_order`.

    Raises:
        ValueError: An argument of the wrong shape or range, NaN between two numbers of a row, an
            infinite number, a budget that needs a cost that is unknown, or an earlier run that is
            also replayed.

    Warns:
        ReplayWarning: Rounds go beyond the end of a log, where arms close (`missing="close"`).

    Example:
        >>> played = replay.simulate(fitness, "ucb1", rounds=8, replicates=5)
        >>> played.best_fitness.shape
        (5, 8)
    """
    check_loaded("simulate", fitness, "replay.load", numbers=True)
    earlier = earlier_runs(earlier, fitness)
    if "best_fitness" in getattr(fitness, "columns", ()):
        pool, own = pool_of(cast("pd.DataFrame", fitness), "policies are replayed", lengths)
        fitness, lengths = pool, own
    _check_units(budget, costs)
    seed = at_least("seed", seed, 0)
    logged = checked(fitness, lengths, costs or {})
    rounds, replicates = at_least("rounds", rounds, 1), at_least("replicates", replicates, 1)
    if cap is not None and cap < 0:
        raise ValueError(f"expected a cap of 0 or more generations, got {cap!r}")
    _check_missing(missing, runs=len(logged.lengths))
    goals = [each for each in [goal_of(target, patience)] if each != AllocationGoal()]
    if goals and isinstance(policy, str) and policy in HINDSIGHT:
        raise ValueError(f"{policy} is a bound for all rounds: leave out target and patience")
    build = _builder(policy, logged, rounds, seed, cap, budget or {}, in_flight, earlier)
    rows = draw_arms(len(logged.fitness), arms, replicates, seed=seed, replace=replace)

    def run(first: int, count: int, *, quiet: bool) -> Allocations:
        """Simulates so many replicates from number `first` on."""
        mine = rows[first : first + count]
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore", PolicyWarning)
            chosen = build(mine, first)
        return allocate(
            chosen, LoggedArms(logged, mine, missing=missing, cap=cap), rounds=rounds,
            budget=budget, reward=reward, goals=goals, in_flight=in_flight, flights=InOrder(order),
        )  # fmt: skip

    order, parts = tuple(completion_order) or tuple(told), []
    for first in range(0, replicates, _CHUNK):
        done = run(first, _CHUNK, quiet=first > 0)  # one warning holds for all chunks
        for i in np.flatnonzero(done.apart).tolist():
            _replace_replicate(done, i, run(first + i, 1, quiet=True))
        parts.append(done)
    made = _joined(parts, rows)
    if missing == "close":
        used = int((made.pulls >= 0).sum(axis=1).max()) if budget or goals else rounds
        warn_of_ends(logged, rows, used, cap)
    return made


def _check_units(
    budget: Mapping[str, float] | None, costs: Mapping[str, npt.ArrayLike] | None
) -> None:
    """Raises unless both are by unit, and what is limited has a cost."""
    for name, value in (("budget", budget), ("costs", costs)):
        if value is not None and not isinstance(value, Mapping):
            raise MistakenType(f"{name}: expected a dict by unit of cost, got {named(value)}")
    if unknown := sorted(set(budget or {}) - set(costs or {})):
        raise ValueError(
            f"budget: expected units out of costs=, {sorted(costs or {})}, got {unknown}; "
            "replay.cost_matrices makes costs of a frame"
        )


def _check_missing(missing: Missing | Sequence[Missing], *, runs: int) -> None:
    """Raises unless it says what happens at the end of a log, for all runs or for each."""
    each = np.asarray(missing)
    if each.shape not in ((), (runs,)) or not np.isin(each, ("close", "stop")).all():
        raise ValueError(
            f"expected missing to be 'close' or 'stop', or one of them for each of the "
            f"{runs} runs, got {missing!r}"
        )


def _replace_replicate(done: Allocations, i: int, alone: Allocations) -> None:
    """Puts a replicate that was simulated alone in its place among the others."""
    for name in ("pulls", "rewards", "best_fitness"):
        getattr(done, name)[i] = getattr(alone, name)[0]
    for unit, spent in done.spent.items():
        spent[i] = alone.spent.get(unit, [0.0])[0]


def final_fitness(
    fitness: Floats,
    policy: str | PolicyClass,
    *,
    lengths: npt.ArrayLike | None,
    rounds: int,
    arms: int | Ints,
    replicates: int,
    seed: int = 0,
    reward: str | Reward = "best_fitness",
    earlier: Floats | str | None = None,
) -> tuple[Floats, Ints]:
    """What `simulate` has at the end, without keeping its rounds.

    Args:
        fitness: (runs, generations + 1), as for `simulate`, like what follows.
        policy: A policy.
        lengths: Last logged generation of each run.
        rounds: Pulls of each replicate.
        arms: K, or the rows themselves, (replicates, K).
        replicates: Number of replicates.
        seed: Key of all draws.
        reward: The reward that the policy receives.
        earlier: Earlier runs, or "others".

    Returns:
        The last column of `Replay.best_fitness`, (replicates,), and `Replay.arms`.
    """
    logged = checked(fitness, lengths, {})
    build = _builder(policy, logged, rounds, seed, None, {}, 1, earlier)
    rows, ends = draw_arms(len(fitness), arms, replicates, seed=seed, replace=False), []
    blind = find_policy(policy) in BLIND if policy not in HINDSIGHT else False
    for first in range(0, replicates, _CHUNK):
        mine = rows[first : first + _CHUNK]
        with warnings.catch_warnings():
            if first:
                warnings.simplefilter("ignore", PolicyWarning)
            chosen = build(mine, first)
        if blind and rounds <= logged.lengths[mine].min():
            ends.append(_blindly(chosen, logged, mine, rounds))
            continue
        made = allocate(chosen, LoggedArms(logged, mine), rounds=rounds, reward=reward)
        ends.append(made.best_fitness[:, -1])
    warn_of_ends(logged, rows, rounds)
    return np.concatenate(ends), rows


BLIND = (POLICIES["single"], POLICIES["random"])
"""Policies whose pulls do not depend on rewards."""


def _blindly(policy: Policy, logged: Logged, rows: Ints, rounds: int) -> Floats:
    """The best fitness that a policy of `BLIND` ends with where no arm closes, (replicates,)."""
    everyone, pulls = np.ones(rows.shape, dtype=bool), np.zeros(rows.shape, dtype=np.intp)
    at, flat = np.arange(len(rows)) * rows.shape[1], pulls.reshape(-1)
    if isinstance(policy, Single):
        pulls[:, 0] = rounds
    else:
        for _ in range(rounds):
            flat[at + policy.ask(everyone)] += 1
    best = np.fmax.accumulate(logged.fitness, axis=1)
    return np.asarray(np.fmax.reduce(best[rows, pulls], axis=1))


def _builder(
    policy: str | PolicyClass,
    logged: Logged,
    rounds: int,
    seed: int,
    cap: int | None,
    budget: Mapping[str, float],
    in_flight: int,
    earlier: Floats | str | None,
) -> Callable[[Ints, int], Policy]:
    """What makes the policy of replicates, of the rows that are their arms and the first's number.

    What knows the logs beforehand has laid its pulls down.
    """
    if isinstance(policy, str) and policy in HINDSIGHT:
        if in_flight > 1:
            raise ValueError(
                f"{policy} is a bound for one round in flight, got in_flight={in_flight}"
            )
        most = logged.lengths if cap is None else np.minimum(logged.lengths, cap)
        known, foresee = dataclasses.replace(logged, lengths=most), HINDSIGHT[policy]
        return lambda rows, _: Schedule(foresee(known, rows, rounds, budget))
    try:
        found = find_policy(policy)
    except ValueError as error:
        raise ValueError(f"{error} (known in hindsight: {sorted(HINDSIGHT)})") from None

    taught = learns(found) and earlier is not None

    def build(rows: Ints, first: int) -> Policy:
        rng = Draws(seed, len(rows), first=first, key=0)
        if taught:
            known = others_of(logged, rows) if isinstance(earlier, str) else earlier
            learner: PolicyClass = functools.partial(
                cast("type[LearnedPolicy]", found), earlier=known
            )
            return learner((rows.shape[0], rows.shape[1]), rounds=rounds, rng=rng)
        return built(found, (rows.shape[0], rows.shape[1]), rounds=rounds, rng=rng)

    return build


def simulate_many(
    fitness: npt.ArrayLike,
    policies: Policies,
    **settings: Any,
) -> dict[str, Replay]:
    """`simulate` for several policies on the same draws of arms.

    Args:
        fitness: As in `simulate`.
        policies: Names and policies of one's own in a list, or either by label.
        **settings: Those of `simulate`.

    Returns:
        A replay by label, in the order given; replicate i has the same arms in each.

    Example:
        >>> settings = {"rounds": 8, "arms": 2, "replicates": 5}
        >>> played = replay.simulate_many(fitness, ["single", "ucb1"], **settings)
        >>> [*played]
        ['single', 'ucb1']
    """
    check_loaded("simulate_many", fitness, "replay.load", numbers=True)
    return {label: simulate(fitness, p, **settings) for label, p in labelled(policies).items()}


def labelled(policies: Policies) -> dict[str, str | PolicyClass]:
    """Policies by label: the one that is given, else a name, or what `evo.policies` calls it.

    Raises:
        TypeError: A single policy instead of a list, or something that is no policy.
        ValueError: Two policies have one label.
    """
    if isinstance(policies, str) or callable(policies) or not isinstance(policies, Iterable):
        raise MistakenType(f"expected a list of policies or a policy by label, got {policies!r}")
    each = policies.values() if isinstance(policies, Mapping) else policies
    if wrong := [policy for policy in each if not (isinstance(policy, str) or callable(policy))]:
        raise MistakenType(f"expected the name of a policy or a callable, got {wrong[0]!r}; {SETS}")
    if isinstance(policies, Mapping):
        return dict(policies)
    found: dict[str, str | PolicyClass] = {}
    for policy in policies:
        label = label_of(policy)
        if found.get(label, policy) != policy:
            raise ValueError(f"two policies are called {label!r}; give them by label, in a dict")
        found[label] = policy
    return found


def label_of(policy: str | PolicyClass) -> str:
    """The name of a policy with the parameters that were set, such as `ucb1 c=0.1`."""
    if isinstance(policy, str):
        return policy
    if not isinstance(policy, functools.partial):
        return name_of(policy)
    given = {k: v for k, v in policy.keywords.items() if v is not None and np.ndim(v) == 0}
    values = (f"{key}={value}" for key, value in given.items() if not isinstance(value, dict))
    return " ".join([name_of(policy.func), *values])


def _joined(parts: Sequence[Allocations], rows: Ints) -> Replay:
    """One replay out of the chunks', with rows of the matrix in place of arm numbers."""

    def stack(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    pulls = stack("pulls")
    if (rows != np.arange(rows.shape[1])).any():
        # Where nothing was pulled, -1 leads to the last column of the replicate before.
        padded = np.pad(rows, ((0, 0), (0, 1)), constant_values=-1)
        slots = pulls.T + np.arange(len(rows)) * padded.shape[1]
        pulls = padded.reshape(-1)[slots].T
    spent = {
        unit: np.concatenate([p.spent.get(unit, np.zeros(p.pulls.shape)) for p in parts])
        for unit in sorted({unit for part in parts for unit in part.spent})
    }
    best, rewards = stack("best_fitness"), stack("rewards")
    return Replay(pulls=pulls, best_fitness=best, arms=rows, rewards=rewards, spent=spent)
