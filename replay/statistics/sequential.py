"""Evidence that may be looked at after every run: e-values and confidence sequences.

An e-value is a nonnegative number whose mean is at most 1 under the null. Computed after every
pair of runs as below, the probability that it ever reaches 1 / alpha is at most alpha (Ville's
inequality), so one may stop, go on or report whenever one likes. Two constructions:

- `signs`: the null is that the two runs of a pair are exchangeable, so that a difference d is as
  likely as -d. Whatever the sizes of the differences, 1 + tanh(lambda d / s) then has mean 1 for
  every lambda, where s is the root mean square of the differences up to this one. The product over
  pairs is averaged over lambda (a mixture). Scores may have any scale and any tail.
- `betting`: scores lie in a known range, so d lies within [-R, R], and the null is that its mean
  is 0. The product of 1 + f d / R is averaged over the fractions f that are bet (Waudby-Smith and
  Ramdas 2024). It asks for no symmetry, and covers rare jumps, but needs more pairs.

The confidence sequence holds every effect whose own null is not rejected. Each pair can at most
double the evidence, so five pairs never settle anything at 5 %: 2^5 is below 2 / .05.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replay.statistics.numbers import as_numbers
from replay.statistics.resampling import check_size

FloatArray = NDArray[np.float64]

Construction = Literal["signs", "betting"]

STAKES = (0.15, 0.3, 0.6, 1.2, 2.4)
"""Values of lambda that the mixture over sign flips averages."""

FRACTIONS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of the capital that the mixture of bets averages."""


LONGEST = 4096
"""Pairs up to which continuations are simulated: the mixtures have no stake for effects that need
more (below a fourteenth of a standard deviation none settles anything)."""
_CONTINUED = 200
"""Continuations that are simulated."""


class SequentialResult(NamedTuple):
    """Evidence after all pairs.

    Attributes:
        value: Mean difference.
        low: Lower limit of the confidence sequence; minus infinity where there is none yet.
        high: Upper limit; infinity where there is none yet.
        e_greater: E-value against the null that the effect is not positive.
        e_less: E-value against the null that it is not negative.
    """

    value: float
    low: float
    high: float
    e_greater: float
    e_less: float

    @property
    def e_value(self) -> float:
        """E-value against no effect, in either direction."""
        return max(self.e_greater, self.e_less) / 2


def sequence(
    differences: ArrayLike, *, level: float = 0.95, half_range: float | None = None
) -> SequentialResult:
    """Confidence sequence and e-values of the mean of differences, in the order they came.

    Args:
        differences: One number per pair, (n,), at least one.
        level: Coverage, over all looks together.
        half_range: R: no difference can lie outside [-R, R]. None: no range is known, and the
            construction is `signs`; else it is `betting`.

    Raises:
        ValueError: There is no difference, or one lies outside its range.
    """
    d = as_numbers("differences", differences)
    if d.ndim != 1 or not len(d) or not np.isfinite(d).all():
        raise ValueError(f"expected at least one finite difference per pair, got {differences!r}")
    check_size(d)
    if half_range is not None and np.abs(d).max() > half_range:
        raise ValueError(
            f"expected differences within [-{half_range:g}, {half_range:g}], "
            f"got {d.min():g} to {d.max():g}"
        )
    found = {sign: float(e_process(sign * d, half_range)[-1]) for sign in (1, -1)}
    threshold = 2 / (1 - level)
    return SequentialResult(
        value=float(d.mean()),
        low=_limit(d, half_range, threshold),
        high=-_limit(-d, half_range, threshold),
        e_greater=found[1], e_less=found[-1],
    )  # fmt: skip


