"""The bookkeeping that all selectors share: samples, means, intervals, comparisons."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from evo.logs.inputs import as_float, as_number
from evo.policies.base import Bools, Floats, Ints, Rng
from evo.studies.selection.confidence import MOST, ConfidenceSequence, log_evidence
from evo.studies.selection.losses import RULES, Losses

IntervalKind = Literal["anytime", "compat"]
"""How a configuration's mean is known.

- `anytime`: confidence sequences and paired bets, right at 1 - delta whenever one looks.
- `compat`: mean +- c * SE at each look, as is common; wrong far more often than it seems.
"""

GROWTH = 1.25
"""Samples of a configuration after a round over those before, once that is more than a batch."""

_WIDTH = 64
"""Columns up to which pairs are compared in one piece; only speed depends on it."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The conditions of a selection.

    Attributes:
        size: Samples of each configuration at most.
        batch: Samples of a configuration in a round, at least; rounds grow.
        delta: Probability, in (0, 1), with which a statement may ever be wrong.
        low: Least reward there is.
        high: Largest reward there is; every selector works in units of this range.
        interval: See `IntervalKind`.
        c: Standard errors on each side of the mean, for `compat`.
        neighbours: (configurations, configurations), which are next to each other, for selectors
            that climb; None: each is next to those before and after it.
    """

    size: int
    batch: int = 1
    delta: float = 0.05
    low: float = 0.0
    high: float = 1.0
    interval: IntervalKind = "anytime"
    c: float = 1.0
    neighbours: Bools | None = None

    def __post_init__(self) -> None:
        kinds = get_args(IntervalKind)
        bounds = (self.low, self.high)
        finite = -math.inf < as_float(self.low) < as_float(self.high) < math.inf
        for fine, name, expected, value in (
            (self.size >= 1, "size", "at least 1 sample", self.size),
            (self.batch >= 1, "batch", "at least 1 sample", self.batch),
            (
                0.0 < as_number("delta", self.delta) < 1.0,
                "delta",
                "a probability in (0, 1)",
                self.delta,
            ),
            (finite, "bounds", "two finite rewards, the lower first", bounds),
            (self.interval in kinds, "interval", " or ".join(kinds), self.interval),
            (0.0 < as_number("c", self.c) < math.inf, "c", "a positive number", self.c),
        ):
            if not fine:
                raise ValueError(f"{name}: expected {expected}, got {value!r}")


class BaseSelector(ABC):
    """Finds the best configuration by ask and tell, in many independent replicates at once.

    Sample number i of every configuration belongs to the same seed, or problem: samples are paired.
    A selector of your own decides how many samples each configuration gets next:

        class Pairs(BaseSelector):
            '''Gives the two best the same number of further samples until one beats the other.'''

            def targets(self):
                standing = np.where(self.alive, self.upper, -np.inf)
                second = np.sort(standing, axis=1)[:, -2:-1]
                top = standing >= second
                return np.where(top, self.grown(self.count), 0)

            def retire(self):
                self.alive &= ~self.beaten_by(self.winner())

    Args:
        shape: (replicates, configurations).
        terms: What the selection is held to.
        rng: Where it draws from.

    Attributes:
        count: (replicates, configurations), samples observed.
        total: Likewise: their sum, in units in which the least reward is 0 and the largest 1.
        cost: Likewise: what they cost together; breaks ties.
        alive: Likewise: False once retired.
        certain: (replicates,), whether what the selector is after holds at 1 - delta.
        values: (replicates, configurations, size), the samples, in the same units.
        beats: (replicates, configurations, configurations), whether the first beats the second.
        at_once: Configurations that a selector which tries one after the other takes at a time.
        losses: By which comparison the retired ones were retired.
    """

    margin = 0.0
    """By how much a configuration may be better than one that beats it, in units of the range."""

    compares = True
    """Whether it looks for the best, so that a lone configuration wins without a sample."""

    def __init__(self, shape: tuple[int, int], terms: Terms, *, rng: Rng) -> None:
        replicates, arms = shape
        if replicates < 1 or arms < 1:
            raise ValueError(
                f"expected at least one replicate and configuration, got shape {shape!r}"
            )
        self.shape, self.terms, self._rng = shape, terms, rng
        self.count: Ints = np.zeros(shape, dtype=np.intp)
        self.total: Floats = np.zeros(shape)
        self.cost: Floats = np.zeros(shape)
        self.alive: Bools = np.ones(shape, dtype=bool)
        self._unopposed = self.compares and arms == 1
        self.certain: Bools = np.full(replicates, self._unopposed)
        self.values: Floats = np.zeros((replicates, arms, terms.size))
        self.beats: Bools = np.zeros((replicates, arms, arms), dtype=bool)
        self.at_once = -(-arms // 64)
        self.losses = Losses.none(shape)
        self._compared: Ints = np.zeros((replicates, arms, arms), dtype=np.intp)
        self._squares: Floats = np.zeros(shape)
        self._sequence = ConfidenceSequence(replicates * arms, terms.delta / arms)
        self._log_needed = math.log(max(1, arms - 1) / terms.delta)
        self._replicate = np.arange(replicates)

    @abstractmethod
    def targets(self) -> Ints:
        """Returns the planned samples of each configuration, (replicates, configurations)."""

    def retire(self) -> None:  # noqa: B027 - a selector may have nothing to do after a round
        """After each round: clear `alive`, set `certain`."""

    def ask(self) -> Ints:
        """Returns the further samples to take, (replicates, configurations); 0 once certain."""
        wanted = np.where(self.certain[:, None], 0, np.minimum(self.targets(), self.terms.size))
        return np.asarray(np.maximum(wanted - self.count, 0))

    def tell(self, take: Ints, values: Floats, cost: Floats) -> None:
        """Learn the samples, which may be fewer than were asked for, then retire."""
        low, high = self.terms.low, self.terms.high
        taken = np.arange(values.shape[2]) < take[:, :, None]
        outside = taken & ~((values >= low) & (values <= high))
        if outside.any():
            raise ValueError(
                f"expected rewards within the bounds [{low}, {high}], got {values[outside][0]!r}; "
                f"state wider bounds or clip openly"
            )
        unit = np.where(taken, (values - low) / (high - low), 0.0)
        r, k, step = np.nonzero(taken)
        self.values[r, k, self.count[r, k] + step] = unit[r, k, step]
        rows, place = np.nonzero(take)
        if rows.size:
            self._sequence.add(rows * self.shape[1] + place, unit[rows, place], taken[rows, place])
        self.total += unit.sum(axis=2)
        self._squares += (unit**2).sum(axis=2)
        self.count += take
        known = np.where(np.isnan(cost), np.inf, cost)  # unknown costs lose ties
        self.cost += np.where(take > 0, known, 0.0)
        before = self.alive.copy()
        self.retire()
        if (lost := before & ~self.alive).any():
            self._note(lost)

    @property
    def mean(self) -> Floats:
        """(replicates, configurations), mean reward; NaN before the first sample."""
        return self._rewards(np.where(self.count > 0, self._standing(), np.nan))

    @property
    def lower(self) -> Floats:
        """(replicates, configurations), lower ends of the intervals."""
        return self._rewards(self._interval()[0])

    @property
    def upper(self) -> Floats:
        """(replicates, configurations), upper ends."""
        return self._rewards(self._interval()[1])

    def winner(self) -> Ints:
        """Largest mean of those alive and sampled, ties by lower bound, then cost, then number."""
        return self.best(self.alive & ((self.count > 0) | self._unopposed))

    def best(self, among: Bools) -> Ints:
        """The best of some configurations of each replicate, (replicates,); -1 where of none."""
        per_sample = self.cost / np.maximum(self.count, 1)
        left = among
        for value in (self._standing(), self._interval()[0], -per_sample):
            best = np.where(left, value, -np.inf).max(axis=1, keepdims=True)
            left = left & (value == best)
        return np.where(left.any(axis=1), left.argmax(axis=1), -1)

    def beaten_by(self, leader: Ints) -> Bools:
        """Which configurations the leader of each replicate beats, (replicates, configurations).

        `anytime`: the leader's samples bet against each other configuration's, pair by pair, and
        won enough that all comparisons of the best one together fail with probability delta.
        """
        mine, found = (self._replicate, leader), leader[:, None] >= 0
        if self.terms.interval == "compat":
            lower, upper = self._interval()
            found = found & (lower[mine][:, None] + self.margin > upper)
            found[mine] = False
            return found
        common = np.minimum(self.count, self.count[mine][:, None])
        due = found & self.alive & (common > self._compared[mine]) & ~self.beats[mine]
        due[mine] = False
        rows, rivals = np.nonzero(due)
        self._compare(rows, leader[rows], rivals, common[rows, rivals])
        self._compared[rows, leader[rows], rivals] = common[rows, rivals]
        return self.beats[mine] & found

    def grown(self, count: Ints) -> Ints:
        """How many samples follow on so many, any shape; at least as many as can decide."""
        fewest = 2  # below which no bet can be won, however clear: looking earlier is no use
        if self.terms.interval == "anytime":
            fewest = 1 + math.ceil(self._log_needed / math.log1p(MOST * (1.0 + self.margin)))
        more = np.maximum(count + self.terms.batch, np.ceil(GROWTH * count).astype(np.intp))
        return np.asarray(np.minimum(np.maximum(more, fewest), self.terms.size))

    def _compare(self, rows: Ints, leaders: Ints, rivals: Ints, count: Ints) -> None:
        """Note which leaders beat their rivals on their first `count` common samples."""
        # Pairs of similar length go together, so that little of a piece is empty.
        length = np.ceil(np.log2(np.maximum(count, _WIDTH)))
        for each in np.unique(length):
            part = length == each
            r, i, j, n = rows[part], leaders[part], rivals[part], count[part]
            difference = self.values[r, i, : n.max()] - self.values[r, j, : n.max()]
            evidence = log_evidence(difference, n, margin=self.margin)
            self.beats[r, i, j] = evidence >= self._log_needed

    def _note(self, lost: Bools) -> None:
        """Notes by which comparison configurations lost, after they were retired."""
        r, j = np.nonzero(lost)
        if not self.compares:
            below = np.full(len(r), RULES.index("threshold"))
            self.losses.note(lost, below, np.full(len(r), -1), self.count[lost])
            return
        beaten = self.beats[r, :, j]
        by_bets = beaten.any(axis=1)
        strongest = np.where(beaten, self._standing()[r], -np.inf).argmax(axis=1)
        i = np.where(by_bets, strongest, self.winner()[r])
        lower, upper = self._interval()
        apart = (self.terms.interval == "compat") & (lower[r, i] + self.margin > upper[r, j])
        rule = np.select([i < 0, by_bets, apart], [0, 1, 2], 3)
        shared = np.where(
            by_bets, self._compared[r, i, j], np.minimum(self.count[r, i], self.count[r, j])
        )
        width = int(shared.max())
        difference = self.values[r, i, :width] - self.values[r, j, :width]
        evidence = log_evidence(difference, shared, margin=self.margin)
        self.losses.note(lost, rule, i, shared, np.where(by_bets, np.exp(-evidence), np.nan))

    def _standing(self) -> Floats:
        return self.total / np.maximum(self.count, 1)

    def _interval(self) -> tuple[Floats, Floats]:
        """Both ends, (replicates, configurations), in units of the range."""
        if self.terms.interval == "anytime":
            ends = self._sequence.lower, self._sequence.upper
            return ends[0].reshape(self.shape), ends[1].reshape(self.shape)
        n, mean = self.count, self._standing()
        spread = np.maximum(self._squares - n * mean**2, 0.0) / np.maximum(n - 1, 1)
        half = np.where(n > 1, self.terms.c * np.sqrt(spread / np.maximum(n, 1)), np.inf)
        return mean - half, mean + half

    def _rewards(self, unit: Floats) -> Floats:
        return self.terms.low + unit * (self.terms.high - self.terms.low)


SelectorClass = Callable[..., BaseSelector]
"""A selector class, or any callable (shape, terms, *, rng) that builds a selector."""


def only_one(alive: Bools) -> Bools:
    """Whether a replicate has one configuration left, (replicates,)."""
    return np.asarray(alive.sum(axis=1) == 1)
