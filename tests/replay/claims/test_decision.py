"""Shrunk effects, their exaggeration, and bands of power."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.claims.decision import (
    POWER,
    decide,
    detectable,
    exaggeration,
    kurtosis_of,
    open_to,
    power,
    power_band,
    shrunk,
    still_needed,
)


def test_a_shrunk_effect_is_less_and_none_where_the_error_is_as_large():
    assert shrunk(1.0, 0.5) == pytest.approx(0.75)
    assert shrunk(-1.0, 0.5) == pytest.approx(-0.75)
    assert shrunk(0.4, 0.5) == 0
    assert shrunk(0.0, 0.5) == 0


def test_the_expected_exaggeration_is_that_of_simulated_verdicts():
    rng = np.random.default_rng(0)
    for effect in (2.2, 3.0, 6.0):
        true = shrunk(effect, 1.0)
        seen = true + rng.standard_normal(400_000)
        called = np.abs(seen)[np.abs(seen) > 1.9623]
        assert exaggeration(effect, 1.0, 1000.0) == pytest.approx(called.mean() / true, rel=0.01)
    assert exaggeration(0.9, 1.0, 50.0) == math.inf
    assert exaggeration(900.0, 1.0, 50.0) == 1
    assert math.isnan(exaggeration(1.0, math.nan, 5.0))


def test_heavy_tails_widen_a_band_of_power():
    assert kurtosis_of(np.random.default_rng(0).normal(size=20_000)) < 0.1
    heavy = kurtosis_of(np.random.default_rng(0).lognormal(size=200), np.zeros(3))
    assert heavy > 2
    narrow, wide = (power_band(1.0, 0.4, 18.0, 2.0, kurtosis=each) for each in (0.0, heavy))
    assert wide[0] < narrow[0]
    assert wide[1] - wide[0] > narrow[1] - narrow[0]


def test_an_interval_decides_where_it_ends_within_the_margin_or_beyond_zero() -> None:
    assert decide(-0.1, 0.1, 0.2) == decide(0.05, 0.1, 0.2) == "within margin"
    assert decide(-0.2, 0.1, 0.2) == decide(-0.1, 0.2, 0.2) == "undetermined"
    assert decide(0.0, 0.3) == decide(-0.3, 0.0) == decide(math.nan, math.nan) == "undetermined"
    assert (decide(0.1, 0.3, 0.2), decide(-0.3, -0.1, 0.2)) == ("greater", "less")


@pytest.mark.parametrize("freedom", [3.0, 9.0, 50.0])
def test_power_is_the_share_of_simulated_studies_that_find_the_effect(freedom: float) -> None:
    rng = np.random.default_rng(4)
    limit = student_limit(freedom)
    noise = rng.standard_normal(200_000)
    spread = np.sqrt(rng.chisquare(freedom, 200_000) / freedom)
    for effect in (0.0, 0.3, 2.5):
        found = np.abs(effect + noise) / spread > limit
        assert power(effect, 1.0, freedom) == pytest.approx(found.mean(), abs=0.006)
    assert power(0.0, 2.0, freedom) == pytest.approx(0.05, abs=1e-6)
    assert power(-2.5, 1.0, freedom) == pytest.approx(power(2.5, 1.0, freedom))
    assert power(5.0, 2.0, freedom) == pytest.approx(power(2.5, 1.0, freedom))


def student_limit(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(0.975, freedom))


@pytest.mark.parametrize("freedom", [9.0, 50.0])
def test_what_is_detectable_is_found_four_times_in_five(freedom: float) -> None:
    assert power(detectable(2.0, freedom), 2.0, freedom) == pytest.approx(POWER, abs=0.02)


def test_more_runs_leave_more_freedom_to_the_test_that_decides() -> None:
    middle, seen = power_band(1.25, 1.0, 3.0, 4.0, band=0.0)
    twice = {freedom: power(2.5, 1.0, freedom) for freedom in (3.0, 12.0)}
    assert seen == pytest.approx(twice[12.0])  # a band holds the power at the effect that was seen
    assert abs(middle - twice[12.0]) < abs(middle - twice[3.0]) / 2


def test_heavy_tails_leave_the_freedom_of_a_variance_of_such_runs() -> None:
    # The variance of a sample variance is sigma^4 (2 / f + kurtosis / n), with f + 1 = n about.
    for freedom, kurtosis in ((10.0, 3.0), (1000.0, 6.0)):
        effective = open_to(freedom, kurtosis)[0]
        assert effective == pytest.approx(freedom / (1 + kurtosis * freedom / (freedom + 2) * 2))
        assert effective < open_to(freedom, kurtosis / 2)[0] < open_to(freedom, 0.0)[0] == freedom


def test_heavy_tails_widen_the_error_up_to_a_bound() -> None:
    factors = [open_to(10.0, kurtosis)[1] for kurtosis in (0.0, 1.0, 3.0, 30.0, 300.0)]
    assert factors[0] == 1
    assert factors[0] < factors[1] < factors[2] < factors[3] == factors[4] < 2


@given(
    n=st.integers(2, 60), effect=st.floats(-3, 3), margin=st.floats(0, 2),
    freedom=st.floats(1, 100), level=st.sampled_from([0.9, 0.95, 0.999]),
)  # fmt: skip
def test_with_the_runs_that_are_still_needed_the_effect_is_detectable_and_with_one_fewer_not(
    n: int, effect: float, margin: float, freedom: float, level: float
) -> None:
    more = still_needed(n, effect, margin, 1.0, freedom, "undetermined", level=level)
    away = max(abs(effect), margin - abs(effect))
    if more == math.inf:
        assert away < 1e-6
        return

    def found(further: float) -> bool:
        factor = 1 + further / n
        return detectable(factor**-0.5, freedom * factor, level) <= away

    assert found(more)
    assert more == 1 or not found(more - 1)


def test_runs_that_are_still_needed_are_counted_singly_and_none_where_all_is_known() -> None:
    pairs = still_needed(10, 0.1, 0.0, 0.2, 9.0, "undetermined")
    assert still_needed(10, -0.1, 0.0, 0.2, 9.0, "undetermined", per=2) == 2 * pairs > 2
    assert still_needed(10, 0.1, 0.0, 0.2, 9.0, "greater") == 0
    assert still_needed(10, 0.1, 0.0, math.nan, 9.0, "within margin") == 0
    assert still_needed(10, 0.0, 0.0, 0.2, 9.0, "undetermined") == math.inf
    assert math.isnan(still_needed(10, 0.5, 0.0, math.nan, 9.0, "undetermined"))


def test_a_band_holds_the_power_that_is_promised_with_the_runs_that_are_still_needed() -> None:
    for n, effect in ((4, 0.3), (10, 0.02), (50, 0.4)):
        more = still_needed(n, effect, 0.0, 1.0, n - 1.0, "undetermined")
        low, high = power_band(effect, 1.0, n - 1.0, 1 + more / n)
        assert low <= POWER + 0.02 <= high + 0.02
