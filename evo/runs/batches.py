"""Growing batches of a data set: in which order, who is dropped, and the one test at the end.

Batches save calls and guarantee nothing: a good text may be dropped by bad luck. What a run gained
is decided by one test of its final text against the initial one, on instances for checking that
nothing saw before.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from evo.keyed import KeyedStream
from evo.runs.accept import ALPHA, lower_bound

DROP = 0.05
"""Error rate of each comparison that drops a text."""

LEAST = 4
"""Instances on which a text must have been tried before luck may decide."""

POWER = 0.8
"""Chance at which the test finds the gain that it calls detectable."""


def batch_order(seed: int, generation: int, places: Sequence[int]) -> list[int]:
    """Returns the instances in the order in which a generation is tried on them."""
    return KeyedStream("batches", seed, generation).sample(places, len(places))


def batch_sizes(first: int, count: int) -> list[int]:
    """Returns how many instances were tried after each batch: each doubles it, to all of them."""
    sizes = [min(first, count)]
    while sizes[-1] < count:
        sizes.append(min(2 * sizes[-1], count))
    return sizes


def behind(own: Sequence[float], other: Sequence[float], left: int) -> str:
    """Why a text cannot catch up with another one, by scores on the same instances.

    Full scores on the instances left would not be enough, or a paired test finds it worse. Empty:
    it can, or there is no other.
    """
    if not other:
        return ""
    lead = math.fsum(other) - math.fsum(own)
    gained = f"gained {math.fsum(other):.6g}"
    if lead > left:
        return f"{gained}: full scores on the {left} left would not make up for that"
    gaps = [theirs - mine for mine, theirs in zip(own, other, strict=True)]
    if len(gaps) >= LEAST and lead > 0 and lower_bound(gaps, DROP) > 0:
        return f"{gained}: paired t test, one-sided p = {_p_of_more(gaps):.2g}"
    return ""


def _p_of_more(gaps: Sequence[float]) -> float:
    """The one-sided p of a paired t test that the mean gap is above 0; 0 where all are alike."""
    from scipy.special import stdtr

    if (spread := statistics.stdev(gaps)) == 0:
        return 0.0
    t = statistics.fmean(gaps) / (spread / math.sqrt(len(gaps)))
    return float(stdtr(len(gaps) - 1, -t))


def dropped(
    scores: Mapping[str, Sequence[float]],
    parents: Sequence[Sequence[float]],
    left: int,
    *,
    siblings: bool = True,
) -> dict[str, str]:
    """Returns the texts that cannot catch up with their parent, or with the best sibling, and why.

    The latter counts where only the best child does, as in a greedy run; see `behind`.
    """
    leader = max(scores.values(), key=math.fsum, default=())
    found = {}
    for (text, own), parent in zip(scores.items(), parents, strict=True):
        if why := behind(own, parent, left):
            found[text] = f"its parent {why}"
        elif siblings and (why := behind(own, leader, left)):
            found[text] = f"its best sibling {why}"
    return found


def certify(initial: Sequence[float], final: Sequence[float], use: int) -> dict[str, float]:
    """Returns what a one-sided paired t test of two texts on the check instances found, by name.

    That is check_initial, check_final, check_gain, its lower limit check_low, check_alpha, the gain
    that the test would find four times in five (check_detectable), check_instances, and check_use,
    the number of this test among those of the run. All of them together err at most at `ALPHA`.
    """
    gains = [new - old for old, new in zip(initial, final, strict=True)]
    alpha = ALPHA / (use * (use + 1))
    known: dict[str, float] = {
        "check_initial": statistics.fmean(initial),
        "check_final": statistics.fmean(final),
        "check_gain": statistics.fmean(gains),
        "check_alpha": alpha,
        "check_instances": float(len(gains)),
        "check_use": float(use),
    }
    if len(gains) > 1:
        from scipy.special import stdtrit

        error = statistics.stdev(gains) / math.sqrt(len(gains))
        points = stdtrit(len(gains) - 1, 1 - alpha) + stdtrit(len(gains) - 1, POWER)
        known["check_low"] = lower_bound(gains, alpha)
        known["check_detectable"] = float(points) * error
    return known
