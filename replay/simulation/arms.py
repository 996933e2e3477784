"""Logged runs as the arms of many replicates, and the baseline that knows them beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from evo.policies import Draws
from evo.policies.base import Bools, Floats, Ints
from evo.studies.allocation.loop import PullOutcome
from evo.warning import warn
from replay.logs.frames import (
    ReplayWarning,
    distinct_runs,
    fitness_matrix,
    independent_runs,
    one_family,
    run_lengths,
)
from replay.logs.given import check_runs
from replay.statistics.numbers import as_numbers

Missing = Literal["close", "stop"]

ARMS_KEY = 1  # sets the draws of arms apart from those of the policy, whose key is 0


@dataclass(frozen=True)
class Logged:
    """Logged runs, checked."""

    fitness: Floats  # (runs, generations + 1), NaN while nothing is ok and after a run's end
    lengths: Ints  # (runs,), last logged generation
    costs: dict[str, Floats]  # by unit, (runs, generations + 1)


IDENTICAL = (
    "identical by construction: the rounds use up every logged generation of each replicate's "
    "arms, so all policies end with the same fitness; use fewer rounds, more arms or longer runs"
)
"""Stands in place of effects and regrets that could only be zero."""

ONE_PULL = (
    "nothing to choose: with one pull a policy takes one of its arms before it knows of any, so "
    "all policies do as well as one run on average; give at least 2 rounds, and runs of as many "
    "generations"
)
"""Stands in their place where they could only be the noise of the draws."""

ONE_ARM = (
    "nothing to choose: with one arm every policy gives it all pulls, as one run gets them; give "
    "at least 2 arms"
)
"""Stands in their place where a pool holds one run."""

Hindsight = Callable[[Logged, Ints, int, Mapping[str, float]], Ints]
"""The pulls of a baseline that knows the logs beforehand, (replicates, rounds).

Of the logs, the rows that are each replicate's arms (replicates, K), rounds, and budget.
"""


def oracle_arm(logged: Logged, rows: Ints, rounds: int, budget: Mapping[str, float]) -> Ints:
    """All pulls to the arm that ends highest: the best final fitness that any schedule reaches.

    Exact: a schedule's final fitness is that of one of its arms after n of the pulls, and all
    pulls to that arm are at least n. The same holds for a budget in any cost, and the earliest
    round at which any schedule reaches a threshold is likewise that of a single arm.
    """
    depth = np.minimum(logged.lengths, rounds)
    for unit, limit in budget.items():
        own = logged.costs[unit][:, 1:]
        before = np.cumsum(own, axis=1) - own
        before[:, 1:] += np.nan_to_num(logged.costs[unit][:, :1])  # paid with the first pull
        depth = np.minimum(depth, (before < limit).sum(axis=1))
    reached = np.fmax.accumulate(logged.fitness, axis=1)[np.arange(len(depth)), depth]
    final = np.where(np.isnan(reached), -np.inf, reached)
    return np.repeat(final[rows].argmax(axis=1)[:, None], rounds, axis=1)


HINDSIGHT: dict[str, Hindsight] = {"oracle_arm": oracle_arm}
"""Hindsight baselines by name; no policies, since they know what they could not."""


class Schedule:
    """A policy that pulls what was laid down; where that arm is closed, the first open one."""

    def __init__(self, arms: Ints) -> None:
        self.arms = arms
        self.completed = 0

    def ask(self, open_arms: Bools) -> Ints:
        """The scheduled arm of each replicate."""
        arm = self.arms[:, self.completed]
        is_open = open_arms[np.arange(len(arm)), arm]
        return np.where(is_open, arm, open_arms.argmax(axis=1))

    def tell(self, arm: Ints, reward: Floats, cost: Floats) -> None:
        """Go on to the next round."""
        self.completed += 1


class LoggedArms:
    """Rows of a fitness matrix as the arms of many replicates; see `loop.Arms`.

    `arms`, (replicates, K), are rows; `missing` and `cap` as in `simulate`.
    """

    def __init__(
        self,
        logged: Logged,
        arms: Ints,
        *,
        missing: Missing | Sequence[Missing] = "close",
        cap: int | None = None,
    ) -> None:
        width = logged.fitness.shape[1]
        self.shape = (arms.shape[0], arms.shape[1])
        self._values = np.ascontiguousarray(logged.fitness).reshape(-1)
        self._costs = {u: np.ascontiguousarray(c).reshape(-1) for u, c in logged.costs.items()}
        self._rows = np.arange(arms.shape[0]) * arms.shape[1]
        self._at = np.ascontiguousarray(arms * width).reshape(-1)  # place in _values, flat
        self._end = self._at + logged.lengths[arms].reshape(-1)
        closes = np.broadcast_to(np.asarray(missing) == "close", logged.lengths.shape)
        never = self._at + np.iinfo(np.int32).max
        self._close = np.where(closes[arms].reshape(-1), self._end, never)
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

    def pull(self, arm: Ints, active: Bools) -> PullOutcome:
        """Reveal the next logged generation of these arms."""
        slot = self._rows + arm
        at = self._at[slot]
        made = (at < self._end[slot]) & active
        new = at + made
        self._at[slot] = new
        self._open[slot] = new < self._close[slot]
        return PullOutcome(
            arm=arm,
            before=self._values[at],
            after=self._values[new],
            known=self.fitness,
            made=made,
            costs=self._costs_of(at, new, slot) if self._costs else {},
        )

    def _costs_of(self, at: Ints, new: Ints, slot: Ints) -> dict[str, Floats]:
        """What the pulls cost; an arm's generation 0, as far as logged, with its first pull."""
        first = at == self._first[slot]
        paid = {unit: cost[new] for unit, cost in self._costs.items()}
        if not first.any():
            return paid
        return {
            unit: own + np.where(first, np.nan_to_num(self._costs[unit][at]), 0.0)
            for unit, own in paid.items()
        }


