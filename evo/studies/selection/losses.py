"""By which comparison configurations were retired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from evo.policies.base import Bools, Floats, Ints

Rule = Literal["", "bets", "intervals", "mean", "threshold"]
"""What retired a configuration: bets on paired differences that another one won, an interval
beside that of another one, a lower mean alone, an interval below a threshold; empty: nothing did.
"""

RULES: tuple[Rule, ...] = ("", "bets", "intervals", "mean", "threshold")


@dataclass(frozen=True)
class Losses:
    """By which comparison configurations were retired; arrays (replicates, configurations).

    Attributes:
        rule: Place in `RULES`.
        rival: The configuration that was ahead; -1: none.
        shared: How many samples both have; without a rival, how many there are.
        p: Of bets: the inverse of the most capital that was won, which under no difference is as
            small as x, whenever one looks, with a probability of at most x. NaN for all others.
    """

    rule: Ints
    rival: Ints
    shared: Ints
    p: Floats

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Losses:
        """Nothing is retired yet."""
        return cls(
            rule=np.zeros(shape, dtype=np.intp),
            rival=np.full(shape, -1, dtype=np.intp),
            shared=np.zeros(shape, dtype=np.intp),
            p=np.full(shape, np.nan),
        )

    def note(
        self, lost: Bools, rule: Ints, rival: Ints, shared: Ints, p: Floats | float = np.nan
    ) -> None:
        """Notes those that are retired now; the other arguments hold a value for each of them."""
        for own, values in zip(vars(self).values(), (rule, rival, shared, p), strict=True):
            own[lost] = values

    def at(self, replicate: int) -> Losses:
        """Those of one replicate, (1, configurations)."""
        return Losses(*(each[replicate : replicate + 1].copy() for each in vars(self).values()))