def pairs_to_settle(
    differences: ArrayLike,
    *,
    share: float,
    level: float = 0.95,
    half_range: float | None = None,
    margin: float = 0.0,
    seed: int = 0,
) -> float:
    """Further pairs after which a share of such studies is settled, by simulation.

    The pairs so far are kept, and continued by pairs that are drawn from them with replacement;
    without a known range their deviations are scaled to a sample's unbiased variance.

    Args:
        differences: As in `sequence`.
        share: Share of the continuations that are settled.
        level: As in `sequence`.
        half_range: As in `sequence`.
        margin: Largest difference that counts as none; 0: there is no margin.
        seed: Key of the draws.

    Returns:
        Their number; infinite if not even `LONGEST` pairs do.
    """
    d = as_numbers("differences", differences)
    n, mean = len(d), float(d.mean())
    law = d if half_range is not None or n < 2 else mean + (d - mean) * math.sqrt(n / (n - 1))
    sign, threshold, length = (1 if mean >= 0 else -1), 2 / (1 - level), 16
    while length <= LONGEST:
        rng = np.random.default_rng([seed, 17])  # a longer continuation begins as a shorter one
        drawn = law[rng.integers(0, n, (length, _CONTINUED))].T
        path = np.concatenate([np.broadcast_to(d, (_CONTINUED, n)), drawn], axis=1)
        settled = e_process(sign * path, half_range) >= threshold
        if margin:
            ends = [e_process(side * path, half_range, -margin) for side in (1, -1)]
            settled |= np.minimum(*ends) >= threshold
        known = np.maximum.accumulate(settled[:, n:], axis=1).mean(axis=0) >= share
        if known.any():
            return float(known.argmax() + 1)
        length *= 4
    return math.inf


def e_process(
    differences: FloatArray, half_range: float | None = None, effect: float = 0.0
) -> FloatArray:
    """E-values after each pair against the null that the effect is at most `effect`.

    Args:
        differences: In the order they came, the last axis is pairs.
        half_range: As in `sequence`.
        effect: The largest effect under the null.

    Returns:
        An e-value per pair, of the shape of `differences`.
    """
    d = np.asarray(differences, dtype=np.float64) - effect
    if half_range is None:
        seen = np.arange(1, d.shape[-1] + 1)
        scale = np.sqrt((d**2).cumsum(axis=-1) / seen)
        unit = d / np.where(scale > 0, scale, 1.0)
        steps = [np.tanh(stake * unit) for stake in STAKES]
    else:  # under the null no loss exceeds R + effect, so no bet can lose more than its stake
        steps = [share * d / (half_range + effect) for share in FRACTIONS]
    with np.errstate(divide="ignore"):  # a bet of everything may be lost
        logs = np.log1p(np.stack(steps)).cumsum(axis=-1)
    most = logs.max(axis=0)
    return np.asarray(np.exp(most) * np.exp(logs - most).mean(axis=0))


def _limit(d: FloatArray, half_range: float | None, threshold: float) -> float:
    """Largest effect below the mean that is rejected, on the side of zero of its e-value."""

    def rejected(effect: float) -> bool:
        return bool(e_process(d, half_range, effect)[-1] >= threshold)

    least = -math.inf if half_range is None else -half_range
    inside, spread = float(d.mean()), float(np.abs(d - d.mean()).max()) or abs(float(d.mean()))
    if spread == 0:
        return least
    outside, away = (0.0, 0.0) if inside > 0 else (inside, spread / 4)
    if inside > 0 and not rejected(0.0):
        inside, away = 0.0, spread / 4
    floor = max(inside - 2**12 * spread, least + 1e-9 * spread)
    while away:
        outside = max(inside - away, floor)
        if rejected(outside):
            break
        if outside == floor:
            return least
        inside, away = outside, 2 * away
    for _ in range(40):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if rejected(middle) else (middle, outside)
    return outside


def e_holm(e: ArrayLike) -> FloatArray:
    """E-values adjusted for all claims of a table (Vovk and Wang 2021); NaN stays, uncounted.

    A claim whose adjusted e-value reaches 1 / alpha may be called; the probability that any claim
    is called falsely is at most alpha.
    """
    values = as_numbers("e", e)
    adjusted = np.full(len(values), np.nan)
    known = np.flatnonzero(~np.isnan(values))
    ordered = np.sort(values[known])
    smallest = np.concatenate([[0.0], ordered.cumsum()[:-1]])  # sums of the i smallest
    for k in known:
        below = smallest[: int(np.searchsorted(ordered, values[k])) + 1]
        adjusted[k] = ((values[k] + below) / np.arange(1, len(below) + 1)).min()
    return adjusted
