"""Post-hoc replay: what a policy would have done with the runs that were logged."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from evo.allocation import Allocations, InOrder, Outcome, allocate
from evo.policies import POLICIES as POLICIES  # noqa: PLC0414 - public as replay.POLICIES
from evo.policies import Draws, Policy, PolicyClass, PolicyWarning, find_policy
from evo.policies.base import Bools, Floats, Ints
from evo.policies.draws import BLOCK
from evo.rewards import Reward
from replay.frames import distinct_runs, one_family, run_lengths
from replay.hindsight import HINDSIGHT, Hindsight, Logged, Schedule
from replay.logs import fitness_matrix

if TYPE_CHECKING:
    import pandas as pd

Missing = Literal["close", "stop"]

_CHUNK = 16 * BLOCK
"""Replicates simulated at once; results do not depend on it."""

_POLICY, _ARMS = 0, 1  # keys that set the two uses of a seed apart


@dataclass(frozen=True)
class Replay:
    """What a policy did in each replicate.

    Attributes:
        pulls: (replicates, rounds) int, row of `fitness` pulled; -1 once the replicate is over.
        best_fitness: (replicates, rounds), best over the arms so far, initial program included,
            carried on once over; NaN while nothing is ok. With several rounds in flight, after so
            many rounds were told, as is `spent`.
        arms: (replicates, K) int, which rows served as arms.
        rewards: (replicates, rounds), what the policy was told; NaN once over.
        spent: By unit of `costs`, (replicates, rounds), spent so far; carried on once over.
    """

    pulls: Ints
    best_fitness: Floats
    arms: Ints
    rewards: Floats
    spent: dict[str, Floats]


class LoggedArms:
    """Rows of a fitness matrix as the arms of many replicates; see `evo.allocation.Arms`.

    Args:
        logged: The runs.
        arms: (replicates, K), which rows are the arms of each replicate.
        missing: What a run's end does, as in `simulate`.
        cap: Generations after which an arm is closed, as in `simulate`.
    """

    def __init__(
        self, logged: Logged, arms: Ints, *, missing: Missing = "close", cap: int | None = None
    ) -> None:
        width = logged.fitness.shape[1]
        self.shape = (arms.shape[0], arms.shape[1])
        self._values = np.ascontiguousarray(logged.fitness).reshape(-1)
        self._costs = {u: np.ascontiguousarray(c).reshape(-1) for u, c in logged.costs.items()}
        self._rows = np.arange(arms.shape[0]) * arms.shape[1]
        self._at = np.ascontiguousarray(arms * width).reshape(-1)  # place in _values, flat
        self._end = self._at + logged.lengths[arms].reshape(-1)
        self._close = self._end if missing == "close" else self._at + np.iinfo(np.int32).max
        if cap is not None:
            self._close = np.minimum(self._close, self._at + cap)
        self._open = self._at < self._close
        self._first = self._at.copy()
        calls = logged.costs.get("calls")
        most = np.inf if calls is None else np.nan_to_num(calls).max(axis=1)[arms].reshape(-1)
        self._most = np.broadcast_to(most, self._at.shape)

    def worst(self, arm: Ints) -> dict[str, Floats]:
        """The most that pulls of these arms may cost in calls: as many as any logged one did."""
        return {"calls": self._most[self._rows + arm]}

    def open_arms(self) -> Bools:
        """(replicates, arms), the arms that the policy may pick."""
        return self._open.reshape(self.shape)

    def fitness(self) -> Floats:
        """(replicates, arms), each arm's fitness so far."""
        values: Floats = self._values[self._at].reshape(self.shape)
        return values

    def pull(self, arm: Ints, active: Bools) -> Outcome:
        """Reveal the next logged generation of these arms."""
        slot = self._rows + arm
        at = self._at[slot]
        made = (at < self._end[slot]) & active
        new = at + made
        self._at[slot] = new
        self._open[slot] = new < self._close[slot]
        return Outcome(
            arm=arm,
            before=self._values[at],
            after=self._values[new],
            known=self.fitness,
            made=made,
            costs={unit: self._cost(cost, at, new, slot) for unit, cost in self._costs.items()},
        )

    def _cost(self, cost: Floats, at: Ints, new: Ints, slot: Ints) -> Floats:
        """What the pulls cost; an arm's generation 0, as far as logged, with its first pull."""
        first = at == self._first[slot]
        if not first.any():
            return cost[new]
        return cost[new] + np.where(first, np.nan_to_num(cost[at]), 0.0)


