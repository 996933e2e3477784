"""How often the bootstrap's upper limit of a time holds, which is not as often as it says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

SHARE = 0.9
"""The share of samples at which it was measured."""

HELD = {5: 0.66, 6: 0.73, 8: 0.78, 10: 0.79, 15: 0.81, 20: 0.82, 30: 0.84, 50: 0.85}
"""By runs: in which share of samples of so many runs the time was at least that of the mean run, in
the worst of seven worlds, whose runs are normal, uniform or skewed to either side, or mostly equal.

Means of resampled runs spread less than those of new ones, by (n - 1) / n in variance, and have no
tail on the side of runs that are rare.
"""


def held_by(runs: int, share: float) -> float:
    """How often a time that `share` of the bootstrap samples reach was enough; NaN: not measured.

    Example:
        >>> from replay.simulation.shortfall import held_by
        >>> held_by(6, 0.9), held_by(1000, 0.9)
        (0.73, 0.85)
    """
    if share != SHARE or runs < min(HELD):
        return math.nan
    return round(float(np.interp(runs, [*HELD], [*HELD.values()])), 2)


def note_on_times(sizes: Sequence[int]) -> list[str]:
    """What to say of times by the 90 % rule of groups of so many runs; empty: nothing is known."""
    held = held_by(min(sizes, default=0), SHARE)
    if math.isnan(held):
        return []
    return [
        f"90 % rule: meant as an upper limit of the mean run's time; of {min(sizes)} runs it is "
        f"one in {100 * held:.0f} % of samples in the worst world tried"
    ]
