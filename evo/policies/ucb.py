"""Upper confidence bounds on the mean reward."""

from __future__ import annotations

import math

import numpy as np

from evo.policies.base import Floats, IndexPolicy, Ints, MeanPolicy, Rng, Shape, fraction


class UCB1(MeanPolicy):
    """Each open arm once in order, then the largest mean + c * sqrt(ln t / n).

    t is the number of pulls so far, n the arm's; ties go to the lowest arm. Auer, Cesa-Bianchi &
    Fischer, Finite-time analysis of the multiarmed bandit problem, 2002, figure 1, whose constant
    for rewards in [0, 1] is the default. Best fitness as reward differs little between arms: with
    that c the policy is then nearly uniform, and an improvement or rank reward or a smaller c says
    more.

    Args:
        c: Weight of the confidence term, in units of the reward.
    """

    def __init__(self, shape: Shape, *, rounds: int, rng: Rng, c: float = math.sqrt(2)) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.c = _weight(c)
        self._bound = np.empty(shape)

    def index(self) -> Floats:
        """Mean plus confidence term; infinity for an arm without a reward."""
        bound = np.maximum(self.pulls, 1.0, out=self._bound)
        np.divide(math.log(max(self.told, 1)), bound, out=bound)
        np.sqrt(bound, out=bound)
        np.multiply(self.c, bound, out=bound)
        return np.add(self.mean, bound, out=bound)


class DiscountedUCB(IndexPolicy):
    """UCB1 that forgets: every pull weighs `discount` times less with each later round.

    Garivier & Moulines, On upper-confidence bound policies for switching bandit problems, 2011,
    section 2.2, with c = 2 B sqrt(xi); their discount for one change in the whole time is the
    default, 1 - 1 / (4 sqrt(rounds)). With a discount of 1 this is `UCB1`.

    Args:
        c: Weight of the confidence term, in units of the reward.
        discount: Weight of a round relative to the next, above 0, at most 1.
    """

    tries_each_arm = 1

    def __init__(
        self,
        shape: Shape,
        *,
        rounds: int,
        rng: Rng,
        c: float = math.sqrt(2),
        discount: float | None = None,
    ) -> None:
        super().__init__(shape, rounds=rounds, rng=rng)
        self.c = _weight(c)
        self.discount = 1 - 1 / (4 * math.sqrt(rounds)) if discount is None else discount
        if not fraction("discount", self.discount):
            raise ValueError("discount must be above 0, got 0")
        self.told = 0.0
        self.weight: Floats = np.zeros(shape)
        self.total: Floats = np.zeros(shape)
        self.mean: Floats = np.full(shape, np.inf)

    def index(self) -> Floats:
        """Discounted mean plus confidence term; infinity for an arm without a reward."""
        weight = np.maximum(self.weight, 1e-300)  # a closed arm's weight falls to 0
        spread = np.sqrt(math.log(max(self.told, 1.0)) / weight)
        return np.add(self.mean, np.multiply(self.c, spread, out=spread), out=spread)

    def tell(self, arm: Ints, reward: Floats, cost: Floats | None = None) -> None:
        """Discount everything, then add the pull."""
        super().tell(arm, reward)
        at = self._at(arm)
        self.told = self.told * self.discount + 1.0
        self.weight *= self.discount
        self.total *= self.discount
        self.weight.reshape(-1)[at] += 1.0
        self.total.reshape(-1)[at] += reward
        self.mean.reshape(-1)[at] = self.total.reshape(-1)[at] / self.weight.reshape(-1)[at]


def _weight(c: float) -> float:
    if not 0.0 <= c < math.inf:
        raise ValueError(f"c must be 0 or more and finite, got {c!r}")
    return c
