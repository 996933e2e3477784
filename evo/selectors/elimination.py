"""Selectors that sample all configurations alike and retire some on the way."""

from __future__ import annotations

import math

import numpy as np

from evo.policies.base import Bools, Ints, Rng
from evo.selectors.base import BaseSelector, Terms, only_one


class BruteForce(BaseSelector):
    """Every sample of every configuration; the largest mean wins."""

    def targets(self) -> Ints:
        """All alive go on together, in growing batches."""
        return np.where(self.alive, self.grown(self.count.max(axis=1, keepdims=True)), 0)


class ArmElimination(BruteForce):
    """Successive elimination: all go on together until the leader beats them.

    Even-Dar, Mannor & Mansour, Action elimination and stopping conditions for the multi-armed
    bandit and reinforcement learning problems, JMLR 2006, with bets on paired differences in place
    of Hoeffding's intervals. The best configuration is ever retired with probability delta at most.
    """

    def retire(self) -> None:
        """Retire what the leader beats; certain once one is left."""
        self.alive &= ~self.beaten_by(self.winner())
        self.certain = only_one(self.alive)


class Threshold(BruteForce):
    """Retires a configuration once its interval lies below a threshold, a reward.

    Those that reach the threshold are all kept with probability 1 - delta. The winner is the best
    mean among the kept; it is certain only once it is the only one. There is none if none is kept.
    """

    def __init__(self, shape: tuple[int, int], terms: Terms, *, rng: Rng, threshold: float) -> None:
        super().__init__(shape, terms, rng=rng)
        if math.isnan(threshold):
            raise ValueError("threshold: expected a reward, got nan")
        self.threshold = threshold

    def retire(self) -> None:
        """Retire what lies below; certain once one is left, or none."""
        self.alive &= self.upper >= self.threshold
        self.certain = self.alive.sum(axis=1) <= 1


class Halving(BaseSelector):
    """The better half by mean goes on with twice the samples, until one is left.

    Jamieson & Talwalkar, Non-stochastic best arm identification and hyperparameter optimization,
    2016. The last two get all samples. Its samples are known beforehand; delta plays no part and
    it is never certain. `phase` counts the halvings of each replicate.
    """

    def __init__(self, shape: tuple[int, int], terms: Terms, *, rng: Rng) -> None:
        super().__init__(shape, terms, rng=rng)
        self.phases = max(1, math.ceil(math.log2(shape[1])))
        self.phase: Ints = np.zeros(shape[0], dtype=np.intp)

    def targets(self) -> Ints:
        """The phase's samples for all that are alive."""
        halvings = np.maximum(self.phases - 1 - self.phase, 0)
        level = np.ceil(self.terms.size / 2.0**halvings).astype(np.intp)
        level = np.where(self.phase < self.phases, level, 0)
        return np.where(self.alive, level[:, None], 0)

    def retire(self) -> None:
        """Keep the better half of each replicate whose phase is complete."""
        while (done := self._complete()).any():
            kept = np.where(done, -(-self.alive.sum(axis=1) // 2), 0)
            left = self.alive.copy()
            keep = np.zeros(self.shape, dtype=bool)
            for place in range(int(kept.max())):
                best = self.best(left)
                here = place < kept
                keep[here, best[here]] = True
                left[here, best[here]] = False
            self.alive[done] = keep[done]
            self.phase[done] += 1

    def _complete(self) -> Bools:
        """(replicates,), whether all that are alive have the samples of a phase still to end."""
        there = ((self.count >= self.targets()) | ~self.alive).all(axis=1)
        return there & (self.phase < self.phases)


class RandomSearch(BaseSelector):
    """Configurations in random order, each with all its samples; of more than 64 several at once.

    It tries so many `trials` configurations; None: as many as the budget allows.
    """

    def __init__(
        self, shape: tuple[int, int], terms: Terms, *, rng: Rng, trials: int | None = None
    ) -> None:
        super().__init__(shape, terms, rng=rng)
        self.trials = shape[1] if trials is None else min(trials, shape[1])
        if self.trials < 1:
            raise ValueError(f"trials: expected at least 1 configuration, got {trials!r}")
        self.rank = rng.random(shape).argsort(axis=1).argsort(axis=1)  # whose turn is when
        self.turn: Ints = np.zeros(shape[0], dtype=np.intp)

    def targets(self) -> Ints:
        """All samples for those whose turn it is or was."""
        known = np.minimum((self.turn + 1) * self.at_once, self.trials)
        return np.where(self.rank < known[:, None], self.terms.size, 0)

    def retire(self) -> None:
        """The next one's turn."""
        self.turn += 1
