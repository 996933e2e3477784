"""Tests about the cells of a sweep, each against a null distribution that keeps what runs are like.

Cells of equal N share whole runs, and the noise of cells differs. A null world is therefore made by
a wild bootstrap (Wu 1986): the deviations of each run from the means of its cells change their sign
in all cells at once. The means are then those of the null hypothesis, while variances, plateaus and
the sharing of runs between budgets stay as they were observed. Statistics are studentised with the
variance over whole runs, in the data and in each null world alike.

A law with rare jumps that no run has shown yet is beyond any such test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from replay.planning.grid import FloatArray, IntArray, SplitCells

DRAWS = 1999
"""Number of null worlds."""

ALPHA = 0.05
"""Level of a test, one-sided."""

POWER = 0.8
"""Probability with which a detectable effect is found."""

_BISECTIONS = 20


@dataclass(frozen=True, kw_only=True)
class Tested:
    """One-sided tests of an effect, in both directions.

    Attributes:
        value: The effect, in units of fitness.
        low: Lower limit of the effect, one-sided at `ALPHA` / 2; NaN where there is none.
        high: Upper limit, likewise.
        p: Probability that a null world shows at least as much.
        p_opposite: The same for the opposite claim; NaN where it cannot be tested.
        detectable: Effect that is found with probability `POWER`; NaN where nothing varies.
    """

    value: float
    low: float
    high: float
    p: float
    p_opposite: float
    detectable: float


@dataclass(frozen=True, kw_only=True)
class NullWorlds:
    """Runs whose deviations from the means of their cells have random signs.

    Attributes:
        cells: The cells (T, N).
        means: Mean of each cell, (cells,).
        residuals: Deviation of the k-th run of each cell's N from that mean,
            (most runs of an N, cells); 0 where there is no such run.
        signs: (draws, most runs of an N, cells), 1 or -1, equal in all cells of a run.
    """

    cells: SplitCells
    means: FloatArray
    residuals: FloatArray
    signs: FloatArray

    @classmethod
    def of(cls, cells: SplitCells, *, draws: int = DRAWS, seed: int = 0) -> NullWorlds:
        """Draws null worlds for the cells of a sweep, each with two runs or more."""
        with np.errstate(invalid="ignore"):
            away = cells.values - cells.means
        _, group = np.unique(cells.children, return_inverse=True)
        rng = np.random.default_rng([seed, 1])
        drawn = rng.choice([-1.0, 1.0], size=(draws, len(away), int(group.max()) + 1))
        residuals = np.where(np.isfinite(away), away, 0.0)
        return cls(cells=cells, means=cells.means, residuals=residuals, signs=drawn[:, :, group])

    @property
    def scaled(self) -> FloatArray:
        """Residuals whose mean over a cell's runs has the variance of the cell's mean."""
        n = self.cells.counts
        return np.asarray(self.residuals * np.sqrt(n / np.maximum(n - 1, 1)))


def best_above_best(worlds: NullWorlds, ahead: IntArray, behind: IntArray) -> Tested:
    """Tests whether the best mean of some cells is above the best mean of others.

    The claim needs a cell of `ahead` that is above every cell of `behind`, so its statistic is the
    largest over `ahead` of the smallest t over `behind`. If the claim is false, one cell of
    `behind` is as good as all of `ahead`, and the largest t against that cell alone bounds the
    statistic (Dunnett's comparison of many treatments with one control). As nobody knows which
    cell that is, `p` is the largest over all of them.

    Args:
        worlds: Null worlds of the sweep.
        ahead: Numbers of the cells that are claimed to hold the best.
        behind: Numbers of the cells that they are compared with.
    """
    there, back = _Gaps.of(worlds, ahead, behind), _Gaps.of(worlds, behind, ahead)
    value = float(worlds.means[ahead].max() - worlds.means[behind].max())
    return Tested(
        value=value, low=there.lower_limit, high=-back.lower_limit,
        p=there.p, p_opposite=back.p, detectable=there.detectable,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Gaps:
    """Differences of cells' means, with their standard errors, in the data and in null worlds."""

    gaps: FloatArray  # (ahead, behind)
    errors: FloatArray
    null_gaps: FloatArray  # (draws, ahead, behind)
    null_errors: FloatArray

    @classmethod
    def of(cls, worlds: NullWorlds, ahead: IntArray, behind: IntArray) -> _Gaps:
        n, noise = worlds.cells.counts, worlds.scaled
        drawn = np.einsum("dkc,kc->dc", worlds.signs, noise) / n
        shared = worlds.cells.children[ahead][:, None] == worlds.cells.children[behind]

        def covariance(a: IntArray, b: IntArray, together: IntArray) -> tuple[FloatArray, ...]:
            """Covariance of means of cells, observed and in null worlds, (..., ahead, behind)."""
            squares = (noise[:, a] * noise[:, b]).sum(axis=0) / (n[a] * n[b])
            products = drawn[:, a] * drawn[:, b]
            return squares, (together * squares - products) / np.maximum(together - 1, 1)

        a, b = (part.ravel() for part in np.meshgrid(ahead, behind, indexing="ij"))
        one, other = covariance(a, a, n[a]), covariance(b, b, n[b])
        both = covariance(a, b, np.minimum(n[a], n[b]))
        observed, null = (
            one[i] + other[i] - 2 * np.where(shared.ravel(), both[i], 0.0) for i in (0, 1)
        )
        shape = (len(ahead), len(behind))
        return cls(
            gaps=worlds.means[ahead][:, None] - worlds.means[behind],
            errors=np.sqrt(np.maximum(observed, 0.0)).reshape(shape),
            null_gaps=(drawn[:, a] - drawn[:, b]).reshape(-1, *shape),
            null_errors=np.sqrt(np.maximum(null, 0.0)).reshape(-1, *shape),
        )

    @property
    def p(self) -> float:
        statistic = studentised(self.gaps, self.errors).min(axis=1).max()
        return max(p_value(statistic, null) for null in self._null.T)

    @property
    def _null(self) -> FloatArray:
        """Largest t of null worlds against each cell of `behind`, (draws, behind)."""
        return np.asarray(studentised(self.null_gaps, self.null_errors).max(axis=1))

    @property
    def lower_limit(self) -> float:
        """Lower limit of the gap between the best means, one-sided at `ALPHA` / 2."""
        reach = np.quantile(self._null, 1 - ALPHA / 2, axis=0).max()
        return float((self.gaps - reach * self.errors).min(axis=1).max())

    @property
    def detectable(self) -> float:
        """Lift of the best cell of `ahead` above cells that are all alike."""
        hurdle = np.quantile(self._null, 1 - ALPHA, axis=0).max()
        top = int(self.gaps.min(axis=1).argmax())

        def power(lift: float) -> float:
            gaps = self.null_gaps.copy()
            gaps[:, top] += lift
            found = studentised(gaps, self.null_errors).min(axis=2).max(axis=1)
            return float((found > hurdle).mean())

        return least_effect(power, float(self.errors[top].max()))


@dataclass(frozen=True, kw_only=True)
class HalvedEnvelope:
    """The best split of each budget: chosen on half of the runs, scored on the other half.

    Attributes:
        worlds: Null worlds of the sweep.
        budgets: By calls C, the numbers of the cells that spend C.
        half: Which half, 0 or 1, each run belongs to, in the shape of the cells' values.
    """

    worlds: NullWorlds
    budgets: Mapping[int, IntArray]
    half: FloatArray

    def rise(self) -> Tested:
        """Tests whether the best split gains with each doubling of the budget."""
        away = np.log2([*self.budgets]) - np.log2([*self.budgets]).mean()
        weights = (away / (away @ away))[:, None]
        data, *nulls = (_Fit.of(splits, weights) for splits in self._splits)
        value, drawn = float(data.parts[0, 0]), [null.size for null in nulls]
        error = abs(value / data.size[0]) if data.size[0] else np.nan
        reach = error * max(float(np.quantile(np.abs(null), 1 - ALPHA)) for null in drawn)
        return Tested(
            value=value, low=value - reach, high=value + reach,
            p=max(p_value(data.size[0], null) for null in drawn),
            p_opposite=max(p_value(-data.size[0], -null) for null in drawn),
            detectable=_detectable(nulls, away @ weights),
        )  # fmt: skip

    def curve(self) -> Tested:
        """Tests whether a quadratic in log C through the best splits is more than noise."""
        away = np.log2([*self.budgets]) - np.log2([*self.budgets]).mean()
        powers = np.stack([away, away**2 - np.mean(away**2)], axis=1)
        # Orthonormal, so that the length of the two parts is the curve's standard deviation.
        weights = np.linalg.qr(powers)[0] / np.sqrt(len(away))
        data, *nulls = (_Fit.of(splits, weights) for splits in self._splits)
        return Tested(
            value=float(np.linalg.norm(data.parts[0])), low=np.nan, high=np.nan,
            p=max(p_value(data.size[0], null.size) for null in nulls), p_opposite=np.nan,
            detectable=_detectable(nulls, away / away.std() @ weights),
        )  # fmt: skip

    @functools.cached_property
    def _splits(self) -> list[_Splits]:
        """The best splits as observed, and in two kinds of null worlds.

        In one all cells have the same mean. In the other the cells of a budget stay apart as they
        were observed, and the best of each budget is the same.
        """
        worlds = self.worlds
        apart = np.zeros_like(worlds.means)
        for among in self.budgets.values():
            apart[among] = worlds.means[among] - worlds.means[among].max()
        as_seen = np.ones((1, *worlds.residuals.shape))
        return [
            self._scored(as_seen, worlds.residuals, worlds.means),
            self._scored(worlds.signs, worlds.scaled, np.zeros_like(apart)),
            self._scored(worlds.signs, worlds.scaled, apart),
        ]

    def _scored(self, signs: FloatArray, noise: FloatArray, level: FloatArray) -> _Splits:
        """Scores worlds whose cells have the means `level` and whose runs deviate by signed noise.

        The covariance is that over whole runs, given the cells that were chosen. A half alone has
        too few runs for it, so each cell's runs of both halves are used.
        """
        grid, n = self.worlds.cells, self.worlds.cells.counts
        known = ~np.isnan(grid.values)
        sides = [known & (self.half == side) for side in (0, 1)]
        counts = [np.maximum(side.sum(axis=0), 1) for side in sides]
        totals = [np.einsum("dkc,kc->dc", signs, noise * side) for side in sides]
        mean, own = (totals[0] + totals[1]) / n, noise.T @ noise
        row, shape = np.arange(len(signs))[:, None], (len(signs), len(self.budgets))
        best, variance = np.zeros(shape), np.zeros((*shape, shape[1]))
        for mine, other in ((0, 1), (1, 0)):
            chosen = _tops(totals[other] / counts[other] + level, self.budgets)
            best = best + (totals[mine] / counts[mine] + level)[row, chosen] / 2
            c, e, at = chosen[:, :, None], chosen[:, None, :], row[:, :, None]
            runs = np.minimum(n[c], n[e])
            between = (own[c, e] - runs * mean[at, c] * mean[at, e]) / np.maximum(runs - 1, 1)
            between *= np.minimum(counts[mine][c], counts[mine][e])
            between /= counts[mine][c] * counts[mine][e]
            variance = variance + np.where(grid.children[c] == grid.children[e], between, 0.0) / 4
        return _Splits(best, variance)


@dataclass(frozen=True)
class _Splits:
    """Score of the best split of each budget, (worlds, budgets), and its covariance."""

    scores: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class _Fit:
    """Weighted sums of the best splits over budgets, (worlds, parts).

    `precision` is the inverse of their covariance, (worlds, parts, parts); 0 where nothing varies.
    """

    parts: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, splits: _Splits, weights: FloatArray) -> _Fit:
        parts = splits.scores @ weights
        covariance = weights.T @ splits.covariance @ weights
        # Rounding leaves a variance, too, where all best splits are the same runs.
        least = 1e-12 * np.trace(splits.covariance, axis1=1, axis2=2)
        least = np.maximum(least, 1e-18 * (parts**2).max(initial=0.0))
        least = np.maximum(least, 1e-24 * (splits.scores**2).max(initial=0.0))
        varies = np.trace(covariance, axis1=1, axis2=2) > least
        precision = np.zeros_like(covariance)
        precision[varies] = np.linalg.pinv(covariance[varies], rcond=1e-6, hermitian=True)
        return cls(parts, precision)

    @property
    def size(self) -> FloatArray:
        """Studentised size, (worlds,): t of a single part, Wald's statistic of several."""
        square = np.einsum("di,dij,dj->d", self.parts, self.precision, self.parts)
        if self.parts.shape[1] > 1:
            return np.asarray(square)
        return np.asarray(np.sign(self.parts[:, 0]) * np.sqrt(np.maximum(square, 0.0)))