def pool_of(
    frame: pd.DataFrame, what: str, lengths: npt.ArrayLike | None = None
) -> tuple[Floats, Ints]:
    """Runs of one task, model, N and search as arms: best fitness by generation, and their lengths.

    `what` names their purpose. Forks and repeats of other runs are left out, with a warning, unless
    lengths are given. Of each run `lengths` generations are used; None: all up to the one from
    which it took programs of other runs (column `mixed`), with a warning.
    """
    check_runs(frame)
    frame = distinct_runs(frame)
    if lengths is None:
        frame = independent_runs(frame)
    one_family(frame, what)
    fitness, own = fitness_matrix(frame, repeats=True), run_lengths(frame)
    if lengths is None and "mixed" in frame:
        mixed = frame.groupby("run", sort=False)["mixed"].first().to_numpy(np.float64)
        alone = np.fmin(own, np.maximum(mixed - 1, 0)).astype(own.dtype)
        if (cut := alone < own).any():
            warn(
                f"{cut.sum()} of {len(own)} runs exchange programs with others from generation "
                f"{mixed[cut].min():g} on and are replayed up to there; lengths= changes that",
            )
        own = alone
    elif lengths is not None:
        own = np.asarray(lengths)
    inside = np.arange(fitness.shape[1]) <= np.broadcast_to(own, len(fitness))[:, None]
    return np.where(inside, fitness, np.nan), own


def checked(
    fitness: npt.ArrayLike, lengths: npt.ArrayLike | None, costs: Mapping[str, npt.ArrayLike]
) -> Logged:
    """The matrices checked, and where each run ends; arguments as of `replay.simulate`."""
    matrix = as_numbers("fitness", fitness)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"expected fitness of shape (runs, generations + 1), got shape {matrix.shape!r}; "
            f"replay.fitness_matrix makes it of a frame"
        )
    if np.isinf(matrix).any():
        raise ValueError(
            f"expected finite fitness, got an infinite one in row "
            f"{int(np.isinf(matrix).any(axis=1).argmax())}; NaN stands where nothing is ok yet"
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
    tables = {unit: as_numbers(f"costs[{unit!r}]", cost) for unit, cost in costs.items()}
    for unit, table in tables.items():
        if table.shape != matrix.shape:
            raise ValueError(
                f"expected costs in {unit} of the shape of fitness, {matrix.shape!r}, got "
                f"{table.shape!r}"
            )
    return Logged(matrix, end, tables)


def warn_of_ends(logged: Logged, rows: Ints, rounds: int, cap: int | None = None) -> None:
    """Warns if pulls could go beyond the end of a log; `rows` (replicates, K) serve as arms.

    A `cap` that closes arms before their logs end is part of the question and needs no warning.
    """
    lengths = logged.lengths[rows]
    shortest = int(lengths.min())
    if rounds <= shortest or (cap is not None and cap <= shortest):
        return
    if used_up(lengths, rounds):
        message = IDENTICAL
    else:
        message = (
            f"{rounds} rounds go beyond the end of the shortest run, which has {shortest} "
            "generations: an arm whose log has ended is closed, which leaves policies less to "
            f"choose; with at most {shortest} rounds no log ends too early"
        )
    warn(message, ReplayWarning)


def nothing_to_choose(arms: int, rounds: int) -> str:
    """Why all policies do alike on pools of so many arms, whatever the runs; empty: they need not.

    Example:
        >>> from replay.simulation.arms import nothing_to_choose
        >>> nothing_to_choose(2, 8)
        ''
    """
    return ONE_ARM if arms == 1 else ONE_PULL if rounds == 1 else ""


def used_up(lengths: Ints, rounds: int) -> bool:
    """Whether so many rounds pull every arm to the end of its log; lengths (replicates, K)."""
    return bool((lengths.sum(axis=1) <= rounds).all())


def draw_arms(
    runs: int, arms: int | npt.ArrayLike | None, replicates: int, *, seed: int, replace: bool
) -> Ints:
    """Rows that serve as arms, (replicates, K)."""
    if arms is None:
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
    if arms < 1 or (not replace and arms > runs):
        raise ValueError(
            f"expected from 1 to {runs} arms without replacement (1 or more with it), got {arms!r}"
        )
    uniform = Draws(seed, replicates, key=ARMS_KEY).random((replicates, arms if replace else runs))
    if replace:
        return (uniform * runs).astype(np.intp)
    # Replicates in turn are the disjoint pools of one shuffle, then of the next.
    pools, turn = runs // arms, np.arange(replicates)
    order = uniform[::pools].argsort(axis=1)
    columns = (turn % pools)[:, None] * arms + np.arange(arms)
    return np.take_along_axis(order[turn // pools], columns, axis=1)
