from dataclasses import replace

import null_worlds
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic_runs import as_frame

from replay.claims import contrasts
from replay.claims.contrasts import (
    HalvedEnvelope,
    NullWorlds,
    best_above_best,
    least_effect,
    p_value,
    studentised,
)
from replay.claims.paper import budgets_of, halves
from replay.planning.grid import cells, one_sweep


def grid_of(values):
    """Cells of one budget of 16 calls: `values` by N, one number per run."""
    parts = [
        as_frame(np.repeat(np.c_[own], 16 // N + 1, axis=1), children=N, seeds=range(len(own)))
        for N, own in values.items()
    ]
    return cells(one_sweep(pd.concat(parts, ignore_index=True)))


def at_budget(grid, C=16):
    return np.flatnonzero(grid.calls == C)


def two(rng, n=12, m=7, ahead=0.0):
    return {1: rng.normal(ahead, 1, n), 16: rng.normal(0, 3, m)}


def test_two_cells_of_other_runs_are_compared_as_by_welch():
    values = two(np.random.default_rng(0), ahead=2.5)
    grid = grid_of(values)
    one, other = at_budget(grid)
    found = best_above_best(NullWorlds.of(grid), np.array([one]), np.array([other]))
    welch = stats.ttest_ind(values[1], values[16], equal_var=False, alternative="greater")
    assert found.p == pytest.approx(welch.pvalue, abs=0.02)
    assert found.p + found.p_opposite == pytest.approx(1, abs=0.01)
    assert found.value == pytest.approx(values[1].mean() - values[16].mean())
    limits = stats.ttest_ind(values[1], values[16], equal_var=False).confidence_interval(0.95)
    width = limits.high - limits.low
    assert found.low == pytest.approx(limits.low, abs=0.08 * width)
    assert found.high == pytest.approx(limits.high, abs=0.08 * width)


def test_cells_that_share_runs_are_compared_run_by_run():
    """Runs differ by far more than any of them gains, so only a paired comparison sees the gain."""
    rng = np.random.default_rng(1)
    level, gain = rng.normal(0, 10, (9, 1)), rng.normal(1, 0.5, (9, 1))
    frame = as_frame(np.hstack([level, level, level + gain]), children=1, seeds=range(9))
    grid = cells(one_sweep(frame))
    first, last = np.flatnonzero(grid.generations == 1), np.flatnonzero(grid.generations == 2)
    found = best_above_best(NullWorlds.of(grid), last, first)
    paired = stats.ttest_rel(*(grid.values[:, each][:, 0] for each in (last, first)))
    assert found.p == pytest.approx(paired.pvalue / 2, abs=0.01)
    assert found.value == pytest.approx(gain.mean())
    gaps = contrasts._Gaps.of(NullWorlds.of(grid), last, first)
    assert gaps.errors.item() == pytest.approx(stats.sem(gain).item())


def test_a_cell_has_to_be_above_every_other_to_be_the_best():
    rng = np.random.default_rng(2)
    values = {N: rng.normal(mean, 0.1, 8) for N, mean in ((1, 1.0), (2, 0.0), (4, 1.0), (16, 0.0))}
    grid = grid_of(values)
    worlds, at = NullWorlds.of(grid), at_budget(grid)
    assert best_above_best(worlds, at[[0]], at[[1, 3]]).p < 0.01
    assert best_above_best(worlds, at[[0]], at[[1, 2]]).p > 0.2  # one of them is its equal
    assert best_above_best(worlds, at[[0, 1]], at[[3]]).p < 0.01  # one of two suffices


def test_null_worlds_keep_each_cells_variance_and_the_runs_that_cells_share():
    frame = null_worlds.sweep(null_worlds.wandering, np.random.default_rng(3), runs=40)
    grid = cells(one_sweep(frame))
    worlds = NullWorlds.of(grid, draws=4000)
    drawn = np.einsum("dkc,kc->dc", worlds.signs, worlds.scaled) / grid.counts
    own = np.cov(drawn.T)
    deep = np.flatnonzero(grid.children == 1)
    expected = np.cov(grid.values[:, deep].T) / 40
    np.testing.assert_allclose(own[np.ix_(deep, deep)], expected, rtol=0.15, atol=2e-6)
    apart = own[np.ix_(deep, np.flatnonzero(grid.children == 2))]
    assert np.abs(apart).max() < 0.1 * np.abs(expected).max()


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.thorough
def test_a_detectable_effect_is_detected_in_four_of_five_repetitions(swap):
    rng = np.random.default_rng(4)

    def tested(lift):
        better = 4 if swap else 1
        grid = grid_of({N: rng.normal(lift * (better == N), 1, 12) for N in (1, 4, 16)})
        corners, inner = at_budget(grid)[[0, 2]], at_budget(grid)[[1]]
        sides = (inner, corners) if swap else (corners, inner)
        return best_above_best(NullWorlds.of(grid, draws=199), *sides)

    effect = np.median([tested(0.0).detectable for _ in range(20)])
    assert np.mean([tested(effect).p <= 0.05 for _ in range(100)]) == pytest.approx(0.8, abs=0.15)


def envelope_of(world, seed, runs=6, draws=199):
    grid = cells(one_sweep(null_worlds.sweep(world, np.random.default_rng(seed), runs=runs)))
    half = halves(grid, 0)
    return HalvedEnvelope(
        worlds=NullWorlds.of(grid, draws=draws), budgets=budgets_of(grid, half), half=half
    )


def test_the_best_split_is_chosen_on_one_half_and_scored_on_the_other():
    envelope = envelope_of(null_worlds.plateaus, 5)
    worlds, half = envelope.worlds, envelope.half
    values, best = worlds.cells.values, []
    for among in envelope.budgets.values():
        scores = []
        for side in (0, 1):
            chosen = np.where(half == 1 - side, values, np.nan)[:, among]
            top = among[np.nanmean(chosen, axis=0).argmax()]
            scores.append(values[half[:, top] == side, top].mean())
        best.append(np.mean(scores))
    slope = stats.linregress(np.log2([*envelope.budgets]), best).slope
    assert envelope.rise().value == pytest.approx(slope)
    quadratic = np.polynomial.Polynomial.fit(np.log2([*envelope.budgets]), best, 2)
    spread = np.std(quadratic(np.log2([*envelope.budgets])))
    assert envelope.curve().value == pytest.approx(spread)


@pytest.mark.parametrize("name", ["noisy corners", "plateaus", "wandering"])
@pytest.mark.thorough
def test_a_claim_passes_in_no_more_null_worlds_than_it_says(name):
    """A fast form of benchmarks/claims_nulls.py: of 80 tests at .05, twelve pass once in 1,000."""
    ps = []
    for number in range(80):
        envelope = envelope_of(null_worlds.WORLDS[name], [7, number], runs=5, draws=99)
        among = envelope.budgets[null_worlds.BUDGET]
        regime = best_above_best(envelope.worlds, among[1:-1], among[[0, -1]])
        ps.append([regime.p, regime.p_opposite, envelope.rise().p, envelope.curve().p])
    assert ((np.array(ps) <= 0.05).sum(axis=0) < 12).all()


def test_a_rise_is_found_and_its_opposite_is_not():
    rising = envelope_of(null_worlds.climbing, 6, runs=10)
    assert rising.rise().p < 0.01
    assert rising.rise().p_opposite > 0.99
    assert rising.rise().low > 0
    assert rising.curve().p < 0.05
    assert np.isnan(rising.curve().p_opposite)


def test_a_slope_has_the_variance_of_whole_runs():
    """Runs that never improve have no slope of their own, however far apart they are."""
    noise = np.random.default_rng(8).normal(0, 1, (20, 1))
    frame = as_frame(np.repeat(noise, 33, axis=1), children=1, seeds=range(20))
    grid = cells(one_sweep(frame))
    half = halves(grid, 0)
    budgets = budgets_of(grid, half)
    found = HalvedEnvelope(worlds=NullWorlds.of(grid, draws=99), budgets=budgets, half=half).rise()
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.p > 0.05


@pytest.mark.thorough
def test_the_detectable_rise_is_found_in_four_of_five_repetitions():
    effect = np.median([envelope_of(null_worlds.plateaus, k).rise().detectable for k in range(10)])

    def lifted(rng, N, runs, generations):
        calls = np.maximum(N * np.arange(generations + 1), 1)
        return null_worlds.plateaus(rng, N, runs, generations) + effect * np.log2(calls)

    found = [envelope_of(lifted, [9, k]).rise().p <= 0.05 for k in range(100)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.15)


@pytest.mark.parametrize("seed", range(6))
def test_where_the_same_runs_are_best_at_every_budget_nothing_rises(seed):
    """The gain from budget to budget is 0 then, whatever rounding makes of it and its variance."""

    def draw(rng, N, runs, generations):
        return np.repeat((N == 1) + 0.1 * rng.normal(size=(runs, 1)), generations + 1, axis=1)

    envelope = envelope_of(draw, seed, runs=5)
    assert envelope.curve().p > 0.5
    assert envelope.rise().p > 0.05


def test_runs_that_are_all_alike_show_nothing():
    grid = grid_of({N: np.full(5, 0.1 * N) for N in (1, 4, 16)})
    found = best_above_best(NullWorlds.of(grid), at_budget(grid)[[2]], at_budget(grid)[[0, 1]])
    assert found.p == 1
    assert np.isnan(found.detectable)


def test_gaps_are_counted_in_standard_errors_where_anything_varies():
    np.testing.assert_allclose(studentised(np.array([2.0, 2.0]), np.array([0.5, 0.0])), [4, 0])


def test_the_data_count_among_the_worlds_that_show_as_much():
    assert p_value(1.0, np.array([0.0, 0.5, 1.0, 2.0])) == pytest.approx(3 / 5)
    assert p_value(9.0, np.zeros(19)) == pytest.approx(1 / 20)


def test_the_least_effect_is_where_the_power_reaches_four_in_five():
    assert least_effect(lambda x: min(x / 10, 1.0), 0.3) == pytest.approx(8, rel=1e-4)
    assert least_effect(lambda _: 0.5, 1.0) == np.inf
    assert np.isnan(least_effect(lambda _: 1.0, 0.0))


def test_the_lower_limit_is_that_of_the_nearest_rival():
    rng = np.random.default_rng(3)
    values = {N: rng.normal(mean, 0.01, 8) for N, mean in ((1, 1.0), (4, 0.9), (16, 0.1))}
    grid = grid_of(values)
    at = at_budget(grid)
    found = best_above_best(NullWorlds.of(grid), at[[0]], at[[1, 2]])
    assert 0 < found.low < found.value < found.high
    assert found.value == pytest.approx(0.1, abs=0.02)


def test_scaled_residuals_have_the_unbiased_variance_of_a_cell():
    grid = grid_of(two(np.random.default_rng(4)))
    squares = (NullWorlds.of(grid).scaled ** 2).sum(axis=0) / grid.counts
    np.testing.assert_allclose(squares, np.nanvar(grid.values, axis=0, ddof=1))


@pytest.mark.parametrize("claim", ["rise", "curve"])
def test_a_claim_is_held_against_the_harder_kind_of_null_world(claim):
    """The cells of a budget may all be alike, or stay apart as observed: nobody knows which."""
    apart = []
    for seed in range(3):
        envelope = envelope_of(null_worlds.plateaus, seed)
        alone = []
        for null in envelope._splits[1:]:
            one = replace(envelope)
            vars(one)["_splits"] = [envelope._splits[0], null]
            alone.append(getattr(one, claim)())
        found = getattr(envelope, claim)()
        assert found.p == max(each.p for each in alone)
        if claim == "rise":
            assert found.p_opposite == max(each.p_opposite for each in alone)
            assert found.high - found.low == max(each.high - each.low for each in alone)
        apart.append(alone[0].p != alone[1].p)
    assert any(apart)