def _detectable(nulls: list[_Fit], lift: FloatArray) -> float:
    """Multiple of `lift`, (parts,), that is found in worlds whose cells are otherwise alike."""
    hurdle = max(float(np.quantile(null.size, 1 - ALPHA)) for null in nulls)
    alike = nulls[0]

    def power(effect: float) -> float:
        lifted = _Fit(alike.parts + effect * lift, alike.precision)
        return float((lifted.size > hurdle).mean())

    return least_effect(power, float(np.linalg.norm(alike.parts, axis=1).mean()))


def _tops(means: FloatArray, budgets: Mapping[int, IntArray]) -> IntArray:
    """The cell with the largest mean at each budget, (worlds, budgets)."""
    return np.stack([among[means[:, among].argmax(axis=1)] for among in budgets.values()], axis=1)


def studentised(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    """Gaps in standard errors; 0 where nothing varies, since such runs show nothing."""
    least = 1e-9 * float(np.max(np.abs(gaps), initial=0.0))
    return np.divide(gaps, errors, out=np.zeros_like(gaps), where=errors > least)


def p_value(statistic: float, null: FloatArray) -> float:
    """Share of null worlds, the data included, that show at least as much, up to rounding."""
    return float((1 + (null >= statistic - 1e-9).sum()) / (1 + len(null)))


def least_effect(power: Callable[[float], float], unit: float) -> float:
    """Smallest effect that is found with probability `POWER`; infinite if none is.

    Args:
        power: Probability of finding an effect of a given size.
        unit: Where the search begins; with 0, nothing varies and the answer is NaN.
    """
    if not unit > 0:
        return np.nan
    low, high = 0.0, unit
    while power(high) < POWER:
        low, high = high, 2 * high
        if high > 2**20 * unit:
            return np.inf
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
