"""The selectors: who is sampled next, and who is retired."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from evo.policies.base import Bools, Floats, Ints, Rng
from evo.studies.selection.base import BaseSelector, Terms, only_one


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

    compares = False

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
    """Keeps the better half by mean and doubles its samples, until one is left.

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


class _Duels(BaseSelector):
    """A leader against challengers each round, until the best mean beats all others.

    An eighth of the configurations challenge at once, so that many need few rounds.
    """

    def targets(self) -> Ints:
        """Bring leader and challengers to equal numbers of samples, more than they share."""
        unseen = (self.count == 0) & self.alive
        leader, score = self._pairs()
        places = -(-self.shape[1] // 8)
        least = np.partition(score, self.shape[1] - places, axis=1)[:, -places, None]
        challengers = (score >= least) & (score > -np.inf)
        both = np.minimum(self.count, self.count[self._replicate, leader][:, None])
        wanted = np.where(challengers, self.grown(both), 0)
        wanted[self._replicate, leader] = wanted.max(axis=1)
        begin = unseen.any(axis=1)
        wanted[begin] = np.where(unseen[begin], self.terms.batch, 0)
        return wanted

    @abstractmethod
    def _pairs(self) -> tuple[Ints, Floats]:
        """The leader, (replicates,), and how much each other deserves to challenge it.

        The latter is (replicates, configurations), minus infinity for those that may not.
        """

    def _rivals(self, leader: Ints) -> Bools:
        """Alive, not beaten by the leader, and with samples left that both can share."""
        both = np.minimum(self.count, self.count[self._replicate, leader][:, None])
        rivals = self.alive & ~self.beaten_by(leader) & (both < self.terms.size)
        rivals[self._replicate, leader] = False
        return rivals


class EpsilonLUCB(_Duels):
    """Best mean against the largest upper bounds, until the former is within epsilon of the best.

    LUCB of Kalyanakrishnan, Tewari, Auer & Stone, PAC subset selection in stochastic multi-armed
    bandits, ICML 2012, for the single best, with bets on paired differences for its stopping rule.
    The winner may fall short of the best by epsilon, a reward of at least 0.
    """

    def __init__(
        self, shape: tuple[int, int], terms: Terms, *, rng: Rng, epsilon: float = 0.01
    ) -> None:
        super().__init__(shape, terms, rng=rng)
        if not 0.0 <= epsilon < np.inf:
            raise ValueError(f"epsilon: expected a reward of at least 0, got {epsilon!r}")
        self.epsilon = epsilon
        self.margin = epsilon / (terms.high - terms.low)

    def retire(self) -> None:
        """Certain, and the others retired, once the leader beats them all by the margin."""
        leader = self.winner()
        left = ~self.beaten_by(leader)
        self.certain = only_one(left) & (self.count > 0).all(axis=1)
        self.alive[self.certain] = left[self.certain]

    def _pairs(self) -> tuple[Ints, Floats]:
        leader = np.maximum(self.winner(), 0)
        return leader, np.where(self._rivals(leader), self._interval()[1], -np.inf)


class TopTwo(_Duels):
    """Top-two Thompson sampling: a draw from the posterior leads, the closest others challenge.

    T3C of Shang, de Heide, Ménard, Kaufmann & Valko, Fixed-confidence guarantees for Bayesian
    best-arm identification, AISTATS 2020, with a normal posterior for each mean: of variance
    v / (n + 1), where mean and v include one observation in the middle of the range with variance
    1/4 of its square. Both are sampled, not one by a coin, since pairs are compared. A posterior
    probability of 1 - delta errs more often than delta when looked at again and again, so what
    stops is not the posterior but the same bets on paired differences as elsewhere.
    """

    def retire(self) -> None:
        """Retire what the best mean beats; certain once one is left."""
        self.alive &= ~self.beaten_by(self.winner())
        self.certain = only_one(self.alive)

    def _pairs(self) -> tuple[Ints, Floats]:
        n = self.count + 1.0
        mean = (0.5 + self.total) / n
        spread = (0.5 + self._squares) / n - mean**2  # 0.5 = 1/4 + (1/2)**2
        variance = np.maximum(spread, 0.0) / n
        draw = mean + np.sqrt(variance) * self._rng.standard_normal(self.shape)
        leader = np.where(self.alive, draw, -np.inf).argmax(axis=1)
        rivals = self._rivals(leader)
        # A draw without rivals left gives way to the best mean.
        idle = ~rivals.any(axis=1)
        leader = np.where(idle, np.maximum(self.winner(), 0), leader)
        rivals[idle] = self._rivals(leader)[idle]
        of_leader = (self._replicate, leader)
        gap = np.maximum(mean[of_leader][:, None] - mean, 0.0)
        cost = gap**2 / (variance[of_leader][:, None] + variance + 1e-12)
        return leader, np.where(rivals, -cost, -np.inf)


class HillClimbing(BaseSelector):
    """Races a configuration against its neighbours, continues from the winner, and restarts.

    `Terms.neighbours` lists the configurations next to each other. A race is one of arm
    elimination, with the largest mean as winner where the samples run out. At a top, the winner is
    raced against a random configuration that was not tried yet (several, of more than 64), as often
    as there are `restarts`. With None all are tried in the end and the winner is right as in arm
    elimination; a limited climb may end at a lesser top, and is then not certain.
    """

    def __init__(
        self, shape: tuple[int, int], terms: Terms, *, rng: Rng, restarts: int | None = None
    ) -> None:
        super().__init__(shape, terms, rng=rng)
        if restarts is not None and restarts < 0:
            raise ValueError(f"restarts: expected at least 0, got {restarts!r}")
        place = np.arange(shape[1])
        line = np.abs(place[:, None] - place) == 1
        self._next_to = line if terms.neighbours is None else terms.neighbours
        if self._next_to.shape != (shape[1], shape[1]):
            raise ValueError(
                f"neighbours: expected shape {(shape[1], shape[1])}, got {self._next_to.shape}"
            )
        self._priority = rng.random(shape)
        self.restarts = shape[1] if restarts is None else restarts
        self.climbs: Ints = np.zeros(shape[0], dtype=np.intp)  # starts so far
        self.field: Bools = np.zeros(shape, dtype=bool)  # those in the race
        self.tried: Bools = np.zeros(shape, dtype=bool)  # those ever in one
        self._start(np.ones(shape[0], dtype=bool))

    def targets(self) -> Ints:
        """All in the race go on to the same number of samples."""
        lowest = np.where(self.field, self.count, self.terms.size).min(axis=1, keepdims=True)
        return np.where(self.field, self.grown(lowest), 0)

    def retire(self) -> None:
        """Retire what the leader beats, and begin the next race where one has ended."""
        leader = self.best(self.field & (self.count > 0))
        self.alive &= ~self.beaten_by(leader)
        self.field &= self.alive
        spent = (self.count >= self.terms.size) | ~self.field
        ended = (only_one(self.field) | spent.all(axis=1)) & (leader >= 0)
        self.field[ended] = False
        self.field[ended, leader[ended]] = True
        further = self._next_to[leader] & ~self.tried & ended[:, None]
        self.field |= further
        self.tried |= further
        top = ended & ~further.any(axis=1)
        self._start(top & (self.climbs <= self.restarts))
        self.certain = only_one(self.alive) & self.tried.all(axis=1)
        # A race of one has nothing left to find out.
        self.field[only_one(self.field) & (self.count * self.field).any(axis=1)] = False

    def _start(self, where: Bools) -> None:
        """Enter a configuration that was not tried yet; of many, as many as keep rounds few."""
        fresh = np.where(self.tried, -1.0, self._priority)
        least = np.partition(fresh, -self.at_once, axis=1)[:, -self.at_once, None]
        entered = (fresh >= least) & ~self.tried & where[:, None]
        self.field |= entered
        self.tried |= entered
        self.climbs += entered.any(axis=1)


def neighbours(
    configurations: Sequence[Mapping[str, object]],
    orders: Mapping[str, Sequence[object]] | None = None,
) -> Bools:
    """Which configurations differ in one field alone, and there by one step of its order.

    Numbers go by size, unless `orders` states the values of a field in order; a value of any other
    kind is next to every other value of its field. Returns (configurations, configurations),
    symmetric, False on the diagonal. ValueError: an order of a field that no configuration has, or
    that lacks one of its values.
    """
    names = list(dict.fromkeys(name for each in configurations for name in each))
    for name in orders or {}:
        if name not in names:
            raise ValueError(f"orders: no field {name!r} varies (known: {', '.join(names)})")
    shape = (len(configurations), len(configurations))
    differing = np.zeros(shape, dtype=np.intp)
    near = np.ones(shape, dtype=bool)
    for name in names:
        values = [each.get(name) for each in configurations]
        order = list((orders or {}).get(name, ()))
        if not order and all(isinstance(value, int | float | np.number) for value in values):
            order = sorted(set(values))  # type: ignore[type-var]  # numbers, as was just seen
        if not order:
            texts = np.array([repr(value) for value in values])
            differing += texts[:, None] != texts
            continue
        if missing := [value for value in values if value not in order]:
            raise ValueError(f"orders: that of {name} lacks {missing[0]!r}, got {order!r}")
        place = np.array([order.index(value) for value in values])
        steps = np.abs(place[:, None] - place)
        differing += steps > 0
        near &= steps <= 1
    return np.asarray(near & (differing == 1))
