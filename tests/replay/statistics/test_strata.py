"""Differences of several tasks together, beside formulas written here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from replay.statistics.strata import (
    Stratified,
    Stratum,
    compare_strata,
    further_tasks,
    stratified,
)

RNG = np.random.default_rng(7)
TASKS = [
    Stratum(RNG.normal(shift, 1.0, a), RNG.normal(0.0, 0.7, b))
    for shift, a, b in ((0.6, 8, 11), (0.2, 7, 9), (0.4, 12, 6))
]
PAIRS = [Stratum(each, each - RNG.normal(0.3, 0.5, 8), 8) for each in RNG.normal(size=(2, 8))]


def welch(strata: list[Stratum]) -> tuple[float, float, float]:
    """The mean difference over tasks, its standard error and degrees of freedom."""
    values, variances, freedoms = [], [], []
    for each in strata:
        x, y = each.left, each.right
        one, other = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
        values.append(x.mean() - y.mean())
        variances.append(one + other)
        freedoms.append((one + other) ** 2 / (one**2 / (len(x) - 1) + other**2 / (len(y) - 1)))
    squares = np.array(variances)
    freedom = squares.sum() ** 2 / (squares**2 / freedoms).sum()
    return float(np.mean(values)), float(np.sqrt(squares.sum())) / len(strata), float(freedom)


def test_the_mean_over_tasks_has_the_error_and_freedom_of_welch_and_satterthwaite() -> None:
    found = compare_strata(TASKS)
    assert (found.value, found.error, found.freedom) == pytest.approx(welch(TASKS))


@pytest.mark.parametrize("sign", [1, -1])
def test_of_two_tests_the_less_clear_one_counts(sign: int) -> None:
    strata = [Stratum(sign * each.left, sign * each.right) for each in TASKS]
    value, error, freedom = welch(strata)
    exchanged, found = Stratified(strata, 0), compare_strata(strata)
    by_t = stats.t.cdf(value / error, freedom)
    assert found.p_greater == pytest.approx(max(exchanged.p(0.0, 1), 1 - by_t))
    assert found.p_less == pytest.approx(max(exchanged.p(0.0, -1), by_t))
    half = stats.t.ppf(0.975, freedom) * error
    alone = exchanged.found(0.95)
    assert found.low == pytest.approx(min(alone.low, value - half))
    assert found.high == pytest.approx(max(alone.high, value + half))


@pytest.mark.parametrize("margin", [0.01, 0.9, 1.2])
def test_within_a_margin_is_a_two_sided_p(margin: float) -> None:
    value, error, freedom = welch(TASKS)
    one_sided = stats.t.cdf(-(margin - value) / error, freedom)
    found = compare_strata(TASKS, margin=margin)
    exchanged = Stratified(TASKS, 0)
    outside = max(one_sided, exchanged.p(-margin, 1), exchanged.p(margin, -1))
    assert found.p_within == pytest.approx(min(1.0, 2 * outside))


def test_pairs_are_judged_by_their_signs_alone() -> None:
    found, exchanged = compare_strata(PAIRS), Stratified(PAIRS, 0)
    assert (found.p_greater, found.p_less) == (exchanged.p(0.0, 1), exchanged.p(0.0, -1))
    assert np.isnan(found.p_within)


def test_a_scale_is_a_unit_and_no_more() -> None:
    halved = compare_strata([each.over(2.0) for each in TASKS])
    whole = compare_strata(TASKS)
    assert halved.value == pytest.approx(whole.value / 2)
    assert halved.p_greater == pytest.approx(whole.p_greater)
    assert TASKS[0].scale == pytest.approx(np.std([*TASKS[0].left, *TASKS[0].right], ddof=1))


def test_runs_that_do_not_vary_leave_one_degree_of_freedom() -> None:
    same = [Stratum(np.full(5, value), np.full(6, value)) for value in (0.25, 0.5)]
    assert Stratified(same, 0).freedom == 1


@pytest.mark.parametrize("error", [0.05, 0.3, 2.0])
def test_of_equally_sure_tasks_the_spread_is_what_their_errors_do_not_explain(error: float) -> None:
    values = np.array([0.1, 0.5, -0.2, 0.9, 0.3])
    found = further_tasks(values, np.full(5, error))
    assert found.spread**2 == pytest.approx(max(0.0, values.var(ddof=1) - error**2))
    assert found.value == pytest.approx(values.mean())


def test_the_variance_between_two_tasks_by_hand():
    """Weights of 4 each: Q = 2, one degree of freedom, (2 - 1) / (8 - 32 / 8) = 1 / 4."""
    found = further_tasks(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert found.value == pytest.approx(0.5)
    assert found.spread == pytest.approx(0.5)
    assert found.pooled.tolist() == pytest.approx([0.25, 0.75])  # half way to the mean
    assert np.isnan([found.low, found.high, found.p]).all()


def test_the_interquartile_mean_has_an_interval_in_the_units_of_its_values() -> None:
    tasks = [each.left for each in TASKS]
    value, low, high = stratified(tasks)
    assert low < value < high
    np.testing.assert_allclose(stratified([3 + 10 * each for each in tasks]), [
        3 + 10 * each for each in (value, low, high)
    ])  # fmt: skip