def simulate(
    fitness: npt.ArrayLike | pd.DataFrame,
    policy: str | PolicyClass,
    *,
    rounds: int,
    replicates: int = 1000,
    arms: int | npt.ArrayLike | None = None,
    seed: int = 0,
    reward: str | Reward = "best_fitness",
    missing: Missing = "close",
    cap: int | None = None,
    replace: bool = True,
    strata: Sequence[Any] | npt.ArrayLike | None = None,
    costs: Mapping[str, npt.ArrayLike] | None = None,
    budget: Mapping[str, float] | None = None,
    lengths: npt.ArrayLike | None = None,
    in_flight: int = 1,
    told: Sequence[int] = (),
    n_jobs: int = 1,
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
        arms: None: every row, in order. A number K: K rows drawn for each replicate. Or the rows
            themselves, (replicates, K).
        seed: Not negative.
        reward: A name out of `evo.rewards.REWARDS`, or a function of a pull.
        missing: "close": an arm with no next logged generation is closed to the policy. "stop": it
            stays open, and a replicate that asks for it is over (logs of live allocations).
        cap: Generations after which an arm is closed whatever is logged, as a live allocation
            may be told.
        replace: Whether rows are drawn with replacement (a bootstrap over runs). Without it,
            replicates in turn are disjoint pools of one shuffle of the runs, as intervals need.
        strata: (runs,), a label of each run, such as its task: all arms of a replicate come from
            one stratum, and replicates go through the strata in turn.
        costs: By unit, (runs, generations + 1): what each generation cost; generation 0 is
            charged at an arm's first pull, and free where it is NaN.
        budget: By unit, where a replicate ends: no pull once what is spent has reached it.
        lengths: (runs,), last logged generation of each row, for rows without any number.
        in_flight: Rounds in flight: the policy is asked for round r before it is told of round
            r - in_flight + 1, as if every pull took as long. An arm has one in flight at most, so
            more than there are open arms are never in flight. With 1 nothing is delayed. Where
            runs end early, replicates that have to wait for it are simulated one by one: slowly.
        told: Rounds in the order told instead, as a live allocation states them; after its end
            the oldest in flight comes first.
        n_jobs: Processes (joblib), worth it from some 10,000 replicates on.

    Raises:
        ValueError: An argument of the wrong shape or range, NaN between two numbers of a row, or a
            budget that needs a cost that is unknown.
    """
    if "best_fitness" in getattr(fitness, "columns", ()):
        frame = distinct_runs(cast("pd.DataFrame", fitness))
        one_family(frame, "policies are replayed")
        fitness, lengths = fitness_matrix(frame), run_lengths(frame)
    logged = _logged(fitness, lengths, costs or {})
    if rounds < 1 or replicates < 1:
        raise ValueError(
            f"expected at least one round and one replicate, got rounds={rounds!r} and "
            f"replicates={replicates!r}"
        )
    if cap is not None and cap < 0:
        raise ValueError(f"expected a cap of 0 or more generations, got {cap!r}")
    if missing not in ("close", "stop"):
        raise ValueError(f"expected missing to be 'close' or 'stop', got {missing!r}")
    found = _find(policy)
    if in_flight > 1 and isinstance(found, Hindsight):
        raise ValueError(f"{policy} is a bound for one round in flight, got in_flight={in_flight}")
    rows = _draw_arms(logged.runs, arms, replicates, seed=seed, replace=replace, strata=strata)
    job = _Job(
        logged,
        found,
        rounds,
        seed,
        reward,
        missing,
        cap,
        dict(budget or {}),
        in_flight,
        tuple(told),
    )
    firsts = range(0, replicates, _CHUNK)
    if n_jobs == 1:
        parts = [job.run(rows[first : first + _CHUNK], first) for first in firsts]
    else:
        from joblib import Parallel, delayed

        parts = Parallel(n_jobs=n_jobs)(
            delayed(job.run)(rows[first : first + _CHUNK], first) for first in firsts
        )
    return _joined(parts, rows)


def simulate_many(
    fitness: npt.ArrayLike,
    policies: Sequence[str] | Mapping[str, str | PolicyClass],
    **settings: Any,
) -> dict[str, Replay]:
    """`simulate` for several policies on the same draws of arms.

    Args:
        fitness: As in `simulate`.
        policies: Names, or a policy by label.
        **settings: Those of `simulate`.

    Returns:
        A replay by label, in the order given; replicate i has the same arms in each.
    """
    if isinstance(policies, str):
        raise TypeError(f"expected a list of names or a policy by label, got {policies!r}")
    if not isinstance(policies, Mapping):
        policies = {name: name for name in policies}
    return {label: simulate(fitness, p, **settings) for label, p in policies.items()}


def _find(policy: str | PolicyClass) -> PolicyClass | Hindsight:
    """The hindsight baseline or policy of a name; a callable is taken as it is."""
    if isinstance(policy, str) and policy in HINDSIGHT:
        return HINDSIGHT[policy]
    try:
        return find_policy(policy)
    except ValueError as error:
        raise ValueError(f"{error}, or in hindsight {sorted(HINDSIGHT)}") from None


@dataclass(frozen=True)
class _Job:
    """All of a simulation but the replicates."""

    logged: Logged
    policy: PolicyClass | Hindsight
    rounds: int
    seed: int
    reward: str | Reward
    missing: Missing
    cap: int | None
    budget: dict[str, float]
    in_flight: int
    told: tuple[int, ...]

    def run(self, rows: Ints, first: int) -> Allocations:
        """Simulate the replicates from number `first` on, whose arms are these rows."""
        done = self._allocate(rows, first, quiet=first > 0)  # one warning holds for all chunks
        for i in np.flatnonzero(done.apart):
            alone = self._allocate(rows[i : i + 1], first + int(i), quiet=True)
            for whole, part in (
                (done.pulls, alone.pulls),
                (done.rewards, alone.rewards),
                (done.best_fitness, alone.best_fitness),
                *((spent, alone.spent.get(unit, [0.0])) for unit, spent in done.spent.items()),
            ):
                whole[i] = part[0]
        return done

    def _allocate(self, rows: Ints, first: int, *, quiet: bool) -> Allocations:
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore", PolicyWarning)
            policy = self._policy(rows, first)
        return allocate(
            policy,
            LoggedArms(self.logged, rows, missing=self.missing, cap=self.cap),
            rounds=self.rounds,
            budget=self.budget,
            reward=self.reward,
            in_flight=self.in_flight,
            flights=InOrder(self.told),
        )

    def _policy(self, rows: Ints, first: int) -> Policy:
        shape = (rows.shape[0], rows.shape[1])
        if isinstance(self.policy, Hindsight):
            return Schedule(self.policy.schedule(self._reachable(), rows, self.rounds, self.budget))
        rng = Draws(self.seed, shape[0], first=first, key=_POLICY)
        return self.policy(shape, rounds=self.rounds, rng=rng)

    def _reachable(self) -> Logged:
        """The logs up to the cap."""
        if self.cap is None:
            return self.logged
        return dataclasses.replace(self.logged, lengths=np.minimum(self.logged.lengths, self.cap))


def _joined(parts: Sequence[Allocations], rows: Ints) -> Replay:
    """One replay out of the chunks', with rows of the matrix in place of arm numbers."""

    def stack(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    pulls = stack("pulls")
    if (rows != np.arange(rows.shape[1])).any():
        slots = np.arange(len(rows)) * rows.shape[1] + np.maximum(pulls.T, 0)
        pulls = np.where(pulls.T < 0, -1, rows.reshape(-1)[slots]).T
    units = {unit for part in parts for unit in part.spent}
    return Replay(
        pulls=pulls,
        best_fitness=stack("best_fitness"),
        arms=rows,
        rewards=stack("rewards"),
        spent={
            unit: np.concatenate(
                [part.spent.get(unit, np.zeros(part.pulls.shape)) for part in parts]
            )
            for unit in sorted(units)
        },
    )


def _logged(
    fitness: npt.ArrayLike, lengths: npt.ArrayLike | None, costs: Mapping[str, npt.ArrayLike]
) -> Logged:
    """The checked matrices, and where each run ends."""
    matrix = np.asarray(fitness, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"expected fitness of shape (runs, generations + 1), got shape {matrix.shape!r}; "
            f"replay.fitness_matrix makes it of a frame"
        )
    last = matrix.shape[1] - 1
    number = ~np.isnan(matrix)
    found = number.any(axis=1)
    start = np.where(found, number.argmax(axis=1), 0)
    end = np.where(found, last - number[:, ::-1].argmax(axis=1), last)
    gaps = found & (number.sum(axis=1) < end - start + 1)
    if gaps.any():
        raise ValueError(
            f"row {int(np.flatnonzero(gaps)[0])} of fitness has NaN between two numbers; best so "
            f"far stays a number once it is one"
        )
    if lengths is not None:
        given = np.asarray(lengths)
        known = given.shape == end.shape and bool((given == end)[found].all())
        if not known or given.min() < 0 or given.max() > last:
            raise ValueError(
                f"expected lengths of shape {end.shape}, the column of each row's last number and "
                f"at most {last} in a row without any, got {lengths!r}"
            )
        end = given.astype(np.intp)
    tables = {unit: np.asarray(cost, dtype=np.float64) for unit, cost in costs.items()}
    for unit, table in tables.items():
        if table.shape != matrix.shape:
            raise ValueError(
                f"expected costs in {unit} of the shape of fitness, {matrix.shape!r}, got "
                f"{table.shape!r}"
            )
    return Logged(matrix, end, tables)


def _draw_arms(
    runs: int,
    arms: int | npt.ArrayLike | None,
    replicates: int,
    *,
    seed: int,
    replace: bool,
    strata: Sequence[Any] | npt.ArrayLike | None,
) -> Ints:
    """Rows that serve as arms, (replicates, K)."""
    if arms is None:
        if strata is not None:
            raise ValueError("strata need a number of arms to draw, got arms=None")
        return np.tile(np.arange(runs), (replicates, 1))
    if isinstance(arms, np.integer):
        arms = int(arms)
    if not isinstance(arms, int):
        rows = np.asarray(arms)
        if rows.ndim != 2 or rows.shape[0] != replicates or rows.dtype.kind not in "iu":
            raise ValueError(
                f"expected arms to be None, a number, or row numbers of shape ({replicates}, K), "
                f"got {arms!r}"
            )
        if rows.min() < 0 or rows.max() >= runs:
            raise ValueError(f"expected row numbers from 0 to {runs - 1}, got {arms!r}")
        return rows.astype(np.intp)
    groups = _groups(runs, strata)
    smallest = min(len(group) for group in groups)
    if arms < 1 or (not replace and arms > smallest):
        raise ValueError(
            f"expected from 1 to {smallest} arms without replacement (1 or more with it), got "
            f"{arms!r}"
        )
    draws = Draws(seed, replicates, key=_ARMS)
    rows = np.empty((replicates, arms), dtype=np.intp)
    widest = max(len(group) for group in groups)
    uniform = draws.random((replicates, arms if replace else widest))
    for number, group in enumerate(groups):
        mine = uniform[number :: len(groups)]
        if replace:
            rows[number :: len(groups)] = group[(mine * len(group)).astype(np.intp)]
        else:
            # Replicates in turn are the disjoint pools of one shuffle, then of the next.
            pools, turn = len(group) // arms, np.arange(len(mine))
            order = mine[::pools, : len(group)].argsort(axis=1)
            columns = (turn % pools)[:, None] * arms + np.arange(arms)
            shuffled = np.take_along_axis(order[turn // pools], columns, axis=1)
            rows[number :: len(groups)] = group[shuffled]
    return rows


def _groups(runs: int, strata: Sequence[Any] | npt.ArrayLike | None) -> list[Ints]:
    """Rows of each stratum, strata in order of first appearance."""
    if strata is None:
        return [np.arange(runs)]
    labels = list(np.asarray(strata, dtype=object))
    if len(labels) != runs:
        raise ValueError(f"expected one stratum for each of {runs} runs, got {len(labels)}")
    groups: dict[Any, list[int]] = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    return [np.array(group) for group in groups.values()]
